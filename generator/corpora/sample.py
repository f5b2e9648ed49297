"""Read the documents that come with this package, so that a first run needs nothing else.

They were written for it, about places, products and institutions that don't exist: what a model knows doesn't help
it to answer. They form four groups whose documents supplement each other.
"""

from collections.abc import Iterator
from pathlib import Path

from generator.corpora.base import FileCorpus
from generator.corpora.files import File, list_files
from generator.corpora.formats import read_document
from generator.schema import Document, SkippedRecord

DOCUMENTS = Path(__file__).with_name("sample_documents")


class SampleCorpus(FileCorpus):
    """The Markdown files of `sample_documents`."""

    def files(self) -> list[File]:
        return list_files(str(DOCUMENTS), (".md",))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield read_document(file)
