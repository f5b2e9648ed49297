"""What every executor does: makes the dialogs of plans, in plan order, and divides the building of an index."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from generator.common.concurrency import Piece, Wanted
from generator.dialogs.generate import DialogGenerator, GeneratedDialog
from generator.execution.store import Store
from generator.schema import Record

T = TypeVar("T")


class WorkerSpec(Protocol):
    """All that another process needs to make the same dialogs; can be pickled."""

    def opened(self, workers: int) -> AbstractAsyncContextManager[DialogGenerator]:
        """The maker of one of so many processes, which share what servers are asked at a time."""
        ...


@dataclass(frozen=True)
class Work:
    """What is to be made.

    Args:
        make: makes the dialog of a plan's number, in this process.
        recipe: for other processes.
        store: has the plans that have an outcome, and finished calls of others.
        limit: plans that there are.
        at_once: dialogs under way at a time.
    """

    make: Callable[[int], Coroutine[Any, Any, GeneratedDialog]]
    recipe: WorkerSpec
    store: Store
    limit: int
    at_once: int


class Executor(ABC):
    """Does the work."""

    @abstractmethod
    async def ready(self) -> None:
        """See that the work can be done.

        Raises:
            GroundedDialogsError: it can't.
        """

    @abstractmethod
    def results(
        self, work: Work, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        """Plans' numbers and their dialogs, in order from the first one that has no outcome; close it when done.

        Args:
            wanted: whether to begin another one, given how many are under way and the dialogs that wait.
            stop: when it is set, there are no more, and what is under way is cancelled.

        Raises:
            GroundedDialogsError: the run can't go on.
        """

    @abstractmethod
    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        """What `function` makes of each piece, in their order; see `generator.common.concurrency.Spread`."""


class ExecutorSettings(Record, ABC):
    """The base of every executor's settings; their values stand in `conf/executor/<name>.yaml`."""

    @abstractmethod
    def open(self) -> AbstractContextManager[Executor]:
        """The executor; leaving the block ends what it has started."""
