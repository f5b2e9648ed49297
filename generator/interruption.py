"""How work that takes hours is broken off: Ctrl-C or SIGTERM asks it to stop, and a second one ends the program."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from generator.notes import note

T = TypeVar("T")


async def interruptible(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
    """What `work` returns, and whether it was asked to stop, which sets the event that it is given."""
    stop, loop, signals = asyncio.Event(), asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)

    def interrupt() -> None:
        stop.set()
        note("stopping: what is finished is being written; Ctrl-C again ends at once")
        # A second signal does what it does to any program: it ends this one, even if a disk hangs.
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, interrupt)
    return await work(stop), stop.is_set()


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
