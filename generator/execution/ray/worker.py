"""What runs in the workers of a Ray cluster: Ray Data's functions from rows to rows.

What they are made with comes pickled, and is unpickled with the first row: a `GroundedDialogsError` then goes back in
that row, while a worker that died of it at its start would be started again and again.
"""

import asyncio
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray

from generator.errors import GroundedDialogsError

if TYPE_CHECKING:
    from generator.dialogs.generate import DialogGenerator
    from generator.models.lm import ChatReply

Row = dict[str, Any]


def feed(exchange: Any) -> Callable[[Row], Iterator[Row]]:
    """What makes of the first plan's number all of them, as they may be begun. Begun again, it makes the same."""

    def numbers(row: Row) -> Iterator[Row]:
        number = int(row["first"])
        while end := ray.get(exchange.allowed.remote(number)):
            yield from ({"number": n} for n in range(number, end))
            number = end

    return numbers


class Worker:
    """Makes the dialog of a plan's number, many at a time.

    Args:
        recipe: a pickled `generator.execution.base.WorkerSpec`.
        workers: how many there are of this kind.
        exchange: the actor.
        folder: the driver's, which relative paths start from.
    """

    def __init__(self, recipe: bytes, workers: int, exchange: Any, folder: Path) -> None:
        self._recipe, self._workers, self._exchange = recipe, workers, exchange
        _enter(folder)
        self._stack = AsyncExitStack()  # stays open as long as the process
        self._opened: asyncio.Task[DialogGenerator] | None = None

    async def __call__(self, row: Row) -> Row:
        """The row of the dialog: it as JSON, empty if it was broken off; or the error that ends the run, pickled."""
        number = int(row["number"])
        try:
            return {"number": number, "made": await self._unless_closed(number), "error": b""}
        except GroundedDialogsError as error:
            return {"number": number, "made": "", "error": pickle.dumps(error)}

    async def _unless_closed(self, number: int) -> str:
        if self._opened is None:
            self._exchange.begun.remote()
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
        return await self._stack.enter_async_context(pickle.loads(self._recipe).opened(self._workers))

    async def _made(self, number: int) -> str:
        assert self._opened is not None
        maker = await asyncio.shield(self._opened)
        plan = maker.planner.plan(number)
        calls = _Calls(self._exchange, number, await self._exchange.find.remote(plan.dialog_id))
        try:
            made = await maker.generate(plan, calls)
        finally:
            await calls.arrived()
        return made.model_dump_json()


class _Calls:
    """The finished calls of one dialog; see `generator.dialogs.journal.Calls`."""

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
        """Wait until the exchange has them all: none may come when its dialog has an outcome."""
        await asyncio.gather(*self._sent)


def _enter(folder: Path) -> None:
    with suppress(OSError):  # on a machine that hasn't the folder, absolute paths are all there is
        os.chdir(folder)


class Applied:
    """Applies a function to pieces of work.

    Args:
        function: pickled.
        folder: the driver's, which relative paths start from.
    """

    def __init__(self, function: bytes, folder: Path) -> None:
        self._pickled = function
        _enter(folder)
        self._function: Callable[[Any], Any] | None = None

    def __call__(self, row: Row) -> Row:
        """The row of what the function made of the piece in `row`, or of the error that it raised; pickled."""
        try:
            self._function = self._function or pickle.loads(self._pickled)
            return {"made": pickle.dumps(self._function(pickle.loads(row["piece"]))), "error": b""}
        except GroundedDialogsError as error:
            return {"made": b"", "error": pickle.dumps(error)}
