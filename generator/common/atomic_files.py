"""Files and folders that are written completely or not at all, and digests of files."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from filelock import AcquireReturnProxy, FileLock, Timeout
from pydantic import BaseModel

from generator.errors import ExportError, RunError, describe

LOCK = ".lock"  # file of a folder that one command at a time writes to


def lock_folder(folder: Path) -> AcquireReturnProxy:
    """Return the lock on a folder; as a context manager it is released at the end.

    Raises:
        RunError: another command has it.
        OSError: the folder can't be written.
    """
    try:
        return FileLock(folder / LOCK).acquire(timeout=0)
    except Timeout:
        raise RunError(f"{folder}: another command is writing here; wait for it, or set another run_dir") from None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal.

    Raises:
        OSError: the file can't be read.
    """
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def make_folder(folder: Path, setting: str = "run_dir") -> None:
    """Make a folder, with those above it, unless it is there.

    Raises:
        RunError: it can't be made; the message names the setting.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{setting}={folder}: can't be made ({describe(error)}); set another {setting}") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all; see `atomic_write`."""
    with atomic_write(path) as file:
        file.write(text)


def write_lines(path: Path, records: Iterable[BaseModel]) -> None:
    """Write records as JSON lines, completely or not at all; see `atomic_write`."""
    with atomic_write(path) as file:
        file.writelines(f"{record.model_dump_json()}\n" for record in records)


@contextmanager
def atomic_write(path: Path) -> Iterator[TextIO]:
    """Open a text file that replaces `path` once it is complete.

    Raises:
        RunError: it can't be written; the old file is still at `path`.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise RunError(
            f"{path}: can't be written ({describe(error)}); create its folder, make it writable or free space, and run "
            "the same command"
        ) from error
    finally:
        with suppress(OSError):  # the first error says more
            unfinished.unlink()


@contextmanager
def atomic_replace(folder: Path, what: str) -> Iterator[Path]:
    """Make an empty folder that replaces `folder` once the block has filled it, a link's target in place of the link.

    Args:
        what: a name of its content, for the error message.

    Raises:
        ExportError: it can't be written; the old folder is still there.
    """
    folder = folder.resolve()
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
            with suppress(OSError):  # the first error says more
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise ExportError(
            f"{folder}: can't write {what} ({describe(error)}); free space or make the folder writable, and run the "
            "same command again"
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
