"""Files and folders that are whole or not there, and what tells one file's content from another's."""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from generator.errors import ExportError, RunError


def digest(path: Path) -> str:
    """The SHA-256 of what a file holds, in hexadecimal.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
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
        with suppress(OSError):  # what went wrong before says more
            unfinished.unlink()


@contextmanager
def atomic_replace(folder: Path, what: str) -> Iterator[Path]:
    """A folder to fill, which takes the place of `folder` when it is complete.

    Args:
        what: is in it, for the error.

    Raises:
        ExportError: the disk refuses. What was in `folder` is then still there.
    """
    new, old = (folder.with_name(f".{folder.name}.{age}") for age in ("new", "old"))
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        yield new
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            with suppress(OSError):  # what went wrong before says more
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise ExportError(
            f"{folder}: can't write {what} ({reason}); free space or mend the folder, and run the same command again"
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
