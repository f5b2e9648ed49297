"""The halves that students learn from and answer share no document."""

import json
import random
from pathlib import Path

from benchmarks.halves import cut_all, find_documents, halve, split_multidoc2dial, split_quac
from tests.support.corpora import dialogs


def test_conversations_linked_by_documents_are_in_one_half() -> None:
    linked = [{("d", "a"), ("d", "b")}, {("d", "b"), ("d", "c")}, {("d", "c")}]
    documents = [*linked, *({("d", name)} for name in "defgh")]
    train, test = halve(["d"] * 8, documents, random.Random(0))
    sides = [set().union(*(documents[number] for number in half)) for half in (train, test)]
    assert not sides[0] & sides[1]
    assert len(train) == len(test) == 4


def test_a_conversation_without_contexts_is_kept() -> None:
    contexts = [{"document_id": "a-0-9"}]
    conversations = [{"messages": [{"contexts": contexts}]}, {"messages": [{}]}]
    documents = [find_documents("d", conversation) for conversation in conversations]
    train, test = halve(["d", "d"], documents, random.Random(0))
    assert documents == [{("d", "a")}, set()]
    assert len(train) == len(test) == 1


def test_a_passage_is_cut_to_whole_sentences() -> None:
    text = "tail of a sentence. " + "A sentence of five words. " * 40
    assert [len(run.split()) for run in cut_all(text)] == [150, 50]
    assert next(cut_all(text)) == " ".join(["A sentence of five words."] * 30)


def test_dialogs_without_references_refer_to_the_sentence_that_shares_most(tmp_path: Path) -> None:
    text = "The office is in the hall. A new plate costs six crowns. Plates of horses are free. " + "Ask there. " * 60
    (tmp_path / "multidoc2dial_docs").mkdir()
    pages = [{"id": f"{name}#1_0", "title": f"{name}#1", "text": text} for name in ("Plates", "Permits")]
    written = "".join(json.dumps(page) + "\n" for page in pages)
    (tmp_path / "multidoc2dial_docs/dmv.jsonl").write_text(written)
    turns = [
        {"role": "user", "utterance": "What does a plate cost?"},
        {"role": "agent", "utterance": "It costs six crowns."},
        {"role": "user", "utterance": "And for a horse?"},
    ]
    listed = {
        page["id"]: [{"dial_id": page["id"], "doc_id": page["id"], "turns": turns}]
        for page in [*pages, {"id": "Not there#1_0"}]
    }
    (tmp_path / "doc2dial/sharedtask").mkdir(parents=True)
    test_file = tmp_path / "doc2dial/sharedtask/doc2dial_dial_finaltest.json"
    test_file.write_text(json.dumps({"dial_data": {"dmv": listed}}))
    passages = list(split_multidoc2dial(tmp_path, tmp_path / "halves"))
    read = [dialogs("multidoc2dial", path=str(tmp_path / "halves" / half)) for half in ("train", "test")]
    assert [len(half) for half in read] == [1, 1]
    assert [e.text for half in read for e in half[0].turns[0].evidence] == ["A new plate costs six crowns."] * 2
    assert {passage["title"] for passage in passages} < {"Plates", "Permits"}


def test_answers_about_a_section_stand_for_its_text(tmp_path: Path) -> None:
    def history(article: str) -> list[str]:
        asked = [(f"What is {number}?", f"The {number}th part of {article},") for number in range(20)]
        return [article, "Parts", *(text for pair in asked for text in pair), "And the rest?", "I don't know."]

    records = [
        {"QuAC_dialog_id": f"C_{article}", "History": history(article)[:length]}
        for article in ("Fermat", "Gauss")
        for length in (2, 44)
    ]
    (tmp_path / "canard").mkdir()
    (tmp_path / "canard/dev.json").write_text(json.dumps(records))
    (passage,) = split_quac(tmp_path, tmp_path / "halves")
    (train,), (test,) = (dialogs("quac", path=str(tmp_path / "halves" / f"{half}.json")) for half in ("train", "test"))
    assert passage["title"] == train.passages[0].title != test.passages[0].title
    assert passage["text"] == train.passages[0].text
    assert [turn.answerability for turn in train.turns] == ["answerable"] * 20 + ["unanswerable"]
    assert all([e.text for e in turn.evidence] == [turn.answer] for turn in train.turns[:-1])
