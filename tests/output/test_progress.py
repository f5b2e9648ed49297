"""What a person sees of a run: the dialog as it is written, and lines where there is no terminal."""

import sys
import threading
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


def test_a_dialog_that_was_joined_in_the_middle_goes_on_from_there(capsys: pytest.CaptureFixture[str]) -> None:
    """A finished dialog tells of all its turns again, also of those that weren't shown."""
    with Display(0, 0, 2, 0) as display:
        display.show(step("question", "Why so late?", turn=2))
        display.show(step("question", "When does it leave?"))
        display.show(step("answer", "At nine."))
        display.show(step("question", "Why so late?", turn=2))
        display.show(step("answer", "For the school.", turn=2))
        display.show(step("verdict", "correct: by sentence 1", label="correctness"))
        display.show(step("verdict", "correct: by sentence 2", turn=2, label="correctness"))
        display.show(step("end", "", turn=0))
    shown = capsys.readouterr().err
    assert not any(words in shown for words in ("When does it leave?", "At nine.", "by sentence 1"))
    assert (
        "by sentence 2" in shown
        and shown.count("Why so late?") == 1
        and "For the school." in shown
        and "finished" in shown
    )


def test_each_question_of_a_turn_that_begins_once_more_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with Display(0, 0, 2, 0) as display:
        for question in ("When does it leave?", "Why so late?", "When does it leave?", "When does it leave?"):
            display.show(step("question", question))
        display.show(step("answer", "At nine."))
    shown = capsys.readouterr().err
    assert [shown.count(question) for question in ("When does it leave?", "Why so late?")] == [2, 1]


@pytest.mark.parametrize(
    ("tty", "variables"),
    [
        (False, {"FORCE_COLOR": "1"}),
        (True, {"JPY_PARENT_PID": "1", "FORCE_COLOR": "1"}),
        (True, {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}),
        (True, {"TERM": "dumb"}),
    ],
    ids=["coloured log", "Jupyter", "ipykernel", "dumb terminal"],
)
def test_what_cannot_redraw_gets_each_line_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tty: bool, variables: dict[str, str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: tty)
    for name in ("JPY_PARENT_PID", "MPLBACKEND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with Display(0, 0, 2, 0) as display:
        display.show(step("question", "When does it leave?"))
        display.update(Progress(0, 0, 2, 0, running=1))
        later = time.monotonic() + progress.PLAIN_SECONDS
        monkeypatch.setattr(time, "monotonic", lambda: later)
        for _ in range(2):
            display.update(Progress(2, 2, 2, 0))
        shown = capsys.readouterr().err
        assert shown.count("When does it leave?") == 1 and "\x1b[1A" not in shown
    assert f"{shown}{capsys.readouterr().err}".count("2/2 accepted") == 1


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
        shown, end = "", time.monotonic() + 30
        while "3/7" not in shown and time.monotonic() < end:
            time.sleep(0.05)
            shown += capsys.readouterr().err
        assert "3/7" in shown


def test_a_line_that_says_the_same_comes_more_and_more_rarely(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 1000 seconds of waiting there are few lines; a dialog that finishes meanwhile has one soon."""
    now = 0.0

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            nonlocal now
            now += timeout or 0
            if now == 500:
                display.update(Progress(0, 0, 7, 0, waiting=1, running=3))
            return now >= 1000

    monkeypatch.setattr(time, "monotonic", lambda: now)
    display = Display(0, 0, 7, 0)
    display._ended = Clock()
    display._break_silence()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 15
    assert any("1 more finished  3 under way" in line and "0:08:" in line for line in lines)


def test_the_time_left_counts_dialogs_that_wait_for_an_earlier_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten dialogs one is accepted and four more are finished: half of them are left."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with Display(0, 0, 10, 0) as display:
        now = 100
        display.update(Progress(1, 1, 10, 0, waiting=4, passed=4, running=2))
        assert "time left 0:01:40" in capsys.readouterr().err
        now = 200
        display.update(Progress(1, 1, 10, 0, waiting=9, passed=9, running=1))
        assert "time left 0:00:20" in capsys.readouterr().err, "the first of them is still to come"
