"""Dialogs made by worker processes on a Ray cluster, with Ray Data: plans are the rows.

The driver, this process, decides which plans are begun, and gets their dialogs in any order; what it does with them is
the same as in a local run. Workers that die are replaced by Ray, and their dialogs made again. See `docs/scaling.md`.
"""

import asyncio
import logging
import math
import os
import pickle
import socket
import warnings
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

from pydantic import Field

from generator.engine import ChatReply
from generator.errors import GroundedDialogsError, RunError
from generator.executors.base import Executor, ExecutorSettings, Work
from generator.executors.exchange import Call, Exchange
from generator.making import Made
from generator.notes import note
from generator.ordered import Piece, Wanted, in_order, one_by_one
from generator.store import Store

T = TypeVar("T")

# Of a cluster that is started here: rows are small, and Ray's own default is a third of the machine.
_OBJECT_STORE_BYTES = 512 << 20
_LOOPBACK = "127.0.0.1"
# Seconds that workers get to break off what they do.
_PATIENCE_S = 5.0
# The driver waits so long before it fetches finished calls again: so many may be lost if it is killed.
_FETCH_S = 0.05


class RaySettings(ExecutorSettings):
    """Settings of `OnRay`.

    Attributes:
        workers: processes that make dialogs.
        address: of a cluster that is there; None: one is started for the run, on this machine.
        cpus, gpus: that Ray sets aside for each worker.
    """

    workers: int = Field(ge=1)
    address: str | None = Field(default=None, min_length=1)
    cpus: float = Field(gt=0)
    gpus: float = Field(ge=0)

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
        self._ray: Any = None

    async def ready(self) -> None:
        await asyncio.to_thread(self._connected)

    async def results(
        self, work: Work, wanted: Wanted[Made], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, Made], None]:
        await self.ready()
        loop, first = asyncio.get_running_loop(), work.store.attempted
        with _explained():
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
                    sitting.written(number, made.dialog_id)
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
        data, pool = self._connected()
        from generator.executors.worker import Applied

        with _explained():
            dataset = data.from_items(rows, override_num_blocks=len(rows)).map(
                Applied,
                fn_constructor_args=(pickle.dumps(function), Path.cwd()),
                compute=pool(size=min(self._settings.workers, len(rows))),
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
        if self._ray is not None:
            self._cluster.leave()
            self._ray = None

    def _connected(self) -> tuple[Any, Any]:
        """Ray Data, and what makes a pool of workers."""
        # Before the import: nothing is reported to anybody, and the terminal is ours.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
        warnings.filterwarnings("ignore", module=r"ray\.")
        if (self._settings.address or _LOOPBACK).startswith(_LOOPBACK):
            # Ray listens on all of a machine's addresses otherwise, except where it knows that users will be bothered.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        try:
            import ray
            import ray.data
        except ImportError as error:
            raise RunError(
                f"executor=ray needs the package ray ({error}): install the extra 'ray' (uv sync --extra ray), or "
                "choose executor=local"
            ) from error
        if self._ray is None:
            logging.getLogger("ray.data").setLevel(logging.CRITICAL)
            self._cluster = _Cluster(ray, self._settings)
            self._ray = ray
            context = ray.data.DataContext.get_current()
            context.enable_progress_bars = False
            # A row is a block, and so a task: none waits for another one.
            context.target_max_block_size = 1
            context._max_num_blocks_in_streaming_gen_buffer = None
        return ray.data, ray.data.ActorPoolStrategy

    def _exchange(self, first: int, store: Store) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        calls: dict[str, dict[str, str]] = {}
        for dialog_id, key, reply in store.all_calls():
            calls.setdefault(dialog_id, {})[key] = reply.model_dump_json()
        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        actor = self._ray.remote(num_cpus=0, scheduling_strategy=here)(Exchange)
        exchange = actor.remote(first, calls)
        exchange.watch.remote(os.getpid())
        return exchange

    def _rows(self, exchange: Any, first: int, work: Work) -> Any:
        """The dataset of all dialogs."""
        from generator.executors.worker import Worker, feed

        data, pool = self._connected()
        workers = self._settings.workers
        share = max(1, work.at_once // workers)
        return (
            data.from_items([{"first": first}])
            .flat_map(feed(exchange), num_cpus=0)
            .map(
                Worker,
                fn_constructor_args=(pickle.dumps(work.recipe), workers, exchange, Path.cwd()),
                # A few more than are made wait in the worker, so that it needn't wait for them.
                compute=pool(
                    size=workers,
                    max_concurrent_calls_per_actor=share,
                    max_tasks_in_flight_per_actor=share + max(2, share // 4),
                ),
                num_cpus=self._settings.cpus,
                num_gpus=self._settings.gpus,
            )
        )


class _Cluster:
    """A connection to a cluster, which is started first if the settings say so.

    A thread holds it: in the main one, Ray would take over what SIGTERM does; and what Ray starts ends with the thread
    that has started it.

    Raises:
        RunError: there is no cluster, or none can be started.
    """

    def __init__(self, ray: Any, settings: RaySettings) -> None:
        self._ray, self._settings = ray, settings
        self._failure: Exception | None = None
        self._there, self._over = Event(), Event()
        self._thread = Thread(target=self._hold, daemon=True)
        self._thread.start()
        self._there.wait()
        if self._failure:
            where = "no Ray cluster there" if settings.address else "a Ray cluster can't be started here"
            raise RunError(
                f"executor.address={settings.address or 'null'}: {where} ({_line(self._failure)}); "
                "`ray start --head` starts one"
            ) from self._failure
        room = int(ray.cluster_resources().get("CPU", 0) // settings.cpus)
        if room < settings.workers:
            note(f"the cluster has room for {room} of {settings.workers} workers now; more begin when there is more")

    def leave(self) -> None:
        """Disconnect; what was started here ends."""
        self._over.set()
        self._thread.join()

    def _hold(self) -> None:
        started: dict[str, Any] = {
            "address": "local",
            "num_cpus": math.ceil(self._settings.workers * self._settings.cpus),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        there = {"address": self._settings.address}
        try:
            if (address := self._settings.address) not in (None, "auto"):
                host, _, port = str(address).rpartition(":")
                socket.create_connection((host, int(port)), _PATIENCE_S).close()  # Ray itself would try for minutes
            with _silent():
                self._ray.init(
                    **(there if address else started),
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                )
        except Exception as error:  # it raises what its parts raise, from ConnectionError to ValueError
            self._failure = error
            return
        finally:
            self._there.set()
        self._over.wait()
        self._ray.shutdown()


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

    async def dialog(self, number: int) -> Made:
        """The dialog of a plan, which may be begun now."""
        if self.failure:
            raise self.failure
        self._awaited[number] = asyncio.get_running_loop().create_future()
        self._exchange.allow.remote(number + 1)
        try:
            return Made.model_validate_json(await self._awaited[number])
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

    def written(self, number: int, dialog_id: str) -> None:
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
        with _explained():
            calls: list[Call]
            calls, begun = await self._exchange.take.remote(done)
        if begun > self._workers:
            self._workers = begun
            note("a worker has died, and another takes its place; none of its finished calls is repeated")
        for number, dialog_id, key, stage, turn, reply in calls:
            if number >= self._next:  # else its dialog is written already
                self._store.add_call(dialog_id, key, stage, turn, ChatReply.model_validate_json(reply))


@contextmanager
def _silent() -> Iterator[None]:
    """Keep from the terminal what no setting of Ray keeps from it: its C++ says there at which level it logs."""
    terminal = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


def _read(dataset: Any, loop: asyncio.AbstractEventLoop, sitting: _Sitting) -> None:
    """Hand the rows of a dataset over as they come, and why they end."""
    error: BaseException | None = None
    with suppress(RuntimeError):  # the loop has ended, and nobody listens
        try:
            with _explained():
                for row in _each(dataset):
                    loop.call_soon_threadsafe(sitting.arrived, row)
        except BaseException as failure:
            error = failure
        loop.call_soon_threadsafe(sitting.fail, error)


def _each(dataset: Any) -> Iterator[dict[str, Any]]:
    """The rows of a dataset, each as soon as it is there."""
    for batch in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from batch.to_pylist()


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what Ray says of its cluster into one line. What a worker raises is a bug, and is shown as one."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except GroundedDialogsError:
        raise
    except RayError as error:
        if isinstance(error, RayTaskError):
            raise
        raise RunError(f"executor=ray: {_line(error)}; the same command continues the run") from error


def _line(error: Exception) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
