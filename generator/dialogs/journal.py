"""The finished model calls of a dialog in the making: read back instead of made again, and counted either way."""

from typing import Protocol

from generator.models.lm import ChatReply
from generator.schema import Cost, Usage


class Calls(Protocol):
    """Where the finished calls of dialogs in the making are: the store, or what stands between it and a worker."""

    def calls(self, dialog_id: str) -> dict[str, ChatReply]:
        """The finished calls of a dialog that has no outcome yet."""
        ...

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Write a finished call down."""
        ...


class Journal:
    """The finished calls of one dialog; see `generator.models.lm.Journal`."""

    def __init__(self, calls: Calls, dialog_id: str) -> None:
        self._calls, self._dialog_id = calls, dialog_id
        self._replies = calls.calls(dialog_id)
        self._spent: dict[tuple[str, int], Usage] = {}

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        """The reply of an earlier run of this dialog, if this call was finished then."""
        reply = self._replies.get(key)
        if reply is not None:
            self._count(stage, turn, reply)
        return reply

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Write a finished call down."""
        self._calls.add_call(self._dialog_id, key, stage, turn, reply)
        self._count(stage, turn, reply)

    def cost(self, turn: int) -> Cost:
        """What the calls of one turn cost, retries of bad questions and repairs included."""
        spent = sum((u for (_, t), u in self._spent.items() if t == turn), Usage())
        return Cost(calls=spent.calls, prompt=spent.prompt, completion=spent.completion)

    def by_stage(self) -> tuple[tuple[str, Usage], ...]:
        """What the dialog cost, by stage."""
        total: dict[str, Usage] = {}
        for (stage, _), usage in sorted(self._spent.items()):
            total[stage] = total.get(stage, Usage()) + usage
        return tuple(total.items())

    def _count(self, stage: str, turn: int, reply: ChatReply) -> None:
        self._spent[stage, turn] = self._spent.get((stage, turn), Usage()) + reply.usage
