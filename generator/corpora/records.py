"""Make documents of records, such as lines of a file or rows of a table, whose fields are named by settings."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from generator.common.sanitize import printable
from generator.corpora.base import UserCorpus, make_document
from generator.schema import Document, SkippedRecord


class _FieldError(Exception):
    """A field of a record is missing or has the wrong type."""


class FieldCorpus(UserCorpus):
    """A corpus of records."""

    id_field: str | None = Field(
        min_length=1,
        description="Field with the id: a string or a whole number, unique in the corpus. "
        "Null: the record's place makes the id.",
    )
    text_field: str = Field(min_length=1, description="Field with the document's text, a string.")
    title_field: str | None = Field(
        min_length=1, description="Field with the title, which a record may lack; null: not read."
    )
    url_field: str | None = Field(
        min_length=1, description="Field with the document's address, which a record may lack; null: not read."
    )

    def document(self, where: str, record: Mapping[str, Any] | SkippedRecord, place: str) -> Document | SkippedRecord:
        """Return the document in `record`, or the reason why there is none; `place` is its id without `id_field`."""
        if isinstance(record, SkippedRecord):
            return record
        try:
            text = _string(record, self.text_field)
            document_id = _id(record, self.id_field) if self.id_field else place
            title = _optional(record, self.title_field)
            url = _optional(record, self.url_field)
        except _FieldError as error:
            return SkippedRecord(where=where, reason=str(error))
        return make_document(where, document_id, text, title or "", url)


def _string(record: Mapping[str, Any], field: str) -> str:
    value = _optional(record, field)
    if value is None and field in record:
        raise _FieldError(f"`{field}` is null")
    if value is None:
        raise _FieldError(f"no field `{field}`, only {printable(', '.join(sorted(record)))[:200] or 'nothing'}")
    return value


def _id(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _string(record, field)


def _optional(record: Mapping[str, Any], field: str | None) -> str | None:
    value = record.get(field) if field else None
    if value is not None and not isinstance(value, str):
        raise _FieldError(f"`{field}` must be a string, not {json.dumps(value, default=str)[:40]}")
    return value
