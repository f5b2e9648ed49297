"""Sets of dialogs side by side: a row for each figure, a column for each set; for a terminal, as Markdown, as CSV."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from generator.common.console import counted
from generator.dialogs.columns import READ, label_order
from generator.output.stats.guesses import Guess, GuessTally
from generator.output.stats.statistics import Means, Portion, Statistics, Tally
from generator.output.stats.variety import LENGTHS, Variety, VarietyTally
from generator.output.tables import Line, as_csv, as_markdown, as_text, cell
from generator.schema import Dialog, Record

_COUNT, _MEAN, _RATIO, _SHARE = "{:,}", "{:,.2f}", "{:.3f}", "{:.1%}"


class Column(Record):
    """A set of dialogs in numbers.

    Attributes:
        name: of the set.
        targets: the planned shares of the run that made it, by stage (a key of `_PLANNED`) and label.
        dialogs_wanted: how many dialogs the run was to make; None for other sets.
        guesses: at the answerability of its pairs, without reading passages.
    """

    name: str
    statistics: Statistics
    variety: Variety
    targets: Mapping[tuple[str, str], float] = {}
    dialogs_wanted: int | None = None
    guesses: tuple[Guess, ...] = ()


def count(
    name: str,
    dialogs: Iterable[Dialog],
    targets: Mapping[tuple[str, str], float],
    dialogs_wanted: int | None,
) -> Column:
    """Return a set of dialogs in numbers."""
    tally, variety, guesses = Tally(), VarietyTally(), GuessTally()
    for dialog in counted(dialogs, "counting dialogs"):
        tally.add(dialog)
        variety.add(dialog)
        guesses.add(dialog, dialog.own_turns)
    return Column(
        name=name,
        statistics=tally.statistics(),
        variety=variety.variety(),
        targets=targets,
        dialogs_wanted=dialogs_wanted,
        guesses=guesses.guesses(),
    )


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return the last part of each path, or as many parts as tell different paths apart."""
    parts = [Path(path).resolve().parts for path in paths]
    lengths = range(1, max(map(len, parts)) + 1)
    names = ([str(Path(*of_one[-length:])) for of_one in parts] for length in lengths)
    return next(found for found in names if len(set(found)) == len(set(parts)))


_PLANNED: dict[str, tuple[Callable[[Statistics], Sequence[Portion]], str]] = {
    "first": (lambda s: s.first_types, "first"),
    "later": (lambda s: s.later_types, "later"),
    "multi_turn": (lambda s: s.multi_turn_types, "multi-turn, later"),
    "standalone": (lambda s: s.standalone, "later"),
    "answerability": (lambda s: s.answerability, "all"),
}


class _Row(NamedTuple):
    section: str
    figure: str
    form: str
    values: Sequence[float | None]


def comparison(columns: Sequence[Column], form: str, console: Console | None) -> str:
    """Return the table of one or more sets as text that ends in a line break.

    CSV and JSON have numbers with up to six decimals, and shares from 0 to 1; missing figures are empty, or null.

    Args:
        console: the terminal whose width and styles are used; None: plain, and as wide as needed.
    """
    names = [column.name for column in columns]
    if form in ("csv", "json"):
        rows = [(r.section, r.figure, [None if v is None else round(v, 6) for v in r.values]) for r in _rows(columns)]
        if form == "csv":
            return as_csv([["section", "figure", *names], *([section, name, *v] for section, name, v in rows)])
        figures = [dict(zip(("section", "figure", "values"), row, strict=True)) for row in rows]
        return json.dumps({"sets": names, "figures": figures}, indent=1, ensure_ascii=False) + "\n"
    lines = comparison_lines(columns)
    return as_markdown(names, lines) if form == "markdown" else as_text(names, lines, console)


def comparison_lines(columns: Sequence[Column]) -> list[Line]:
    """Return the lines of the table, with the figures of each set as text."""
    return [Line(row.section, row.figure, [cell(value, row.form) for value in row.values]) for row in _rows(columns)]


def _rows(columns: Sequence[Column]) -> Iterator[_Row]:
    statistics, variety = [c.statistics for c in columns], [c.variety for c in columns]

    def means(figure: Callable[[Means], float | None]) -> list[float | None]:
        return [figure(s.total) if s.turns else None for s in statistics]  # a run may have accepted none

    section = "size"
    yield _Row(section, "dialogs", _COUNT, [s.total.dialogs for s in statistics])
    yield _Row(section, "turns", _COUNT, [s.turns for s in statistics])
    yield _Row(section, "turns a dialog", _MEAN, means(lambda m: m.turns))
    if any(s.total.edited for s in statistics):
        yield _Row(section, "edited responses, a dialog", _MEAN, means(lambda m: m.edited))
    section = "length in words"
    yield _Row(section, "query", _MEAN, means(lambda m: m.query))
    yield _Row(section, "response", _MEAN, means(lambda m: m.response))
    yield _Row(section, "response, answerable or partial", _MEAN, means(lambda m: m.grounded_response))
    yield _Row(section, "document", _MEAN, means(lambda m: m.document))
    section = "passages"
    yield _Row(section, "unique, a dialog", _MEAN, means(lambda m: m.passages))
    yield _Row(section, "unique relevant, a dialog", _MEAN, means(lambda m: m.relevant_passages))
    yield _Row(section, "relevant, a turn", _MEAN, means(lambda m: m.relevant))
    yield _Row(section, "relevant, an answerable or partial turn", _MEAN, means(lambda m: m.grounded_relevant))
    yield _Row(section, "answers whose evidence covers them", _SHARE, means(lambda m: m.covered))
    section = "variety"
    for texts, shares in (("queries", [v.queries for v in variety]), ("responses", [v.responses for v in variety])):
        for n, values in zip(LENGTHS, zip(*shares, strict=True), strict=True):
            yield _Row(section, f"distinct-{n} of {texts}", _RATIO, values)
    yield _Row(section, "questions that repeat one of their dialog", _SHARE, [v.repeated_in_dialog for v in variety])
    yield _Row(section, "questions that repeat one of the set", _SHARE, [v.repeated for v in variety])
    yield from _portions("question types, of all turns", [s.question_types for s in statistics])
    yield from _portions("multi-turn types, of later turns", [s.multi_turn_types for s in statistics])
    yield from _portions("answerability, of all turns", [s.answerability for s in statistics])
    yield from _portions("verdicts, of all turns", [s.verdicts for s in statistics])
    yield from _judges(statistics)
    yield from _portions("users, of all dialogs", [s.users for s in statistics])
    yield from _worth(statistics)
    yield from _portions("difficulty, of turns with evidence", [s.difficulty for s in statistics])
    yield from _portions("needs documents, of turns judged so", [s.needs_documents for s in statistics])
    section = "answerability guessed without reading, AUC"
    guessed = [{f"{g.answerability}, by the {g.sees}": g.auc for g in c.guesses} for c in columns]
    for figure in sorted({figure for of_one in guessed for figure in of_one}):
        yield _Row(section, figure, _RATIO, [of_one.get(figure) for of_one in guessed])
    yield from _targets(columns)


def _judges(statistics: Sequence[Statistics]) -> Iterator[_Row]:
    section = "judges, of the turns that each judged"
    for judge in sorted({judge for s in statistics for judge in s.judges}):
        labels = [s.judges.get(judge, ()) for s in statistics]
        yield from (
            row._replace(figure=f"{judge}: {row.figure}")
            for row in _portions(section, labels)
            if row.figure != "scored"
        )
        if any(judge in s.scores for s in statistics):
            yield _Row(section, f"{judge}: mean score", _MEAN, [s.scores.get(judge) for s in statistics])


def _worth(statistics: Sequence[Statistics]) -> Iterator[_Row]:
    section = "worth, of turns with evidence"
    for name, figure, form in (
        ("overlap", "overlap of question and evidence", _RATIO),
        ("rank_last_turn", f"evidence in the first {READ} by the last turn", _SHARE),
        ("rank_query", f"evidence in the first {READ} by the retrieval query", _SHARE),
        ("new_passages", "evidence in a new passage, of later turns", _SHARE),
    ):
        worth = [s.worth.get(name) for s in statistics]
        if any(value is not None for value in worth):
            yield _Row(section, figure, form, worth)


def _targets(columns: Sequence[Column]) -> Iterator[_Row]:
    statistics = [c.statistics for c in columns]
    section = "achieved and target"
    if any(c.dialogs_wanted for c in columns):
        reached = [c.statistics.total.dialogs if c.dialogs_wanted else None for c in columns]
        yield _Row(section, "dialogs", _COUNT, reached)
        yield _Row(section, "dialogs, target", _COUNT, [c.dialogs_wanted for c in columns])
    for stage, name in sorted({planned for c in columns for planned in c.targets}):
        targets = [c.targets.get((stage, name)) for c in columns]
        portions, turns = _PLANNED[stage]
        counted = [portions(s) for s in statistics]
        achieved = [None if t is None else share_of(p, name) for t, p in zip(targets, counted, strict=True)]
        yield _Row(section, f"{name}, {turns} turns", _SHARE, achieved)
        yield _Row(section, f"{name}, {turns} turns, target", _SHARE, targets)


def _portions(section: str, portions: Sequence[Sequence[Portion]]) -> Iterator[_Row]:
    for name in sorted({p.name for of_one in portions for p in of_one}, key=label_order):
        yield _Row(section, name, _SHARE, [share_of(of_one, name) for of_one in portions])


def share_of(portions: Sequence[Portion], name: str) -> float | None:
    """Return the share of a label; None in a set that has nothing of the kind."""
    return next((p.share for p in portions if p.name == name), 0.0 if portions else None)
