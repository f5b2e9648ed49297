"""One JSON file that holds many records: read as a stream, or whole if it is small; with errors that say where."""

import json
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from generator.common.limits import RecordStream, read_whole
from generator.corpora.files import READ_ERRORS, File, opened, reason
from generator.errors import CorpusError
from generator.schema import SkippedRecord

M = TypeVar("M", bound=BaseModel)

_DEEPEST = 100  # levels; what ijson remembers of a place grows with the square of its depth
_STEPS = MappingProxyType({"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1})


def items(file: File, key: str, format_name: str) -> Iterator[tuple[str, Any]]:
    """The members of the list `key` of a JSON object, or of a JSON array if `key` is empty; each with its place.

    Args:
        format_name: whose format it is meant to be, for the error.

    Raises:
        CorpusError: it isn't JSON, is nested too deeply, ends too early, or has no such list.
    """
    import ijson

    number = -1
    try:
        with opened(file) as stream:
            events = ijson.parse(_shallow(file, RecordStream(stream), 2 if key else 1))
            for number, item in enumerate(ijson.items(events, f"{key}.item" if key else "item")):
                yield f"{file.where}: {key}[{number}]", item
    except ijson.JSONError as error:
        raise CorpusError(f"{file.where}: not JSON: {_mistake(file) or reason(error)}") from error
    except READ_ERRORS as error:
        raise CorpusError(f"{file.where}: can't be read after {key}[{number}]: {reason(error)}") from error
    if number < 0:
        what = f"in a list `{key}`" if key else "in a list"
        raise CorpusError(f"{file.where}: it has no records {what}, so it isn't {format_name}'s own format")


def whole(file: File) -> Any:
    """What a JSON file holds, all of it in memory: for files of some megabytes.

    Raises:
        CorpusError: it isn't JSON, or can't be read to its end.
    """
    try:
        with opened(file) as content:
            return json.loads(read_whole(content).decode())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file.where}: not JSON: {_told(error)}") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file.where}: not JSON: {reason(error)}") from error
    except READ_ERRORS as error:
        raise CorpusError(f"{file.where}: can't be read: {reason(error)}") from error


def parsed(model: type[M], where: str, record: object) -> M | SkippedRecord:
    """`record` as `model`, or which of its fields is wrong, and how. What is `SkippedRecord` already stays so."""
    if isinstance(record, SkippedRecord):
        return record
    try:
        return model.model_validate(record)
    except ValidationError as error:
        mistake = error.errors()[0]
        place = ".".join(map(str, mistake["loc"]))
        return SkippedRecord(where=where, reason=f"{place}: {mistake['msg']}" if place else mistake["msg"])


def _mistake(file: File) -> str | None:
    """Where the JSON goes wrong, which the incremental parser can't say; None if this one doesn't come that far.

    It takes NaN, and a file can be too large, too deep or damaged further on.
    """
    try:
        with opened(file) as content:
            json.loads(read_whole(content).decode())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        return _told(error)
    except (ValueError, RecursionError, *READ_ERRORS):
        pass
    return None


def _shallow(file: File, records: RecordStream, level: int) -> Iterator[tuple[str, Any]]:
    """The events of a parser, as they come, of a file whose records lie in lists of this level."""
    import ijson

    depth = 0
    for event in ijson.basic_parse(records, use_float=True):
        if event[0] in _STEPS:
            depth += _STEPS[event[0]]
            if depth > _DEEPEST:
                raise CorpusError(f"{file.where}: is nested too deeply, in more than {_DEEPEST} levels")
        if depth <= level:
            records.end_record()
        yield event


def _told(error: json.JSONDecodeError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} isn't UTF-8"
    return f"{error.msg} (line {error.lineno}, column {error.colno})"
