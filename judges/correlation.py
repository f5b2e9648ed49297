"""`python -m judges.correlation`: how far two rankings of models agree (Kuo et al. 2025, figure 2)."""

import csv
import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from generator.command import Command, run_command
from generator.errors import ConfigError, describe
from generator.schema import LocalPath, Record

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMMAND = Command(
    program="python -m judges.correlation",
    primary="correlation",
    task="judges.correlation:print_correlation",
    settings="judges.correlation:CorrelationSettings",
    usage=(
        "python -m judges.correlation FILE.csv x=COLUMN y=COLUMN",
        "",
        "Pearson's and Spearman's correlation of two columns of a table with a row for each model, such as its average",
        "here and its rating elsewhere. Rows without a number in both are left out, and listed.",
    ),
    groups=(),
    positional="input",
)
# Two points always lie on a line.
_LEAST = 3


class CorrelationSettings(Record):
    """Settings of `python -m judges.correlation`."""

    input: LocalPath = Field(description="The table, a CSV file whose first line names the columns.")
    x: str = Field(description="A column of numbers.")
    y: str = Field(description="Another one.")


class Pair(NamedTuple):
    """The numbers of a row; None where it has none."""

    row: str
    x: float | None
    y: float | None


def print_correlation(cfg: "DictConfig", job: object) -> None:
    """Print the correlation of the configured columns.

    Raises:
        ConfigError: the table can't be read, or has not enough rows with different numbers.
    """
    from scipy import stats

    from generator.config.parts import plain, validate
    from generator.output.tables import print_table

    settings: CorrelationSettings = validate(CorrelationSettings, "", plain(cfg))
    pairs = list(_read(settings.input, settings.x, settings.y))
    known = [(pair.x, pair.y) for pair in pairs if pair.x is not None and pair.y is not None]
    if len(known) < _LEAST:
        raise ConfigError(
            f"{settings.input}: {len(known)} of {len(pairs)} rows have a number in {settings.x!r} and in "
            f"{settings.y!r}; a correlation needs {_LEAST}"
        )
    xs, ys = zip(*known, strict=True)
    for setting, column, values in (("x", settings.x, xs), ("y", settings.y, ys)):
        if len(set(values)) == 1:
            raise ConfigError(f"{setting}={column}: all rows have the same number, so there is no correlation")
    left_out = [pair.row for pair in pairs if pair.x is None or pair.y is None]
    rows = [
        ["Pearson", f"{stats.pearsonr(xs, ys).statistic:.4f}"],
        ["Spearman", f"{stats.spearmanr(xs, ys).statistic:.4f}"],
        ["rows", str(len(known))],
        ["left out", f"{len(left_out)}: {', '.join(left_out)}" if left_out else "0"],
    ]
    print_table(rows)


def _read(path: Path, x: str, y: str) -> Iterator[Pair]:
    """Yield the numbers of each row, named by its first cell."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            columns = table.fieldnames or ()
            for setting, column in (("x", x), ("y", y)):
                if column not in columns:
                    raise ConfigError(f"{setting}={column}: no such column in {path}; choose from {', '.join(columns)}")
            for row in table:
                yield Pair(row[columns[0]] or f"line {table.line_num}", _number(row[x]), _number(row[y]))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: can't be read as CSV: {describe(error)}") from error


def _number(cell: str | None) -> float | None:
    try:
        number = float(cell or "")
    except ValueError:
        return None
    return number if isfinite(number) else None


def main() -> int:
    """Run the command line and return the exit code: 0, 2 something to fix, 130 interrupted."""
    return run_command(COMMAND)


if __name__ == "__main__":
    sys.exit(main())
