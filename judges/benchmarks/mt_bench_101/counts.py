"""Sizes of dialogs by task, and where they differ from table 6 of Bai et al. 2024."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from generator.output.tables import print_table
from generator.schema import Dialog
from judges.benchmarks.mt_bench_101.scores import in_order, task_of
from taxonomy import Task

OVERALL = "Overall"
# The published cells as they are printed, by task, in the order of the fields of `Counts`.
_PUBLISHED: dict[str, list[str]] = json.loads(Path(__file__).with_name("table6.json").read_text(encoding="utf-8"))
_HEADS = ("dialogs", "turns", "turns a\ndialog", "words a\ndialog", "words\na turn", "longest\ndialog", "longest\nturn")


class Counts(NamedTuple):
    """Sizes of some dialogs. Words are those of questions and answers, separated by white space.

    Attributes:
        longest_dialog, longest_turn: in words.
        judged: the turns whose answers are rated.
    """

    dialogs: int
    turns: int
    turns_per_dialog: float
    words_per_dialog: float
    words_per_turn: float
    longest_dialog: int
    longest_turn: int
    judged: int


def count_dialogs(dialogs: Iterable[Dialog], tasks: Mapping[str, Task]) -> dict[str, Counts]:
    """Return the sizes of all dialogs (`Overall`) and of those of each task.

    Args:
        dialogs: at least one.

    Raises:
        ConfigError: a dialog's task is not in `tasks`.
    """
    words: dict[str, list[list[int]]] = {}
    for dialog in dialogs:
        turns = [len(turn.query.split()) + len(turn.answer.split()) for turn in dialog.turns]
        words.setdefault(task_of(dialog, tasks).name, []).append(turns)
    judged = {name: sum(len(turns[tasks[name].judged_from - 1 :]) for turns in words[name]) for name in words}
    every = _count(list(chain.from_iterable(words.values())), sum(judged.values()))
    return {OVERALL: every} | {name: _count(words[name], judged[name]) for name in in_order(words)}


def _count(words: Sequence[Sequence[int]], judged: int) -> Counts:
    turns, total = sum(map(len, words)), sum(map(sum, words))
    return Counts(
        dialogs=len(words),
        turns=turns,
        turns_per_dialog=turns / len(words),
        words_per_dialog=total / len(words),
        words_per_turn=total / turns,
        longest_dialog=max(map(sum, words)),
        longest_turn=max(map(max, words)),
        judged=judged,
    )


def compare_with_table_6(counts: Mapping[str, Counts]) -> list[tuple[str, str, str, str]]:
    """Return the cells that differ from table 6 as task, figure, published and counted value.

    One in the last digit of a mean is rounding.
    """
    found = []
    for task, cells in _PUBLISHED.items():
        for head, published, value in zip(_HEADS, cells, counts[task], strict=False):
            decimals = len(published.partition(".")[2])
            if abs(value - float(published)) > (10**-decimals if decimals else 0):
                found.append((task, head.replace("\n", " "), published, f"{value:.{decimals}f}"))
    return found


def print_counts(counts: Mapping[str, Counts]) -> None:
    """Print the sizes, and where they differ from table 6 if these may be the published dialogs."""
    heads = [*_HEADS, "judged\nturns"]
    rows = [[task, *(f"{v:.2f}" if isinstance(v, float) else str(v) for v in found)] for task, found in counts.items()]
    print_table(rows, ["", *heads], right=heads)
    if counts.keys() == _PUBLISHED.keys() and str(counts[OVERALL].dialogs) == _PUBLISHED[OVERALL][0]:
        differences = compare_with_table_6(counts)
        cells = sum(map(len, _PUBLISHED.values()))
        same = f"{cells - len(differences)} of {cells} cells"
        print(f"\n{same} are as in table 6 of the paper, but for rounding; not these:\n")
        print_table(differences, ("task", "figure", "paper", "here"), right=("paper", "here"))
