"""The progress of a run on a terminal or in a log, and the table at its end."""

import time
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from generator.execution.pipeline import Progress
from generator.models.admission import CACHE_CURE
from generator.output.summary import Summary
from generator.output.tables import print_table

PLAIN_SECONDS = 10.0


class Display:
    """A progress bar on a terminal; elsewhere a plain line at most every ten seconds, and one at the end.

    Args:
        accepted, attempted, dialogs, completion: as in `Progress`, of the run so far.
        drops: show how many dialogs were attempted and dropped.
    """

    def __init__(
        self, accepted: int, attempted: int, dialogs: int, completion: int, verb: str = "accepted", drops: bool = True
    ) -> None:
        self._verb, self._drops = verb, drops
        self._console = Console(stderr=True)
        self._start = self._last_line = time.monotonic()
        self._accepted_before = accepted
        self._completion_before = completion
        self._pending = ""
        self._bar = Bar(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        now = Progress(accepted, attempted, dialogs, completion)
        self._task = self._bar.add_task(self._count(now), total=dialogs, completed=accepted)
        if accepted:
            attempted_too = f", {attempted} attempted" if drops else ""
            self.note(f"continuing: {accepted} of {dialogs} dialogs {verb}{attempted_too} so far")

    def _count(self, progress: Progress) -> str:
        count = f"{progress.accepted}/{progress.dialogs} {self._verb}"
        dropped = progress.attempted - progress.accepted
        return f"{count}  {progress.attempted} attempted  {dropped} dropped" if self._drops else count

    def __enter__(self) -> "Display":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        if self._pending:
            self.note(self._pending)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def update(self, progress: Progress) -> None:
        """Show the progress of the run."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        made = progress.accepted - self._accepted_before
        speed = (progress.completion - self._completion_before) / seconds
        left = timedelta(seconds=(progress.dialogs - progress.accepted) * seconds // made) if made else "unknown"
        text = f"{self._count(progress)}  {speed:.0f} tokens/s  time left {left}"
        self._bar.update(self._task, completed=progress.accepted, description=text)
        if self._console.is_terminal:
            return
        self._pending = text
        if time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line, self._pending = time.monotonic(), ""
            self.note(text)


def closing_table(summary: Summary) -> None:
    """Print the outcome of a run."""
    rows = [("accepted", f"{summary.accepted} of {summary.attempted} attempted dialogs, {summary.pairs} pairs")]
    for title, stages in (
        ("dropped dialogs", summary.dropped),
        ("dropped turns", summary.dropped_turns),
        ("dropped pairs", summary.dropped_pairs),
        ("unused candidates", summary.dropped_candidates),
    ):
        counts = [f"{count} × {stage}: {reason}" for stage, by in stages.items() for reason, count in by.items()]
        if counts:
            rows.append((title, "\n".join(counts)))
    if (spent := summary.candidates_cost).calls:
        cost = f"{spent.calls} calls, {spent.prompt} prompt tokens, {spent.completion} completion tokens"
        rows.append(("for unused candidates", cost))
    if summary.unjudged_pairs:
        reason = next(iter(summary.unjudged), "")
        unjudged = f"{summary.unjudged_pairs} of {summary.pairs} pairs, most often: {reason}"
        rows.append(("unjudged", f"{unjudged}; python -m judges judges them again"))
    if summary.evidence_covers is not None:
        rows.append(("evidence", f"covers the answer of {summary.evidence_covers:.0%} of the pairs"))
    if summary.difficulty:
        rows.append(("difficulty", ", ".join(f"{count} {level}" for level, count in summary.difficulty.items())))
    if summary.guessable:
        rows.append(("gives itself away", f"without reading a passage: {', '.join(summary.guessable)}"))
    for title, shares in (
        ("tasks", summary.tasks),
        ("question types", summary.question_types),
        ("multi-turn types", summary.multi_turn_types),
        ("answerability", summary.answerability),
    ):
        if shares:
            achieved = (f"{name} {s.achieved:.0%} (target {s.target:.0%})" for name, s in shares.items())
            rows.append((title, ", ".join(achieved)))
    if summary.skipped:
        rows.append(("skipped", f"{summary.skipped} documents that can't be read, listed in skipped.jsonl"))
    tokens = summary.tokens
    cached = f"{tokens.cached / tokens.prompt:.0%} from the server's cache" if tokens.prompt else "none"
    prompt = f"{summary.lm_calls} calls, {tokens.prompt} prompt tokens ({cached})"
    rows.append(("model", f"{prompt}, {tokens.completion} completion tokens"))
    if (share := summary.cached_share).stages:
        over_time = " ".join("–" if part is None else f"{part:.0%}" for part in share.over_time)
        rows.append(("from the cache", ", ".join(f"{stage} {part:.0%}" for stage, part in share.stages.items())))
        rows.append(("over time", over_time))
    if fell := share.collapsed:
        rows.append(("warning", f"the cached share fell from {fell[0]:.0%} to {fell[1]:.0%}: {CACHE_CURE}"))
    costs = (
        f"{stage} {cost.calls:.1f} calls, {cost.computed:.0f} prompt tokens computed, {cost.completion:.0f} completed"
        for stage, cost in summary.pair_cost.items()
    )
    if (surplus := summary.surplus).dialogs:
        cost = f"{surplus.calls} calls, {surplus.prompt} prompt tokens, {surplus.completion} completion tokens"
        rows.append(("surplus", f"{surplus.dialogs} dialogs begun too many: {cost}; a higher dialogs=… uses them"))
    if summary.pair_cost:
        rows.append(("cost of a pair", "\n".join(costs)))
    print_table([*rows, ("time", str(timedelta(seconds=int(summary.seconds))))])
