"""Measure what the last dialogs of a run wait for, by the rule that starts their plans.

    python -m benchmarks.run_end              # the table, in simulated time: a minute

"cautious" starts a plan only if a dialog would be missing even if all under way were accepted; "run's own" is the rule
of a run. Simulated is the model alone: the pipeline, the store and the order of outcomes are a run's. A dialog is 15
calls, one after another, each of lognormal delays of 3 s (sigma 0.8), and is accepted or rejected at its end. Ideal is
the time in which the calls of the plans that a run needs fill the calls that may be in flight.
"""

import asyncio
import math
import random
import selectors
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from generator.common.concurrency import Wanted, in_order
from generator.config.settings import near_duplicates
from generator.dialogs.dedup import Deduplicator
from generator.dialogs.generate import GeneratedDialog
from generator.execution import pipeline as module
from generator.execution.pipeline import Pipeline
from generator.execution.store import Store
from generator.models.lm import ChatReply
from generator.schema import Drop, Usage
from tests.support.records import make_dialog, make_turn

CALLS, MEAN_S, SIGMA = 15, 3.0, 0.8
RUNS = ((1000, 0.9, 256), (1000, 0.6, 256), (1000, 0.3, 256), (200, 0.3, 256))


class Ended(NamedTuple):
    """A run: its seconds, the ideal, calls beyond those of the plans it needed as a share of them, and those plans."""

    seconds: float
    ideal: float
    more: float
    plans: int


class _Selector(selectors.SelectSelector):
    """Skips the time that the event loop would wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0
        return super().select(0)


def simulated_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop whose time passes only while everything waits, and then at once."""
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    return loop


@contextmanager
def rule(name: str) -> Iterator[None]:
    """Run with the rule "cautious", by which all dialogs under way count as accepted, or with the run's own."""
    prior = module.PRIOR_ACCEPTED
    module.PRIOR_ACCEPTED = 10**24 if name == "cautious" else prior
    try:
        yield
    finally:
        module.PRIOR_ACCEPTED = prior


def simulate(dialogs: int, rate: float, in_flight: int) -> Ended:
    """Run a pipeline in simulated time."""
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder), {}) as store:

        async def main() -> float:
            free, loop = asyncio.Semaphore(in_flight), asyncio.get_running_loop()

            async def make(number: int) -> GeneratedDialog:
                chance, name = random.Random(f"0 {number}"), f"{number:016x}"
                for call in range(CALLS):
                    async with free:
                        await asyncio.sleep(chance.lognormvariate(math.log(MEAN_S) - SIGMA**2 / 2, SIGMA))
                    reply = ChatReply(text="", finish_reason="stop", model="none", usage=Usage(calls=1))
                    store.add_call(name, str(call), "answer", 1, reply)
                return _made(name, number, accepted=chance.random() < rate)

            def results(
                wanted: Wanted[GeneratedDialog], stop: asyncio.Event
            ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
                return in_order(make, store.attempted, in_flight + in_flight // 4, stop, wanted)

            dedup = Deduplicator(near_duplicates().model_copy(update={"between_dialogs": False}))
            await Pipeline(
                results=results, dedup=dedup, keep="pairs", store=store, dialogs=dialogs, on_progress=lambda _: None
            ).run(asyncio.Event())
            return loop.time()

        with asyncio.Runner(loop_factory=simulated_loop) as runner:
            seconds = runner.run(main())
        needed = store.attempted * CALLS
        more = sum((usage for _, usage in store.unfinished()[1]), Usage()).calls / needed
        return Ended(seconds, needed * MEAN_S / in_flight, more, store.attempted)


def _made(name: str, number: int, accepted: bool) -> GeneratedDialog:
    usage = (("answer", Usage(calls=CALLS)),)
    if not accepted:
        drop = Drop(dialog_id=name, scope="dialog", stage="judge", reason="rejected")
        return GeneratedDialog(dialog_id=name, dialog=None, drops=(drop,), usage=usage)
    turn = make_turn(1, query=f"Question {number}?", answer=f"Answer {number}.")
    dialog = make_dialog(turn, id=name, algorithm="single", seed=number)
    return GeneratedDialog(dialog_id=name, dialog=dialog, drops=(), usage=usage)


def main() -> None:
    table = Table("dialogs", "accepted", "in flight", "rule", "seconds", "ideal", "of the ideal", "more calls")
    for dialogs, rate, in_flight in RUNS:
        for name in ("cautious", "run's own"):
            with rule(name):
                ended = simulate(dialogs, rate, in_flight)
            share = f"{dialogs / ended.plans:.0%}"
            times = (f"{ended.seconds:.0f}", f"{ended.ideal:.0f}", f"{ended.seconds / ended.ideal:.2f}")
            table.add_row(f"{dialogs:,}", share, str(in_flight), name, *times, f"{ended.more:.1%}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
