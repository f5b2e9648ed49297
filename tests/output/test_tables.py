"""Tables for a terminal."""

import io

import pytest
from rich.console import Console

from generator.output.tables import Line, as_text, print_table


def test_sets_that_a_terminal_has_no_room_for_come_in_further_tables() -> None:
    names = [f"set-{number}" for number in range(8)]
    label = "evidence in the first 5 by the retrieval query"
    lines = [Line("passages", label, [f"{number},000.00" for number in range(8)])]
    text = as_text(names, lines, Console(file=io.StringIO(), width=80))
    heads, rows = ([line.split() for line in text.splitlines() if of in line] for of in ("set-", label))
    assert heads == [names[:3], names[3:6], names[6:]]
    assert [cell for row in rows for cell in row if "," in cell] == list(lines[0].cells)
    assert max(map(len, text.splitlines())) <= 80
    assert as_text(names, lines, None).count(label) == 1, "a file has room"


def test_long_names_leave_the_labels_whole() -> None:
    label = "relevant, an answerable or partial turn"
    text = as_text(["a-name-as-long-as-a-run-folder-has-it"] * 3, [Line("", label, ["1"] * 3)], Console(width=80))
    assert [line.split()[-3:] for line in text.splitlines() if label in line] == [["1", "1", "1"]]


def test_figures_stay_on_one_line_while_there_is_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge, figure, told = "published:conditional_idk", "0.57 [-0.48, 0.67]", "no: 8,830 would"
    head = ["judge", "marks", "good from", "Cohen's kappa", "told from a coin"]
    for width, whole in ((120, True), (80, True), (40, False)):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table([[judge, "347", figure, figure, told]], head, right=head[1:])
        shown = capsys.readouterr().out
        assert (shown.count(figure) == 2 and told in shown) == whole
        assert all("".join(shown.split()).count(part) == 2 for part in ("0.57", "0.67]")), "nothing is cut off"
