"""Read folders of files, one document each: the user's, or those in this package."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from generator.common.console import count_noun, note
from generator.corpora.base import FileCorpus, UserCorpus
from generator.corpora.files import File, count_suffixes, list_files
from generator.corpora.formats import FORMATS, READING, Reader, read_document, read_labels, read_restructured
from generator.corpora.office import MIME_TYPES, office_formats
from generator.corpora.row_files import ROW_FILES
from generator.errors import CorpusError
from generator.schema import Document, SkippedRecord

SAMPLE_DOCUMENTS = Path(__file__).with_name("sample_documents")
TOPICS = Path(__file__).with_name("topics")


class FolderCorpus(UserCorpus, FileCorpus):
    """The files below the folder `path`, or in a zip archive; a document's id is the file's path in there."""

    reading: ClassVar[str] = READING

    reader: Literal["plain", "office"] = Field(
        description="How files are read: `plain`, the text of .txt, .md, .rst, .html, .epub and .pdf files; `office` "
        "(extra), also .docx, .pptx, .xlsx, .odt, .rtf, .ipynb and .org files, with the rows of tables as Markdown."
    )

    @property
    def _formats(self) -> Mapping[str, Reader]:
        return office_formats() if self.reader == "office" else FORMATS

    def files(self) -> list[File]:
        everything = self._everything()
        found = [file for file in everything if file.suffix in self._formats]
        if not found:
            ends = ", ".join(self._formats)
            raise CorpusError(f"corpus.path={self.path}: no file ends in {ends}; found {self._count(everything)}")
        return found

    def _everything(self) -> list[File]:
        is_archive = urlsplit(self.path).path.lower().endswith(".zip")
        return list_files(self.path, ("",), single=not is_archive, archives=False)

    def fingerprint(self) -> str:
        """Return what all corpora return, and report files of other types: documents may be read from the cache."""
        found = super().fingerprint()
        if others := [file for file in self._everything() if file.suffix not in self._formats]:
            files = count_noun(len(others), "file")
            note(f"corpus.path={self.path}: skipped {files} of other types: {self._count(others)}")
        return found

    def _count(self, others: Sequence[File]) -> str:
        suffixes = {file.suffix for file in others}
        office, rows = sorted(suffixes & MIME_TYPES.keys()), sorted(suffixes & ROW_FILES)
        told = count_suffixes(others) + (f"; corpus.reader=office reads {', '.join(office)}" if office else "")
        told += "; corpus.path=ARCHIVE.zip reads what is in one" if ".zip" in suffixes else ""
        return told + (f"; corpus=huggingface reads the rows of {', '.join(rows)}" if rows else "")

    @cached_property
    def _labels(self) -> Mapping[str, str]:
        """Return the titles behind labels: a reference may show that of another file."""
        files = (file for file in self.files() if file.suffix == ".rst" and not file.fault)
        return {label: title for file in files for label, title in read_labels(file).items()}

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        formats = {**self._formats}
        if file.suffix == ".rst":
            formats[".rst"] = partial(read_restructured, labels=self._labels)
        yield read_document(file, formats)


class SampleCorpus(FileCorpus):
    """The Markdown files of `sample_documents`, so that a first run needs nothing else.

    They were written for this package, about places, products and institutions that don't exist: what a model knows
    doesn't help it to answer. They form four groups whose documents supplement each other.
    """

    reading: ClassVar[str] = READING

    def files(self) -> list[File]:
        return list_files(str(SAMPLE_DOCUMENTS), (".md",))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield read_document(file)


class TopicsCorpus(FileCorpus):
    """The topics of `topics`, a file each, for dialogs of tasks; a line of it is what a dialog starts from."""

    topics: ClassVar[bool] = True

    def files(self) -> list[File]:
        return list_files(str(TOPICS), (".txt",))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        found = read_document(file)
        if isinstance(found, Document):
            found = found.model_copy(update={"title": found.title.replace("-", " ")})
        yield found
