"""The executor in this process: dialogs wait for the model, not for the processor."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from generator.common.concurrency import Piece, Wanted, in_order, one_by_one
from generator.dialogs.generate import GeneratedDialog
from generator.execution.base import Executor, ExecutorSettings, Plans

T = TypeVar("T")


class LocalSettings(ExecutorSettings):
    """Settings of the local executor: none."""

    def open(self) -> AbstractContextManager["Local"]:
        return nullcontext(Local())


class Local(Executor):
    """Generates dialogs in this process."""

    async def ready(self) -> None:
        pass

    def results(
        self, plans: Plans, wanted: Wanted[GeneratedDialog], stop: asyncio.Event
    ) -> AsyncGenerator[tuple[int, GeneratedDialog], None]:
        return in_order(plans.make, plans.numbers, plans.at_once, stop, wanted)

    def spread(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
        return one_by_one(function, pieces)
