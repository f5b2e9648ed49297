"""`python -m benchmarks.mt_bench_101 --data DATA`: the sizes of MT-Bench-101, where table 6 of Bai et al. 2024 differs.

`docs/mt_bench_101.md` has the cells.
"""

import argparse
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from benchmarks.command_line import add_data, errors_on_one_line
from generator.output.tables import print_table
from generator.schema import Dialog
from generator.sets import dialog_set
from taxonomy import read_tasks

FILE, OVERALL = "mtbench101/mtbench101.jsonl", "Overall"
HEADS = ("dialogs", "turns", "turns a dialog", "words a dialog", "words a turn", "longest dialog", "longest turn")
# The cells as they are printed, by task.
TABLE_6 = {
    OVERALL: "1388 4208 3.03 202.0 66.64 817 323",
    "CM": "80 319 3.99 235.9 59.15 351 323",
    "SI": "149 620 4.16 214.0 84.76 817 237",
    "AR": "153 560 3.66 214.1 58.49 397 229",
    "TS": "83 249 3.00 145.7 48.56 219 109",
    "CC": "147 352 2.39 353.9 147.80 749 300",
    "CR": "136 389 2.86 321.4 112.4 588 323",
    "FR": "74 197 2.66 191.4 71.91 355 229",
    "SC": "77 154 2.00 79.2 39.60 183 105",
    "SA": "73 146 2.00 85.4 42.71 175 103",
    "MR": "108 224 2.07 175.8 51.44 348 263",
    "GR": "71 218 3.07 157.3 51.22 331 141",
    "IC": "150 426 2.84 142.5 50.18 344 153",
    "PI": "87 354 4.07 127.1 31.22 254 53",
}


class Difference(NamedTuple):
    """A cell that differs from the published table."""

    task: str
    figure: str
    paper: str
    here: str


def compare_with_table_6(dialogs: Iterable[Dialog]) -> list[Difference]:
    """Return the cells that differ from table 6; one in the last digit of a mean is rounding."""
    words: dict[str, list[list[int]]] = {name: [] for name in TABLE_6}
    for dialog in dialogs:
        turns = [len(turn.query.split()) + len(turn.answer.split()) for turn in dialog.turns]
        words[OVERALL].append(turns)
        words[dialog.task].append(turns)
    found = []
    for task, cells in TABLE_6.items():
        for head, published, value in zip(HEADS, cells.split(), measure(words[task]), strict=True):
            decimals = len(published.partition(".")[2])
            if abs(value - float(published)) > (10**-decimals if decimals else 0):
                found.append(Difference(task, head, published, f"{value:.{decimals}f}"))
    return found


def measure(words: Sequence[Sequence[int]]) -> tuple[float, ...]:
    """Return the figures of a row, of the words of each turn of each dialog."""
    turns = [count for dialog in words for count in dialog]
    sums = [sum(dialog) for dialog in words]
    return len(words), len(turns), len(turns) / len(words), fmean(sums), fmean(turns), max(sums), max(turns)


def main() -> None:
    """Print the turns that are judged, and the cells that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_data(parser, FILE)
    file, tasks = parser.parse_args().data / FILE, read_tasks()
    with errors_on_one_line():
        dialogs = list(dialog_set(str(file), "mt_bench_101").dialogs())
    judged = sum(len(dialog.turns) - tasks[dialog.task].judged_from + 1 for dialog in dialogs)
    differences, cells = compare_with_table_6(dialogs), len(TABLE_6) * len(HEADS)
    print(f"{judged:,} judged turns; {cells - len(differences)} of {cells} cells are as in table 6, but for rounding:")
    print_table(differences, Difference._fields, right=("paper", "here"))


if __name__ == "__main__":
    main()
