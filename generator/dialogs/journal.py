"""Remember the finished model calls of an unfinished dialog: replayed instead of repeated, and counted either way."""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from generator.common.context import bind
from generator.models.lm import ChatReply
from generator.schema import Cost, Usage, add_up


class Calls(Protocol):
    """The finished calls of unfinished dialogs: the store, or what connects a worker to it."""

    def calls(self, dialog_id: str) -> dict[str, ChatReply]:
        """Return the replies of a dialog without an outcome, by the key of their request."""
        ...

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: ChatReply) -> None: ...


@dataclass
class Meter:
    """Holds what the calls of a context came to."""

    cost: Cost = field(default_factory=Cost)


_meter: ContextVar[Meter] = ContextVar("meter")


def metered(meter: Meter | None = None) -> AbstractContextManager[Meter]:
    """Return a context with a meter, by default a new one, that counts its calls, whichever journal holds them."""
    return bind(_meter, meter or Meter())


def charge(cost: Cost) -> None:
    """Add what was counted by an inner meter to that of the current context, if it has one."""
    _meter.get(Meter()).cost += cost


class Journal:
    """The finished calls of one dialog; see `generator.models.lm.Journal`."""

    def __init__(self, calls: Calls, dialog_id: str) -> None:
        self._calls, self._dialog_id = calls, dialog_id
        self._replies = calls.calls(dialog_id)
        self._spent: dict[tuple[str, int], Usage] = {}

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        """Return the stored reply to a call, or None."""
        if (reply := self._replies.get(key)) is not None:
            self._count(stage, turn, reply)
        return reply

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Store a finished call."""
        self._calls.add_call(self._dialog_id, key, stage, turn, reply)
        self._count(stage, turn, reply)

    def cost(self, turn: int) -> Cost:
        """Return the cost of one turn, with repeated attempts and repairs."""
        return sum((u for (_, t), u in self._spent.items() if t == turn), Usage()).cost

    def by_stage(self) -> tuple[tuple[str, Usage], ...]:
        """Return the usage of the dialog by stage."""
        return tuple(add_up((stage, usage) for (stage, _), usage in self._spent.items()).items())

    def _count(self, stage: str, turn: int, reply: ChatReply) -> None:
        self._spent[stage, turn] = self._spent.get((stage, turn), Usage()) + reply.usage
        charge(reply.usage.cost)
