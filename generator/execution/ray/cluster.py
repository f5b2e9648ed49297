"""The connection to a Ray cluster, and its errors on one line."""

import logging
import os
import re
import signal
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from generator.common.console import note
from generator.errors import GroundedDialogsError, RunError, describe

# Object store of a cluster that is started here: rows are small, and Ray's default is a third of the memory.
_OBJECT_STORE_BYTES = 512 << 20
_LOOPBACK = "127.0.0.1"
# Time limits for a connection to a cluster's address, and for an answer there: Ray itself would try for many minutes.
_CONNECT_S, _ANSWER_S = 5.0, 60.0


class WorkerLost(RunError):
    """A worker has died; Ray starts it again once the cluster has room for it."""


class Cluster:
    """A connection to a cluster, which is started first if there is no address.

    A thread holds it: in the main thread, Ray would replace the handler of SIGTERM; and processes that Ray starts end
    with the thread that started them.

    Args:
        address: of a running cluster; None: start one on this machine.
        workers: the number of workers.
        gpus: reserved for each worker, beside a CPU.

    Attributes:
        ray: the package.
        room: the number of workers that can start now.

    Raises:
        RunError: Ray isn't installed, there is no cluster, or none can be started.
    """

    def __init__(self, address: str | None, workers: int, gpus: float) -> None:
        self.ray = _import_ray(local=(address or _LOOPBACK).startswith(_LOOPBACK))
        self._address, self._workers = address, workers
        self._failure: Exception | None = None
        self._connected, self._closing = Event(), Event()
        self._thread = Thread(target=self._hold, daemon=True)
        self._thread.start()
        with _silence_stderr():
            if not self._connected.wait(_ANSWER_S if address else None):
                self._failure = TimeoutError(f"no answer as a head node gives it in {_ANSWER_S:g} s")
        if self._failure:
            where = "no Ray cluster at this address" if address else "can't start a Ray cluster on this machine"
            why = describe(self._failure)
            raise RunError(
                f"executor.address={address or 'null'}: {where} ({why}); `ray start --head` starts one"
            ) from self._failure
        resources = self.ray.cluster_resources()
        self.room = int(min(resources.get(kind, 0) // each for kind, each in (("CPU", 1), ("GPU", gpus)) if each))
        if self.room < workers and not address:  # a cluster started here never gets more GPUs
            self.leave()
            raise RunError(
                f"executor.gpus={gpus:g}: this machine has {resources.get('GPU', 0):g} GPUs, too few for "
                f"executor.workers={workers}; lower one of the two"
            )
        if self.room < workers:
            note(f"the cluster has room for {self.room} of {workers} workers now; the others start when there is more")

    def leave(self) -> None:
        """Disconnect, and end a cluster that was started here."""
        self._closing.set()
        self._thread.join()

    def _hold(self) -> None:
        start: dict[str, Any] = {
            "address": "local",
            "num_cpus": self._workers,
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES,
        }
        try:
            if self._address not in (None, "auto"):
                host, _, port = self._address.rpartition(":")
                socket.create_connection((host, int(port)), _CONNECT_S).close()
            self.ray.init(
                **({"address": self._address} if self._address else start),
                log_to_driver=False,
                logging_level=logging.CRITICAL,
            )
        except Exception as error:  # Ray raises errors of many kinds, from ConnectionError to ValueError
            self._failure = error
            return
        finally:
            self._connected.set()
        self._closing.wait()
        self.ray.shutdown()


def _import_ray(local: bool) -> Any:
    """Import Ray, without its output; `local`: its cluster listens on this machine alone."""
    # Before the import: no usage statistics, and no log lines on the terminal.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    warnings.filterwarnings("ignore", module=r"ray\.")
    if local:
        # Otherwise Ray listens on all of the machine's addresses.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise RunError(
            f"executor=ray needs the package ray ({error}): install the extra 'ray' (uv sync --inexact --extra "
            "ray), or set executor=local"
        ) from error
    return ray


def take_sigterm_back() -> None:
    """Let SIGTERM do what it did before a connection, whose C++ would print a stack and abort three seconds later.

    Call it in the main thread.
    """
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Hide what Ray's C++ prints to the terminal, which no setting of Ray does."""
    terminal = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)


@contextmanager
def as_run_error() -> Iterator[None]:
    """Raise Ray's errors about its cluster, and modules that a node lacks, as a RunError.

    An exception in a worker is raised as it was there: one that isn't ours is a bug. `WorkerLost` is raised for work
    that Ray doesn't repeat.
    """
    from ray.exceptions import ActorUnavailableError, RayError, RayTaskError

    try:
        yield
    except RayError as error:
        if isinstance(error, ActorUnavailableError):
            raise WorkerLost("a worker has died; others make its dialogs, from its finished calls") from error
        if isinstance(error, RayTaskError) and isinstance(error.cause, GroundedDialogsError):
            raise error.cause from None
        if missing := re.search(r"(?:ModuleNotFound|Import)Error: (.+)", str(error)):
            raise RunError(
                f"executor=ray: a process on the cluster can't import this program or a package of the run "
                f"({missing[1]}); install the same packages on every node"
            ) from error
        if isinstance(error, RayTaskError):
            raise
        raise RunError(f"executor=ray: {describe(error)}; the same command continues the run") from error
