"""The correlation of two columns of models."""

from pathlib import Path

import pytest

from judges.correlation import COMMAND
from tests.support.runs import Ended, command

TABLE = "model,ours,theirs,same\na,1,10,5\nb,2,30,5\nc,3,20,5\nd,9,,5\ne,nan,7,5\n"


def correlate(folder: Path, *settings: str, table: str = TABLE) -> Ended:
    file = folder / "models.csv"
    file.write_text(table, encoding="utf-8")
    return command(str(file), *settings, program=COMMAND)


def test_both_correlations_of_the_rows_with_numbers(tmp_path: Path) -> None:
    done = correlate(tmp_path, "x=ours", "y=theirs")
    assert done.code == 0
    told = dict(line.split(maxsplit=1) for line in done.out.replace("left out", "left-out").splitlines())
    assert {name: value.strip() for name, value in told.items()} == {
        "Pearson": "0.5000",
        "Spearman": "0.5000",
        "rows": "3",
        "left-out": "2: d, e",
    }


@pytest.mark.parametrize(
    "table",
    [
        "model;ours;theirs\na;7,5;1200\nb;6;1100,5\nc;5,5;1000\nd;;900\n",
        "model\tours\ttheirs\na\t7,5\t1200\nb\t6\t1100,5\nc\t5,5\t1000\nd\t\t900\n",
        'model,ours,theirs\na,7.5,1200\nb,6,1100.5\nc,5.5,1000\nd,5,"1,300"\n',
    ],
)
def test_a_comma_is_a_decimal_one_where_it_separates_no_columns(table: str, tmp_path: Path) -> None:
    out = correlate(tmp_path, "x=ours", "y=theirs", table=table).out
    assert "1: d" in out and "Spearman  1.0000" in out


@pytest.mark.parametrize(
    ("settings", "table", "message"),
    [
        (("x=our", "y=theirs"), TABLE, "has no column 'our' in its first row; it has model, ours, theirs, same"),
        (("x=ours", "y=same"), TABLE, "y=same: all rows have the same number"),
        (("x=ours", "y=model"), TABLE, "0 of 5 rows have a number in 'ours' and in 'model'"),
        (("x=ours", "y=theirs"), "", "has no column 'ours'"),
        (("x=ours",), TABLE, "y: has no value"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, settings: tuple[str, ...], table: str, message: str) -> None:
    done = correlate(tmp_path, *settings, table=table)
    assert done.code == 2 and message in done.error
