"""Read files of rows (Parquet, JSON, CSV, …) as they stand, where `datasets` would refuse or change what they hold."""

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from generator.corpora.files import File, is_url, open_file
from generator.corpora.json_records import read_json_lines
from generator.errors import CorpusError, describe
from generator.schema import SkippedRecord

# The reader of a single file. `datasets` finds that of a folder; given a file, it would read the folder around it.
READERS = {
    ".parquet": "parquet",
    ".jsonl": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "text",
    ".arrow": "arrow",
}
ROW_FILES = READERS.keys() - {".txt"}
CELLS_LOST = "Length of header"  # begins a warning of pandas
_MORE_CELLS = re.compile(rf"{CELLS_LOST}|.*Expected \d+ fields in line \d+")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def row_suffix(name: str) -> str:
    """Return the ending by which the reader of a file is chosen, in lower case; that of what is packed by gzip."""
    return Path(name.lower().removesuffix(".gz")).suffix


def is_json(file: File) -> bool:
    """Return whether a file is JSON, or JSON lines, by its name."""
    return READERS.get(row_suffix(file.name)) == "json"


def check_json(file: File, alone: bool) -> None:
    """Raise CorpusError at JSON without records: at `null` `datasets` ends the process. One of several may be empty."""
    if is_json(file) and not file.fault:
        with open_file(file) as stream:
            first = stream.read(1 << 16).lstrip()[:1]
            if first not in (b"{", b"[", b"\xef") and (first or alone):  # b"\xef" begins a byte order mark
                raise CorpusError(f"{file.where}: begins with neither {{ nor [, so it has no records")


def find_json_lines(files: Sequence[File]) -> list[File]:
    """Return the files if all are JSON lines, by how they begin; else none."""
    whole = [file for file in files if not file.fault]
    for file in whole:
        first = next(read_json_lines(file), ("", {})) if is_json(file) else None
        if first is None or isinstance(first[1], SkippedRecord):
            return []
    return whole


def read_lines(files: Sequence[File]) -> Iterator[dict[str, Any]]:
    """Yield the rows of JSON lines.

    Raises:
        ValueError: a line is none, so that a file that breaks off is no shorter data set.
    """
    for file in files:
        for where, row in read_json_lines(file):
            if isinstance(row, SkippedRecord):
                raise ValueError(f"{where}: {row.reason}")
            yield row


def decode_rows(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a JSON list: `datasets` knows no types of its columns, and gives mixed values as JSON."""
    from datasets import Features

    for table in rows.with_format("arrow"):
        features = Features.from_arrow_schema(table.schema)
        yield features.decode_example(table.to_pylist()[0])


@contextmanager
def without_linked_folders(path: str, files: Sequence[File]) -> Iterator[str]:
    """Yield the absolute path of a data set, or of a copy made of links to files: `datasets` follows no others."""
    if not files or is_url(path):
        yield path
        return
    root = Path(path).expanduser().absolute()
    inside = root.resolve()
    if root.is_file() or all(Path(file.path).parent.resolve() == (inside / file.name).parent for file in files):
        yield str(root)
        return
    with TemporaryDirectory() as copy:
        for file in files:
            if not file.fault:
                link = Path(copy, file.name)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(file.path)
        yield copy


def reading_options(files: Sequence[File], columns: Sequence[str]) -> dict[str, Any]:
    """Return how to read files: of CSV values as they stand, between the marks of the first line."""
    found = [file for file in files if not file.fault]
    kinds = {READERS.get(row_suffix(file.name)) for file in found}
    if kinds == {"parquet"}:
        return {"batch_size": 1000}  # by default the rows of a group, which may be none
    if kinds != {"csv"}:
        return {}
    with open_file(found[0]) as stream:
        first = stream.readline(1 << 16)
    encoding = "utf-16" if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8"
    mark = max(",;\t|", key=first.decode(encoding, errors="ignore").count)
    return {
        "sep": mark,
        "quoting": csv.QUOTE_NONE if mark == "\t" and _quotes_are_text(found[0], encoding) else csv.QUOTE_MINIMAL,
        "encoding": encoding,
        "converters": dict.fromkeys(columns, str),  # “007” is no number,
        "keep_default_na": False,  # and “NA” not null
        "index_col": False,
    }


def _quotes_are_text(file: File, encoding: str) -> bool:
    """Return whether lines of cells between tabs have quotation marks as text, such as “"Hi" is short.”.

    Then some cell goes on behind its closing mark or has none, none has marks written twice, and none several lines.
    """
    known, found = None, False
    with open_file(file) as stream:
        for line in io.TextIOWrapper(stream, encoding, errors="ignore"):
            if cells := line.rstrip("\r\n"):
                tabs = cells.count("\t")
                opened = [cell for cell in cells.split("\t") if cell.startswith('"')] if '"' in cells else []
                enclosed = [cell for cell in opened if _QUOTED.fullmatch(cell)]
                if tabs != (known := tabs if known is None else known) or any('""' in cell[1:-1] for cell in enclosed):
                    return False
                found = found or len(enclosed) < len(opened)
    return found


def explain_failure(error: Exception) -> str:
    """Return the reason why `datasets` can't read a data set, with what to do about it."""
    from datasets.table import CastError

    why = describe(error)
    if _MORE_CELLS.match(why):
        return "a row has more cells than the first line; put cells with the separating mark in quotes"
    if isinstance(error, UnicodeDecodeError):
        return f"{why}; save it as UTF-8"
    if isinstance(error, CastError):
        found, first = (", ".join(names) for names in (error.table_column_names, error.requested_column_names))
        return f"some rows have the columns {found}, the first {first}; give all the same"
    return why
