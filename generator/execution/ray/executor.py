"""Dialogs made by worker processes on a Ray cluster, with Ray Data: plans are the rows.

The driver, this process, decides which plans are begun, and gets their dialogs in any order; what it does with them is
the same as in a local run. Workers that die are replaced by Ray, and their dialogs made again. See `docs/scaling.md`.
"""

import asyncio
import os
import pickle
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from pydantic import Field

from generator.common.concurrency import Piece, Wanted, in_order, one_by_one
from generator.common.console import note
from generator.dialogs.generate import GeneratedDialog
from generator.errors import GroundedDialogsError, RunError
from generator.execution.base import Executor, ExecutorSettings, Work
from generator.execution.ray.cluster import Cluster, explained
from generator.execution.ray.exchange import Call, Exchange
from generator.execution.store import Store
from generator.models.lm import ChatReply

T = TypeVar("T")

# Seconds that workers get to break off what they do.
_PATIENCE_S = 5.0
# The driver waits so long before it fetches finished calls again: so many may be lost if it is killed.
_FETCH_S = 0.05


class RaySettings(ExecutorSettings):
    """Settings of the executor on Ray."""

    workers: int = Field(
        ge=1, description="Worker processes; each generates its share of the `lm.concurrency` dialogs in progress."
    )
    address: str | None = Field(
        default=None,
        min_length=1,
        description="Address of a Ray cluster, or `auto` for this machine's own; null: start one for the run.",
    )
    cpus: float = Field(gt=0, description="CPUs that Ray reserves for each worker.")
    gpus: float = Field(ge=0, description="GPUs that Ray reserves for each worker, as `retriever=dense` needs.")

    @contextmanager
    def open(self) -> Iterator["OnRay"]:
        executor = OnRay(self)
        try:
            yield executor
        finally:
            executor.disconnect()


class OnRay(Executor):
    """Connects to the cluster when there is something to do.

    Raises (all methods):
        RunError: Ray isn't installed, there is no cluster, or it is gone.
    """

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings
        self._cluster: Cluster | None = None

    async def ready(self) -> None:
        await asyncio.to_thread(self._ray)

    async def results(
        self, work: Work, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        await self.ready()
        loop, first = asyncio.get_running_loop(), work.store.attempted
        with explained():
            exchange = self._exchange(first, work.store)
            rows = self._rows(exchange, first, work)
        sitting = _Sitting(work.store, exchange, first, self._settings.workers)
        reading = Thread(target=_read, args=(rows, loop, sitting), daemon=True)  # a daemon: Ray may never return
        reading.start()
        fetching = asyncio.create_task(sitting.fetch_calls())

        def make(number: int) -> Any:
            return sitting.dialog(number) if number < work.limit else None

        try:
            # Twice as many as are under way are handed out, so that no worker waits for its next one.
            async with aclosing(in_order(make, first, 2 * work.at_once, stop, wanted)) as results:
                async for number, made in results:
                    yield number, made
                    sitting.recorded(number, made.dialog_id)
        finally:
            sitting.closing = True
            exchange.close.remote()
            await asyncio.to_thread(reading.join, _PATIENCE_S)
            with suppress(TimeoutError, RunError):  # what went wrong first says more
                await asyncio.wait_for(fetching, _PATIENCE_S)
                await asyncio.wait_for(sitting.fetch(), _PATIENCE_S)
            self.disconnect()

    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        pieces = list(pieces)
        if len(pieces) < 2:  # nothing to divide
            yield from one_by_one(function, pieces)
            return
        rows = [{"piece": pickle.dumps(piece)} for piece in pieces]
        ray = self._ray()
        from generator.execution.ray.worker import Applied

        with explained():
            dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                Applied,
                fn_constructor_args=(pickle.dumps(function), Path.cwd()),
                compute=ray.data.ActorPoolStrategy(size=min(self._settings.workers, len(rows))),
                num_cpus=self._settings.cpus,
                num_gpus=self._settings.gpus,
            )
            dataset.context.execution_options.preserve_order = True
            for row in _each(dataset):
                if row["error"]:
                    raise pickle.loads(row["error"])
                yield pickle.loads(row["made"])

    def disconnect(self) -> None:
        """End the workers, and the cluster if it was started here."""
        if self._cluster is not None:
            self._cluster.leave()
            self._cluster = None

    def _ray(self) -> Any:
        """Ray, connected."""
        if self._cluster is None:
            wanted = self._settings
            self._cluster = Cluster(wanted.address, wanted.workers, wanted.cpus, wanted.gpus)
        return self._cluster.ray

    def _exchange(self, first: int, store: Store) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray = self._ray()
        calls: dict[str, dict[str, str]] = {}
        for dialog_id, key, reply in store.all_calls():
            calls.setdefault(dialog_id, {})[key] = reply.model_dump_json()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        actor = ray.remote(num_cpus=0, scheduling_strategy=here)(Exchange)
        exchange = actor.remote(first, calls)
        exchange.watch.remote(os.getpid())
        return exchange

    def _rows(self, exchange: Any, first: int, work: Work) -> Any:
        """The dataset of all dialogs."""
        from generator.execution.ray.worker import Worker, feed

        ray = self._ray()
        workers = self._settings.workers
        share = max(1, work.at_once // workers)
        return (
            ray.data.from_items([{"first": first}])
            .flat_map(feed(exchange), num_cpus=0)
            .map(
                Worker,
                fn_constructor_args=(pickle.dumps(work.recipe), workers, exchange, Path.cwd()),
                # A few more than are made wait in the worker, so that it needn't wait for them.
                compute=ray.data.ActorPoolStrategy(
                    size=workers,
                    max_concurrent_calls_per_actor=share,
                    max_tasks_in_flight_per_actor=share + max(2, share // 4),
                ),
                num_cpus=self._settings.cpus,
                num_gpus=self._settings.gpus,
            )
        )


class _Sitting:
    """What is under way, as the driver sees it.

    Attributes:
        failure: why nothing more will come.
        closing: the exchange is being closed.
    """

    def __init__(self, store: Store, exchange: Any, first: int, workers: int) -> None:
        self._store, self._exchange, self._workers = store, exchange, workers
        self._awaited: dict[int, asyncio.Future[str]] = {}
        self._next, self._done = first, list[str]()
        self.failure: BaseException | None = None
        self.closing = False

    async def dialog(self, number: int) -> GeneratedDialog:
        """The dialog of a plan, which may be begun now."""
        if self.failure:
            raise self.failure
        self._awaited[number] = asyncio.get_running_loop().create_future()
        self._exchange.allow.remote(number + 1)
        try:
            return GeneratedDialog.model_validate_json(await self._awaited[number])
        finally:
            del self._awaited[number]

    def arrived(self, row: dict[str, Any]) -> None:
        """A worker is done with a plan."""
        future = self._awaited.get(row["number"])
        if future is None or future.done():
            return
        if row["error"]:
            future.set_exception(pickle.loads(row["error"]))
        elif row["made"]:
            future.set_result(row["made"])

    def fail(self, error: BaseException | None) -> None:
        """Nothing more will come."""
        self.failure = self.failure or error or RunError("the Ray workers are gone; the same command continues the run")
        for future in self._awaited.values():
            if not future.done():
                future.set_exception(self.failure)

    def recorded(self, number: int, dialog_id: str) -> None:
        """A plan has its outcome."""
        self._next = number + 1
        self._done.append(dialog_id)

    async def fetch_calls(self) -> None:
        """Write finished calls down as they come."""
        try:
            while not self.closing:
                await self.fetch()
                await asyncio.sleep(_FETCH_S)
        except GroundedDialogsError as error:
            self.fail(error)

    async def fetch(self) -> None:
        """Write those down that have come, once there are any."""
        done, self._done = self._done, []
        with explained():
            calls: list[Call]
            calls, begun = await self._exchange.take.remote(done)
        if begun > self._workers:
            self._workers = begun
            note("a worker has died, and another takes its place; none of its finished calls is repeated")
        for number, dialog_id, key, stage, turn, reply in calls:
            if number >= self._next:  # else its dialog is written already
                self._store.add_call(dialog_id, key, stage, turn, ChatReply.model_validate_json(reply))


def _read(dataset: Any, loop: asyncio.AbstractEventLoop, sitting: _Sitting) -> None:
    """Hand the rows of a dataset over as they come, and why they end."""
    error: BaseException | None = None
    with suppress(RuntimeError):  # the loop has ended, and nobody listens
        try:
            with explained():
                for row in _each(dataset):
                    loop.call_soon_threadsafe(sitting.arrived, row)
        except BaseException as failure:
            error = failure
        loop.call_soon_threadsafe(sitting.fail, error)


def _each(dataset: Any) -> Iterator[dict[str, Any]]:
    """The rows of a dataset, each as soon as it is there."""
    for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from batch.to_pylist()
