"""The files of a corpus: found in a stable order, opened whether gzipped or not."""

import gzip
import os
import zlib
from collections import Counter
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from generator.errors import CorpusError

# What reading a damaged file or gzip stream raises.
READ_ERRORS = (OSError, EOFError, zlib.error)


class File(NamedTuple):
    """A file; `name` is its path inside the corpus, with `/`, and valid Unicode even where the file system's isn't."""

    name: str
    path: Path

    @property
    def where(self) -> str:
        return _printable(self.path)


def files(path: str, suffixes: tuple[str, ...], *, single: bool = True) -> list[File]:
    """The files below the folder `path` that end in one of `suffixes` (lower case), by name.

    Hidden files and folders (`.git`) are left out; links to folders are not followed.

    Args:
        path: relative to the current directory; `~` is the home directory.
        single: `path` may be a file itself, whatever its name.

    Raises:
        CorpusError: there is no such file, or a folder in there can't be looked into.
    """
    wanted = "a file or folder" if single else "a folder"
    if not path.strip():
        raise CorpusError(f"corpus.path isn't set: set it to {wanted} with your documents")
    try:
        root = Path(path).expanduser()
    except RuntimeError as error:  # the home directory of nobody
        raise CorpusError(f"corpus.path={path}: {error}") from error
    if not root.exists():
        raise CorpusError(f"corpus.path={path} doesn't exist (looked in {Path.cwd()}); set it to {wanted}")
    if single and root.is_file():
        return [File(_printable(root.name), root)]
    if not root.is_dir():
        raise CorpusError(f"corpus.path={path} isn't a folder; set it to {wanted}")

    found: list[File] = []
    ignored: Counter[str] = Counter()
    for folder, folders, names in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            file = Path(folder, name)
            if name.startswith("."):
                continue
            if name.lower().endswith(suffixes):
                found.append(File(_printable(file.relative_to(root).as_posix()), file))
            else:
                ignored[file.suffix.lower() or "without an ending"] += 1
    if not found:
        others = ", ".join(f"{count} {suffix}" for suffix, count in ignored.most_common(5)) or "nothing"
        raise CorpusError(f"corpus.path={path}: no file ends in {', '.join(suffixes)}; found {others}")
    return sorted(found)


def opened(path: Path) -> BufferedReader | gzip.GzipFile:
    """`path`, open for reading its bytes, unpacked if they are gzipped (told by its first bytes, not by its name)."""
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if gzipped else path.open("rb")


def reason(error: Exception) -> str:
    """What went wrong, on one line and without the file's name where the system says it."""
    return " ".join((getattr(error, "strerror", None) or str(error)).split())


def _printable(path: Path | str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _refuse(error: OSError) -> None:
    raise CorpusError(f"corpus.path: can't look into {error.filename}: {error.strerror}") from error
