"""Tables for a terminal, as Markdown and as CSV. Untrusted text in a cell breaks none of them."""

import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from generator.common.atomic_files import write_text
from generator.common.sanitize import printable
from generator.output import markdown

ABSENT = "–"
_LABEL = 12  # letters that the labels have at least
_NARROW = 6  # letters that a column has at least
_BY_ENDING = {".csv": "csv", ".json": "json", ".md": "markdown"}


def cell(value: float | None, form: str) -> str:
    """Return a figure as a cell; without one there is a dash."""
    return ABSENT if value is None else form.format(value)


class Line(NamedTuple):
    """A line of a table: the title of its section, its label, and a cell for each column."""

    section: str
    label: str
    cells: Sequence[str]


def as_markdown(names: Sequence[str], lines: Iterable[Line]) -> str:
    """Return the table as Markdown that ends in a line break.

    Args:
        names: of the columns.
        lines: sorted by section.
    """
    rows: list[list[str]] = []
    for title, members in groupby(lines, lambda line: line.section):
        rows.append([f"**{markdown.line(title)}**", *([""] * len(names))])
        rows += [[markdown.line(line.label), *line.cells] for line in members]
    return markdown.table(["", *map(markdown.line, names)], rows) + "\n"


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV with line feeds."""
    text = io.StringIO()
    cells = ([printable(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    csv.writer(text, lineterminator="\n").writerows(cells)
    return text.getvalue()


def as_text(names: Sequence[str], lines: Iterable[Line], console: Console | None) -> str:
    """Return it as text, with the width and the styles of a terminal; plain and as wide as needed without one.

    Columns that a terminal has no room for come in further tables, each with all labels.
    """
    every = list(lines)
    printer = console or Console(file=io.StringIO(), width=10_000)
    label = min(max((len(line.label) + 2 for line in every), default=0), printer.width * 2 // 3)
    wide = max((len(cell) for line in every for cell in line.cells), default=0)
    at_once = max(1, (printer.width - label) // (max(wide, _NARROW) + 2))
    with printer.capture() as shown:
        for first in range(0, len(names), at_once):
            table = Table(box=None, pad_edge=False)
            table.add_column("", overflow="fold", min_width=label)
            here = names[first : first + at_once]
            room = max(_NARROW, (printer.width - label) // len(here) - 2)
            for name in here:
                column = Text(printable(name))
                table.add_column(column, justify="right", overflow="fold", min_width=_NARROW, max_width=room)
            for title, members in groupby(every, lambda line: line.section):
                table.add_row(Text(printable(title), style="bold"))
                for line in members:
                    table.add_row(Text(f"  {printable(line.label)}"), *line.cells[first : first + at_once])
            printer.print(*[""] * (first > 0), table, sep="\n", highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in shown.get().splitlines())


def print_table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), right: Sequence[str] = ()) -> None:
    """Print a table to standard output; a cell may have several lines.

    Args:
        head: titles of the columns; without any the first column holds the titles of the rows.
        right: the titles of those columns that are aligned right; figures stay on one line while there is room.
    """
    cells = [[Text("\n".join(map(printable, cell.split("\n"))), overflow="fold") for cell in row] for row in rows]
    numbers = [[Text(title), *(row[head.index(title)] for row in cells)] for title in right]
    console = Console(file=sys.stdout)
    widths = [max(console.measure(cell).maximum for cell in column) + 2 for column in numbers]
    fits = sum(widths) + (_LABEL + 2) * (len(head) - len(right)) <= console.width
    table = Table(show_header=bool(head), header_style="bold", box=None, pad_edge=False)
    if not head:
        table.add_column(style="bold", no_wrap=True)
    for title in head:
        if title in right:
            table.add_column(title, justify="right", overflow="fold", no_wrap=fits)
        else:
            table.add_column(title, overflow="fold")
    for row in cells:
        table.add_row(*row)
    console.print(table)


def write_table(output: Path | None, layout: str | None, render: Callable[[str, Console | None], str]) -> None:
    """Write a table to a file and report where, or to standard output if there is none.

    Args:
        layout: terminal, markdown, csv or json; None: as the ending of the file tells, else terminal.
        render: returns the table in a layout; given a console if it goes to a terminal.
    """
    if output is not None:
        write_text(output, render(layout or _BY_ENDING.get(output.suffix, "terminal"), None))
        print(f"table: {output}", flush=True)
        return
    sys.stdout.write(render(layout or "terminal", Console() if sys.stdout.isatty() else None))
