"""A connection to a Ray cluster, and one line for what goes wrong with it."""

import logging
import math
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from generator.common.console import note
from generator.errors import GroundedDialogsError, RunError

# Of a cluster that is started here: rows are small, and Ray's own default is a third of the machine.
_OBJECT_STORE_BYTES = 512 << 20
_LOOPBACK = "127.0.0.1"
# Seconds in which a cluster's address takes a connection: Ray itself would try for minutes.
_PATIENCE_S = 5.0
# On end; so many that each of a few workers may die once.
_DEATHS_AT_THE_START = 10


class Cluster:
    """A connection to a cluster, which is started first if there is no address.

    A thread holds it: in the main one, Ray would take over what SIGTERM does; and what Ray starts ends with the thread
    that has started it.

    Args:
        address: of a cluster that is there; None: one is started, on this machine.
        workers: how many there will be.
        cpus, gpus: that Ray sets aside for each.

    Attributes:
        ray: the package, with its `data`.

    Raises:
        RunError: Ray isn't installed, there is no cluster, or none can be started.
    """

    def __init__(self, address: str | None, workers: int, cpus: float, gpus: float) -> None:
        self.ray = _imported(local=(address or _LOOPBACK).startswith(_LOOPBACK))
        self._address, self._cpus = address, math.ceil(workers * cpus)
        self._failure: Exception | None = None
        self._there, self._over = Event(), Event()
        self._thread = Thread(target=self._hold, daemon=True)
        self._thread.start()
        self._there.wait()
        if self._failure:
            where = "no Ray cluster there" if address else "a Ray cluster can't be started here"
            raise RunError(
                f"executor.address={address or 'null'}: {where} ({_line(self._failure)}); `ray start --head` starts one"
            ) from self._failure
        there = self.ray.cluster_resources()
        room = int(min(there.get(kind, 0) // each for kind, each in (("CPU", cpus), ("GPU", gpus)) if each))
        if room < workers and not address:  # it has the CPUs that it was started with, and never gets more GPUs
            self.leave()
            raise RunError(
                f"executor.gpus={gpus:g}: this machine has {there.get('GPU', 0):g}, which is too few for "
                f"executor.workers={workers}; lower one of them"
            )
        if room < workers:
            note(f"the cluster has room for {room} of {workers} workers now; more begin when there is more")

    def leave(self) -> None:
        """Disconnect; what was started here ends."""
        self._over.set()
        self._thread.join()

    def _hold(self) -> None:
        start: dict[str, Any] = {
            "address": "local",
            "num_cpus": self._cpus,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        try:
            if self._address not in (None, "auto"):
                host, _, port = self._address.rpartition(":")
                socket.create_connection((host, int(port)), _PATIENCE_S).close()
            with _silent():
                self.ray.init(
                    **({"address": self._address} if self._address else start),
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                )
        except Exception as error:  # it raises what its parts raise, from ConnectionError to ValueError
            self._failure = error
            return
        finally:
            self._there.set()
        self._over.wait()
        self.ray.shutdown()


def _imported(local: bool) -> Any:
    """Ray, silent; `local`: of its cluster, this machine alone will know."""
    # Before the import: nothing is reported to anybody, and the terminal is ours.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    warnings.filterwarnings("ignore", module=r"ray\.")
    if local:
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
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # A row is a block, and so a task: none waits for another one.
    context.target_max_block_size = 1
    context._max_num_blocks_in_streaming_gen_buffer = None
    # A worker that dies before it has begun is replaced, as any other is; one that never begins ends the run.
    context.max_consecutive_actor_init_deaths = _DEATHS_AT_THE_START
    return ray


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


@contextmanager
def explained() -> Iterator[None]:
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
