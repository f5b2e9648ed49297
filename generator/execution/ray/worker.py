"""The actors of a Ray cluster that do a run's work, each in a process of its own.

Their arguments are unpickled with the first piece of work: its error then reaches the driver, while an actor that
failed at its start would be restarted again and again.
"""

import asyncio
import os
import pickle
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.common.console import send_notes

if TYPE_CHECKING:
    from generator.dialogs.generate import DialogGenerator
    from generator.models.lm import ChatReply


class Worker:
    """A worker that generates the dialogs of plan numbers, many at a time.

    Args:
        opener: opens the generator; pickled.
        workers: the number of workers.
        folder: the driver's working directory, for relative paths.
    """

    def __init__(self, opener: bytes, workers: int, exchange: Any, folder: Path) -> None:
        self._opener, self._workers, self._exchange = opener, workers, exchange
        _enter(folder)
        self._stack = AsyncExitStack()  # stays open as long as the process
        self._opened: asyncio.Task[DialogGenerator] | None = None

    async def generate(self, number: int) -> str:
        """Return the dialog of a plan as JSON; empty if it is cancelled, since the exchange was closed."""
        if self._opened is None:
            self._opened = asyncio.create_task(self._open())
            self._closed = asyncio.ensure_future(self._exchange.closed.remote())
        making = asyncio.create_task(self._made(number))
        await asyncio.wait({making, self._closed}, return_when=asyncio.FIRST_COMPLETED)
        if making.done():
            return making.result()
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        return ""

    async def _open(self) -> "DialogGenerator":
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # as the command line does
        number = await self._exchange.begun.remote()
        # One worker speaks for all, which would say the same.
        send_notes(self._exchange.tell.remote if number == 1 else lambda text: None)
        return await self._stack.enter_async_context(pickle.loads(self._opener)(self._workers))

    async def _made(self, number: int) -> str:
        assert self._opened is not None
        generator = await asyncio.shield(self._opened)
        plan = generator.plan(number)
        calls = _Calls(self._exchange, number, await self._exchange.find.remote(plan.dialog_id))
        try:
            made = await generator.generate(plan, calls)
        finally:
            await calls.arrived()
        return made.model_dump_json()


class _Calls:
    """The finished calls of one dialog: a `generator.dialogs.journal.Calls`."""

    def __init__(self, exchange: Any, number: int, found: dict[str, str]) -> None:
        self._exchange, self._number, self._found = exchange, number, found
        self._sent: list[Any] = []

    def calls(self, dialog_id: str) -> "dict[str, ChatReply]":
        from generator.models.lm import ChatReply

        return {key: ChatReply.model_validate_json(reply) for key, reply in self._found.items()}

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: "ChatReply") -> None:
        call = (self._number, dialog_id, key, stage, turn, reply.model_dump_json())
        self._sent.append(self._exchange.add.remote(call))

    async def arrived(self) -> None:
        """Wait until the exchange has all calls: none may arrive after its dialog's outcome."""
        await asyncio.gather(*self._sent)


def _enter(folder: Path) -> None:
    with suppress(OSError):  # a machine without this folder can only use absolute paths
        os.chdir(folder)


class Applier:
    """A worker that applies a function to pieces of work.

    Args:
        function: pickled.
        folder: the driver's working directory, for relative paths.
    """

    def __init__(self, function: bytes, folder: Path) -> None:
        self._pickled = function
        _enter(folder)
        self._function: Callable[[Any], Any] | None = None

    def apply(self, piece: Any) -> Any:
        """Return the function's result for a piece of work."""
        self._function = self._function or pickle.loads(self._pickled)
        return self._function(piece)
