"""A folder of text, Markdown, HTML and PDF files, one document each."""

from collections.abc import Iterator

from generator.corpora.base import FileCorpus
from generator.corpora.files import File, files
from generator.corpora.formats import FORMATS, read_document
from generator.schema import Broken, Document


class FolderCorpus(FileCorpus):
    """The files below `path`; a document's id is the file's path in there."""

    path: str

    def files(self) -> list[File]:
        return files(self.path, tuple(FORMATS), single=False, archives=False)

    def records(self, file: File) -> Iterator[Document | Broken]:
        yield read_document(file)
