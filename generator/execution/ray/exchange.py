"""Where the driver and the workers of a Ray cluster meet: which plans may be begun, and calls that are finished.

A small actor on the driver's node, so that it ends with the driver. What it holds of a call is data to it.
"""

import asyncio
import os
from contextlib import suppress

# Plan's number, dialog's id, key of the call, stage, turn, and the reply as JSON.
Call = tuple[int, str, str, str, int, str]


class Exchange:
    """The actor.

    Args:
        first: the number of the first plan.
        calls: the replies, by dialog's id and call's key, that an earlier sitting of the run has.
    """

    def __init__(self, first: int, calls: dict[str, dict[str, str]]) -> None:
        self._end = first
        self._calls = calls
        self._untaken: list[Call] = []
        self._workers = 0
        self._closed, self._news, self._changed = asyncio.Event(), asyncio.Event(), asyncio.Condition()

    async def watch(self, driver: int) -> None:
        """Close when the driver, the process of that id, ends: Ray lets workers go on for some seconds."""
        with suppress(AttributeError, OSError):  # of other systems than Linux; of a container that doesn't see it
            ended, loop = os.pidfd_open(driver), asyncio.get_running_loop()

            def close() -> None:
                loop.remove_reader(ended)
                self._closing = asyncio.ensure_future(self.close())

            loop.add_reader(ended, close)

    async def allow(self, end: int) -> None:
        """Plans below `end` may be begun."""
        async with self._changed:
            self._end = max(end, self._end)
            self._changed.notify_all()

    async def allowed(self, begun: int) -> int:
        """Where the plans end that may be begun, once that is beyond `begun`; 0 when there will be no more."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._closed.is_set() or self._end > begun)
            return 0 if self._closed.is_set() else self._end

    async def find(self, dialog_id: str) -> dict[str, str]:
        """The replies that a dialog has, by the keys of the calls."""
        return self._calls.get(dialog_id, {})

    async def add(self, call: Call) -> None:
        """Keep a finished call, for the driver and for whoever makes the dialog again."""
        _, dialog_id, key, _, _, reply = call
        self._calls.setdefault(dialog_id, {})[key] = reply
        self._untaken.append(call)
        self._news.set()

    async def begun(self) -> None:
        """A worker has begun, which may be one in the place of another."""
        self._workers += 1
        self._news.set()

    async def take(self, done: list[str]) -> tuple[list[Call], int]:
        """The calls that were finished since the last time, and how many workers have begun, as soon as there is news.

        Args:
            done: ids of dialogs that have an outcome, whose calls are no longer needed.
        """
        for dialog_id in done:
            self._calls.pop(dialog_id, None)
        await self._news.wait()
        taken, self._untaken = self._untaken, []
        if not self._closed.is_set():
            self._news.clear()
        return taken, self._workers

    async def close(self) -> None:
        """Begin no more plans, and break off those that are under way."""
        async with self._changed:
            self._closed.set()
            self._news.set()
            self._changed.notify_all()

    async def closed(self) -> None:
        """Wait for `close`."""
        await self._closed.wait()
