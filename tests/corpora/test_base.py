"""Tests of the corpora in common: licences and sources, and what broken records lead to."""

from importlib import import_module
from pathlib import Path

import pytest

from generator.config.conf_files import choices
from generator.schema import SkippedRecord
from tests.support.corpora import corpus, message, write_lines


@pytest.mark.parametrize("name", choices("corpus"))
def test_every_corpus_names_its_licence_and_its_source(name: str) -> None:
    built = corpus(name)
    assert built.licence and built.source


def listed(path: str, **settings: object) -> tuple[list[str], list[str]]:
    skipped: list[SkippedRecord] = []
    where = corpus("jsonl", path=path, **settings)
    ids = [document.id for document in where.readable(where.read(), skipped.append)]
    return ids, [record.where for record in skipped]


def test_a_broken_record_among_many_is_skipped_and_reported(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", *({"id": n, "text": "Hello."} for n in range(9)), "{")
    assert listed(path) == ([str(n) for n in range(9)], [f"{path}:10"])
    told = message(lambda: listed(path, strict=True))
    assert told.startswith(f"{path}:10: not JSON: ") and "corpus.strict" in told
    told = message(lambda: listed(path, max_broken=0.09))
    assert "1 of 10 records" in told and f"{path}:10: not JSON" in told and "corpus.max_broken" in told


def test_a_corpus_without_a_readable_document_is_an_error(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", "", "  ")
    assert "no records" in message(lambda: listed(path))
    write_lines(tmp_path / "a.jsonl", "{")
    told = message(lambda: listed(path, max_broken=1))
    assert "1 of 1 records" in told and "max_broken" not in told


def test_documents_are_read_again_when_the_module_of_a_users_own_class_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, documents = tmp_path / "own_corpus.py", write_lines(tmp_path / "a.txt", "A boat floats.")
    module.write_text("from generator.corpora.folder import FolderCorpus\n\nclass Own(FolderCorpus): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = import_module("own_corpus").Own(**corpus("folder", path=str(documents)).model_dump())
    before = own.fingerprint()
    assert own.fingerprint() == before
    with module.open("a") as file:
        file.write("    # which reads files otherwise\n")
    assert own.fingerprint() != before
