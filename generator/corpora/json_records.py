"""Read records from JSON lines or from one JSON file, with errors that name file, line or field."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from generator.corpora.files import File, open_file
from generator.errors import CorpusError, describe
from generator.schema import SkippedRecord

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


def read_json_lines(file: File) -> Iterator[tuple[str, dict[str, Any] | SkippedRecord]]:
    """Yield place and content of each line, a JSON object, as `read_numbered_lines` does."""
    name = file.name.lower().removesuffix(".gz")
    others = name.endswith((".csv", ".tsv", ".parquet", ".json"))
    hint = " (corpus=huggingface reads .csv, .tsv, .parquet and .json)" if others else ""
    for where, line in read_numbered_lines(file):
        try:
            record = _parse(line)
        except ValueError as error:
            yield where, SkippedRecord(where=where, reason=f"not JSON{hint}: {error}")
        else:
            reason = f"not a JSON object{hint}"
            yield where, record if isinstance(record, dict) else SkippedRecord(where=where, reason=reason)


def read_numbered_lines(file: File) -> Iterator[tuple[str, bytes]]:
    """Yield place (`file:12`, lines count from 1) and bytes of each line that isn't empty.

    Raises:
        CorpusError: the file can't be read to its end.
    """
    number = 0
    try:
        with open_file(file) as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield f"{file.where}:{number}", line
    except OSError as error:
        after = f" after line {number}" if number else ""
        raise CorpusError(f"{file.where}: can't be read{after}: {describe(error)}") from error


def read_json(file: File) -> Any:
    """Return what a JSON file holds.

    Raises:
        CorpusError: it isn't JSON, or can't be read to its end.
    """
    try:
        with open_file(file) as stream:
            return _parse(stream.read())
    except ValueError as error:
        raise CorpusError(f"{file.where}: not JSON: {error}; give a whole copy of the file") from error
    except OSError as error:
        raise CorpusError(f"{file.where}: can't be read: {describe(error)}") from error


def read_json_list(file: File, key: str, format_name: str) -> Iterator[tuple[str, Any]]:
    """Yield place and content of each member of the list `key` of a JSON object, or of a JSON array if `key` is empty.

    Args:
        format_name: the format that the file should have, for the message.

    Raises:
        CorpusError: it isn't JSON, can't be read to its end, or has no such list.
    """
    return list_records(file, read_json(file), key, format_name)


def list_records(file: File, content: Any, key: str, format_name: str) -> Iterator[tuple[str, Any]]:
    """Yield place and content of each member, as `read_json_list`, of a list in what a JSON file holds."""
    records = (content.get(key) if isinstance(content, dict) else None) if key else content
    if not isinstance(records, list) or not records:
        missing = f"list `{key}` of records" if key else "list of records"
        raise CorpusError(
            f"{file.where}: has no {missing}, so it isn't {format_name}'s own format; "
            "give the publisher's files and no others"
        )
    yield from ((f"{file.where}: {key}[{number}]", record) for number, record in enumerate(records))


def validate_record(model: type[M], where: str, record: object) -> M | SkippedRecord:
    """Return `record` as `model`, or the field that is wrong. What is a `SkippedRecord` already stays so."""
    if isinstance(record, SkippedRecord):
        return record
    try:
        return model.model_validate(record)
    except ValidationError as error:
        return skipped(where, error)


def require_record(model: type[M], where: str, record: object, hint: str) -> M:
    """Return `record` as `model`, where none may be skipped.

    Raises:
        CorpusError: it doesn't fit; the message ends with the hint.
    """
    found = validate_record(model, where, record)
    if isinstance(found, SkippedRecord):
        raise CorpusError(f"{found.where}: {found.reason}; {hint}")
    return found


def convert_records(
    items: Iterable[tuple[str, object]], model: type[M], make: Callable[[str, M], T | SkippedRecord]
) -> Iterator[T | SkippedRecord]:
    """Yield what `make` makes of the place and content of each item, which must fit `model`."""
    for where, item in items:
        record = validate_record(model, where, item)
        yield record if isinstance(record, SkippedRecord) else make(where, record)


def skipped(where: str, error: ValidationError) -> SkippedRecord:
    """Return what pydantic found wrong with a record, the first fault only."""
    return SkippedRecord(where=where, reason=describe(error))


def _parse(content: bytes) -> Any:
    """Return the value of a JSON text. `NaN` and `Infinity`, which Python writes and JSON doesn't know, become null.

    Raises:
        ValueError: it isn't JSON; says where.
    """
    try:
        return json.loads(content.rstrip().decode("utf-8-sig"), parse_constant=lambda constant: None)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in error.doc else ""  # of JSON lines the file's line is told beside
        raise ValueError(f"{error.msg} ({line}column {error.colno})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} isn't UTF-8") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
