"""Read a folder of text, Markdown, HTML and PDF files, one document each."""

from collections.abc import Iterator

from generator.common.console import note
from generator.corpora.base import FileCorpus, UserCorpus
from generator.corpora.files import File, count_suffixes, list_files
from generator.corpora.formats import FORMATS, read_document
from generator.schema import Document, SkippedRecord


class FolderCorpus(UserCorpus, FileCorpus):
    """The files below the folder `path`; a document's id is the file's path in there."""

    def files(self) -> list[File]:
        return list_files(self.path, tuple(FORMATS), single=False, archives=False)

    def read(self) -> Iterator[Document | SkippedRecord]:
        everything = list_files(self.path, ("",), single=False, archives=False)
        if others := [file for file in everything if file.suffix not in FORMATS]:
            note(f"corpus.path={self.path}: skipped {len(others)} files of other types: {count_suffixes(others)}")
        yield from super().read()

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield read_document(file)
