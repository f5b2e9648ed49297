"""What the corpora share: the settings that all of them have, how they are read, and what becomes a document."""

import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from generator.common.atomic_files import digest
from generator.corpora.files import File
from generator.schema import Document, Record, SkippedRecord

# An id is a cell of tables and a part of lines that others read.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
CONTROLLED = "its id holds a control character, such as a line break"


class Located(Document):
    """A document that knows where it was read, as `SkippedRecord.where` says it; not part of its serialised form."""

    where: str = Field(exclude=True, repr=False)


def located(
    where: str, name: str, text: str, title: str = "", url: str | None = None, collection: str = ""
) -> Located | SkippedRecord:
    """The document with the id `name`, or why there can't be one."""
    if not name.strip():
        return SkippedRecord(where=where, reason="its id is empty")
    if CONTROL.search(name):
        return SkippedRecord(where=where, reason=CONTROLLED)
    if not text.strip():
        return SkippedRecord(where=where, reason="it holds no text")
    try:
        # JSON's \ud800 and some PDFs give halves of characters, which no file can be written with.
        "".join((name, text, title, url or "")).encode()
    except UnicodeEncodeError as error:
        return SkippedRecord(where=where, reason=f"not valid Unicode ({error.reason})")
    return Located(where=where, id=name, text=text, title=title, url=url, collection=collection)


class CorpusSettings(Record, ABC):
    """The base of every corpus; the values stand in `conf/corpus/<name>.yaml`.

    Attributes:
        name, licence, source, language: for the records of a run and its data card; they don't change the documents.
            `language` is an ISO 639 code, None where nobody says it.
        strict, max_broken: what broken records lead to; see `generator.corpora.reading.documents`.
        beside_documents: names of settings that don't change the documents either.
    """

    beside_documents: ClassVar[frozenset[str]] = frozenset()

    name: str
    licence: str
    source: str
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    strict: bool
    max_broken: float = Field(ge=0, le=1)

    @abstractmethod
    def files(self) -> list[File]:
        """The files that the documents come from, in a stable order.

        Raises:
            CorpusError: there are none.
        """

    @abstractmethod
    def read(self) -> Iterator[Document | SkippedRecord]:
        """All documents; see `generator.schema.Corpus`."""

    def fingerprint(self) -> str:
        """The SHA-256 of the names and bytes of all files and of the settings that decide what is made of them.

        `strict` and `max_broken` are among those, since documents that one value lets pass another refuses. It
        depends on no file's age, and not on where the corpus lies.
        """
        described = {"name", "licence", "source", "language"}
        excluded = described | {"path", "cache_dir", "base_url"} | self.beside_documents
        settings = self.model_dump_json(exclude=excluded)
        found = hashlib.sha256(f"{type(self).__name__} {settings}".encode())
        states: dict[Path, str] = {}  # an archive holds many files
        for file in self.files():
            if not file.fault and file.path not in states:
                states[file.path] = _state(file.path)
            found.update(f"\0{file.name}\0{file.fault or states[file.path]}".encode())
        return found.hexdigest()


class FileCorpus(CorpusSettings):
    """The base of every corpus that is read file by file."""

    @abstractmethod
    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        """What `file` holds, as a stream.

        Raises:
            CorpusError: it can't be read to its end.
        """

    def read(self) -> Iterator[Document | SkippedRecord]:
        for file in self.files():
            if file.fault:
                yield SkippedRecord(where=file.where, reason=file.fault)
            else:
                yield from self.records(file)


def _state(path: Path) -> str:
    try:
        return digest(path)
    except OSError as error:
        return os.strerror(error.errno or 0)  # `records` says which file, and why
