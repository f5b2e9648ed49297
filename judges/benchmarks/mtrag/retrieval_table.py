"""The table of `python -m judges.retrieval`: Recall and nDCG, for a terminal and as Markdown, CSV and JSON."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console

from generator.output.tables import ABSENT, Line, as_csv, as_markdown, as_text
from judges.metrics.ranking import CUTS, Figures

_HEADER = ["queries", *(f"{name}@{cut}" for name in ("R", "nDCG") for cut in CUTS)]


class Row(NamedTuple):
    """The figures of a subset of the queries, as in table 4 of Katsis et al. 2025.

    Attributes:
        ranking: a retriever and the form of its queries, or a file.
        by: the property that defines the subset; empty for all queries.
        figures: None if the subset is empty.
    """

    ranking: str
    by: str
    subset: str
    figures: Figures | None


def table(rows: Sequence[Row], form: str, console: Console | None = None) -> str:
    """Return the table as text that ends in a line break: for a terminal, as `markdown`, `csv` or `json`."""
    if form == "json":
        return json.dumps([_object(row) for row in rows], ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        return as_csv([["ranking", "by", "subset", *_HEADER], *map(_cells, rows)])
    lines = map(_line, rows)
    return as_markdown(_HEADER, lines) if form == "markdown" else as_text(_HEADER, lines, console)


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


def _cells(row: Row) -> list[object]:
    values: list[object] = [0, *([""] * (len(_HEADER) - 1))]
    if row.figures:
        values = [row.figures.number, *(round(v, 6) for v in (*row.figures.recall, *row.figures.ndcg))]
    return [row.ranking, row.by, row.subset, *values]


def _line(row: Row) -> Line:
    section = f"{row.ranking}: by {row.by}" if row.by else row.ranking
    if row.figures is None:
        return Line(section, row.subset, ["0", *([ABSENT] * (len(_HEADER) - 1))])
    values = (*row.figures.recall, *row.figures.ndcg)
    return Line(section, row.subset, [f"{row.figures.number:,}", *(f"{value:.3f}" for value in values)])
