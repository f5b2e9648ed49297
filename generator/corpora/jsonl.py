"""JSON lines, plain, gzipped or in a zip archive: one document a line."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from generator.corpora.base import FileCorpus
from generator.corpora.fields import FieldCorpus, Unusable
from generator.corpora.files import READ_ERRORS, File, files, opened, reason
from generator.errors import CorpusError
from generator.schema import Broken, Document


class JsonlCorpus(FieldCorpus, FileCorpus):
    """A file, or all `*.jsonl` and `*.jsonl.gz` below a folder.

    Without an `id_field`, the file's name and the line number make the id (`faq.jsonl:12`).
    """

    path: str

    def files(self) -> list[File]:
        return files(self.path, (".jsonl", ".jsonl.gz"))

    def records(self, file: File) -> Iterator[Document | Broken]:
        number = 0
        try:
            with opened(file) as lines:
                for number, line in enumerate(lines, start=1):
                    if line.strip():
                        yield self._record(file, number, line)
        except READ_ERRORS as error:
            raise CorpusError(f"{file.where}: can't be read after line {number}: {reason(error)}") from error

    def _record(self, file: File, number: int, line: bytes) -> Document | Broken:
        where = f"{file.where}:{number}"
        try:
            record = _parsed(line)
        except Unusable as error:
            return Broken(where=where, reason=str(error))
        return self.document(where, record, f"{file.name}:{number}")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line.rstrip().decode("utf-8-sig"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise Unusable(f"not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise Unusable(f"not JSON: {reason(error)}") from error
    if not isinstance(record, dict):
        raise Unusable("not a JSON object")
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")
