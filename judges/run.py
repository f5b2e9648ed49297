"""What exists is judged: dialogs in, the same with one more verdict on each turn out, and how it ends for the person.

A plan of the store is an input dialog. Verdicts on many dialogs are asked for at once and written in the input's order.
"""

import asyncio
import hashlib
import json
import re
import time
from array import array
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import dspy
from rich.console import Console
from rich.table import Table
from rich.text import Text

from generator.common.atomic_files import atomic_write
from generator.common.concurrency import in_order, together
from generator.common.console import continues, note
from generator.common.interruption import ends_at_once, interruptible, unless
from generator.common.sanitize import printable
from generator.dialogs.adapter import SharedPrefixAdapter
from generator.dialogs.calls import asking
from generator.dialogs.journal import Journal
from generator.dialogs.signatures import prompt_version
from generator.errors import ConfigError, CorpusError, GroundedDialogsError, ModelError
from generator.execution.pipeline import Progress
from generator.execution.store import Outcome, Store
from generator.models.client import Endpoint
from generator.models.lm import Clients, LanguageModel
from generator.output.progress import Display, clock
from generator.schema import Dialog, Judge, SkippedRecord, Turn, Verdict
from generator.sets import DialogSet, dialog_set, response_set
from judges.config import JudgingSettings, judging_identity
from judges.panel import median_name, median_of
from judges.summary import Figures, JudgingSummary, summarise

# Dialogs at a time for a judge that asks no model: enough for one that works in batches.
_AT_ONCE = 32


@dataclass(frozen=True)
class Member:
    """A judge with one model, or with none."""

    judge: Judge
    clients: Clients | None
    adapter: SharedPrefixAdapter


class JudgingRun:
    """A run of judging that is ready to be made or continued: settings checked, the input read once.

    Args:
        settings: of the run.
        configuration: the same as YAML, for the run folder.

    Raises:
        GroundedDialogsError: something is to be mended first; the run folder has not been touched.
    """

    def __init__(self, settings: JudgingSettings, configuration: str) -> None:
        self.settings, self.configuration = settings, configuration
        self.endpoints = settings.endpoints
        # Judges of one class: what only their arguments decide is found wrong here, before the input is read.
        self.judges = [cast(Judge, settings.judge.build(endpoint.model)) for endpoint in self.endpoints.values()]
        if not self.endpoints:
            self.judges = [cast(Judge, settings.judge.build(""))]
        self._check_folder()
        self.input = _input(settings)
        self.known, fingerprint, self.broken = _looked_over(self.input)
        self.total = len(self.known)
        judge = self.judges[0]
        signatures = [p.signature for p in judge.predictors()] if isinstance(judge, dspy.Module) else []
        prompts = prompt_version(signatures, SharedPrefixAdapter().rules)
        self.identity = judging_identity(settings, fingerprint, prompts)

    @property
    def voices(self) -> list[tuple[str, str]]:
        """Judge and model of the verdicts that it gives."""
        judge, models = self.judges[0], [endpoint.model for endpoint in self.endpoints.values()]
        median = [median_name(models)] if len(models) > 1 and _best(judge) else []
        return [(judge.name, model) for model in [*(models or [""]), *median]]

    async def go(self, stop: asyncio.Event) -> JudgingSummary:
        """Judge until the input is done or `stop` is set; whatever happens, what it has is written out.

        Raises:
            CorpusError: the input isn't any more what it was at the beginning.
            ModelError, RunError: a model or the run folder can't be used.
        """
        settings = self.settings
        async with AsyncExitStack() as stack:
            store = None
            if (settings.folder / "run.db").exists() and not settings.fresh:
                store = stack.enter_context(Store(settings.folder, self.identity))
                if store.attempted >= self.total:
                    note("this run is finished; fresh=true begins it anew")
                    return self._results(store)
            members = [Member(self.judges[0], None, SharedPrefixAdapter())]
            if self.endpoints:
                members = [
                    await unless(stop, _opened(name, judge, endpoint, settings, stack))
                    for (name, endpoint), judge in zip(self.endpoints.items(), self.judges, strict=True)
                ]
            # A new run, or the removal of an old one, begins when everything is seen to be there.
            store = store or stack.enter_context(Store(settings.folder, self.identity, settings.fresh))
            with atomic_write(settings.folder / "config.yaml") as file:
                file.write(self.configuration)
            try:
                await self._judge(store, members, stop)
            except Exception:
                with suppress(GroundedDialogsError):  # what went wrong first says more
                    self._results(store)
                raise
            return self._results(store)

    async def _judge(self, store: Store, members: list[Member], stop: asyncio.Event) -> None:
        done, last = store.attempted, time.monotonic()
        dialogs = islice(_readable(self.input), done, None)

        def make(number: int) -> Coroutine[Any, Any, Outcome] | None:
            if number == self.total:
                return None
            dialog = next(dialogs, None)
            if dialog is None or hash(dialog.model_dump_json()) != self.known[number]:
                raise CorpusError(
                    f"{self.input.path}: changed while it was judged, at dialog {number + 1} of {self.total}; what was "
                    "judged before is written; with the input as it was the same command continues"
                )
            return judged(dialog, members, Journal(store, f"{number} {dialog.id}"))

        def completion() -> int:
            return sum(usage.completion for usage in store.usage().values())

        at_once = max((endpoint.concurrency for endpoint in self.endpoints.values()), default=_AT_ONCE)
        display = _Display(done, done, self.total, completion())
        try:
            async with aclosing(in_order(make, done, at_once, stop)) as outcomes:
                with display:
                    async for number, outcome in outcomes:
                        dialog, now = cast(Dialog, outcome.dialog), time.monotonic()
                        store.add(number, f"{number} {dialog.id}", outcome, now - last)
                        last = now
                        display.update(Progress(number + 1, number + 1, self.total, completion()))
        finally:
            with suppress(GroundedDialogsError):  # what went wrong first says more
                store.add_seconds(time.monotonic() - last)

    def _results(self, store: Store) -> JudgingSummary:
        ends_at_once()  # nothing is left that could be stopped and kept
        folder = self.settings.folder
        with atomic_write(folder / "dialogs.jsonl") as file:
            file.writelines(f"{dialog.model_dump_json()}\n" for dialog in store.dialogs())
        if self.broken:
            with atomic_write(folder / "skipped.jsonl") as file:
                file.writelines(f"{broken.model_dump_json()}\n" for broken in self.broken)
        best, source = _best(self.judges[0]) or 1, str(self.settings.input)
        summary = summarise(store, source, self.voices, best, len(self.broken), self.total)
        with atomic_write(folder / "summary.json") as file:
            file.write(json.dumps(summary.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
        return summary

    def _check_folder(self) -> None:
        source, folder = self.settings.input.expanduser().absolute(), self.settings.folder.expanduser().absolute()
        if folder in (source, *source.parents) and self.settings.run_dir is not None:
            raise ConfigError(f"run_dir={self.settings.run_dir}: the input lies there; give another folder")


async def judged(dialog: Dialog, members: Sequence[Member], journal: Journal) -> Outcome:
    """A dialog with the verdicts of `members`, in the place of those that the same judges and models gave before.

    Raises:
        ModelError: a model is gone; what was asked is in the journal.
    """
    found = await together(_verdicts(dialog, member, journal) for member in members)
    scored = any(_best(member.judge) for member in members)
    turns = list(dialog.turns[: -len(dialog.own_turns)])
    for turn, verdicts in zip(dialog.own_turns, zip(*found, strict=True), strict=True):
        new = [*verdicts, *([median_of(verdicts)] if len(verdicts) > 1 and scored else [])]
        ours = {(verdict.judge, verdict.model) for verdict in new}
        kept = [verdict for verdict in turn.verdicts if (verdict.judge, verdict.model) not in ours]
        turns.append(turn.model_copy(update={"verdicts": (*kept, *new)}))
    return Outcome(dialog=dialog.model_copy(update={"turns": tuple(turns)}), drops=(), usage=journal.by_stage())


async def _verdicts(dialog: Dialog, member: Member, journal: Journal) -> list[Verdict]:
    """The verdicts of one judge on each turn of a dialog, all asked for at once."""

    async def verdict(turn: Turn) -> Verdict:
        return await member.judge.judge(dialog.grounding(turn.turn), dialog.turns[: turn.turn - 1], turn)

    if member.clients is None:
        return await together(map(verdict, dialog.own_turns))
    about = dialog.document_ids[0] if dialog.document_ids else dialog.id
    with (
        member.clients.for_dialog(about) as client,
        asking(LanguageModel(client, journal, dialog.seed), member.adapter),
    ):
        return await together(map(verdict, dialog.own_turns))


async def _opened(
    name: str, judge: Judge, endpoint: Endpoint, settings: JudgingSettings, stack: AsyncExitStack
) -> Member:
    # A verdict is to be the same whenever it is asked for: judges are decoded as turns are, greedily.
    greedy = endpoint.model_copy(update={"sampled": endpoint.turns})
    own = f"judge.panel.{name}" if settings.judge.panel else "judge.lm" if settings.judge.lm else "lm"
    try:
        clients = await stack.enter_async_context(greedy.open(settings.folder))
    except ModelError as error:
        raise ModelError(re.sub(r"\blm\.", f"{own}.", str(error))) from error
    return Member(judge, clients, SharedPrefixAdapter(endpoint.structured_outputs))


def _best(judge: Judge) -> float | None:
    """The highest score of a judge; None if it gives labels alone."""
    return getattr(judge, "best", 1)


def _input(settings: JudgingSettings) -> DialogSet:
    path = str(settings.input)
    if settings.predictions and settings.format in (None, "mtrag") and (found := response_set(path)) is not None:
        return found
    try:
        return dialog_set(path, settings.format, ())
    except CorpusError as error:
        raise CorpusError(str(error).replace("--corpus NAME", "format=NAME")) from error


def _readable(of: DialogSet) -> Iterator[Dialog]:
    return (record for record in of.records() if isinstance(record, Dialog))


def _looked_over(of: DialogSet) -> tuple[Sequence[int], str, list[SkippedRecord]]:
    """A number for each dialog, by which this process knows it again, a hash of them all, and what can't be read."""
    known, digest, broken = array("q"), hashlib.sha256(), []
    for record in of.records():
        if isinstance(record, SkippedRecord):
            broken.append(record)
        else:
            line = record.model_dump_json()
            known.append(hash(line))
            digest.update(f"{line}\n".encode())
    if broken:
        first = f"{len(broken)} of {len(known) + len(broken)} records can't be read, the first: {broken[0].where}"
        message = f"{of.path}: {first}: {broken[0].reason}"
        if not known:
            raise CorpusError(message)
        note(message)
    if not known:
        raise CorpusError(f"{of.path}: holds no dialogs")
    return known, digest.hexdigest(), broken


class _Display(Display):
    """As of a run that generates, without what is lost on the way: nothing is."""

    def counted(self, progress: Progress) -> str:
        return f"{progress.accepted}/{progress.dialogs} judged"

    def resumed(self, progress: Progress) -> str:
        return f"continuing: {progress.accepted} of {progress.dialogs} dialogs judged so far"


def closing_table(summary: JudgingSummary) -> None:
    """Print what a run came to."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("model", "turns", "labels", "mean", "median", "conditioned"):
        table.add_column(title, justify="left" if title in ("model", "labels") else "right", overflow="fold")
    for voice in summary.voices:
        figures = voice.all
        labels = ", ".join(f"{count} {label}" for label, count in figures.labels.items())
        named = (Text(printable(text)) for text in (voice.model or voice.judge, str(figures.turns), labels))
        table.add_row(*named, *_shown(figures))
    console = Console()
    console.print(table)
    tokens = summary.tokens
    if summary.lm_calls:
        asked = f"{summary.lm_calls} calls, {tokens.prompt} prompt tokens, {tokens.completion} completion tokens"
        console.print(f"{asked}, {clock(summary.seconds)}", highlight=False)


def _shown(figures: Figures) -> Iterator[str]:
    for value in (figures.mean, figures.median, figures.conditioned):
        yield "" if value is None else f"{value:g}"


def run(settings: JudgingSettings, configuration: str) -> int:
    """Judge, or continue, and say how it ended; see `JudgingRun`. Returns the exit code."""
    dspy.disable_logging()  # what it would say of a reply stands in the verdict
    ready = JudgingRun(settings, configuration)
    summary, interrupted = asyncio.run(interruptible(ready.go))
    closing_table(summary)
    print(f"run folder: {settings.folder}", flush=True)
    if interrupted and not summary.complete:
        note(
            f"interrupted at {summary.dialogs} of {ready.total} dialogs, which are written; "
            + continues(settings.fresh)
        )
        return 130
    if not summary.judged:
        reasons = next(iter(summary.voices[0].unjudged), "nothing to judge")
        note(f"error: none of {summary.turns} turns could be judged, most often: {reasons}")
        return 1
    for voice in summary.voices:
        if reason := next(iter(voice.unjudged), None):
            count, name = sum(voice.unjudged.values()), voice.model or voice.judge
            note(f"{name}: {count} of {voice.all.turns} turns are unjudged, most often: {reason}")
    return 0
