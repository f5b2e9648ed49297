"""`python -m judges.correlation`: how far two rankings of models agree (Kuo et al. 2025, figure 2)."""

import sys
from math import isfinite

from pydantic import Field

from generator.command import Command, run_command, with_settings
from generator.errors import ConfigError
from generator.schema import LocalPath, Record

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
    input: LocalPath = Field(description="The table, a CSV file whose first line names the columns.")
    x: str = Field(description="A column of numbers.")
    y: str = Field(description="Another one.")


@with_settings(CorrelationSettings)
def print_correlation(settings: CorrelationSettings) -> None:
    """Print the correlation of the configured columns.

    Raises:
        ConfigError: the table has not enough rows with different numbers.
        CorpusError: it can't be read, or has no such column.
    """
    from scipy import stats

    from generator.output.tables import print_table
    from judges.sheets import read_rows

    known, left_out = [], []
    rows_read = read_rows(settings.input, (settings.x, settings.y))
    head = settings.input.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    mark = "." if max(",;\t", key=head.count) == "," else ","  # a comma that separates no columns is a decimal one
    for line, row in rows_read:
        x, y = (_number(row[column].replace(mark, ".")) for column in (settings.x, settings.y))
        if x is None or y is None:
            left_out.append(next(iter(row.values())) or f"line {line}")
        else:
            known.append((x, y))
    if len(known) < _LEAST:
        raise ConfigError(
            f"{settings.input}: {len(known)} of {len(known) + len(left_out)} rows have a number in {settings.x!r} and "
            f"in {settings.y!r}; a correlation needs {_LEAST}"
        )
    xs, ys = zip(*known, strict=True)
    for setting, column, values in (("x", settings.x, xs), ("y", settings.y, ys)):
        if len(set(values)) == 1:
            raise ConfigError(f"{setting}={column}: all rows have the same number, so there is no correlation")
    rows = [
        ["Pearson", f"{stats.pearsonr(xs, ys).statistic:.4f}"],
        ["Spearman", f"{stats.spearmanr(xs, ys).statistic:.4f}"],
        ["rows", str(len(known))],
        ["left out", f"{len(left_out)}: {', '.join(left_out)}" if left_out else "0"],
    ]
    print_table(rows)


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if isfinite(number) else None


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
