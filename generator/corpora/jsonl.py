"""Read JSON lines, plain, gzipped or in a zip archive, and other records whose fields are named by settings."""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, Literal
from uuid import UUID

from pydantic import Field, ValidationError

from generator.common.sanitize import printable
from generator.corpora.base import Chunk, FileCorpus, FormatError, UserCorpus, make_document
from generator.corpora.chunks import gather
from generator.corpora.files import File, list_files
from generator.corpora.formats import READING, TEXT_FORMATS
from generator.corpora.json_records import read_json_lines
from generator.schema import Document, SkippedRecord


class _FieldError(Exception):
    """A field of a record is missing or has the wrong type."""


class FieldCorpus(UserCorpus):
    """A corpus of records; a field of an object in a record has a dot in its name (`metadata.source`)."""

    reading: ClassVar[str] = READING

    id_field: str | None = Field(
        min_length=1,
        description="Field with the id: a string, a whole number, a decimal or a date, unique in the corpus. "
        "Null: the record's place makes the id.",
    )
    text_field: str = Field(min_length=1, description="Field with the document's text, a string.")
    text_format: Literal["txt", "markdown", "html"] | None = Field(
        description="Format of the text, which is read as `corpus=folder` reads such files; null: taken as it stands."
    )
    title_field: str | None = Field(
        min_length=1, description="Field with the title, which a record may lack; null: not read."
    )
    url_field: str | None = Field(
        min_length=1, description="Field with the document's address, which a record may lack; null: not read."
    )
    chunks: Literal["cut", "as_given"] = Field(
        description="What a record is: `cut`, a document, which is cut into passages; `as_given`, a passage, which is "
        "retrieved and cited as it is."
    )
    document_field: str | None = Field(
        min_length=1,
        description="With `chunks=as_given`, field with the id of the document that a passage belongs to; null: each "
        "is one of its own.",
    )

    def document(self, where: str, record: Mapping[str, Any] | SkippedRecord, place: str) -> Document | SkippedRecord:
        """Return the document in `record`, or the reason why there is none; `place` is its id without `id_field`."""
        if isinstance(record, SkippedRecord):
            return record
        try:
            text = _string(record, self.text_field, "text_field")
            document_id = _id(record, self.id_field, "id_field") if self.id_field else place
            title = _optional(record, self.title_field) or ""
            url = _optional(record, self.url_field) or None
            whole = document_id
            if self.document_field and self._as_given:
                whole = _id(record, self.document_field, "document_field")
            if self.text_format:
                found, text = TEXT_FORMATS[self.text_format](text)
                title = title or found
        except (_FieldError, FormatError) as error:
            return SkippedRecord(where=where, reason=str(error))
        made = make_document(where, document_id, text, title, url)
        if isinstance(made, SkippedRecord) or not self._as_given:
            return made
        try:
            return Chunk(**dict(made), document_id=whole)
        except ValidationError as error:
            return SkippedRecord(where=where, reason=f"`{self.document_field}`: {error.errors()[0]['msg']}")

    def gathered(self, records: Iterator[Document | SkippedRecord]) -> Iterator[Document | SkippedRecord]:
        """Yield the documents: the records, or what they make up as its passages."""
        return gather(records) if self._as_given else records

    @property
    def _as_given(self) -> bool:
        return self.chunks == "as_given"


class JsonlCorpus(FieldCorpus, FileCorpus):
    """A file, or all `*.jsonl` and `*.jsonl.gz` below a folder.

    Without an `id_field`, the file's name and the line number make the id (`faq.jsonl:12`).
    """

    def files(self) -> list[File]:
        return list_files(self.path, (".jsonl", ".jsonl.gz"))

    def read(self) -> Iterator[Document | SkippedRecord]:
        return self.gathered(super().read())

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for where, record in read_json_lines(file):
            yield self.document(where, record, f"{file.name}:{where.rpartition(':')[2]}")


def _string(record: Mapping[str, Any], field: str, setting: str) -> str:
    value = _optional(record, field)
    if value is None and field in record:
        raise _FieldError(f"`{field}` is null")
    if value is None:
        known = printable(", ".join(sorted(record)))[:200] or "nothing"
        raise _FieldError(f"no field `{field}`, only {known} (corpus.{setting} names it)")
    return value


def _id(record: Mapping[str, Any], field: str, setting: str) -> str:
    value = _value(record, field)
    if isinstance(value, float) and value.is_integer():  # as pandas stores whole numbers beside a null
        value = int(value)
    if isinstance(value, int | Decimal | date | UUID) and not isinstance(value, bool):
        return str(value)
    return _string(record, field, setting)


def _optional(record: Mapping[str, Any], field: str | None) -> str | None:
    value = _value(record, field) if field else None
    if value is not None and not isinstance(value, str):
        raise _FieldError(f"`{field}` must be a string, not {json.dumps(value, default=str)[:40]}")
    return value


def _value(record: Mapping[str, Any], field: str) -> Any:
    """Return the value of `field`, or of `b` of the object `a` for a field `a.b`; None if there is none."""
    if field in record:
        return record[field]
    outer, _, inner = field.partition(".")
    found = record.get(outer) if inner else None
    return _value(found, inner) if isinstance(found, Mapping) else None
