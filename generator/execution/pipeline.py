"""Deduplicate dialogs and record their outcomes in plan order, wherever and in whatever order they were generated.

An outcome waits until those of all earlier plans are recorded, since a duplicate is defined by what came first. So a
run's data doesn't depend on timing or concurrency. A plan is started while the run is expected to need its dialog, by
the share of dialogs accepted so far: the last ones don't wait for a rejection. Of plans beyond the last one needed, the
calls stay in the store, where the run finds them when it is continued with more dialogs.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass

from generator.common.concurrency import Wanted
from generator.dialogs.dedup import Deduplicator
from generator.dialogs.filter import Filter, filter_pairs
from generator.dialogs.generate import GeneratedDialog
from generator.errors import GroundedDialogsError
from generator.execution.store import Outcome, Store
from generator.schema import Drop

# Plan numbers and their dialogs, in order from the first plan that has no outcome; see `concurrency.in_order`.
Results = Callable[[Wanted[GeneratedDialog], asyncio.Event], AsyncGenerator[tuple[int, GeneratedDialog], None]]


# The share of dialogs accepted so far is counted as if this many had been accepted before the first.
PRIOR_ACCEPTED = 8


@dataclass(frozen=True)
class Progress:
    """The progress of a run, for display.

    Attributes:
        accepted, attempted: dialogs with an outcome.
        dialogs: the number of accepted dialogs that completes the run.
        completion: the tokens of all completions.
        waiting: finished dialogs that wait for the outcome of an earlier plan.
        passed: those of them that weren't dropped.
        running: dialogs that aren't finished.
    """

    accepted: int
    attempted: int
    dialogs: int
    completion: int
    waiting: int = 0
    passed: int = 0
    running: int = 0


async def run_pipeline(
    *,
    results: Results,
    dedup: Deduplicator,
    keep: Filter,
    store: Store,
    dialogs: int,
    on_progress: Callable[[Progress], None],
    stop: asyncio.Event,
) -> None:
    """Generate the dialogs of a run until enough are accepted, all plans are used up, or `stop` is set.

    Args:
        results: generates dialogs.
        keep: the pairs to keep, as in `judge.filter`.
        dialogs: the number of accepted dialogs that completes the run.
        on_progress: called after every dialog that is started, or finished.

    Raises:
        ModelError, RetrieverError, RunError: the run can't continue; finished work is kept.
    """
    for dialog in store.dialogs():
        dedup.add(dialog)
        await asyncio.sleep(0)  # in a long run this loop takes minutes, and `stop` may be set meanwhile
        if stop.is_set():
            return
    accepted, attempted, last = store.accepted, store.attempted, time.monotonic()
    completion = sum(usage.completion for usage in store.usage().values())

    def report(waiting: int = 0, passed: int = 0, running: int = 0) -> None:
        on_progress(Progress(accepted, attempted, dialogs, completion, waiting, passed, running))

    def wanted(running: int, waiting: Collection[GeneratedDialog]) -> bool:
        passed = sum(made.dialog is not None for made in waiting)
        report(len(waiting), passed, running)
        # Only of outcomes: of the dialogs that wait for theirs, more are rejected, since those end sooner.
        rate = (accepted + PRIOR_ACCEPTED) / (attempted + PRIOR_ACCEPTED)
        return accepted + passed + rate * running < dialogs

    try:
        async with aclosing(results(wanted, stop)) as generated:
            async for number, made in generated:
                outcome, now = _decide(made, dedup, keep), time.monotonic()
                store.add(number, made.dialog_id, outcome, now - last)
                last = now
                accepted += outcome.dialog is not None
                attempted += 1
                completion += sum(usage.completion for _, usage in outcome.usage)
                if accepted >= dialogs:
                    break  # closing the results cancels what is beyond
        report()
    finally:
        with suppress(GroundedDialogsError):  # the first error says more
            store.add_seconds(time.monotonic() - last)


def _decide(made: GeneratedDialog, dedup: Deduplicator, keep: Filter) -> Outcome:
    """Return the outcome of a plan, once all earlier plans have theirs."""
    dialog, drops = made.dialog, made.drops
    if dialog is not None and (duplicate := dedup.check(dialog)):
        text = f"{duplicate.text} (as in {duplicate.of})"
        dropped = Drop(dialog_id=dialog.id, scope="dialog", stage="dedup", reason=duplicate.reason, text=text)
        dialog, drops = None, (*drops, dropped)
    if dialog is not None:
        dedup.add(dialog)
        drops = (*drops, *filter_pairs(dialog, keep)[1])
    return Outcome(dialog=dialog, drops=drops, usage=made.usage)
