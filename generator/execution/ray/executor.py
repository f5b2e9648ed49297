"""The executor on a Ray cluster: worker processes, actors of Ray, generate the dialogs.

The driver, this process, gives each plan to the worker that has fewest dialogs, receives the dialogs in any order, and
treats them as in a local run. When a worker dies, others make its dialogs, and Ray restarts it. See `docs/scaling.md`.
"""

import asyncio
import os
import pickle
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, aclosing, closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, field_validator

from generator.common.concurrency import Piece, Wanted, cancel, in_order, one_by_one
from generator.common.console import note
from generator.dialogs.generate import GeneratedDialog
from generator.errors import RunError, describe
from generator.execution.base import Executor, ExecutorSettings, Plans
from generator.execution.ray.cluster import Cluster, WorkerLost, as_run_error, take_sigterm_back
from generator.execution.ray.exchange import Call, Exchange
from generator.execution.store import Store
from generator.models.lm import ChatReply

T = TypeVar("T")

# Time limit for workers to cancel their work.
_CLOSE_S = 5.0
# Seconds between two fetches of finished calls: the calls of that time are lost if the driver is killed.
_FETCH_S = 0.05
# A worker that dies is started again so often; one that always dies at its start ends the run.
_RESTARTS = 100


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

    def open(self) -> AbstractContextManager["RayExecutor"]:
        return closing(RayExecutor(self))


class RayExecutor(Executor):
    """An executor that connects to the cluster when there is work.

    Raises (all methods):
        RunError: Ray isn't installed, there is no cluster, or it is gone.
    """

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings
        self._cluster: Cluster | None = None

    async def ready(self) -> None:
        await asyncio.to_thread(self._connect)
        take_sigterm_back()

    async def results(
        self, plans: Plans, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        await self.ready()
        share = max(1, plans.at_once // self._settings.workers)
        with as_run_error():
            exchange = self._exchange(plans.store)
            opener, count = _pickle(plans.open), self._settings.workers
            # Ray's own limit is 1,000 dialogs, however many calls there may be.
            workers = self._actors("Worker", count, opener, count, exchange, Path.cwd(), max_concurrency=share)
        session = _Session(plans.store, exchange)
        fetching = asyncio.create_task(session.fetch_calls())
        # The dialogs that each worker can take, those first of which the worker has fewest.
        free: asyncio.PriorityQueue[tuple[int, int]] = asyncio.PriorityQueue()
        slots = range(share)
        joining = [asyncio.create_task(_join(worker, place, slots, free)) for place, worker in enumerate(workers)]
        working: set[Any] = set()
        lost: set[int] = set()

        async def generate(number: int) -> GeneratedDialog:
            while True:
                slot, place = await free.get()
                # Ray itself would repeat it there, and wait without end for room on a cluster that has lost a node.
                dialog = workers[place].generate.options(max_task_retries=0).remote(number)
                working.add(dialog)
                try:
                    with as_run_error():
                        made = GeneratedDialog.model_validate_json(await dialog)
                except WorkerLost as error:
                    if place not in lost:
                        note(str(error))
                    lost.add(place)
                    joining.append(asyncio.create_task(_join(workers[place], place, [slot], free)))
                    continue
                working.remove(dialog)
                lost.discard(place)
                free.put_nowait((slot, place))
                return made

        async def unless_failing(number: int) -> GeneratedDialog:
            made = asyncio.create_task(generate(number))
            try:
                await asyncio.wait({made, fetching}, return_when=asyncio.FIRST_COMPLETED)
                if not made.done():
                    fetching.result()  # raises why no call can be recorded
                return made.result()
            finally:
                await cancel(made)

        try:
            async with aclosing(in_order(unless_failing, plans.numbers, plans.at_once, stop, wanted)) as results:
                async for number, made in results:
                    try:
                        yield number, made
                    finally:  # also of the last one, after which the generator is closed
                        session.mark_recorded(number, made.dialog_id)
        finally:
            session.closing = True
            exchange.close.remote()
            await cancel(*joining)
            with suppress(TimeoutError, RunError):  # the first error says more
                async with asyncio.timeout(_CLOSE_S):
                    await asyncio.gather(fetching, *working, return_exceptions=True)
                    await session.fetch()
            self.close()

    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        pieces = list(pieces)
        if len(pieces) < 2:  # nothing to distribute
            yield from one_by_one(function, pieces)
            return
        applied, room = _pickle(function), self._connect().room
        take_sigterm_back()
        from ray.util import ActorPool

        with as_run_error():
            appliers = self._actors(
                "Applier", max(1, min(len(pieces), room, self._settings.workers)), applied, Path.cwd()
            )
            yield from ActorPool(appliers).map(lambda applier, piece: applier.apply.remote(piece), pieces)

    def close(self) -> None:
        """End the workers, and a cluster that was started here."""
        if self._cluster is not None:
            self._cluster.leave()
            self._cluster = None

    def _connect(self) -> Cluster:
        if self._cluster is None:
            wanted = self._settings
            self._cluster = Cluster(wanted.address, wanted.workers, wanted.gpus)
        return self._cluster

    def _exchange(self, store: Store) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        ray = self._connect().ray
        calls: dict[str, dict[str, str]] = {}
        for dialog_id, key, reply in store.all_calls():
            calls.setdefault(dialog_id, {})[key] = reply.model_dump_json()
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        exchange = ray.remote(num_cpus=0, scheduling_strategy=here)(Exchange).remote(calls)
        exchange.watch.remote(os.getpid())
        return exchange

    def _actors(self, name: str, count: int, *arguments: object, **options: int) -> list[Any]:
        """Return actors of a class of `worker`; one that dies is started again, and so is its work by default."""
        from generator.execution.ray import worker

        usual = {"num_cpus": 1, "num_gpus": self._settings.gpus, "max_restarts": _RESTARTS, "max_task_retries": -1}
        actor = self._connect().ray.remote(**usual, **options)(getattr(worker, name))
        return [actor.remote(*arguments) for _ in range(count)]


class _Session:
    """The driver's side of the exchange in one session of a run.

    Attributes:
        closing: the exchange is being closed.
    """

    def __init__(self, store: Store, exchange: Any) -> None:
        self._store, self._exchange = store, exchange
        self._next, self._done = store.attempted, list[str]()
        self.closing = False

    def mark_recorded(self, number: int, dialog_id: str) -> None:
        """Note that a plan has its outcome."""
        self._next = number + 1
        self._done.append(dialog_id)

    async def fetch_calls(self) -> None:
        """Record finished calls as they arrive."""
        while not self.closing:
            await self.fetch()
            await asyncio.sleep(_FETCH_S)

    async def fetch(self) -> None:
        """Wait for finished calls and record them."""
        done, self._done = self._done, []
        with as_run_error():
            calls: list[Call]
            calls, notes = await self._exchange.take.remote(done)
        for text in notes:
            note(text)
        for number, dialog_id, key, stage, turn, reply in calls:
            if number >= self._next:  # otherwise its dialog is recorded already
                self._store.add_call(dialog_id, key, stage, turn, ChatReply.model_validate_json(reply))


async def _join(worker: Any, place: int, slots: Iterable[int], free: asyncio.PriorityQueue[tuple[int, int]]) -> None:
    """Let a worker take dialogs into these slots, once it has started."""
    with suppress(Exception):  # which its first dialog raises again
        await worker.__ray_ready__.remote()
    for slot in slots:
        free.put_nowait((slot, place))


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
