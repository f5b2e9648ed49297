"""Many pieces of work at once, their results in order: what was done first waits for what comes before it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Piece = TypeVar("Piece")

# Whether to begin another piece, given how many are under way and the results that wait.
Wanted = Callable[[int, Collection[T]], bool]

# Results that wait for an earlier one are held in memory: so many for each piece of work under way.
LOOKAHEAD = 4
STOPPED = -1


async def in_order(
    make: Callable[[int], Coroutine[Any, Any, T] | None],
    first: int,
    at_once: int,
    stop: asyncio.Event,
    wanted: Wanted[T] = lambda under_way, waiting: True,
) -> AsyncGenerator[tuple[int, T], None]:
    """Number and result of each piece of work, in the order of the numbers from `first` on; close it when done.

    Args:
        make: the work of a number; None: there is no more.
        at_once: pieces that are under way at a time.
        stop: when it is set, there are no more results, and what is under way is cancelled.
        wanted: whether to begin another one, given how many are under way and the results that wait.

    Raises:
        Exception: what a piece of work raises; the others are cancelled.
    """
    finished: asyncio.Queue[int] = asyncio.Queue()
    under_way: dict[int, asyncio.Task[T]] = {}
    waiting: dict[int, T] = {}
    begun = done = first
    more = True
    stopping = asyncio.create_task(stop.wait())
    stopping.add_done_callback(partial(_told, finished, STOPPED))
    try:
        while not stop.is_set():
            while (
                more
                and len(under_way) < at_once
                and begun - done < LOOKAHEAD * at_once
                and wanted(len(under_way), waiting.values())
            ):
                work = make(begun)
                if work is None:
                    more = False
                    break
                task: asyncio.Task[T] = asyncio.create_task(work)
                task.add_done_callback(partial(_told, finished, begun))
                under_way[begun] = task
                begun += 1
            if not under_way:
                break
            number = await finished.get()
            if number == STOPPED:
                break
            waiting[number] = under_way.pop(number).result()
            while done in waiting:
                yield done, waiting.pop(done)
                done += 1
    finally:
        await _cancelled(stopping, *under_way.values())


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all pieces of work, under way at once, in the order of the pieces.

    Raises:
        Exception: what the first piece to fail raises; the others are cancelled.
    """
    # `gather` alone would let them go on, unheard and paid for.
    pieces = [asyncio.create_task(piece) for piece in work]
    try:
        return await asyncio.gather(*pieces)
    finally:
        await _cancelled(*pieces)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what is under way, and wait for its end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _told(finished: asyncio.Queue[int], number: int, _: object) -> None:
    finished.put_nowait(number)


class Spread(Protocol):
    """Divides work that needs no order but has one: what `function` makes of each piece, in the order of the pieces.

    Other processes may do the work, so `function`, the pieces and what comes of them can be pickled.
    """

    def __call__(self, function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]: ...


def one_by_one(function: Callable[[Piece], T], pieces: Iterable[Piece]) -> Iterator[T]:
    """A `Spread` over nobody: this process does it all."""
    return map(function, pieces)
