"""The boundary types of the records: what a file or a table can't hold is refused where it comes in."""

import pytest
from pydantic import ValidationError

from generator.schema import Document, SkippedRecord
from tests.support.records import make_passage


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\tb", "a\x1b[2J", "a\x85b", "a\ud800"])
def test_an_id_is_neither_empty_nor_has_control_characters(name: str) -> None:
    with pytest.raises(ValidationError):
        Document(id=name, text="It opens.")


@pytest.mark.parametrize("field", ["text", "title", "url", "collection"])
def test_a_text_has_no_lone_surrogates(field: str) -> None:
    assert Document.model_validate({"id": "d", "text": "It opens."} | {field: "Grün 🚋\n"})
    with pytest.raises(ValidationError, match="not valid Unicode"):
        Document.model_validate({"id": "d", "text": "It opens."} | {field: "Gr\udc80n"})


def test_a_skipped_record_shows_lone_surrogates_as_escapes() -> None:
    skipped = SkippedRecord(where="a\udcff.txt:1", reason="it holds \ud83d")
    assert skipped.model_dump_json() == r'{"where":"a\\udcff.txt:1","reason":"it holds \\ud83d"}'


@pytest.mark.parametrize(
    ("title", "text", "titled"),
    [
        ("Ferry", "It runs at nine.", "Ferry\nIt runs at nine."),
        ("Ferry", "Ferry\nIt runs at nine.", "Ferry\nIt runs at nine."),
        ("Ferry", "Ferry rides are free.", "Ferry\nFerry rides are free."),
        ("", "It runs at nine.", "It runs at nine."),
    ],
)
def test_a_passage_has_its_title_once(title: str, text: str, titled: str) -> None:
    assert make_passage("p", text, title=title).titled == titled
