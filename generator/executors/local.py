"""Everything in this process: dialogs wait for the model, not for the processor."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from generator.executors.base import Executor, ExecutorSettings, Work
from generator.making import Made
from generator.ordered import Piece, Wanted, in_order, one_by_one

T = TypeVar("T")


class LocalSettings(ExecutorSettings):
    """There are none."""

    def open(self) -> AbstractContextManager["Local"]:
        return nullcontext(Local())


class Local(Executor):
    """Does the work itself."""

    async def ready(self) -> None:
        pass

    def results(self, work: Work, wanted: Wanted[Made], stop: asyncio.Event) -> AsyncGenerator[tuple[int, Made], None]:
        return in_order(
            lambda number: work.make(number) if number < work.limit else None,
            work.store.attempted,
            work.at_once,
            stop,
            wanted,
        )

    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        return one_by_one(function, pieces)
