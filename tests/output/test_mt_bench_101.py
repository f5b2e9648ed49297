"""`export=mt_bench_101`: the publisher's file, from published dialogs and from generated ones."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.errors import ExportError
from generator.human import COMMAND
from generator.output.base import ExportSource
from generator.output.mt_bench_101 import MtBench101Export
from generator.schema import Dialog, Turn, Verdict
from tests.support.records import make_dialog, make_turn
from tests.support.runs import command


def export(folder: Path, *dialogs: Dialog) -> list[dict[str, Any]]:
    source = ExportSource("c", lambda: iter(dialogs), lambda: iter(()), filter="pairs", rewritten=False)
    MtBench101Export().write(source, folder)
    return [json.loads(line) for line in (folder / "mtbench101.jsonl").read_text(encoding="utf-8").splitlines()]


def of_task(name: str, *turns: Turn, task: str = "CM") -> Dialog:
    return make_dialog(*(turns or (make_turn(1), make_turn(2))), id=name, algorithm="whole", task=task)


def test_the_published_dialogs_come_out_as_they_went_in(tmp_path: Path, data: Path) -> None:
    published = data / "mtbench101" / "mtbench101.jsonl"
    run = [f"corpus.path={published}", f"run_dir={tmp_path}", "export=mt_bench_101", "validation=0.2"]
    done = command("corpus=mt_bench_101", *run, program=COMMAND)
    assert done.code == 0, done.err
    assert "human dialogs: 1388, with 4208 context-response pairs" in done.out
    written = (tmp_path / "mt_bench_101" / "mtbench101.jsonl").read_text(encoding="utf-8").splitlines()
    given = published.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in written] == [json.loads(line) for line in given]
    assert (tmp_path / "dataset" / "README.md").exists()


@pytest.mark.parametrize(
    ("ids", "numbers"),
    [(["7", "3"], [7, 3]), (["7", "ab"], [1, 2]), (["1234567890123456", "beef"], [1, 2]), (["07", "7"], [1, 2])],
)
def test_ids_are_whole_numbers(tmp_path: Path, ids: Sequence[str], numbers: Sequence[int]) -> None:
    found = export(tmp_path, *(of_task(name) for name in ids))
    assert [item["id"] for item in found] == numbers
    assert found[0] == {
        "task": "CM",
        "id": numbers[0],
        "history": [{"user": "Q1?", "bot": "A1."}, {"user": "Q2?", "bot": "A2."}],
    }


def test_a_dialog_with_a_pair_that_is_not_kept_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = Verdict(judge="task", label="incorrect", explanation="", model="m")
    found = export(tmp_path, of_task("a", make_turn(1, verdicts=(wrong,)), make_turn(2)), of_task("b"))
    assert len(found) == 1
    assert "left out 1 dialog" in capsys.readouterr().err


def test_a_dialog_without_a_task_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^export=mt_bench_101: the dialog x belongs to no task; "):
        export(tmp_path, of_task("x", task=""))
