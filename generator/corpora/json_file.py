"""One JSON file that holds many records: read as a stream, or whole if it is small; with errors that say where."""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from generator.corpora.files import READ_ERRORS, File, opened, reason
from generator.errors import CorpusError
from generator.schema import Broken

M = TypeVar("M", bound=BaseModel)

LARGEST = 1 << 30  # bytes


def items(file: File, key: str, format_name: str) -> Iterator[tuple[str, Any]]:
    """The members of the list `key` of a JSON object, or of a JSON array if `key` is empty; each with its place.

    Args:
        format_name: whose format it is meant to be, for the error.

    Raises:
        CorpusError: it isn't JSON, ends too early, or has no such list.
    """
    import ijson

    number = -1
    try:
        with opened(file) as stream:
            for number, item in enumerate(ijson.items(stream, f"{key}.item" if key else "item", use_float=True)):
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
            read = content.read(LARGEST + 1)
        if len(read) > LARGEST:  # an archive of some kilobytes can unpack to what no memory holds
            raise CorpusError(f"{file.where}: holds more than 1 GiB, so it is none of the published files")
        return json.loads(read.decode())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CorpusError(f"{file.where}: not JSON: {_told(error)}") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{file.where}: not JSON: {reason(error)}") from error
    except READ_ERRORS as error:
        raise CorpusError(f"{file.where}: can't be read: {reason(error)}") from error


def parsed(model: type[M], where: str, record: object) -> M | Broken:
    """`record` as `model`, or which of its fields is wrong, and how. What is `Broken` already stays so."""
    if isinstance(record, Broken):
        return record
    try:
        return model.model_validate(record)
    except ValidationError as error:
        mistake = error.errors()[0]
        place = ".".join(map(str, mistake["loc"]))
        return Broken(where=where, reason=f"{place}: {mistake['msg']}" if place else mistake["msg"])


def _mistake(file: File) -> str | None:
    """Where the JSON goes wrong, which the incremental parser can't say; None if this parser takes it (NaN)."""
    try:
        with opened(file) as content:
            json.loads(content.read().decode())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        return _told(error)
    return None


def _told(error: json.JSONDecodeError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} isn't UTF-8"
    return f"{error.msg} (line {error.lineno}, column {error.colno})"
