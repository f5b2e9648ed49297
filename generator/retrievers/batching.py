"""Batches of single queries: dialogs send them one by one, encoders and servers are fastest with many."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Collects the items that arrive while a batch is processed into the next batch. A single item is sent at once.

    Args:
        process: returns the result of each item, in their order; runs in a thread. An exception among the results is
            raised to the caller of that item, an exception that `process` raises to the callers of all its items.
        max_size: items in a batch.
        max_batches: batches that are processed at the same time.
    """

    def __init__(
        self, process: Callable[[Sequence[Item]], Sequence[Result | Exception]], max_size: int, max_batches: int = 1
    ) -> None:
        self._process, self._max_size, self._max_batches = process, max_size, max_batches
        self._queue: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._workers: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Result:
        """Return the result of one item."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.append((item, future))
        if len(self._workers) < self._max_batches:
            self._workers.add(asyncio.create_task(self._work()))
        return await future

    async def _work(self) -> None:
        await asyncio.sleep(0)  # lets tasks that are ready submit their items first
        try:
            while self._queue:
                await self._process_batch()
        finally:
            # Without an await since the last look at the queue, or an item could wait for a worker that is gone.
            self._workers.discard(cast(asyncio.Task[None], asyncio.current_task()))

    async def _process_batch(self) -> None:
        taken = [self._queue.popleft() for _ in range(min(self._max_size, len(self._queue)))]
        batch = [(item, future) for item, future in taken if not future.done()]  # a done one was cancelled
        if not batch:
            return
        results: Sequence[Result | Exception]
        try:
            results = await asyncio.to_thread(self._process, [item for item, _ in batch])
        except Exception as error:
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
