"""The settings that every corpus has, and what broken records lead to."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from generator.config.messages import choices
from generator.corpora.base import CorpusSettings, read_documents
from generator.schema import SkippedRecord
from tests.support.corpora import CONF, corpus, lines, message


@pytest.mark.parametrize("name", choices("corpus"))
def test_every_corpus_describes_itself_and_its_settings_and_refuses_unknown_ones(name: str) -> None:
    assert re.match(r"# \S.{20,}\n", (CONF / f"{name}.yaml").read_text())
    built = corpus(name)
    assert built.name == name
    assert built.licence and built.source
    assert all(field.description for field in type(built).model_fields.values())
    for wrong in ({"colour": "red"}, {"max_broken": 1.5}, {"strict": "perhaps"}):
        with pytest.raises(ValidationError):
            corpus(name, **wrong)


def listed(where: CorpusSettings, strict: bool = False, max_broken: float = 0.1) -> tuple[list[str], list[str]]:
    skipped: list[SkippedRecord] = []
    ids = [document.id for document in read_documents(where, strict, max_broken, skipped.append)]
    return ids, [record.where for record in skipped]


def test_a_broken_record_among_many_is_skipped_and_reported(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", *({"id": n, "text": "Hello."} for n in range(9)), "{")
    where = corpus("jsonl", path=path)
    assert listed(where) == ([str(n) for n in range(9)], [f"{path}:10"])
    told = message(lambda: listed(where, strict=True))
    assert told.startswith(f"{path}:10: not JSON: ") and "corpus.strict" in told
    told = message(lambda: listed(where, max_broken=0.09))
    assert "1 of 10 records" in told and f"{path}:10: not JSON" in told and "corpus.max_broken" in told


def test_a_corpus_without_a_readable_document_is_an_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", "", "  ")
    assert "no records" in message(lambda: listed(corpus("jsonl", path=path)))
    lines(tmp_path / "a.jsonl", "{")
    told = message(lambda: listed(corpus("jsonl", path=path), max_broken=1))
    assert "1 of 1 records" in told and "max_broken" not in told
