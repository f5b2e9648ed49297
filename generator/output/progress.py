"""What a person sees while a run goes on, and at its end. Knows how to show things, not what they mean for the run."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from generator.common.sanitize import printable
from generator.execution.pipeline import Progress
from generator.output.summary import Summary

PLAIN_SECONDS = 10.0


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss or m:ss."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Display:
    """A bar on a terminal; elsewhere a plain line at most every ten seconds, and one at the end."""

    def __init__(self, accepted: int, attempted: int, dialogs: int, completion: int) -> None:
        self._console = Console(stderr=True)
        self._start = self._last_line = time.monotonic()
        self._accepted_before = accepted
        self._completion_before = completion
        self._unshown = ""
        self._bar = Bar(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        now = Progress(accepted, attempted, dialogs, completion)
        self._task = self._bar.add_task(self.counted(now), total=dialogs, completed=accepted)
        if accepted:
            self.note(self.resumed(now))

    def counted(self, progress: Progress) -> str:
        """What is done of how much."""
        return (
            f"{progress.accepted}/{progress.dialogs} accepted  {progress.attempted} attempted  "
            f"{progress.attempted - progress.accepted} dropped"
        )

    def resumed(self, progress: Progress) -> str:
        """The line with which a run goes on."""
        return (
            f"continuing: {progress.accepted} of {progress.dialogs} dialogs accepted, "
            f"{progress.attempted} attempted so far"
        )

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        if self._unshown:
            self.note(self._unshown)

    def note(self, text: str) -> None:
        """A line above the bar."""
        self._bar.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def update(self, progress: Progress) -> None:
        """Show how far the run is."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        made = progress.accepted - self._accepted_before
        speed = (progress.completion - self._completion_before) / seconds
        left = clock((progress.dialogs - progress.accepted) * seconds / made) if made > 0 else "unknown"
        text = f"{self.counted(progress)}  {speed:.0f} tokens/s  time left {left}"
        self._bar.update(self._task, completed=progress.accepted, description=text)
        if self._console.is_terminal:
            return
        self._unshown = text
        if time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line, self._unshown = time.monotonic(), ""
            self.note(text)


def closing_table(summary: Summary) -> None:
    """Print what a run came to."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    tokens, usage = summary.tokens, summary.lm_calls
    table.add_row("accepted", f"{summary.accepted} of {summary.attempted} attempted dialogs, {summary.pairs} pairs")
    for title, counts in (
        ("dropped dialogs", summary.dropped),
        ("dropped turns", summary.dropped_turns),
        ("dropped pairs", summary.dropped_pairs),
    ):
        reasons = [f"{count} × {stage}: {why}" for stage, whys in counts.items() for why, count in whys.items()]
        if reasons:
            table.add_row(title, Text("\n".join(map(printable, reasons))))
    if summary.unjudged_pairs:
        reason = next(iter(summary.unjudged), "")
        told = f"{summary.unjudged_pairs} of {summary.pairs} pairs, most often: {reason}; python -m judges judges them"
        table.add_row("unjudged", Text(printable(told)))
    for title, shares in (
        ("question types", summary.question_types),
        ("multi-turn types", summary.multi_turn_types),
        ("answerability", summary.answerability),
    ):
        if shares:
            reached = (f"{name} {s.achieved:.0%} (target {s.target:.0%})" for name, s in shares.items())
            table.add_row(title, Text(printable(", ".join(reached))))
    if summary.skipped:
        table.add_row("skipped", f"{summary.skipped} documents that can't be read, listed in skipped.jsonl")
    cached = f"{tokens.cached / tokens.prompt:.0%} from the server's cache" if tokens.prompt else "none"
    table.add_row(
        "model", f"{usage} calls, {tokens.prompt} prompt tokens ({cached}), {tokens.completion} completion tokens"
    )
    if summary.pair_cost:
        shown = (
            f"{stage} {c.calls:.1f} calls, {c.computed:.0f} prompt tokens computed, {c.completion:.0f} completed"
            for stage, c in summary.pair_cost.items()
        )
        table.add_row("cost of a pair", "\n".join(shown))
    table.add_row("time", clock(summary.seconds))
    Console(file=sys.stdout).print(table)
