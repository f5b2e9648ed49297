"""JSON lines, plain, gzipped or in a zip archive: read as a stream, with errors that say where."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from generator.common.limits import read_lines
from generator.corpora.files import READ_ERRORS, File, opened, reason
from generator.errors import CorpusError
from generator.schema import SkippedRecord


def lines(file: File, *, nan: bool = False) -> Iterator[tuple[int, dict[str, Any] | SkippedRecord]]:
    """The JSON objects of a file, each with the number of its line, from 1; empty lines are left out.

    Args:
        nan: `NaN` and `Infinity`, which Python writes and JSON doesn't know, are read as null; else they are broken.

    Raises:
        CorpusError: it can't be read to its end.
    """
    number = 0
    try:
        with opened(file) as stream:
            for number, line in enumerate(read_lines(stream), start=1):
                if line.strip():
                    yield number, _parsed(f"{file.where}:{number}", line, nan)
    except READ_ERRORS as error:
        raise CorpusError(f"{file.where}: can't be read after line {number}: {reason(error)}") from error


def _parsed(where: str, line: bytes, nan: bool) -> dict[str, Any] | SkippedRecord:
    try:
        record = json.loads(line.rstrip().decode("utf-8-sig"), parse_constant=_null if nan else _refuse)
    except json.JSONDecodeError as error:
        return SkippedRecord(where=where, reason=f"not JSON: {error.msg} (column {error.colno})")
    except (ValueError, RecursionError) as error:
        return SkippedRecord(where=where, reason=f"not JSON: {reason(error)}")
    return record if isinstance(record, dict) else SkippedRecord(where=where, reason="not a JSON object")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


def _null(constant: str) -> None:
    return None
