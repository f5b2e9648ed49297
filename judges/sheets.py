"""Sheets for people: CSV files with a row for each item to rate, written, and read back once they are filled in."""

import csv
from collections.abc import Callable, Container, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import TypeVar

from generator.common.atomic_files import atomic_write
from generator.errors import ConfigError, CorpusError, describe

T = TypeVar("T")

ID = "id"
# A spreadsheet runs a cell that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_sheet(path: Path, rows: Sequence[Mapping[str, str]], fill: Sequence[str]) -> None:
    """Write a sheet that spreadsheets open as UTF-8, and of which they run no cell.

    Args:
        rows: at least one, all with the same columns, `id` among them.
        fill: further columns, which stay empty.

    Raises:
        ConfigError: the file exists.
        RunError: it can't be written.
    """
    if path.exists():
        raise ConfigError(f"{path}: exists already and may hold ratings; give the new sheet another name")
    with atomic_write(path) as file:
        file.write("\ufeff")  # or Excel takes it for another encoding
        writer = csv.writer(file)
        writer.writerow([*rows[0], *fill])
        for row in rows:
            cells = (f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row.values())
            writer.writerow([*cells, *("" for _ in fill)])


def read_sheet(path: Path, column: str, parse: Callable[[str], T], known: Container[str]) -> dict[str, T]:
    """Return what people filled into a column, by id; empty cells are left out.

    The file is CSV in UTF-8 as spreadsheets save it, with commas, semicolons or tabs. The row in a message is the
    spreadsheet's.

    Args:
        parse: returns the value of a cell; raises ValueError, which says what it must be.
        known: the ids that there are.

    Raises:
        CorpusError: the file can't be read, an id is unknown or there twice, a cell is wrong, or all are empty.
    """
    found: dict[str, T] = {}
    seen: set[str] = set()
    for number, row in read_rows(path, (ID, column)):
        name, cell = row[ID], row[column]
        if not name and not cell:
            continue
        name = name if name in known else name.removeprefix("'")
        if name not in known or name in seen:
            problem = "is there twice" if name in seen else "is not in the run"
            raise CorpusError(f"{path}: row {number}: the id {name!r} {problem}")
        seen.add(name)
        if cell:
            try:
                found[name] = parse(cell)
            except ValueError as error:
                raise CorpusError(f"{path}: row {number}: {column} {cell!r} {error}") from None
    if not found:
        raise CorpusError(f"{path}: has no {column}s; fill in the column {column!r}")
    return found


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a sheet with their numbers in the spreadsheet; cells without the space around them.

    Args:
        columns: that have to be there; `Id` is the column `id` if there is no other.

    Raises:
        CorpusError: the file can't be read, or has not all of these columns.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CorpusError(f"{path}: can't be read: {describe(error)}; give a file that is there") from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: is not a text in UTF-8; save the sheet as CSV in UTF-8") from error
    first, _, rest = text.partition("\n")
    delimiter, start = max(",;\t", key=first.count), 2
    if first.rstrip("\r").strip('"') == f"sep={delimiter}":  # a line for Excel, which it shows to nobody
        text, start = rest, 3
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # passages may be longer than what `csv` takes
    try:
        sheet = csv.reader(StringIO(text), delimiter=delimiter)
        head = next(sheet, [])
        lacking = {name.casefold(): name for name in columns if name not in head}
        head = [lacking.get(name.strip().casefold(), name) for name in head]
        named = [name for name in head if name]
        for name in columns:
            if name not in named:
                known = ", ".join(named) or "none"
                raise CorpusError(f"{path}: has no column {name!r} in its first row; it has {known}")
        rows = [
            (number, dict(zip(head, cells, strict=False))) for number, cells in enumerate(sheet, start=start) if cells
        ]
    except csv.Error as error:
        raise CorpusError(f"{path}: is not CSV: {error}") from error
    return [(number, {name: row.get(name, "").strip() for name in named}) for number, row in rows]
