"""The table of `python -m judges.retrieval`: Recall and nDCG, for a terminal and as Markdown, CSV and JSON."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from generator.export import markdown
from judges.ranking import CUTS, Figures

_ABSENT = "–"


class Row(NamedTuple):
    """The figures of some of the queries, as in table 4 of Katsis et al. 2025.

    Attributes:
        ranking: whose: a retriever and the form of its queries, or a file.
        by: what the queries are told apart by; empty: they are all.
        figures: None if there are no such queries.
    """

    ranking: str
    by: str
    subset: str
    figures: Figures | None


def table(rows: Sequence[Row], form: str, console: Console | None = None) -> str:
    """The table as text that ends in a line break: for a terminal, as `markdown`, `csv` or `json`.

    Args:
        console: the terminal that it is for, with its width and styles; None: as wide as it needs, and plain.
    """
    if form == "json":
        return json.dumps([_object(row) for row in rows], ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        return _csv(rows)
    return _markdown(rows) if form == "markdown" else _terminal(rows, console)


def _header() -> list[str]:
    return ["queries", *(f"{name}@{cut}" for name in ("R", "nDCG") for cut in CUTS)]


def _object(row: Row) -> dict[str, object]:
    figures = row.figures
    return {
        "ranking": row.ranking,
        "by": row.by or None,
        "subset": row.subset,
        "queries": figures.number if figures else 0,
        "recall": dict(zip(CUTS, figures.recall, strict=True)) if figures else None,
        "ndcg": dict(zip(CUTS, figures.ndcg, strict=True)) if figures else None,
    }


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = _header()
    writer.writerow(["ranking", "by", "subset", *header])
    for row in rows:
        values = [round(value, 6) for value in (*row.figures.recall, *row.figures.ndcg)] if row.figures else []
        empty = [""] * (len(header) - 1 - len(values))
        writer.writerow([row.ranking, row.by, row.subset, row.figures.number if row.figures else 0, *values, *empty])
    return text.getvalue()


def _cells(row: Row) -> list[str]:
    if row.figures is None:
        return ["0", *([_ABSENT] * (len(_header()) - 1))]
    return [f"{row.figures.number:,}", *(f"{value:.3f}" for value in (*row.figures.recall, *row.figures.ndcg))]


def _sections(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each ranking and what they are told apart by."""
    sections: dict[str, list[Row]] = {}
    for row in rows:
        sections.setdefault(f"{row.ranking}: by {row.by}" if row.by else row.ranking, []).append(row)
    yield from sections.items()


def _markdown(rows: Sequence[Row]) -> str:
    header = _header()
    lines: list[list[str]] = []
    for title, members in _sections(rows):
        lines.append([f"**{markdown.line(title)}**", *([""] * len(header))])
        lines += [[markdown.line(row.subset), *_cells(row)] for row in members]
    return markdown.table(["", *header], lines) + "\n"


def _terminal(rows: Sequence[Row], console: Console | None) -> str:
    shown = Table(box=None, pad_edge=False)
    shown.add_column("", overflow="fold")
    for name in _header():
        shown.add_column(name, justify="right", no_wrap=True)
    for title, members in _sections(rows):
        shown.add_row(Text(title, style="bold"))
        for row in members:
            shown.add_row(Text(f"  {row.subset}"), *_cells(row))
    printer = console or Console(file=io.StringIO(), width=10_000)
    with printer.capture() as text:
        printer.print(shown, highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in text.get().splitlines())
