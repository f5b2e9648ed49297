"""The course of a run in its folder: it is started or continued, may be interrupted, and always writes its results."""

import asyncio
import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from generator.common.atomic_files import write_text
from generator.common.concurrency import run_async
from generator.common.console import continues, count_noun, note
from generator.common.interruption import ends_at_once, interruptible, unless
from generator.errors import GroundedDialogsError
from generator.execution.store import Store

# New objects that the garbage collector waits for; Python's own 700 take a run a tenth of its processor.
GC_THRESHOLD = 50_000


class Result(Protocol):
    """The summary of a run."""

    @property
    def complete(self) -> bool: ...


S = TypeVar("S", bound=Result)
Work = Callable[[Store, asyncio.Event], Coroutine[Any, Any, None]]


class Session(ABC, Generic[S]):
    """A run that is ready to start or to continue.

    Attributes:
        folder: the run folder.
        fresh: empty the folder first.
        identity: the settings that decide what the run's data is, by name.
        configuration: all settings as YAML, for the run folder.
    """

    folder: Path
    fresh: bool
    identity: Mapping[str, object]
    configuration: str

    @abstractmethod
    def is_finished(self, store: Store) -> bool:
        """Return True if there is nothing left to do."""

    def describe_finished(self, store: Store) -> str:
        """Return the note on a run that is finished already."""
        return "this run is finished; fresh=true starts over"

    def adapt(self, store: Store) -> None:
        """Bring what is stored in line with a setting that may change; by default, nothing."""

    @abstractmethod
    async def open(self, stack: AsyncExitStack) -> Work:
        """Open the models, to be closed with the stack, and return the work: it stores results until `stop` is set.

        Raises:
            ModelError: a model can't be used. The run folder has not been touched.
        """

    @abstractmethod
    def write_results(self, store: Store) -> S:
        """Write the files of the run folder from its store, and return the summary."""

    @abstractmethod
    def progress(self, summary: S) -> tuple[int, int]:
        """Return how many dialogs are done, and of how many."""

    async def go(self, stop: asyncio.Event) -> S:
        """Work until the run is done or `stop` is set. Results are written even if the work fails.

        Raises:
            GroundedDialogsError: a model or the run folder can't be used.
        """
        async with AsyncExitStack() as stack:
            store = None
            if (self.folder / "run.db").exists() and not self.fresh:
                store = stack.enter_context(Store(self.folder, self.identity))
                if self.is_finished(store):
                    note(self.describe_finished(store))
                    self.adapt(store)
                    return self._results(store)
            work = await unless(stop, self.open(stack))
            # The folder is created or emptied only now that all models have answered.
            store = store or stack.enter_context(Store(self.folder, self.identity, self.fresh))
            write_text(self.folder / "config.yaml", self.configuration)
            self.adapt(store)
            try:
                await work(store, stop)
            except Exception:
                with suppress(GroundedDialogsError):  # the first error says more
                    self._results(store)
                raise
            return self._results(store)

    def _results(self, store: Store) -> S:
        ends_at_once()  # no work is left to be stopped
        return self.write_results(store)


def run_session(session: Session[S], show: Callable[[S], None]) -> S:
    """Start or continue a run, print its summary and folder, and return the summary.

    Args:
        show: prints the summary.

    Raises:
        GroundedDialogsError: as `Session.go`.
        KeyboardInterrupt: the run was interrupted before it was complete, which this function has said (`reported`).
    """
    with collect_rarely():
        summary, interrupted = run_async(interruptible(session.go))
    show(summary)
    print(f"run folder: {session.folder}", flush=True)
    if interrupted and not summary.complete:
        done, total = session.progress(summary)
        note(f"interrupted: {done} of {count_noun(total, 'dialog')} done and written; {continues(session.fresh)}")
        raise KeyboardInterrupt("reported")
    return summary


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Keep the garbage collector from looking again and again through what outlives the block anyway."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
