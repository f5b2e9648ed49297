"""Tables for a terminal."""

import io

from rich.console import Console

from generator.output.tables import Line, as_text


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
