"""Documents out of records, such as lines of a file or rows of a table, whose fields are named by settings."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from generator.common.sanitize import printable
from generator.corpora.base import CorpusSettings, located
from generator.schema import Document, SkippedRecord


class _Unusable(Exception):
    """Why a record is no document."""


class FieldCorpus(CorpusSettings):
    """A corpus of records.

    Attributes:
        id_field: holds a string or a whole number, unique in the corpus; None: the place of the record makes the id.
        text_field: holds a string.
        title_field, url_field: hold a string if a record has them; None: not read.
    """

    id_field: str | None = Field(min_length=1)
    text_field: str = Field(min_length=1)
    title_field: str | None = Field(min_length=1)
    url_field: str | None = Field(min_length=1)

    def document(self, where: str, record: Mapping[str, Any], name: str) -> Document | SkippedRecord:
        """The document in `record`, with the id `name` if `id_field` is None; or why there is none."""
        try:
            text = _string(record, self.text_field)
            name = _id(record, self.id_field) if self.id_field else name
            title = _optional(record, self.title_field)
            url = _optional(record, self.url_field)
        except _Unusable as error:
            return SkippedRecord(where=where, reason=str(error))
        return located(where, name, text, title or "", url)


def _string(record: Mapping[str, Any], field: str) -> str:
    value = _optional(record, field)
    if value is None and field in record:
        raise _Unusable(f"its `{field}` is null")
    if value is None:
        raise _Unusable(f"it has no `{field}`, only {printable(', '.join(sorted(record)))[:200] or 'nothing'}")
    return value


def _id(record: Mapping[str, Any], field: str) -> str:
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _string(record, field)


def _optional(record: Mapping[str, Any], field: str | None) -> str | None:
    value = record.get(field) if field else None
    if value is not None and not isinstance(value, str):
        raise _Unusable(f"its `{field}` is no string but {json.dumps(value, default=str)[:40]}")
    return value
