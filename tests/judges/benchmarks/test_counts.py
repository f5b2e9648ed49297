"""`python -m judges.benchmarks.mt_bench_101`: sizes by hand, and the published file against table 6."""

from functools import partial
from pathlib import Path

import pytest

from generator.sets import dialog_set
from judges.benchmarks.mt_bench_101.__main__ import COMMAND
from judges.benchmarks.mt_bench_101.counts import Counts, compare_with_table_6, count_dialogs
from taxonomy import read_tasks
from taxonomy.files import OURS
from tests.support import runs
from tests.support.records import make_dialog, make_turn, write_dialogs, write_json_lines

command = partial(runs.command, program=COMMAND)


def dialog(number: int, task: str, *turns: tuple[str, str]) -> dict[str, object]:
    return {"task": task, "id": number, "history": [{"user": user, "bot": bot} for user, bot in turns]}


def test_words_turns_and_judged_turns_are_counted_by_task(tmp_path: Path) -> None:
    file = write_json_lines(
        tmp_path / "own.jsonl",
        dialog(1, "PI", ("one two", "three"), ("a\nb", "c  d e")),
        dialog(2, "CM", ("one", "two"), ("three", "four")),
        dialog(3, "CM", ("one", "two"), ("three", "four"), ("a b c", "d e f g")),
    )
    assert count_dialogs(dialog_set(str(file), "mt_bench_101").dialogs(), read_tasks()) == {
        "Overall": Counts(3, 7, 7 / 3, 23 / 3, 23 / 7, 11, 7, 5),
        "CM": Counts(2, 5, 2.5, 7.5, 3, 11, 7, 3),
        "PI": Counts(1, 2, 2, 8, 4, 8, 5, 2),
    }
    ended = command(file)
    assert (ended.code, ended.err) == (0, "")
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["CM", "2", "5", "2.50", "7.50", "3.00", "11", "7", "3"] in rows
    assert "table 6" not in ended.out


def test_dialogs_of_a_run_are_counted_with_tasks_of_ones_own(tmp_path: Path) -> None:
    file = write_dialogs(tmp_path / "dialogs.jsonl", make_dialog(make_turn(1), make_turn(2), task="XY"))
    refused = command(file).refused
    assert "tasks" in refused and "'XY'" in refused
    (tmp_path / "tasks").mkdir()
    own = (OURS / "tasks/pi.yaml").read_text(encoding="utf-8").replace("name: PI", "name: XY", 1)
    (tmp_path / "tasks" / "xy.yaml").write_text(own, encoding="utf-8")
    counted = command(file, f"tasks={tmp_path / 'tasks'}")
    assert (counted.code, counted.err) == (0, "")
    assert "XY" in counted.out


@pytest.mark.parametrize("line", ["{", "{}", '{"task": "CM", "id": 1, "history": [{"user": "u"}]}'])
def test_a_file_of_another_shape_is_one_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "file.jsonl").write_text(f"{line}\n", encoding="utf-8")
    assert "file.jsonl:1" in command(tmp_path / "file.jsonl").refused


def test_the_published_file_is_as_in_table_6_but_for_four_cells(data: Path) -> None:
    file = data / "mtbench101" / "mtbench101.jsonl"
    counts = count_dialogs(dialog_set(str(file), "mt_bench_101").dialogs(), read_tasks())
    assert [tuple(cell) for cell in compare_with_table_6(counts)] == [
        ("CM", "longest turn", "323", "142"),
        ("SI", "words a turn", "84.76", "51.44"),
        ("AR", "longest turn", "229", "118"),
        ("MR", "words a turn", "51.44", "84.76"),
    ]
    judged = " ".join(f"{task} {found.judged}" for task, found in counts.items())
    assert judged == (
        "Overall 3615 CM 239 SI 620 AR 407 TS 249 CC 352 CR 253 FR 123 SC 77 SA 73 MR 224 GR 218 IC 426 PI 354"
    )
    assert "94 of 98" in command(file).out
