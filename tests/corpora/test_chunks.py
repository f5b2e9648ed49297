"""Records that are passages: what the user's own pipeline cut is what is retrieved and cited."""

import sqlite3
from pathlib import Path

import pytest
from datasets import Dataset

from generator.corpora import chunks
from generator.corpora.base import Chunk
from generator.corpora.library import Library
from generator.errors import CorpusError
from tests.support.corpora import broken, corpus, good, read, write_lines

# Those of a document aren't neighbours, and overlap.
RECORDS = [
    {
        "id": "a/1",
        "document_id": "a",
        "text": "Trams run daily.\nEvery ten minutes.",
        "title": "Trams",
        "url": "http://a",
    },
    {"id": 7, "document_id": 12, "text": " Ferries cross. ", "title": None},
    {"id": "a/2", "document_id": "a", "text": "Every ten minutes.\n| Line | Fare |", "title": "Trams: fares"},
]


@pytest.fixture(params=["jsonl", "huggingface"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    fields = {"chunks": "as_given", "id_field": "id", "title_field": "title", "url_field": "url"}
    if request.param == "jsonl":
        write_lines(tmp_path / "cut.jsonl", *RECORDS)
        return fields | {"name": "jsonl", "path": str(tmp_path / "cut.jsonl")}
    texts = [{key: str(value) if value else None for key, value in record.items()} for record in RECORDS]
    Dataset.from_list([{"url": None} | record for record in texts]).to_parquet(tmp_path / "cut.parquet")
    return fields | {"name": "huggingface", "path": str(tmp_path / "cut.parquet")}


def test_a_record_is_a_passage_of_its_document(given: dict[str, str], tmp_path: Path) -> None:
    name = given.pop("name")
    documents = good(read(name, **given))
    assert [(d.id, d.title, d.url) for d in documents] == [("a", "Trams", "http://a"), ("12", "", None)]
    library = Library.open("c", "f" * 64, lambda: documents, tmp_path, 3, 1)
    passages = list(library.passages())
    assert [(p.id, p.document_id, p.text, p.title, p.url) for p in passages] == [
        ("a/1", "a", RECORDS[0]["text"], "Trams", "http://a"),
        ("a/2", "a", RECORDS[2]["text"], "Trams: fares", None),
        ("7", "12", RECORDS[1]["text"], "", None),
    ]
    for row, passage in enumerate(passages):
        document = library.get(passage.document_id)
        assert document is not None
        assert document.text[passage.start : passage.end] == passage.text
        assert library.passage(row) == passage


def test_records_without_a_document_are_skipped_and_share_is_of_records(tmp_path: Path) -> None:
    many = [{"id": n, "document_id": "d", "text": f"Text {n}."} for n in range(30)]
    bad = [{"id": "x", "text": "b"}, {"id": "y", "document_id": " ", "text": "b"}]
    write_lines(tmp_path / "cut.jsonl", *many, *bad)
    cut = {"chunks": "as_given", "path": str(tmp_path / "cut.jsonl")}
    reasons = [reason for _, reason in broken(read("jsonl", **cut))]
    assert reasons == [
        "no field `document_id`, only id, text (corpus.document_field names it)",
        "`document_id`: its id is empty",
    ]
    where = corpus("jsonl", **cut)
    (document,) = where.readable(where.read(), lambda record: None)
    assert document.text.count("Text") == 30
    alone = good(read("jsonl", **cut | {"document_field": None}))
    assert len(alone) == 32
    write_lines(tmp_path / "cut.jsonl", *many, many[3])
    with pytest.raises(CorpusError, match=r"cut\.jsonl:31: another record has the same id '3'"):
        good(read("jsonl", **cut))


def test_twice_the_passages_take_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(count: int) -> int:
        """Return how often SQLite did a thousand steps."""
        done: list[None] = []

        def connect(path: str) -> sqlite3.Connection:
            db = sqlite3.Connection(path)
            db.set_progress_handler(lambda: done.append(None), 1000)
            return db

        with monkeypatch.context() as patched:
            patched.setattr(chunks.sqlite3, "connect", connect)
            records = (
                Chunk(where=f"line {n}", id=str(n), text="Trams.", document_id=str(n // 2)) for n in range(count)
            )
            assert len(list(chunks.gather(records))) == count / 2
        return len(done)

    assert work(1200) < 3 * work(600)
