"""OR-QuAC, in files of our own that are laid out as its authors': none of theirs is at hand."""

import gzip
import json
import shutil
import tracemalloc
import zipfile
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from generator.corpora import orquac
from tests.support.corpora import corpus, dialogs, good, message, read, read_dialogs, served, write_lines

BIRTH = "Pell was born in Mell in 1901. His father kept bees."
LATER = "In 1930 he left Mell for Dell."
NOISE = [f"Passage {number} of something else." for number in range(4)]


def block(name: str, text: str, title: str = "Pell") -> dict[str, Any]:
    article, _, number = name.partition("@")
    return {"text": text, "title": title, "aid": article, "bid": int(number), "id": name}


def question(
    number: int, text: str, answer: str, start: int, positive: str | None, dialog: str = "C_1_0"
) -> dict[str, Any]:
    """A line of train.txt; `positive` is the one evidence that is labelled so, if any is."""
    return {
        "qid": f"{dialog}_q#{number}",
        "question": text,
        "rewrite": f"{text[:-1]} Pell?",
        "history": [{"question": "?", "answer": {"text": "!", "answer_start": 0}}] * number,
        "answer": {"text": answer, "answer_start": start, "bid": 0},
        "evidences": [*NOISE, positive or "One more."],
        "retrieval_labels": [0, 0, 0, 0, int(positive is not None)],
    }


ASKED = [
    question(0, "Where was he born?", "Mell", 17, BIRTH),
    question(1, "Did he leave?", "he left Mell", 0, LATER),  # its offset is wrong
    question(2, "Why?", "CANNOTANSWER", 30, LATER),
    question(3, "Who kept bees?", "His father", 31, BIRTH),
    question(4, "Is he dead?", "he died in 1980", 3, None),
]


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The publisher's folder."""
    root = tmp_path / "ORConvQA"
    (root / "preprocessed").mkdir(parents=True)
    blocks = [block("25749059@5", BIRTH), block("25749059@6", LATER), block("7@0", NOISE[0], title="")]
    (root / "all_blocks.txt.gz").write_bytes(gzip.compress("".join(json.dumps(b) + "\n" for b in blocks).encode()))
    relevant = {"C_1_0_q#0": "25749059@5", "C_1_0_q#1": "25749059@6", "C_1_0_q#3": "25749059@5"}
    qrels = json.dumps({name: {passage: 1} for name, passage in relevant.items()})
    (root / "qrels.txt.gz").write_bytes(gzip.compress(qrels.encode()))
    write_lines(root / "preprocessed" / "train.txt", *ASKED)
    write_lines(root / "preprocessed" / "dev.txt", question(0, "Who?", "Mell", 17, BIRTH, "C_2_0"))
    write_lines(root / "preprocessed" / "test.txt", question(0, "Who?", "Mell", 17, BIRTH, "C_3_0"))
    return root


# The collection


def test_each_passage_of_the_collection_is_a_document(published: Path) -> None:
    found = good(read("orquac", path=str(published)))
    assert [(d.id, d.title, d.text) for d in found] == [
        ("25749059@5", "Pell", BIRTH),
        ("25749059@6", "Pell", LATER),
        ("7@0", "", NOISE[0]),
    ]
    alone = published / "blocks"
    alone.write_bytes((published / "all_blocks.txt.gz").read_bytes())
    assert [d.id for d in good(read("orquac", path=str(alone)))] == [d.id for d in found]
    (published / "all_blocks.txt").write_bytes(gzip.decompress(alone.read_bytes()))
    assert [d.id for d in good(read("orquac", path=str(published)))] == [d.id for d in found]


def test_the_collection_is_read_as_a_stream(published: Path) -> None:
    lines = (json.dumps(block(f"{number}@0", BIRTH * 20)) + "\n" for number in range(5000))
    (published / "all_blocks.txt.gz").write_bytes(gzip.compress("".join(lines).encode(), 1))
    documents = corpus("orquac", path=str(published)).read()
    next(documents)
    tracemalloc.start()
    try:
        assert sum(1 for _ in documents) == 4999
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_the_split_of_dialogs_does_not_change_the_documents(published: Path) -> None:
    prints = {
        corpus("orquac", path=str(published), split=split, no_answer=answer).fingerprint()
        for split, answer in (("train", "No idea."), ("test", "No idea."), ("train", "I can't tell."))
    }
    assert len(prints) == 1
    assert corpus("orquac", path=str(published), strict=True).fingerprint() not in prints


# Dialogs


def test_the_questions_of_a_dialog_are_its_turns_on_the_passages_that_hold_the_answers(published: Path) -> None:
    (dialog,) = dialogs("orquac", path=str(published), no_answer="No idea.")
    assert (dialog.id, dialog.corpus, dialog.algorithm) == ("C_1_0", "orquac", "multi")
    assert dialog.document_ids == ("25749059@5", "25749059@6")
    assert [(p.id, p.text) for p in dialog.passages] == [("25749059@5", BIRTH), ("25749059@6", LATER)]
    assert {p.id for p in dialog.passages} < {d.id for d in good(read("orquac", path=str(published)))}
    assert [t.query for t in dialog.turns] == [asked["question"] for asked in ASKED]
    assert [t.retrieval_query for t in dialog.turns] == [asked["rewrite"] for asked in ASKED]
    assert [t.answer for t in dialog.turns] == ["Mell", "he left Mell", "No idea.", "His father", "he died in 1980"]
    kinds = ["answerable", "answerable", "unanswerable", "answerable", "answerable"]
    assert [t.answerability for t in dialog.turns] == kinds
    assert [[(e.passage_id, e.start) for e in t.evidence] for t in dialog.turns] == [
        [("25749059@5", 17)],
        [("25749059@6", 8)],
        [],
        [("25749059@5", 31)],
        [],
    ]
    assert [[(h.passage_id, h.rank, h.new) for h in t.hits] for t in dialog.turns] == [
        [("25749059@5", 1, True)],
        [("25749059@6", 1, True)],
        [("25749059@6", 1, False)],
        [("25749059@5", 1, False)],
        [],
    ]


def test_without_qrels_a_passage_is_named_after_the_question_that_first_rests_on_it(published: Path) -> None:
    (published / "qrels.txt.gz").unlink()
    (dialog,) = dialogs("orquac", path=str(published))
    assert [p.id for p in dialog.passages] == ["C_1_0_q#0:1", "C_1_0_q#1:1"]


def test_each_split_has_its_file(published: Path) -> None:
    names = [dialogs("orquac", path=str(published), split=split)[0].id for split in ("validation", "test")]
    assert names == ["C_2_0", "C_3_0"]
    with zipfile.ZipFile(published.parent / "all.zip", "w") as archive:
        archive.write(published / "preprocessed" / "test.txt", "or-quac/test.txt")
    shutil.rmtree(published)
    assert dialogs("orquac", path=str(published.parent), split="test")[0].id == "C_3_0"


def test_a_question_that_cannot_be_read_ends_its_dialog_before_it(tmp_path: Path) -> None:
    first, second, third, *_ = ASKED
    write_lines(
        tmp_path / "train.txt",
        first,
        "{",
        third,
        question(0, "Who?", "Mell", 17, BIRTH, "C_2_0"),
        second | {"qid": "C_2_0_q#1", "answer": None},
        question(1, "Who?", "Mell", 17, BIRTH, "C_3_0"),
        first | {"qid": "C_4_0"},
        question(0, "Who?", "Mell", 17, None, "C_5_0"),
    )
    found, bad = read_dialogs("orquac", tmp_path)
    assert [(d.id, len(d.turns)) for d in found] == [("C_1_0", 1), ("C_2_0", 1)]
    assert [(place.partition(":")[2], reason.partition(":")[0]) for place, reason in bad] == [
        ("2", "not JSON"),
        ("3", "qid"),
        ("5", "answer"),
        ("6", "qid"),
        ("7", "qid"),
        ("8", "it has no document"),
    ]


def test_files_that_are_not_there_or_not_what_they_should_be_are_errors(published: Path) -> None:
    def told() -> str:
        return message(lambda: dialogs("orquac", published, split="test"))

    (published / "qrels.txt.gz").write_bytes(gzip.compress(b'{"C_3_0_q#0": 1}'))
    assert told().startswith(f"{published}/qrels.txt.gz: not qrels")
    (published / "preprocessed" / "test.txt").unlink()
    assert "no test.txt" in told() and "ORConvQA/preprocessed/test.txt" in told()
    assert "isn't a folder" in message(lambda: dialogs("orquac", published / "all_blocks.txt.gz"))
    (published / "all_blocks.txt.gz").unlink()
    assert "no file ends in all_blocks.txt" in message(lambda: read("orquac", path=str(published)))


def test_files_are_fetched_once_and_the_collections_size_is_said_before(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def checksum(name: str) -> tuple[str, str]:
        return name, f"md5:{md5((published / name).read_bytes(), usedforsecurity=False).hexdigest()}"

    monkeypatch.setattr(orquac, "_COLLECTION", checksum("all_blocks.txt.gz"))
    monkeypatch.setattr(orquac, "PUBLISHED", {"train": checksum("preprocessed/train.txt")})
    with served(published) as address:
        settings = {"cache_dir": str(tmp_path / "cache"), "base_url": address}
        (dialog,) = dialogs("orquac", **settings)
        assert [p.id for p in dialog.passages] == ["25749059@5", "25749059@6"]
        assert "5.1 GB" not in capsys.readouterr().err
        assert len(good(read("orquac", **settings))) == 3
        assert f"downloading {address}/all_blocks.txt.gz (5.1 GB) to {tmp_path}/cache" in capsys.readouterr().err
    assert len(good(read("orquac", **settings))) == 3  # nobody listens there any more
    assert "5.1 GB" not in capsys.readouterr().err
