"""List and open the files of a corpus: local, remote (whatever fsspec has a protocol for), gzipped or in a zip archive.

A path with a protocol (`s3://…`, `hf://…`, `https://…`, `zip://…::…`) goes to fsspec and its plugins, which take their
keys from the environment.
"""

import gzip
import io
import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import urlsplit
from zipfile import ZipFile

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.zip import ZipFileSystem
from pydantic import AfterValidator

from generator.errors import CorpusError, describe

# Encodings of names in zip archives, with what names are then made of beside ASCII. Korean is read as Chinese as well.
_MARKS = "\u3000-\u303f\uff01-\uff5e"
_NAMES = {
    "utf-8": "(?s:.)*",
    "cp932": f"[{_MARKS}\u3040-\u30ff\u4e00-\u9fff]+",
    "cp949": "[\uac00-\ud7a3]+",
    "gbk": f"[{_MARKS}\u4e00-\u9fff]+",
}
_NO_ARCHIVE = "can't be read as a zip archive"
_BUFFER_BYTES = 1 << 15
_GZIP_MAGIC = b"\x1f\x8b"
_PACKED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
_KEY_IN_URL = re.compile(
    r"://[^/@]*:[^/@]*@|[?&][^=&]*(sig(?=nature|=)|token|key(?!word)|secret|credential|password)[^=&]*=", re.I
)


def _without_key(path: str) -> str:
    if "://" in path and _KEY_IN_URL.search(path):
        raise ValueError("must hold no password or key, since settings are stored; set the variables of its protocol")
    return path


# A local path, or a URL of any protocol that fsspec has.
DataPath = Annotated[str, AfterValidator(_without_key)]


class File(NamedTuple):
    """A file of a corpus.

    Attributes:
        name: its path inside the corpus, with `/`; valid Unicode even where the file system's isn't.
        where: the path or URL for messages.
        path: as `system` opens it.
        system: an fsspec file system; the members of a zip archive have one of their own.
        fault: the reason why it can't be read; empty if it can.
    """

    name: str
    where: str
    path: str
    system: Any
    fault: str = ""

    @property
    def suffix(self) -> str:
        """The ending of the name, in lower case."""
        return PurePosixPath(self.name).suffix.lower()


def local_file(path: Path) -> File:
    """Return one local file."""
    return File(_printable(path.name), _printable(str(path)), str(path.absolute()), LocalFileSystem())


def is_url(path: str) -> bool:
    """Return whether a path has a protocol, and so is fsspec's to read."""
    return "://" in path


def list_files(
    path: str, suffixes: tuple[str, ...], *, single: bool = True, archives: bool = True, setting: str = "corpus.path"
) -> list[File]:
    """Return the files below the folder `path` that end in one of `suffixes` (lower case; "" is any), sorted by name.

    Links to files and folders are followed, but not into a folder that contains them. Hidden files and folders (`.git`)
    are left out. A file that can't be read, such as a dangling link, has a `fault`.

    Args:
        path: a local path (`~` is the home directory) or a URL.
        single: allow `path` to be a file, whatever its name; else it is a folder or a zip archive.
        archives: list the members of zip archives in the folder. They are read in place and never unpacked.
        setting: the setting that `path` comes from, for messages; empty if none.

    Raises:
        CorpusError: there is no such file, or a folder or an archive can't be listed.
    """
    wanted = "a file or folder" if single else "a folder"
    if not path.strip():
        raise CorpusError(f"{setting} is empty; set it to {wanted} with your documents")
    given = f"{setting}={path}" if setting else path
    with _as_corpus_error(path, given, wanted):
        file, kind = _look_up(path)
        if kind == "file" and file.name.lower().endswith(".zip") and (archives or not single):
            listed = list(_members(file))
        elif kind == "file" and single:
            return [file]
        elif kind == "directory":
            listed = list(_below(file, archives))
        else:
            raise CorpusError(f"{given}: isn't a folder; give {wanted}")
    # Where names are chosen by suffix, an archive that can't be looked into is reported as a broken file.
    chosen = (*suffixes, ".zip") if archives and all(suffix.startswith(".") for suffix in suffixes) else suffixes
    found = [file for file in listed if file.name.lower().endswith(chosen) or file.fault.startswith(_NO_ARCHIVE)]
    if not listed:
        raise CorpusError(f"{given}: is empty, or has hidden files only; give another")
    if not found:
        ends = f" ends in {', '.join(suffixes)}" if any(suffixes) else ""
        raise CorpusError(f"{given}: no file{ends}; found {count_suffixes(listed)}")
    return sorted(found, key=lambda file: file.name)


def _look_up(path: str) -> tuple[File, str]:
    """Return the file or folder at a path or URL, and its kind, as fsspec names it."""
    if is_url(path):
        system, root = url_to_fs(path)
    else:
        path = str(Path(path).expanduser())
        system, root = LocalFileSystem(), str(Path(path).absolute())
    # HTTP has no folders, but pages that list files.
    kind = "directory" if is_url(path) and path.endswith("/") else system.info(root)["type"]
    plain = urlsplit(root).path if is_url(root) else root  # an address may go on after its file's name
    return File(_printable(PurePosixPath(plain).name), _printable(path.rstrip("/") or path), root, system), kind


@contextmanager
def _as_corpus_error(path: str, given: str, wanted: str) -> Iterator[None]:
    """Raise whatever looking up `path` raises as a CorpusError that names what was `given`, and what is `wanted`."""
    try:
        yield
    except CorpusError:
        raise
    except FileNotFoundError as error:
        looked = "" if is_url(path) or Path(path).expanduser().is_absolute() else f" (looked in {Path.cwd()})"
        cause = error.__cause__
        why = f" ({describe(cause)})" if isinstance(cause, Exception) else looked
        # To fsspec a file isn't there whatever a web server answers, and where there is no server.
        answered = hasattr(cause, "response") or isinstance(cause, FileNotFoundError)  # by a store that lacks it
        if getattr(cause, "status", 404) != 404 or (isinstance(cause, OSError) and not answered):
            raise CorpusError(f"{given}: can't be read{why}; check the address and the connection") from error
        raise CorpusError(f"{given}: doesn't exist{why}; give {wanted}") from error
    except ImportError as error:
        raise CorpusError(f"{given}: this protocol needs another package: {describe(error)}") from error
    except Exception as error:  # of any plugin of fsspec
        raise CorpusError(f"{given}: {describe(error)}{'; check the address' * is_url(path)}") from error


def count_suffixes(files: Iterable[File]) -> str:
    """Return the five most frequent suffixes of files with their counts, as `2 .docx, 1 without a suffix, 3 others`."""
    counts = Counter(file.suffix or "without a suffix" for file in files)
    most = counts.most_common(5)
    others = counts.total() - sum(count for _, count in most)
    return ", ".join([*(f"{count} {suffix}" for suffix, count in most), *([f"{others} others"] if others else [])])


@contextmanager
def open_file(file: File, *, unpack: bool = True) -> Iterator["io.BufferedReader[Any]"]:
    """Open a file for reading bytes. A failure to open or read it is an OSError, whatever lies behind.

    Args:
        unpack: decompress what begins as gzip does, whatever its name.

    Raises:
        CorpusError: it has a fault.
    """
    if file.fault:
        raise CorpusError(f"{file.where}: {file.fault}")
    with ExitStack() as stack:
        try:
            content = stack.enter_context(file.system.open(file.path, "rb"))
        except OSError:
            raise
        except Exception as error:
            raise OSError(describe(error)) from error
        stream: io.BufferedReader[Any] = io.BufferedReader(_Reader(content), _BUFFER_BYTES)
        if unpack and stream.peek(2)[:2] == _GZIP_MAGIC:
            stream = io.BufferedReader(_Reader(gzip.GzipFile(fileobj=stream)), _BUFFER_BYTES)
        begin = stream.peek(8) if unpack else b""
        if packed := next((name for magic, name in _PACKED.items() if begin.startswith(magic)), None):
            raise OSError(f"is packed by {packed}; unpack it, or pack it by gzip")
        yield stream


class _Reader(io.RawIOBase):
    """A stream of any file system or compression; whatever it raises becomes an OSError."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = cast(bytes, self._content.read(len(buffer)))
        except OSError:
            raise
        except Exception as error:
            raise OSError(describe(error)) from error
        buffer[: len(part)] = part
        return len(part)


def _below(root: File, archives: bool) -> Iterator[File]:
    if isinstance(root.system, LocalFileSystem):
        names = _walk(Path(root.path), "", ())
    else:
        start = root.path.rstrip("/")
        root.system.ls(root.path, detail=False)  # which fails where `find` would find nothing
        found = ((path.removeprefix(start).strip("/"), path, "") for path in root.system.find(root.path))
        names = (entry for entry in found if not _hidden(entry[0].split("/")))
    for name, path, fault in names:
        file = File(_printable(name), _printable(f"{root.where}/{name}"), path, root.system, fault)
        if archives and file.name.lower().endswith(".zip") and not fault:
            try:
                yield from _members(file)
            except CorpusError as error:
                yield file._replace(fault=str(error).removeprefix(f"{file.where}: "))
        else:
            yield file


def _walk(folder: Path, prefix: str, above: tuple[Path, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield name, path and fault of each file below a local folder; `above` are the real paths of those around it."""
    real = folder.resolve()
    if real in above:  # a loop of links
        return
    try:
        paths = list(folder.iterdir())
    except OSError as error:
        why = f"{_printable(str(folder))}: {describe(error)}; make this folder readable, or move it away"
        raise OSError(why) from error
    for path in paths:
        if _hidden([path.name]):
            continue
        fault = ""
        try:
            mode = path.stat().st_mode
        except OSError as error:
            mode, dangling = 0, isinstance(error, FileNotFoundError) and path.is_symlink()
            fault = f"dangling link to {path.readlink()}" if dangling else describe(error)
        if stat.S_ISDIR(mode):
            yield from _walk(path, f"{prefix}{path.name}/", (*above, real))
        else:
            yield f"{prefix}{path.name}", str(path), fault or ("" if stat.S_ISREG(mode) else "not a regular file")


def _members(archive: File) -> Iterator[File]:
    try:
        path = archive.path
        if not isinstance(archive.system, LocalFileSystem):
            path = _fetch(archive.system, path, repr(archive.system.info(path))).name
        system = ZipFileSystem(fo=LocalFileSystem().open(path, "rb"))
        names, meant = system.find(""), _read_names(system.zip)
    except Exception as error:  # of any plugin of fsspec, or a damaged archive
        raise CorpusError(f"{archive.where}: {_NO_ARCHIVE}: {describe(error)}; give a complete one") from error
    for path in names:
        name = meant.get(path, path)
        parts = [part for part in name.split("/") if part not in (".", "..")]
        # macOS adds a folder of metadata to the archives that it makes.
        if parts and parts[0] != "__MACOSX" and not _hidden(parts):
            fault = "absolute path in a zip archive" if name.startswith("/") else ""
            fault = "zip archive inside a zip archive; unpack it" if name.lower().endswith(".zip") else fault
            yield File(f"{archive.name}/{name}", f"{archive.where}/{name}", path, system, fault)


def _read_names(archive: ZipFile) -> dict[str, str]:
    """Return the names that are meant by those of a zip archive that doesn't tell their encoding.

    They are read as UTF-8, or as Windows writes them in Japan, Korea or China where that makes mostly letters of these
    of them, in Chinese nine of ten common ones.
    """
    named = [part.filename for part in archive.infolist() if not part.flag_bits & 0x800]
    for encoding, letters in _NAMES.items():
        with suppress(UnicodeError):
            meant = {name: name.encode("cp437").decode(encoding) for name in named}
            special = "".join(char for char in "".join(meant.values()) if not char.isascii())
            latin = sum(len(re.findall("[A-Za-z]", PurePosixPath(name).stem)) for name in meant.values())
            rare = encoding == "gbk" and 10 * len(special.encode("gb2312", "ignore")) < 18 * len(special)
            if re.fullmatch(letters, special) and (encoding == "utf-8" or len(special) > latin) and not rare:
                return meant
    return {}


@lru_cache(maxsize=8)
def _fetch(system: Any, path: str, version: str) -> Any:
    """Return a temporary copy of a remote file, which is gone with the object; each version is fetched once."""
    copy = tempfile.NamedTemporaryFile()  # noqa: SIM115, which lasts as long as the cache
    with system.open(path, "rb", **({"block_size": 0} if path.startswith("http") else {})) as stream:
        shutil.copyfileobj(stream, copy, 1 << 20)
    copy.flush()
    return copy


def _hidden(parts: Iterable[str]) -> bool:
    return any(part.startswith(".") for part in parts)


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
