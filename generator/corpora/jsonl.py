"""JSON lines, plain, gzipped or in a zip archive: one document a line."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from generator.corpora.base import CorpusSettings, located
from generator.corpora.files import File, files
from generator.corpora.json_lines import lines
from generator.schema import Broken, Document


class _Unusable(Exception):
    """Why a line is no document."""


class JsonlCorpus(CorpusSettings):
    """A file, or all `*.jsonl` and `*.jsonl.gz` below a folder.

    Attributes:
        id_field: holds a string or a whole number, unique over all files; None: the file's name and the line number
            make the id (`faq.jsonl:12`).
        text_field: holds a string.
        title_field, url_field: hold a string if a record has them; None: not read.
    """

    path: str
    id_field: str | None = Field(min_length=1)
    text_field: str = Field(min_length=1)
    title_field: str | None = Field(min_length=1)
    url_field: str | None = Field(min_length=1)

    def files(self) -> list[File]:
        return files(self.path, (".jsonl", ".jsonl.gz"))

    def records(self, file: File) -> Iterator[Document | Broken]:
        for number, record in lines(file):
            yield record if isinstance(record, Broken) else self._document(file, number, record)

    def _document(self, file: File, number: int, record: dict[str, Any]) -> Document | Broken:
        where = f"{file.where}:{number}"
        try:
            text = _string(record, self.text_field)
            name = _id(record, self.id_field) if self.id_field else f"{file.name}:{number}"
            title = _optional(record, self.title_field)
            url = _optional(record, self.url_field)
        except _Unusable as error:
            return Broken(where=where, reason=str(error))
        return located(where, name, text, title or "", url)


def _string(record: dict[str, Any], field: str) -> str:
    value = _optional(record, field)
    if value is None:
        raise _Unusable(f"it has no `{field}`, only {', '.join(sorted(record)) or 'nothing'}")
    return value


def _id(record: dict[str, Any], field: str) -> str:
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _string(record, field)


def _optional(record: dict[str, Any], field: str | None) -> str | None:
    value = record.get(field) if field else None
    if value is not None and not isinstance(value, str):
        raise _Unusable(f"its `{field}` is no string but {json.dumps(value)[:40]}")
    return value
