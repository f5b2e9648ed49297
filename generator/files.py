"""Files that are whole or not there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from generator.errors import RunError


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """A text file that takes the place of `path` when it is complete.

    Raises:
        RunError: it can't be written; what was at `path` is still there.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise RunError(
            f"{path}: can't be written ({error.strerror or error}); make room, then the same command"
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)
