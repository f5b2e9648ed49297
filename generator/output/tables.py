"""Tables in sections, for a terminal and as Markdown. What others wrote in them changes neither."""

import io
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from generator.output import markdown

ABSENT = "–"


class Line(NamedTuple):
    """A line of a table: the title of its section, what it is about, and a cell for each column."""

    section: str
    label: str
    cells: Sequence[str]


def as_markdown(names: Sequence[str], lines: Iterable[Line]) -> str:
    """The table as Markdown that ends in a line break.

    Args:
        names: of the columns.
        lines: those of a section stand together.
    """
    rows: list[list[str]] = []
    for title, members in groupby(lines, lambda line: line.section):
        rows.append([f"**{markdown.line(title)}**", *([""] * len(names))])
        rows += [[markdown.line(line.label), *line.cells] for line in members]
    return markdown.table(["", *map(markdown.line, names)], rows) + "\n"


def as_text(names: Sequence[str], lines: Iterable[Line], console: Console | None) -> str:
    """The same as plain text, or with the width and the styles of a terminal if there is one."""
    table = Table(box=None, pad_edge=False)
    table.add_column("", overflow="fold")
    for name in names:
        table.add_column(Text(name), justify="right", overflow="fold", min_width=6)
    for title, members in groupby(lines, lambda line: line.section):
        table.add_row(Text(title, style="bold"))
        for line in members:
            table.add_row(Text(f"  {line.label}"), *line.cells)
    printer = console or Console(file=io.StringIO(), width=10_000)
    with printer.capture() as shown:
        printer.print(table, highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in shown.get().splitlines())
