"""Split mtRAG's human conversations into halves that share no document: one to learn from, one to answer.

    uv run python -m benchmarks.halves ../shared/data/mtrag FOLDER

Writes `train.json` and `test.json`, conversations as published (Katsis et al. 2025), and `passages.jsonl`: the first
whole sentences, 60 to 150 words, of every pooled passage of the training half's documents. What is written from these
teaches nothing of the test half's documents.
"""

import argparse
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from generator.common.passages import sentences
from generator.corpora.mtrag.names import domain_of
from judges.benchmarks.mtrag.retrieval_tasks import read_collections, read_documents

SHORTEST, LONGEST = 60, 150  # words of a passage
Conversation = Mapping[str, Any]
DocumentKey = tuple[str, str]  # domain, document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("mtrag", type=Path, help="its folder: conversations.json, retrieval_tasks/")
    parser.add_argument("folder", type=Path, help="where the three files go")
    args = parser.parse_args()
    conversations = json.loads((args.mtrag / "conversations.json").read_text(encoding="utf-8"))
    halves = dict(zip(("train", "test"), halve(conversations, random.Random(0)), strict=True))
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, half in halves.items():
        (args.folder / f"{name}.json").write_text(json.dumps(half, ensure_ascii=False), encoding="utf-8")
        print(f"{name}.json: {len(half)} conversations")
    wanted = {key for conversation in halves["train"] for key in find_documents(conversation)}
    passages = list(read_passages(args.mtrag, wanted))
    random.Random(1).shuffle(passages)
    lines = "".join(json.dumps(passage, ensure_ascii=False) + "\n" for passage in passages)
    (args.folder / "passages.jsonl").write_text(lines, encoding="utf-8")
    print(f"passages.jsonl: {len(passages)} passages of {len(wanted)} documents")


def find_documents(conversation: Conversation) -> set[DocumentKey]:
    """Return the documents that a conversation's contexts are passages of."""
    domain = domain_of(conversation["retriever"]["collection"]["name"])
    contexts = [context for message in conversation["messages"] for context in message.get("contexts", ())]
    return {(domain, document_of(context["document_id"])) for context in contexts}


def document_of(passage_id: str) -> str:
    """Return the name of a passage's document: without the passage's offsets."""
    return passage_id.rsplit("-", 2)[0]


def halve(conversations: Sequence[Conversation], rng: random.Random) -> tuple[list[Conversation], list[Conversation]]:
    """Return halves of nearly as many conversations of each domain each, without a document in common."""
    seen: dict[DocumentKey, int] = {}
    pairs = [
        (number, seen.setdefault(key, number))
        for number, conversation in enumerate(conversations)
        for key in find_documents(conversation)
    ]
    rows, columns = np.array(pairs).T
    linked = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(conversations), len(conversations)))
    _, labels = connected_components(linked, directed=False)
    domains: dict[str, dict[int, list[int]]] = {}
    for number, conversation in enumerate(conversations):
        domain = domain_of(conversation["retriever"]["collection"]["name"])
        domains.setdefault(domain, {}).setdefault(int(labels[number]), []).append(number)
    halves: tuple[list[int], list[int]] = ([], [])
    for _, groups in sorted(domains.items()):
        sizes = [0, 0]
        for group in sorted(rng.sample(list(groups.values()), len(groups)), key=len, reverse=True):
            side = sizes.index(min(sizes))
            halves[side].extend(group)
            sizes[side] += len(group)
    train, test = ([conversations[number] for number in sorted(half)] for half in halves)
    return train, test


def read_passages(mtrag: Path, wanted: set[DocumentKey]) -> Iterator[dict[str, str]]:
    """Yield the passages of the documents `wanted`, cut to whole sentences, each text once."""
    texts = set()
    for collection in read_collections(mtrag / "retrieval_tasks"):
        for passage in read_documents(collection.corpus) if collection.corpus else ():
            if (collection.name, document_of(passage.id)) not in wanted:
                continue
            text = cut(re.sub(r"\s+", " ", passage.text.replace('""', '"')).strip(' "'))
            if len(text.split()) >= SHORTEST and text not in texts:
                texts.add(text)
                yield {"id": f"{collection.name}-{passage.id}", "title": passage.title, "text": text}


def cut(text: str) -> str:
    """Return the whole sentences at the start of `text`, without one whose beginning is in the passage before."""
    spans = sentences(text, "en")
    spans = spans[1:] if len(spans) > 2 and text[:1].islower() else spans
    ends = [end for _, end in spans if spans and len(text[spans[0][0] : end].split()) <= LONGEST]
    return text[spans[0][0] : ends[-1]] if ends else ""


if __name__ == "__main__":
    main()
