"""`python -m benchmarks.mt_bench_101`: the published file against table 6."""

import sys
from pathlib import Path

import pytest

from benchmarks import mt_bench_101


def test_sizes_are_those_of_words_by_hand() -> None:
    assert mt_bench_101.measure([[1, 4], [2, 3, 7]]) == (2, 5, 2.5, 8.5, 3.4, 12, 7)


def test_the_published_file_is_as_in_table_6_but_for_four_cells(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mt_bench_101", "--data", str(data)])
    mt_bench_101.main()
    first, *_, cm, si, ar, mr = capsys.readouterr().out.splitlines()
    assert first.startswith("3,615 judged turns; 94 of 98 cells are as in table 6")
    assert [line.split() for line in (cm, si, ar, mr)] == [
        ["CM", "longest", "turn", "323", "142"],
        ["SI", "words", "a", "turn", "84.76", "51.44"],
        ["AR", "longest", "turn", "229", "118"],
        ["MR", "words", "a", "turn", "51.44", "84.76"],
    ]
