"""Interruption of long work: the first Ctrl-C or SIGTERM asks it to stop, the second ends the program."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from generator.common.concurrency import cancel
from generator.common.console import continues, note

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def interruptible(work: Callable[[asyncio.Event], Coroutine[Any, Any, T]]) -> tuple[T, bool]:
    """Run `work` and return its result, and whether it was interrupted: then the event that it gets is set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def ask() -> None:
        stop.set()
        note("stopping: finished work is being written; press Ctrl-C again to quit immediately")

    def interrupt(*_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, _quit)
        loop.call_soon_threadsafe(ask)

    # Not the event loop's handlers: they only run when the loop does, and a hanging disk blocks it.
    for number in _SIGNALS:
        signal.signal(number, interrupt)
    try:
        return await work(stop), stop.is_set()
    finally:
        ends_at_once()


def _quit(*_: object) -> None:
    """End the process here and now, as a kill does, which runs survive.

    An exception would be raised wherever the program is: in a destructor it would be lost, in a task the event loop
    would print its traceback, and a thread would still be waited for.
    """
    show_cursor = "\x1b[?25h\n" if os.isatty(2) else ""  # that a progress bar hides
    os.write(2, f"{show_cursor}interrupted; {continues('fresh=true' in sys.argv)}\n".encode())
    os._exit(130)


def ends_at_once() -> None:
    """Let Ctrl-C and SIGTERM end the program at once from now on, even while a disk hangs."""
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler)


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, which may take minutes, as the loading of a model does.

    Raises:
        KeyboardInterrupt: `stop` was set first; the work is cancelled.
    """
    done, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({done, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise KeyboardInterrupt
        return done.result()
    finally:
        await cancel(done, stopped)
