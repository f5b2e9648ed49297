"""Read JSON lines, plain, gzipped or in a zip archive: one document a line."""

from collections.abc import Iterator

from generator.corpora.base import FileCorpus
from generator.corpora.files import File, list_files
from generator.corpora.json_records import read_json_lines
from generator.corpora.records import FieldCorpus
from generator.schema import Document, SkippedRecord


class JsonlCorpus(FieldCorpus, FileCorpus):
    """A file, or all `*.jsonl` and `*.jsonl.gz` below a folder.

    Without an `id_field`, the file's name and the line number make the id (`faq.jsonl:12`).
    """

    def files(self) -> list[File]:
        return list_files(self.path, (".jsonl", ".jsonl.gz"))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for where, record in read_json_lines(file):
            yield self.document(where, record, f"{file.name}:{where.rpartition(':')[2]}")
