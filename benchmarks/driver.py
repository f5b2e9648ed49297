"""Measure how many dialogs the driver of `executor=ray`, a single process, can take from its workers.

    python -m benchmarks.driver            # 2,000 dialogs, without Ray
    python -m benchmarks.driver --ray      # the same from two workers on this machine, which take 2 s for each

Four turns a dialog, 12 passages of 512 words, 16 calls, of made-up words with frequencies as 1/rank: their rows are
read, their calls written down as they come, then each is compared with those before it and written down with its
outcome, as in a run.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.made_up import Words
from generator.common.concurrency import Wanted
from generator.config.settings import near_duplicates
from generator.dialogs.dedup import Deduplicator
from generator.dialogs.generate import GeneratedDialog
from generator.dialogs.journal import Calls
from generator.execution.base import Plans
from generator.execution.pipeline import Pipeline, Progress
from generator.execution.ray.executor import RaySettings
from generator.execution.store import Store
from generator.models.lm import ChatReply
from generator.schema import Usage
from tests.support.records import make_dialog, make_passage, make_turn

TURNS, PASSAGES, CALLS = 4, 12, 16
SECONDS, IN_FLIGHT = 2, 128
QUESTION, ANSWER, PASSAGE, REPLY = 13, 50, 512, 120


class Texts:
    """Dialogs of made-up words, in place of a `DialogGenerator` and its `Planner`."""

    def __init__(self) -> None:
        chance = random.Random(0)
        self._words = Words(chance)
        texts = [self._words.text(chance, PASSAGE) for _ in range(500)]
        self._passages = [make_passage(f"{n}:0", text, document_id=f"{n}") for n, text in enumerate(texts)]
        self._reply = ChatReply(text="word " * REPLY, finish_reason="stop", model="none", usage=Usage(calls=1))
        self.planner = self

    def plan(self, number: int) -> Any:
        return SimpleNamespace(number=number, dialog_id=f"{number:016x}")

    async def generate(self, plan: Any, calls: Calls) -> GeneratedDialog:
        """Generate a dialog as a worker does, without a model."""
        for call in range(CALLS):
            calls.add_call(plan.dialog_id, f"{call:064x}", "answer", 1, self._reply)
        await asyncio.sleep(SECONDS)
        return self.made(plan.number)

    def made(self, number: int) -> GeneratedDialog:
        chance, text = random.Random(number), self._words.text
        turns = [
            make_turn(
                turn,
                query=text(chance, QUESTION),
                retrieval_query=text(chance, QUESTION),
                reasoning=text(chance, QUESTION),
                answer=text(chance, ANSWER),
            )
            for turn in range(1, TURNS + 1)
        ]
        found = chance.sample(self._passages, PASSAGES)
        dialog = make_dialog(*turns, passages=found, id=f"{number:016x}", seed=number)
        usage = (("answer", Usage(calls=CALLS, prompt=1, completion=1)),)
        return GeneratedDialog(dialog_id=dialog.id, dialog=dialog, drops=(), usage=usage)

    async def arriving(
        self, rows: list[str], store: Store, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        """Yield the rows that workers would send, all at once."""
        reply = self._reply.model_dump_json()
        for number, row in enumerate(rows):
            for call in range(CALLS):
                store.add_call(f"{number:016x}", f"{call:064x}", "answer", 1, ChatReply.model_validate_json(reply))
            yield number, GeneratedDialog.model_validate_json(row)
            wanted(0, ())


@asynccontextmanager
async def open_texts(workers: int) -> AsyncIterator[Any]:
    """Yield `Texts` in a worker."""
    yield Texts()


def main() -> None:
    from benchmarks.driver import open_texts  # by this name workers find it

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dialogs", type=int, nargs="?", default=2000)
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    count, texts = arguments.dialogs, Texts()
    rows = [] if arguments.ray else [texts.made(number).model_dump_json() for number in range(count)]

    settings = RaySettings(workers=2, address=None, cpus=1, gpus=0)
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "run", {}) as store, settings.open() as ray:
        plans = Plans(lambda number: None, open_texts, store, limit=count, at_once=IN_FLIGHT)  # type: ignore[arg-type,return-value]
        began: list[tuple[float, float]] = []

        def on_progress(progress: Progress) -> None:
            if progress.attempted:  # from the first dialog on: how long a cluster takes to start is another matter
                began.append((time.perf_counter(), time.process_time()))

        pipeline = Pipeline(
            results=partial(ray.results, plans) if arguments.ray else partial(texts.arriving, rows, store),
            dedup=Deduplicator(near_duplicates()),
            keep="pairs",
            store=store,
            dialogs=count,
            on_progress=on_progress,
        )
        asyncio.run(pipeline.run(asyncio.Event()))
        seconds, computed = (last - first for first, last in zip(began[0], began[-1], strict=True))
        size = sum(file.stat().st_size for file in (Path(folder) / "run").iterdir())
        print(
            f"{count} dialogs: {count / seconds:.0f} a second, {computed / count * 1000:.1f} ms of one core each, "
            f"run folder {size / count / 1000:.0f} kB a dialog"
        )


if __name__ == "__main__":
    main()
