"""The files of a corpus: found in a stable order, opened whether gzipped, in a zip archive, or neither."""

import gzip
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from generator.errors import CorpusError

# What reading a damaged file, gzip stream or archive raises; a RuntimeError is one that is encrypted.
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)

_NO_FILE = "not a regular file"


class File(NamedTuple):
    """A file; `name` is its path inside the corpus, with `/`, and valid Unicode even where the file system's isn't.

    One that lies in a zip archive is its `member`, and `path` is the archive's. One that must not be read has a
    `fault`, which says why.
    """

    name: str
    path: Path
    member: str | None = None
    fault: str = ""

    @property
    def where(self) -> str:
        return _printable(f"{self.path}/{self.member}" if self.member else self.path)


def files(
    path: str, suffixes: tuple[str, ...], *, single: bool = True, archives: bool = True, setting: str = "corpus.path"
) -> list[File]:
    """The files below the folder `path` that end in one of `suffixes` (lower case; "" is any end), by name.

    Hidden files and folders (`.git`) are left out; links to folders are not followed. What is no regular file, or a
    link to a file that isn't below `path`, is there with its fault: who filled the folder isn't who may read that file.

    Args:
        path: relative to the current directory; `~` is the home directory.
        single: `path` may be a file itself, whatever its name.
        archives: a zip archive stands for the files in it, which are read in place and never unpacked.
        setting: whose value `path` is, for the error.

    Raises:
        CorpusError: there is no such file, or a folder or an archive in there can't be looked into.
    """
    wanted = "a file or folder" if single else "a folder"
    if not path.strip():
        raise CorpusError(f"{setting} isn't set: set it to {wanted} with your documents")
    try:
        root = Path(path).expanduser()
        there = root.exists()
    except (RuntimeError, OSError) as error:  # the home directory of nobody, or a name too long
        raise CorpusError(f"{setting}={path}: {reason(error)}") from error
    if not there:
        raise CorpusError(f"{setting}={path} doesn't exist (looked in {Path.cwd()}); set it to {wanted}")
    archived = archives and root.name.lower().endswith(".zip")
    if single and root.is_file() and not archived:
        return [File(_printable(root.name), root)]
    if not root.is_dir() and not (single and archived and root.is_file()):
        raise CorpusError(f"{setting}={path} isn't a folder; set it to {wanted}")

    # An archive that isn't looked into is told, unless files of certain names are wanted.
    kinds = (*suffixes, ".zip") if archives and all(suffix.startswith(".") for suffix in suffixes) else suffixes
    found: list[File] = []
    ignored: list[File] = []
    for file in _below(root, archives) if root.is_dir() else _members(File(_printable(root.name), root)):
        if file.name.lower().endswith(kinds):
            found.append(file)
        else:
            ignored.append(file)
    if not found:
        ends = f" ends in {', '.join(suffixes)}" if any(suffixes) else ""
        raise CorpusError(f"{setting}={path}: no file{ends}; found {kinds_of(ignored) or 'nothing'}")
    return sorted(found)


def kinds_of(found: Iterable[File]) -> str:
    """What files end in, the five most frequent with their counts."""
    kinds = Counter(Path(file.name).suffix.lower() or "without an ending" for file in found)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(5))


@contextmanager
def opened(file: File) -> Iterator[IO[bytes]]:
    """`file`, open for reading its bytes, unpacked if they are gzipped (told by its first bytes, not by its name).

    Raises:
        CorpusError: it must not be read, or isn't a file: a pipe would be waited for.
    """
    if file.fault or (file.path.exists() and not file.path.is_file()):
        raise CorpusError(f"{file.where}: {file.fault or _NO_FILE}")
    with ExitStack() as stack:
        raw: IO[bytes]
        if file.member is None:
            raw = stack.enter_context(file.path.open("rb"))
        else:
            raw = stack.enter_context(stack.enter_context(zipfile.ZipFile(file.path)).open(file.member))
        gzipped = raw.peek(2)[:2] == b"\x1f\x8b"  # type: ignore[attr-defined]
        yield cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=raw))) if gzipped else raw


def reason(error: Exception) -> str:
    """What went wrong, on one line and without the file's name where the system says it."""
    return " ".join((getattr(error, "strerror", None) or str(error)).split())


def _below(root: Path, archives: bool) -> Iterator[File]:
    inside = Path(os.path.realpath(root))
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            if name.startswith("."):
                continue
            file = File(_printable(path.relative_to(root).as_posix()), path, fault=_fault(path, inside))
            if archives and name.lower().endswith(".zip") and not file.fault:
                yield from _members(file)
            else:
                yield file


def _fault(path: Path, inside: Path) -> str:
    """Why a file that was found must not be read; empty if it may be."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return _NO_FILE
    except OSError as error:
        return reason(error)
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside):
        return "a link to a file outside of corpus.path; put the file itself there"
    return ""


def _members(archive: File) -> Iterator[File]:
    try:
        with zipfile.ZipFile(archive.path) as opened_archive:
            names = opened_archive.namelist()
    except READ_ERRORS as error:
        raise CorpusError(f"{archive.where}: can't be read as a zip archive: {reason(error)}") from error
    for name in names:
        parts = [part for part in name.split("/") if part not in (".", "..")]
        # macOS adds a folder of its own to the archives that it makes.
        if parts and parts[-1] and parts[0] != "__MACOSX" and not any(part.startswith(".") for part in parts):
            nested = "an archive in an archive isn't read; unpack it" if name.lower().endswith(".zip") else ""
            yield File(f"{archive.name}/{name}", archive.path, name, nested)


def _printable(path: Path | str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _refuse(error: OSError) -> None:
    raise CorpusError(f"corpus.path: can't look into {error.filename}: {error.strerror}") from error
