"""The interface of executors, which generate dialogs in plan order and distribute the building of an index."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from generator.common.concurrency import Piece, Wanted
from generator.dialogs.generate import DialogGenerator, GeneratedDialog
from generator.execution.store import Store
from generator.schema import Record

T = TypeVar("T")


@dataclass(frozen=True)
class Plans:
    """The plans of a run, and what generates their dialogs.

    Args:
        make: generates the dialog of a plan number in this process.
        open: opens the generator of one of so many other processes, which share `lm.concurrency`; can be pickled.
        store: the outcomes so far, and the finished calls of unfinished dialogs.
        numbers: of the plans without an outcome.
        at_once: the most dialogs in progress at a time.
    """

    make: Callable[[int], Coroutine[Any, Any, GeneratedDialog]]
    open: Callable[[int], AbstractAsyncContextManager[DialogGenerator]]
    store: Store
    numbers: range
    at_once: int


class Executor(ABC):
    """Generates dialogs, in this process or in others."""

    @abstractmethod
    async def ready(self) -> None:
        """Check that the work can start.

        Raises:
            GroundedDialogsError: it can't.
        """

    @abstractmethod
    def results(
        self, plans: Plans, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        """Yield plan numbers and their dialogs in order, from the first plan without an outcome; close it when done.

        Args:
            wanted: decides about starting another dialog, given how many are running and the dialogs that wait.
            stop: once it is set, nothing more is yielded, and running dialogs are cancelled.

        Raises:
            GroundedDialogsError: the run can't go on.
        """

    @abstractmethod
    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        """Apply `function` to each piece and yield the results in order: a `generator.common.concurrency.Spread`."""


class ExecutorSettings(Record, ABC):
    """The base of every executor's settings; `conf/executor/<name>.yaml` has their values."""

    @abstractmethod
    def open(self) -> AbstractContextManager[Executor]:
        """Open the executor; leaving the block ends what it has started."""
