"""A folder of text, Markdown, HTML and PDF files, one document each."""

from collections.abc import Iterator

from generator.common.console import note
from generator.corpora.base import FileCorpus
from generator.corpora.files import File, files, kinds_of
from generator.corpora.formats import FORMATS, read_document
from generator.schema import Document, SkippedRecord


class FolderCorpus(FileCorpus):
    """The files below `path`; a document's id is the file's path in there."""

    path: str

    def files(self) -> list[File]:
        return files(self.path, tuple(FORMATS), single=False, archives=False)

    def read(self) -> Iterator[Document | SkippedRecord]:
        everything = files(self.path, ("",), single=False, archives=False)
        if others := [file for file in everything if not file.name.lower().endswith(tuple(FORMATS))]:
            note(f"corpus.path={self.path}: {len(others)} files of other kinds are left out: {kinds_of(others)}")
        yield from super().read()

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield read_document(file)
