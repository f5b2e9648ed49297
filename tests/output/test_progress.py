"""What a person sees of a run: the dialog as it is written, and lines where there is no terminal."""

import time

import pytest

from generator.dialogs.live import Step
from generator.execution.pipeline import Progress
from generator.output import progress
from generator.output.progress import Display


def step(kind: str, text: str, dialog: str = "a", turn: int = 1, label: str = "") -> Step:
    return Step.model_validate({"dialog": dialog, "turn": turn, "kind": kind, "text": text, "label": label})


def test_a_dialog_is_shown_until_it_ends_then_another(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(0, 0, 2, 0) as display:
        display.show(step("question", "When does it leave?", label="direct"))
        display.show(step("question", "Another\x1b[2J dialog?", dialog="b"))
        display.show(step("found", "Timetable"))
        display.show(step("refused", "Leaves.", label="answers nothing"))
        for _ in range(2):  # a finished turn is told of again
            display.show(step("answer", "At nine.", label="answerable"))
        display.show(step("verdict", "correct: by sentence 1", label="correctness"))
        display.show(step("end", ""))
        display.show(step("answer", "At\x1b[2J ten.", dialog="b"))
    shown = capsys.readouterr().err
    words = ["When does it leave?", "Timetable", "answers nothing", "At nine.", "by sentence 1", "ten."]
    places = [shown.index(word) for word in words]
    assert places == sorted(places)
    assert shown.count("At nine.") == 1
    assert "Another" not in shown and "\x1b" not in shown


def test_a_log_of_many_dialogs_stays_short(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(0, 0, 1000, 0) as display:
        for number in range(1000):
            display.show(step("question", "Why?", dialog=str(number)))
            display.show(step("end", "", dialog=str(number)))
    assert 2 < len(capsys.readouterr().err.splitlines()) < 20


def test_a_line_comes_even_if_nothing_happens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert progress.SILENT_SECONDS < 30
    monkeypatch.setattr(progress, "SILENT_SECONDS", 0.0)
    with Display(0, 0, 7, 0) as display:
        display.update(Progress(3, 5, 7, 100))
        time.sleep(1.3)
        assert "3/7" in capsys.readouterr().err
