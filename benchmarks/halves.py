"""Split people's conversations into halves that share no document: one to learn from, one to answer.

    uv run python -m benchmarks.halves mtrag DATA HALVES
    uv run python -m benchmarks.halves multidoc2dial DATA HALVES
    uv run python -m benchmarks.halves quac DATA HALVES

Of mtRAG (Katsis et al. 2025) `train.json` and `test.json`, as published. Of MultiDoc2Dial's documents, and DialDoc21's
test dialogs on them, `train/` and `test/` in the format of Doc2Dial (Feng et al. 2020). These dialogs have no
references: the sentence that shares most with what the agent says stands for them. Of the dialogs of QuAC (Choi et al.
2018) that CANARD (Elgohary et al. 2019) has, `train.json` and `test.json` in QuAC's format; CANARD has no sections, so
that the answers given about a section, which are spans of it, stand for its text.

`passages.jsonl` has passages of the training half's documents, whole sentences of 60 to 150 words. What is written from
them teaches nothing of the test half's documents.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from generator.common.linking import link
from generator.common.sentences import sentences
from generator.corpora.mtrag.names import domain_of
from generator.dialogs.checks.evidence import rank_sentences
from judges.benchmarks.mtrag.retrieval_tasks import read_collections, read_documents

SHORTEST, LONGEST = 60, 150  # words of a passage
UNKNOWN = "I don't know."  # CANARD's words for QuAC's CANNOTANSWER
Conversation = Mapping[str, Any]
DocumentKey = tuple[str, str]  # domain, document
Record = Mapping[str, str]  # a passage's id, title and text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=SPLIT)
    parser.add_argument("data", type=Path, help="the folder with canard/, doc2dial/, mtrag/ and multidoc2dial_docs/")
    parser.add_argument("folder", type=Path, help="where the halves and passages.jsonl go")
    args = parser.parse_args()
    passages = list(SPLIT[args.name](args.data, args.folder))
    random.Random(1).shuffle(passages)
    lines = "".join(json.dumps(passage, ensure_ascii=False) + "\n" for passage in passages)
    (args.folder / "passages.jsonl").write_text(lines, encoding="utf-8")
    print(f"passages.jsonl: {len(passages)} passages")


def split_mtrag(data: Path, folder: Path) -> Iterator[Record]:
    """Write the halves of mtRAG's conversations and yield the passages to write from."""
    conversations = read(data / "mtrag/conversations.json")
    domains = [domain_of(conversation["retriever"]["collection"]["name"]) for conversation in conversations]
    documents = [find_documents(*each) for each in zip(domains, conversations, strict=True)]
    halves = halve(domains, documents, random.Random(0))
    for name, half in zip(("train", "test"), halves, strict=True):
        write(folder / f"{name}.json", [conversations[number] for number in half])
        print(f"{name}: {len(half)} conversations")
    yield from read_passages(data / "mtrag", {key for number in halves[0] for key in documents[number]})


def find_documents(domain: str, conversation: Conversation) -> set[DocumentKey]:
    """Return the documents that a conversation's contexts are passages of."""
    contexts = [context for message in conversation["messages"] for context in message.get("contexts", ())]
    return {(domain, document_of(context["document_id"])) for context in contexts}


def document_of(passage_id: str) -> str:
    """Return the name of a passage's document: without the passage's offsets."""
    return passage_id.rsplit("-", 2)[0]


def split_multidoc2dial(data: Path, folder: Path) -> Iterator[Record]:
    """Write the halves of the dialogs on MultiDoc2Dial's documents and yield the passages to write from."""
    pages = {
        (path.stem, record["id"]): record
        for path in sorted((data / "multidoc2dial_docs").glob("*.jsonl"))
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    }
    listed = read(data / "doc2dial/sharedtask/doc2dial_dial_finaltest.json")["dial_data"]
    dialogs = [
        ((domain, name), dialog)
        for domain, members in listed.items()
        for name, of_page in members.items()
        for dialog in of_page
        if (domain, name) in pages
    ]
    # All parts of a page go to one half: “Registrations#1_0”, “Registrations#3_0”.
    topics = [{(domain, name.partition("#")[0])} for (domain, name), _ in dialogs]
    halves = halve([domain for (domain, _), _ in dialogs], topics, random.Random(0))
    for name, half in zip(("train", "test"), halves, strict=True):
        marked: dict[DocumentKey, list[Conversation]] = {}
        for key, dialog in (dialogs[number] for number in half):
            marked.setdefault(key, []).append(add_references(dialog, pages[key]["text"]))
        documents = {key: make_page(pages[key]) for key in marked}
        write(folder / name / "documents.json", {"doc_data": nest(documents)})
        write(folder / name / "dialogs.json", {"dial_data": nest(marked)})
        print(f"{name}: {len(half)} dialogs on {len(marked)} documents")
    for domain, name in sorted({dialogs[number][0] for number in halves[0]}):
        page = pages[domain, name]
        for number, text in enumerate(filter(is_long, cut_all(page["text"]))):
            yield {"id": f"{domain}-{name}-{number}", "title": page["title"].partition("#")[0], "text": text}


def make_page(page: Record) -> dict[str, Any]:
    """Return a document as Doc2Dial has it, with a span for each sentence."""
    spans = enumerate(sentences(page["text"], "en"), start=1)
    return {
        "title": page["title"],
        "doc_text": page["text"],
        "spans": {str(number): {"start_sp": start, "end_sp": end} for number, (start, end) in spans},
    }


def add_references(dialog: Conversation, text: str) -> Conversation:
    """Return a dialog whose agent refers to the sentence that shares most with what it says, if one shares anything."""
    texts = [text[start:end] for start, end in sentences(text, "en")]
    turns, asked = [], ""
    for turn in dialog["turns"]:
        if turn["role"] == "user":
            asked, found = turn["utterance"], []
        else:
            found = rank_sentences(texts, turn["utterance"], asked)[:1]
        turns.append({**turn, "references": [{"id_sp": str(n + 1), "label": "solution"} for n in found]})
    return {**dialog, "turns": turns}


def split_quac(data: Path, folder: Path) -> Iterator[Record]:
    """Write the halves of QuAC's dialogs on sections made of their answers and yield the long ones to write from."""
    dialogs: dict[str, list[str]] = {}  # title, section's title, question, answer, question, answer, …
    for record in read(data / "canard/dev.json"):
        history = record["History"]
        if len(history) > len(dialogs.get(record["QuAC_dialog_id"], ())):
            dialogs[record["QuAC_dialog_id"]] = history
    dialogs = {
        name: [*history[:2], *(text.rstrip(" ,;:") for text in history[2:])]
        for name, history in dialogs.items()
        if set(history[3::2]) - {UNKNOWN}
    }
    sections: dict[tuple[str, ...], list[str]] = {}
    for history in dialogs.values():
        sections.setdefault(tuple(history[:2]), []).extend(history[3::2])
    texts = {titles: join_answers(answers) for titles, answers in sections.items()}
    articles = [{("quac", history[0])} for history in dialogs.values()]
    halves = halve(["quac"] * len(dialogs), articles, random.Random(0))
    for name, half in zip(("train", "test"), halves, strict=True):
        listed = [make_section(*list(dialogs.items())[number], texts) for number in half]
        write(folder / f"{name}.json", {"data": listed})
        print(f"{name}: {len(listed)} dialogs, {sum(len(each['paragraphs'][0]['qas']) for each in listed)} questions")
    learned_from = {key for number in halves[0] for key in articles[number]}
    for number, ((title, section), text) in enumerate(texts.items()):
        if ("quac", title) in learned_from and is_long(text):
            yield {"id": f"quac-{number}", "title": f"{title}: {section}", "text": text}


def join_answers(answers: Sequence[str]) -> str:
    """Return a text of which all answers are spans, but for those that nobody knew, in the order they were given in."""
    kept: list[str] = []
    for answer in answers:
        if answer != UNKNOWN and not any(answer in other for other in kept):
            kept.append(answer)
    return " ".join(answer if answer.endswith((".", "!", "?", '."')) else f"{answer}." for answer in kept)


def make_section(name: str, history: Sequence[str], texts: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    """Return a dialog as QuAC has it."""
    context = f"{texts[tuple(history[:2])]} CANNOTANSWER"
    questions = []
    for number, (question, said) in enumerate(zip(history[2::2], history[3::2], strict=True)):
        text = "CANNOTANSWER" if said == UNKNOWN else said
        answer = {"text": text, "answer_start": context.index(text)}
        questions.append({"id": f"{name}_q#{number}", "question": question, "orig_answer": answer, "answers": [answer]})
    section = {"id": name, "context": context, "qas": questions}
    return {"title": history[0], "section_title": history[1], "background": "", "paragraphs": [section]}


def halve(
    domains: Sequence[str], documents: Sequence[set[DocumentKey]], rng: random.Random
) -> tuple[list[int], list[int]]:
    """Return the numbers of two halves, nearly as many of each domain each, without a document in common.

    Args:
        domains: of each conversation.
        documents: that each conversation is about.
    """
    groups: dict[str, dict[int, list[int]]] = {}
    for number, (domain, label) in enumerate(zip(domains, link(documents), strict=True)):
        groups.setdefault(domain, {}).setdefault(label, []).append(number)
    halves: tuple[list[int], list[int]] = ([], [])
    for _, members in sorted(groups.items()):
        sizes = [0, 0]
        for group in sorted(rng.sample(list(members.values()), len(members)), key=len, reverse=True):
            side = sizes.index(min(sizes))
            halves[side].extend(group)
            sizes[side] += len(group)
    return sorted(halves[0]), sorted(halves[1])


def read_passages(mtrag: Path, wanted: set[DocumentKey]) -> Iterator[Record]:
    """Yield the pooled passages of the documents `wanted`, cut to whole sentences, each text once."""
    texts = set()
    for collection in read_collections(mtrag / "retrieval_tasks"):
        for passage in read_documents(collection.corpus) if collection.corpus else ():
            if (collection.name, document_of(passage.id)) not in wanted:
                continue
            text = next(cut_all(re.sub(r"\s+", " ", passage.text.replace('""', '"')).strip(' "')), "")
            if is_long(text) and text not in texts:
                texts.add(text)
                yield {"id": f"{collection.name}-{passage.id}", "title": passage.title, "text": text}


def cut_all(text: str) -> Iterator[str]:
    """Yield runs of whole sentences of at most `LONGEST` words; a beginning that ends a sentence is left out."""
    spans = sentences(text, "en")
    spans = spans[1:] if len(spans) > 2 and text[:1].islower() else spans
    while spans:
        fits = [end for _, end in spans if len(text[spans[0][0] : end].split()) <= LONGEST]
        yield text[spans[0][0] : fits[-1]] if fits else ""
        spans = spans[max(len(fits), 1) :]


def is_long(text: str) -> bool:
    return len(text.split()) >= SHORTEST


def nest(by_document: Mapping[DocumentKey, Any]) -> dict[str, dict[str, Any]]:
    """Return the same by domain, then by document."""
    nested: dict[str, dict[str, Any]] = {}
    for (domain, name), value in by_document.items():
        nested.setdefault(domain, {})[name] = value
    return nested


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


SPLIT = {"mtrag": split_mtrag, "multidoc2dial": split_multidoc2dial, "quac": split_quac}

if __name__ == "__main__":
    main()
