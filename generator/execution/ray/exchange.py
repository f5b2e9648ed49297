"""The exchange between the driver and the workers of a Ray cluster: finished calls, lines to show, and the end.

A small actor on the driver's node, so that it ends with the driver. It doesn't parse the replies that it holds.
"""

import asyncio
import os
from contextlib import suppress

# Plan number, dialog id, key of the call, stage, turn, and the reply as JSON.
Call = tuple[int, str, str, str, int, str]


class Exchange:
    """The actor.

    Args:
        calls: the replies of earlier sessions of the run, by dialog id and key of the call.
    """

    def __init__(self, calls: dict[str, dict[str, str]]) -> None:
        self._calls = calls
        self._untaken: list[Call] = []
        self._notes: list[str] = []
        self._workers = 0
        self._closed, self._news = asyncio.Event(), asyncio.Event()

    async def watch(self, driver: int) -> None:
        """Close when the driver, the process with this id, ends: Ray lets workers run on for some seconds."""
        with suppress(AttributeError, OSError):  # not on Linux, or in a container that can't see the process
            ended, loop = os.pidfd_open(driver), asyncio.get_running_loop()

            def close() -> None:
                loop.remove_reader(ended)
                self._closing = asyncio.ensure_future(self.close())

            loop.add_reader(ended, close)

    async def find(self, dialog_id: str) -> dict[str, str]:
        """Return the replies of a dialog, by the keys of the calls."""
        return self._calls.get(dialog_id, {})

    async def add(self, call: Call) -> None:
        """Keep a finished call, for the driver and for a worker that repeats the dialog."""
        _, dialog_id, key, _, _, reply = call
        self._calls.setdefault(dialog_id, {})[key] = reply
        self._untaken.append(call)
        self._news.set()

    async def begun(self) -> int:
        """Count a worker that has started, perhaps as the replacement of another; return how many have."""
        self._workers += 1
        return self._workers

    async def tell(self, text: str) -> None:
        """Keep a line for the driver's terminal."""
        self._notes.append(text)
        self._news.set()

    async def take(self, done: list[str]) -> tuple[list[Call], list[str]]:
        """Wait for news; return the calls finished since the last time, and new lines.

        Args:
            done: ids of dialogs with an outcome, whose calls are no longer needed.
        """
        for dialog_id in done:
            self._calls.pop(dialog_id, None)
        await self._news.wait()
        taken, self._untaken = self._untaken, []
        notes, self._notes = self._notes, []
        if not self._closed.is_set():
            self._news.clear()
        return taken, notes

    async def close(self) -> None:
        """Have the workers cancel what is in progress."""
        self._closed.set()
        self._news.set()

    async def closed(self) -> None:
        """Wait for `close`."""
        await self._closed.wait()
