"""How work that takes hours is broken off: Ctrl-C or SIGTERM asks it to stop, and a second one ends the program."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from generator.common.console import note

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def interruptible(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
    """What `work` returns, and whether it was asked to stop, which sets the event that it is given."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask() -> None:
        stop.set()
        note("stopping: what is finished is being written; Ctrl-C again ends at once")

    def interrupt(*_: object) -> None:
        ends_at_once()
        loop.call_soon_threadsafe(ask)

    # Not the loop's own handlers: those wait for the loop, and a disk that hangs keeps it from ever coming to them.
    for number in _SIGNALS:
        signal.signal(number, interrupt)
    try:
        return await work(stop), stop.is_set()
    finally:
        ends_at_once()


def ends_at_once() -> None:
    """From now on Ctrl-C and SIGTERM end the program where it stands, even if a disk hangs."""
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler)


async def unless(stop: asyncio.Event, opening: Coroutine[Any, Any, T]) -> T:
    """What `opening` gives, unless the run is stopped first: a model may take minutes to load."""
    opened, stopped = asyncio.create_task(opening), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({opened, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise KeyboardInterrupt
        return opened.result()
    finally:
        for task in (opened, stopped):
            task.cancel()
        await asyncio.gather(opened, stopped, return_exceptions=True)
