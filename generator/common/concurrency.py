"""Concurrent work with results in order, and the waits between attempts."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from generator.common.console import note
from generator.errors import ConfigError

T = TypeVar("T")
Piece = TypeVar("Piece")

# Decides about starting another piece of work, given how many are running and the results that wait.
Wanted = Callable[[int, Collection[T]], bool]

# Results that wait for an earlier one are held in memory: at most this many for each piece of work that may run.
LOOKAHEAD = 4
_LONGEST_WAIT_S, _LONGEST_RETRY_AFTER_S = 60, 600
# Waits for a server that are mentioned: of so many seconds in all, the next one included; and how often.
NOTICED_S, _EVERY_S = 10, 60


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, in an event loop of its own.

    Raises:
        ConfigError: one runs already, as in a notebook.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise ConfigError(
        "this command can't run inside a notebook's own process; write !python -m … in place of %run -m …"
    )


def backoff(first_s: float) -> Callable[[RetryCallState], float]:
    """Return waits between attempts, in seconds: they double up to a minute, with jitter of up to `first_s`.

    They are longer, up to ten minutes, where the server asks for that: the error's `retry_after`.
    """
    doubling = wait_exponential(multiplier=first_s, max=_LONGEST_WAIT_S) + wait_random(0, first_s)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(doubling(state), min(getattr(error, "retry_after", None) or 0, _LONGEST_RETRY_AFTER_S))

    return wait


def retrying(
    retries: int,
    wait: Callable[[RetryCallState], float],
    transient: Callable[[BaseException], bool],
    notes: "WaitNotes | None" = None,
) -> AsyncRetrying:
    """Return what makes a call again, up to `retries` times, while it fails transiently; the last error is raised."""
    stop, retry = stop_after_attempt(retries + 1), retry_if_exception(transient)
    return AsyncRetrying(stop=stop, wait=wait, retry=retry, before_sleep=notes, reraise=True)


class WaitNotes:
    """Says why a server is waited for, at most once a minute; for `before_sleep` of a `tenacity` retrying.

    Args:
        describe: returns what went wrong, given the error of the last attempt.
    """

    def __init__(self, describe: Callable[[Any], str]) -> None:
        self._describe, self._due = describe, 0.0

    def __call__(self, state: RetryCallState) -> None:
        now = time.monotonic()
        if state.outcome and state.idle_for >= NOTICED_S and now >= self._due:
            self._due = now + _EVERY_S
            note(f"{self._describe(state.outcome.exception())}; next attempt in {state.upcoming_sleep:.0f} s")


async def in_order(
    make: Callable[[int], Coroutine[Any, Any, T]],
    numbers: range,
    at_once: int,
    stop: asyncio.Event,
    wanted: Wanted[T] = lambda running, waiting: True,
) -> AsyncGenerator[tuple[int, T], None]:
    """Yield number and result of each piece of work, in the order of the numbers; close it when done.

    Args:
        make: returns the work of a number.
        numbers: the pieces, one after the other.
        at_once: the most pieces that run at a time.
        stop: once it is set, nothing more is yielded, and running pieces are cancelled.
        wanted: decides about starting another piece, given how many are running and the results that wait; called
            whenever these change.

    Raises:
        Exception: as a piece of work raised it; the others are cancelled.
    """
    finished: asyncio.Queue[int | None] = asyncio.Queue()
    running: dict[int, asyncio.Task[T]] = {}
    waiting: dict[int, T] = {}
    started = done = numbers.start
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(partial(_report, finished, None))
    try:
        while not stop.is_set():
            while (
                wanted(len(running), waiting.values())
                and started < numbers.stop
                and len(running) < at_once
                and started - done < LOOKAHEAD * at_once
            ):
                task: asyncio.Task[T] = asyncio.create_task(make(started))
                task.add_done_callback(partial(_report, finished, started))
                running[started] = task
                started += 1
            if not running:
                break
            number = await finished.get()
            if number is None:
                break
            waiting[number] = running.pop(number).result()
            while done in waiting:
                yield done, waiting.pop(done)
                done += 1
    finally:
        await cancel(stopping, *running.values())


def _report(finished: asyncio.Queue[int | None], number: int | None, _: object) -> None:
    finished.put_nowait(number)


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all pieces of work at once and return their results in the order of the pieces.

    Raises:
        Exception: as the first piece that failed raised it; the others are cancelled.
    """
    try:
        async with asyncio.TaskGroup() as group:
            pieces = [group.create_task(piece) for piece in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [piece.result() for piece in pieces]


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Spread(Protocol):
    """Distributes independent pieces of work, and yields the results in the order of the pieces.

    Other processes may do the work, so `function`, the pieces and the results must be picklable.
    """

    def __call__(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]: ...


def one_by_one(function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
    """Do all the work in this process: a `Spread`."""
    return map(function, pieces)
