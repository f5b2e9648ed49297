import errno
import sqlite3
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from generator.common import console
from generator.corpora.library import Library, built_once
from generator.errors import CorpusError, RetrieverError
from generator.schema import Document
from tests.support.corpora import split
from tests.support.runs import until

DOCUMENTS = [
    Document(id="trams", title="Trams", url="https://example.org", text="Köln has trams. They are red. 😀 Really."),
    Document(id="ferry", text="One ferry."),
    Document(id="bus", title="Buses", text="Buses run every hour, but not on Sundays; then nothing runs at all."),
]


def library(cache: Path, documents: list[Document] = DOCUMENTS, size: int = 6, overlap: int = 2) -> Library:
    return Library.open("sample", "0123456789abcdef", lambda: documents, cache, size, overlap)


def numbered(count: int) -> list[Document]:
    return [Document(id=f"d{n}", text=f"text {n}") for n in range(count)]


def test_holds_what_was_put_in(tmp_path: Path) -> None:
    lib = library(tmp_path)
    expected = [p for d in DOCUMENTS for p in split(d, 6, 2)]
    assert [lib.document(row) for row in range(len(lib))] == DOCUMENTS
    assert list(lib.passages()) == expected
    assert [lib.passage(row) for row in range(lib.passage_count)] == expected
    assert [DOCUMENTS[row].id for row in lib.document_rows] == [p.document_id for p in expected]
    for row, document in enumerate(DOCUMENTS):
        assert [lib.passage(p) for p in lib.passage_rows(row)] == split(document, 6, 2)


def test_finding_the_passages_of_a_document_copies_no_row_of_the_others(tmp_path: Path) -> None:
    lib = library(tmp_path)
    lib.document_rows = np.arange(1_000_000, dtype=np.int32)
    tracemalloc.start()
    try:
        assert lib.passage_rows(3) == range(3, 4)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_copy_of_a_book_is_found_without_holding_its_words(tmp_path: Path) -> None:
    text = "a few words " * 40_000
    tracemalloc.start()
    try:
        lib = library(tmp_path, [Document(id="1", text=text), Document(id="2", text=text.replace(" ", "\n"))])
        assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    finally:
        tracemalloc.stop()
    assert lib.copies == [(1, 0)]


def test_how_far_reading_is_shows_by_time_however_few_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "PACE_S", 0.02)

    def read() -> Iterator[Document]:
        for document in numbered(4):
            time.sleep(0.03)
            yield document

    Library.open("sample", "0123456789abcdef", read, tmp_path, 6, 2)
    assert capfd.readouterr().err.splitlines() == [f"reading documents: {count} so far" for count in range(1, 5)]


def test_is_built_once_for_each_content_and_passage_size(tmp_path: Path) -> None:
    reads: list[str] = []

    def read(name: str) -> Iterator[Document]:
        reads.append(name)
        yield from DOCUMENTS

    for fingerprint, size, overlap in [("a" * 64, 6, 2), ("a" * 64, 6, 2), ("a" * 64, 7, 2), ("b" * 64, 6, 2)]:
        name = f"{fingerprint[0]}{size}{overlap}"
        Library.open("sample", fingerprint, partial(read, name), tmp_path, size, overlap)
    assert reads == ["a62", "a72", "b62"]


def test_a_build_that_was_broken_off_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    def broken() -> Iterator[Document]:
        yield DOCUMENTS[0]
        raise CorpusError("the archive ends early")

    with pytest.raises(CorpusError, match="ends early"):
        Library.open("sample", "0123456789abcdef", broken, tmp_path, 6, 2)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []

    killed = tmp_path / "sample-0123456789ab-6-2-3.unfinished"
    killed.mkdir()
    (killed / "documents.db").write_bytes(b"half a file")
    assert len(library(tmp_path)) == 3
    assert not killed.exists()


def test_two_at_once_build_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds, told = list[Path](), list[str]()
    monkeypatch.setattr("generator.corpora.library.PACE_S", 0.05)
    monkeypatch.setattr("generator.corpora.library.note", told.append)

    def build(folder: Path) -> None:
        builds.append(folder)
        until(lambda: len(told) == 3)  # the others came while it builds
        (folder / "file").write_text("whole")

    with ThreadPoolExecutor() as pool:
        list(pool.map(built_once, [tmp_path / "index"] * 4, [build] * 4))
    assert len(builds) == 1
    assert (tmp_path / "index" / "file").read_text() == "whole"
    assert all(line.endswith("another process builds it; waiting") for line in told)


def test_documents_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"^corpus sample: documents 1 and 3 have the same id 'd0'; .+$"):
        library(tmp_path, [*numbered(2), Document(id="d0", text="again")])


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no document with text; .*corpus\.path$"):
        library(tmp_path, [])


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(RetrieverError, match=r"^can't write .+: No space left on device; .*cache_dir$"):
        built_once(tmp_path / "index", build)
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("name", ["documents.db", "passages.npy", "copies"])
def test_a_spoilt_library_says_what_to_delete(tmp_path: Path, name: str) -> None:
    folder = library(tmp_path).folder
    if name == "copies":  # as old libraries were: theirs would be in both splits
        with sqlite3.connect(folder / "documents.db") as db:
            db.execute("DROP TABLE copies")
    else:
        (folder / name).write_bytes(b"spoilt" * 100)
    with pytest.raises(RetrieverError, match=f"^can't read {folder}: .+; delete that folder to build it again$"):
        library(tmp_path)


def test_a_language_file_that_a_crash_left_empty_is_written_again(tmp_path: Path) -> None:
    lib = library(tmp_path)
    told = lib.find_language("corpus.language", None)
    (lib.folder / "language.txt").write_bytes(b"")
    assert lib.find_language("corpus.language", None) == told


def test_two_at_once_find_the_language_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lib, looked = library(tmp_path), list[int]()

    def detect(texts: list[str]) -> tuple[str, int]:
        looked.append(len(texts))
        time.sleep(0.1)  # until the other one is here, too
        return "de", len(texts)

    monkeypatch.setattr("generator.corpora.library.detect_language", detect)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lib.find_language, ["corpus.language"] * 2, [None] * 2))
    assert len(looked) == 1 and "3 of 3" in lib.find_language("corpus.language", None)


@pytest.mark.parametrize(
    ("documents", "share", "least", "expected"),
    [
        (100, 0.05, 1, 5),
        (100, 0.05, 10, 10),  # at least ten
        (12, 0.05, 10, 4),  # but for that no more than a third
        (3, 0.0, 10, 0),
        (1, 0.5, 10, 0),
        (2, 0.9, 1, 1),  # one is left to train on
    ],
)
def test_size_of_the_validation_split(tmp_path: Path, documents: int, share: float, least: int, expected: int) -> None:
    mask = library(tmp_path, numbered(documents)).validation(share, least)
    assert mask.shape == (documents,)
    assert mask.sum() == expected


def test_copies_of_a_document_are_in_its_split(tmp_path: Path) -> None:
    documents = [Document(id=f"{n}-{copy}", text=f"text {n} {' ' * copy}.") for copy in range(3) for n in range(20)]
    lib = library(tmp_path, documents)
    mask = lib.validation(0.3, 1)
    assert 0 < mask.sum() < len(documents)
    held, learned = ({lib.document(int(row)).text.split()[1] for row in (mask == side).nonzero()[0]} for side in (1, 0))
    assert not held & learned
    assert len(lib.copies) == 40
    assert lib.split_keys()[mask].max() < lib.split_keys()[~mask].min(), "an index separates the splits by one bound"


def test_if_all_are_copies_of_few_the_last_of_these_is_left_to_train_on(tmp_path: Path) -> None:
    for texts in (1, 2):
        documents = [Document(id=f"{n}", text=f"text {n % texts}") for n in range(6)]
        mask = library(tmp_path / str(texts), documents).validation(0.9, 1)
        assert mask.sum() == 3 * (texts - 1)


def test_the_validation_split_hangs_on_ids_and_not_on_their_order(tmp_path: Path) -> None:
    def chosen(cache: str, documents: list[Document]) -> set[str]:
        lib = library(tmp_path / cache, documents)
        return {lib.document(int(row)).id for row in lib.validation(0.2, 1).nonzero()[0]}

    documents = numbered(50)
    first = chosen("a", documents)
    assert len(first) == 10
    assert chosen("b", documents[::-1]) == first


@pytest.mark.parametrize(("others", "warned"), [(0, False), (8, True)])
def test_documents_of_further_languages_are_reported(others: int, warned: bool, tmp_path: Path) -> None:
    english, german = (
        "The ferry leaves at nine and is full by noon.",
        "Die Fähre fährt um neun ab und ist mittags voll.",
    )
    documents = [Document(id=f"{n}", text=f"{n}: {german if n < others else english}") for n in range(20)]
    lib = library(tmp_path, documents)
    told = lib.find_language("corpus.language", None)
    assert lib.language.code == "en" and f"{20 - others} of 20" in told
    assert ("a corpus for each" in told) == warned
