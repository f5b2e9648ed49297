"""JSON lines, plain, gzipped or in a zip archive: one document a line."""

from collections.abc import Iterator

from generator.corpora.base import FileCorpus
from generator.corpora.files import File, files
from generator.corpora.json_lines import lines
from generator.corpora.records import FieldCorpus
from generator.schema import Document, SkippedRecord


class JsonlCorpus(FieldCorpus, FileCorpus):
    """A file, or all `*.jsonl` and `*.jsonl.gz` below a folder.

    Without an `id_field`, the file's name and the line number make the id (`faq.jsonl:12`).
    """

    path: str

    def files(self) -> list[File]:
        return files(self.path, (".jsonl", ".jsonl.gz"))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for number, record in lines(file):
            where, name = f"{file.where}:{number}", f"{file.name}:{number}"
            yield record if isinstance(record, SkippedRecord) else self.document(where, record, name)
