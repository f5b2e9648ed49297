"""Hold the base classes of corpora, what becomes a document, and what broken records lead to."""

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field, ValidationError

from generator.corpora.files import DataPath, File, open_file
from generator.errors import CorpusError, describe
from generator.schema import Document, Id, Operational, Record, SkippedRecord

R = TypeVar("R", bound=Record)
_NAMED = 5  # so many broken records are named in an error


class LocatedDocument(Document):
    """A document that knows where it was read, as `SkippedRecord.where`; that isn't serialised."""

    where: str = Field(exclude=True, repr=False)


class Chunk(LocatedDocument):
    """A record that is a passage, with the id of the document that it belongs to."""

    document_id: Id


class Span(Record):
    """A passage as it was given: `text[start:end]` of its document."""

    id: str
    title: str
    url: str | None
    start: int
    end: int


class ChunkedDocument(Document):
    """A document whose passages were cut before it was read; they aren't serialised."""

    spans: tuple[Span, ...] = Field(exclude=True, repr=False)


def make_document(
    where: str, document_id: str, text: str, title: str, url: str | None = None, collection: str = ""
) -> LocatedDocument | SkippedRecord:
    """Return a document, or the reason why there can't be one."""
    if not text.strip():
        return SkippedRecord(where=where, reason="it holds no text")
    try:
        return LocatedDocument(where=where, id=document_id, text=text, title=title, url=url, collection=collection)
    except ValidationError as error:
        return SkippedRecord(where=where, reason=error.errors()[0]["msg"])


class FormatError(Exception):
    """A file has no text that can be read; the message is one line."""


class CorpusSettings(Record, ABC):
    """The base of every corpus; the values stand in `conf/corpus/<name>.yaml`."""

    # Names of settings, beside the operational ones, that don't change the documents.
    beside_documents: ClassVar[frozenset[str]] = frozenset()
    # Its documents are topics to talk about, a line each, and no sources that answers can rest on.
    topics: ClassVar[bool] = False
    # Version of the file reader; part of the fingerprint, so that documents are read again when it changes.
    reading: ClassVar[str] = ""

    name: str = Field(description="Name of the corpus, for the run folder and the data card.")
    licence: Annotated[str, Operational] = Field(description="Licence of the documents, for the data card.")
    source: Annotated[str, Operational] = Field(description="Origin of the documents, for the data card.")
    language: Annotated[str | None, Operational] = Field(
        default=None,
        pattern=r"^[a-z]{2,3}$",
        description="ISO 639 code of the documents' language, such as `en`: it decides how texts are cut, searched and "
        "checked (`docs/languages.md`); null: found in a sample of the documents.",
    )
    strict: bool = Field(
        description="End the run at the first record that can't be read (true), or skip, count and list it (false)."
    )
    max_broken: float = Field(
        ge=0, le=1, description="Share of broken records, 0 to 1, above which the run ends even if `strict` is false."
    )

    @abstractmethod
    def files(self) -> list[File]:
        """Return the files that the documents come from, in a stable order.

        Raises:
            CorpusError: there are none.
        """

    @abstractmethod
    def read(self) -> Iterator[Document | SkippedRecord]:
        """Yield all documents in a stable order, and a `SkippedRecord` for each record that can't be read.

        Raises:
            CorpusError: the source as a whole can't be read.
        """

    def readable(self, records: Iterator[R | SkippedRecord], on_broken: Callable[[SkippedRecord], None]) -> Iterator[R]:
        """Yield the records of `read`, or dialogs, that can be read; the others go to `on_broken`.

        The share of broken records is known only at the end: trust the records once the stream was read to its end.

        Raises:
            CorpusError: too many records are broken (`strict`, `max_broken`), or there is none that can be read.
        """
        count = broken = 0
        named: list[str] = []
        for record in records:
            count += len(record.spans) if isinstance(record, ChunkedDocument) else 1
            if not isinstance(record, SkippedRecord):
                yield record
                continue
            if self.strict:
                raise CorpusError(f"{record.where}: {record.reason}; fix it, or set corpus.strict=false to skip it")
            broken += 1
            if broken <= _NAMED:
                named.append(f"{record.where}: {record.reason}")
            on_broken(record)
        if broken and (broken == count or broken > self.max_broken * count):
            remedy = "fix them" if broken == count else "fix them, or raise corpus.max_broken"
            raise CorpusError(
                f"corpus {self.name}: {broken} of {count} records are broken, such as {'; '.join(named)}; {remedy}"
            )
        if not count:
            raise CorpusError(f"corpus {self.name} has no records; check corpus.path")

    def fingerprint(self) -> str:
        """Return the SHA-256 of the names and bytes of all files and of what decides what is made of them.

        That is settings, `strict` and `max_broken` among them, since documents that one value lets pass another
        refuses; and of a class of another package the module that it is in, which its author changes (ours have a
        version, `reading`). It depends on no file's age, and not on where the corpus lies.
        """
        operational = {name for name, field in type(self).model_fields.items() if Operational in field.metadata}
        settings = self.model_dump_json(exclude=operational | self.beside_documents | {"name"})
        digest = hashlib.sha256(f"{type(self).__name__} {settings}{self.reading}{_code_digest(type(self))}".encode())
        for file in self.files():
            digest.update(f"\0{file.name}\0{file.fault or _content_digest(file)}".encode())
        return digest.hexdigest()


class FileCorpus(CorpusSettings):
    """The base of every corpus that is read file by file."""

    @abstractmethod
    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        """Yield what `file` holds, as a stream.

        Raises:
            CorpusError: it can't be read to its end.
        """

    def read(self) -> Iterator[Document | SkippedRecord]:
        for file in self.files():
            if file.fault:
                yield SkippedRecord(where=file.where, reason=file.fault)
            else:
                yield from self.records(file)


class UserCorpus(CorpusSettings):
    """The base of every corpus that is the user's own data."""

    path: Annotated[DataPath, Operational] = Field(
        description="Path of the documents, or a URL of any protocol that fsspec has a plugin for (`s3://…`, `hf://…`)."
    )


def _code_digest(corpus: type) -> str:
    """Return the hash of the module that a class of another package is in; empty of ours."""
    source = getattr(sys.modules.get(corpus.__module__), "__file__", None)
    is_ours = corpus.__module__.startswith("generator.")
    return "" if is_ours or not source else hashlib.sha256(Path(source).read_bytes()).hexdigest()


def _content_digest(file: File) -> str:
    try:
        with open_file(file, unpack=False) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return describe(error)  # reading the file reports it
