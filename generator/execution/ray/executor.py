"""The executor on a Ray cluster: worker processes generate dialogs with Ray Data, whose rows are the plans.

The driver, this process, decides which plans may start, receives their dialogs in any order, and treats them as in a
local run. Ray replaces workers that die, and their dialogs are generated again. See `docs/scaling.md`.
"""

import asyncio
import os
import pickle
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from pydantic import Field, field_validator

from generator.common.concurrency import Piece, Wanted, in_order, one_by_one
from generator.common.console import note
from generator.dialogs.generate import GeneratedDialog
from generator.errors import GroundedDialogsError, RunError, describe
from generator.execution.base import Executor, ExecutorSettings, Plans
from generator.execution.ray.cluster import Cluster, as_run_error
from generator.execution.ray.exchange import Call, Exchange
from generator.execution.store import Store
from generator.models.lm import ChatReply

T = TypeVar("T")

# Time limit for workers to cancel their work.
_CLOSE_S = 5.0
# Seconds between two fetches of finished calls: the calls of that time are lost if the driver is killed.
_FETCH_S = 0.05


class RaySettings(ExecutorSettings):
    workers: int = Field(
        ge=1,
        description="Worker processes; each makes its share of the `lm.concurrency` calls, and generates its share of "
        "the dialogs under way.",
    )
    address: str | None = Field(
        default=None,
        min_length=1,
        description="Address of a Ray cluster, or `auto` for this machine's own; null: start one for the run.",
    )
    gpus: float = Field(ge=0, description="GPUs that Ray reserves for each worker, as `retriever=dense` needs.")

    @field_validator("address")
    @classmethod
    def _is_of_a_head_node(cls, address: str | None) -> str | None:
        if address not in (None, "auto") and not re.fullmatch(r"[^/]+:\d{1,5}", address):
            raise ValueError("give HOST:PORT of the head node, such as 10.0.0.1:6379 (no ray://), or auto")
        return address

    @contextmanager
    def open(self) -> Iterator["RayExecutor"]:
        executor = RayExecutor(self)
        try:
            yield executor
        finally:
            executor.disconnect()


class RayExecutor(Executor):
    """An executor that connects to the cluster when there is work.

    Raises (all methods):
        RunError: Ray isn't installed, there is no cluster, or it is gone.
    """

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings
        self._cluster: Cluster | None = None

    async def ready(self) -> None:
        await asyncio.to_thread(self._ray)

    async def results(
        self, plans: Plans, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        await self.ready()
        loop, first = asyncio.get_running_loop(), plans.store.attempted
        with as_run_error():
            exchange = self._exchange(first, plans.store)
            rows = self._rows(exchange, first, plans)
        session = _Session(plans.store, exchange, first, self._settings.workers)
        reading = Thread(target=_read, args=(rows, loop, session), daemon=True)  # a daemon, since Ray may never return
        reading.start()
        fetching = asyncio.create_task(session.fetch_calls())

        def make(number: int) -> Any:
            return session.dialog(number) if number < plans.limit else None

        try:
            # Twice as many plans as dialogs in progress, so that no worker waits for its next one.
            async with aclosing(in_order(make, first, 2 * plans.at_once, stop, wanted)) as results:
                async for number, made in results:
                    try:
                        yield number, made
                    finally:  # also of the last one, after which the generator is closed
                        session.mark_recorded(number, made.dialog_id)
        finally:
            session.closing = True
            exchange.close.remote()
            await asyncio.to_thread(reading.join, _CLOSE_S)
            with suppress(TimeoutError, RunError):  # the first error says more
                await asyncio.wait_for(fetching, _CLOSE_S)
                await asyncio.wait_for(session.fetch(), _CLOSE_S)
            self.disconnect()

    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        pieces = list(pieces)
        if len(pieces) < 2:  # nothing to distribute
            yield from one_by_one(function, pieces)
            return
        rows, applied = [{"piece": pickle.dumps(piece)} for piece in pieces], _pickle(function)
        ray = self._ray()
        from generator.execution.ray.worker import Apply

        with as_run_error():
            dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                Apply,
                fn_constructor_args=(applied, Path.cwd()),
                compute=ray.data.ActorPoolStrategy(size=min(self._settings.workers, len(rows))),
                num_cpus=1,
                num_gpus=self._settings.gpus,
            )
            dataset.context.execution_options.preserve_order = True
            for row in _each(dataset):
                if row["error"]:
                    raise pickle.loads(row["error"])
                yield pickle.loads(row["made"])

    def disconnect(self) -> None:
        """End the workers, and a cluster that was started here."""
        if self._cluster is not None:
            self._cluster.leave()
            self._cluster = None

    def _ray(self) -> Any:
        """Return Ray, connected."""
        if self._cluster is None:
            wanted = self._settings
            self._cluster = Cluster(wanted.address, wanted.workers, wanted.gpus)
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

    def _rows(self, exchange: Any, first: int, plans: Plans) -> Any:
        """Return the dataset of all dialogs."""
        from generator.execution.ray.worker import Worker, feed

        ray = self._ray()
        workers = self._settings.workers
        share = max(1, plans.at_once // workers)
        return (
            ray.data.from_items([{"first": first}])
            .flat_map(feed(exchange), num_cpus=0)
            .map(
                Worker,
                fn_constructor_args=(_pickle(plans.open), workers, exchange, Path.cwd()),
                # A few more plans than it generates at a time wait in each worker.
                compute=ray.data.ActorPoolStrategy(
                    size=workers,
                    max_concurrent_calls_per_actor=share,
                    max_tasks_in_flight_per_actor=share + max(2, share // 4),
                ),
                num_cpus=1,
                num_gpus=self._settings.gpus,
            )
        )


class _Session:
    """The driver's state of one session of a run.

    Attributes:
        failure: the error that ended the stream of dialogs.
        closing: the exchange is being closed.
    """

    def __init__(self, store: Store, exchange: Any, first: int, workers: int) -> None:
        self._store, self._exchange, self._workers = store, exchange, workers
        self._awaited: dict[int, asyncio.Future[str]] = {}
        self._next, self._done = first, list[str]()
        self.failure: BaseException | None = None
        self.closing = False

    async def dialog(self, number: int) -> GeneratedDialog:
        """Allow a plan to start, and return its dialog."""
        if self.failure:
            raise self.failure
        self._awaited[number] = asyncio.get_running_loop().create_future()
        self._exchange.allow.remote(number + 1)
        try:
            return GeneratedDialog.model_validate_json(await self._awaited[number])
        finally:
            del self._awaited[number]

    def receive(self, row: dict[str, Any]) -> None:
        """Take the row of a plan that a worker has finished."""
        future = self._awaited.get(row["number"])
        if future is None or future.done():
            return
        if row["error"]:
            future.set_exception(pickle.loads(row["error"]))
        elif row["made"]:
            future.set_result(row["made"])

    def fail(self, error: BaseException | None) -> None:
        """End all waiting dialogs with an error."""
        self.failure = self.failure or error or RunError("the Ray workers are gone; the same command continues the run")
        for future in self._awaited.values():
            if not future.done():
                future.set_exception(self.failure)

    def mark_recorded(self, number: int, dialog_id: str) -> None:
        """Note that a plan has its outcome."""
        self._next = number + 1
        self._done.append(dialog_id)

    async def fetch_calls(self) -> None:
        """Record finished calls as they arrive."""
        try:
            while not self.closing:
                await self.fetch()
                await asyncio.sleep(_FETCH_S)
        except GroundedDialogsError as error:
            self.fail(error)

    async def fetch(self) -> None:
        """Wait for finished calls and record them."""
        done, self._done = self._done, []
        with as_run_error():
            calls: list[Call]
            calls, begun, notes = await self._exchange.take.remote(done)
        for text in notes:
            note(text)
        if begun > self._workers:
            self._workers = begun
            note("a worker has died and was replaced; its finished calls are not repeated")
        for number, dialog_id, key, stage, turn, reply in calls:
            if number >= self._next:  # otherwise its dialog is recorded already
                self._store.add_call(dialog_id, key, stage, turn, ChatReply.model_validate_json(reply))


def _pickle(part: object) -> bytes:
    """Return what workers make a part of the run of.

    Raises:
        RunError: a class of the user's own holds what can't be sent, such as a lock.
    """
    try:
        return pickle.dumps(part)
    except Exception as error:  # of whatever the part holds
        raise RunError(
            f"executor=ray: a part of your own can't be sent to workers ({describe(error)}); keep plain values in its "
            "settings, and make the rest where they open or build it, or set executor=local"
        ) from error


def _read(dataset: Any, loop: asyncio.AbstractEventLoop, session: _Session) -> None:
    """Pass on the rows of a dataset as they arrive, and the reason of their end."""
    error: BaseException | None = None
    with suppress(RuntimeError):  # the event loop has ended
        try:
            with as_run_error():
                for row in _each(dataset):
                    loop.call_soon_threadsafe(session.receive, row)
        except BaseException as failure:
            error = failure
        loop.call_soon_threadsafe(session.fail, error)


def _each(dataset: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset, each as soon as it arrives."""
    for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from batch.to_pylist()
