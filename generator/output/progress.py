"""The progress of a run on a terminal or in a log."""

import os
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

from rich.console import Console, RenderableType
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Progresses
from rich.text import Text

from generator.common.console import count_noun
from generator.common.sanitize import printable
from generator.dialogs.live import Step
from generator.execution.pipeline import Progress

PLAIN_SECONDS = 10.0
# Without a terminal, a line comes after so many seconds even if nothing has happened, and while it says the same after
# twice as many each time, up to five minutes.
SILENT_SECONDS, LONGEST_SILENCE = 20.0, 300.0
# The dialogs that are shown without a terminal; a log of thousands has no use for more.
_LOGGED = 5
_LONGEST = 400
_STYLES = {"question": "bold", "found": "dim", "refused": "dim", "verdict": "italic", "end": "yellow"}


class _Bar(Progresses):
    """A progress bar with a dialog below it: its last `rows` lines, since what is taller than the terminal is cut."""

    shown: tuple[Text, ...] = ()
    rows = 3

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        yield from self.shown[-self.rows :]


class Display:
    """A progress bar on a terminal, with a dialog below it as it is being written: one until it ends, then another.

    Elsewhere, and in notebooks, plain lines: the first dialogs as they are being written, and the counts, at most every
    ten seconds, at the end, and after `SILENT_SECONDS` in which nothing else came.

    Args:
        accepted, attempted, dialogs, completion: as in `Progress`, of the run so far.
        drops: show how many dialogs were attempted and dropped.
    """

    def __init__(
        self, accepted: int, attempted: int, dialogs: int, completion: int, verb: str = "accepted", drops: bool = True
    ) -> None:
        self._verb, self._drops = verb, drops
        self._console = Console(stderr=True)
        # A notebook's cell is a terminal whose cursor never moves up: Jupyter sets the first variable for what it
        # starts, ipykernel the second (VS Code, Colab). With FORCE_COLOR, rich takes a log for a terminal.
        notebook = "JPY_PARENT_PID" in os.environ or "inline" in os.environ.get("MPLBACKEND", "")
        self._redraws = self._console.file.isatty() and self._console.is_interactive and not notebook
        self._start = self._last_line = self._last_count = time.monotonic()
        self._pending = self._counted = ""
        self._dialog, self._first, self._seen, self._logged = "", 0, dict[tuple[int, str], str](), 0
        self._ended = threading.Event()
        self._bar = _Bar(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self._console,
            disable=not self._redraws,
        )
        self._bar.rows = max(_Bar.rows, self._console.height // 2 - 2)  # few are longer than two lines
        self._before = self._now = Progress(accepted, attempted, dialogs, completion)
        self._task = self._bar.add_task(self._count(self._now), total=dialogs, completed=accepted)
        if accepted:
            attempted_too = f", {attempted} attempted" if drops else ""
            self.note(f"continuing: {accepted} of {count_noun(dialogs, 'dialog')} {verb}{attempted_too} so far")

    def _count(self, progress: Progress) -> str:
        count = f"{progress.accepted}/{progress.dialogs} {self._verb}"
        if self._drops:
            count += f"  {progress.attempted} attempted  {progress.attempted - progress.accepted} dropped"
        if progress.waiting:
            count += f"  {progress.waiting} more finished"
        return f"{count}  {progress.running} under way" if progress.running else count

    def __enter__(self) -> "Display":
        self._bar.start()
        if not self._redraws:
            threading.Thread(target=self._break_silence, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._bar.stop()
        if self._pending and self._count(self._now) != self._counted:
            self.note(self._pending)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._last_line = time.monotonic()
        self._bar.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def update(self, progress: Progress) -> None:
        """Show the progress of the run."""
        self._now = progress
        seconds = max(time.monotonic() - self._start, 1e-9)
        made = progress.accepted + progress.passed - self._before.accepted
        speed = (progress.completion - self._before.completion) / seconds
        # Until all are accepted, at least one is under way: the one that the finished ones wait for.
        missing = max(progress.dialogs - progress.accepted - progress.passed, progress.accepted < progress.dialogs)
        left = timedelta(seconds=missing * seconds // made) if made else "unknown"
        text = f"{self._count(progress)}  {speed:.0f} tokens/s  time left {left}"
        self._bar.update(self._task, completed=progress.accepted, description=text)
        if self._redraws:
            return
        self._pending = text
        if time.monotonic() - self._last_count >= PLAIN_SECONDS:
            self._last_count, self._pending, self._counted = time.monotonic(), "", self._count(progress)
            self.note(text)

    def show(self, step: Step) -> None:
        """Show a step of a dialog, unless another is being shown; of one that was under way, from its turn on."""
        if not self._dialog and step.kind != "end":
            self._dialog, self._first, self._logged = step.dialog, step.turn, self._logged + 1
            self._bar.shown = ()
            self._seen.clear()
        if step.dialog != self._dialog or 0 < step.turn < self._first:  # the end has no turn
            return
        if self._seen.get((step.turn, step.kind)) == step.text and step.kind in ("question", "answer"):
            return
        self._seen[step.turn, step.kind] = step.text
        if step.kind == "end":
            self._dialog = ""
        line = _line(step)
        self._bar.shown = (*self._bar.shown, Text(line, _STYLES.get(step.kind, "")))
        if not self._redraws and self._logged <= _LOGGED:
            self.note(line)

    def _break_silence(self) -> None:
        pause, last = SILENT_SECONDS, ""
        while not self._ended.wait(1):
            if (count := self._count(self._now)) != last:
                pause = SILENT_SECONDS
            if time.monotonic() - self._last_line >= pause:
                pause, last = min(2 * pause, LONGEST_SILENCE), count
                self.note(f"{count}  {timedelta(seconds=int(time.monotonic() - self._start))}")


def _line(step: Step) -> str:
    """Return a step as a line of text."""
    text = printable(step.text)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    match step.kind:
        case "question":
            return f"User ({step.label}): {text}"
        case "found":
            return f"  found: {text or 'nothing'}"
        case "answer":
            return f"Agent ({step.label}): {text}"
        case "verdict":
            return f"  {step.label}, turn {step.turn}: {text}"
        case "refused":
            return f"  refused, {step.label}: {text}"
    return f"dropped, {text}" if text else "dialog finished"
