"""Tell whoever watches what dialogs are being written, step by step. It is for display: nothing depends on it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Literal

from generator.common.context import bind
from generator.schema import Hit, Passage, Record, Turn

Kind = Literal["question", "found", "answer", "verdict", "refused", "end"]


class Step(Record):
    """An event of a dialog.

    Attributes:
        kind: a turn's question, what was found for it, its answer, a verdict on it; a question or answer that a check
            refused, so that it is asked again; the end of the dialog.
        label: the question's type, the answer's answerability, the judge's name.
        text: at the end why nothing is kept, empty if something is.
    """

    dialog: str
    turn: int
    kind: Kind
    text: str
    label: str = ""


_watcher: ContextVar[Callable[[Step], None] | None] = ContextVar("watcher", default=None)
_dialog: ContextVar[str] = ContextVar("dialog", default="")


def watching(watcher: Callable[[Step], None]) -> AbstractContextManager[object]:
    """Return a context in which `watcher` gets the steps of all dialogs that are started."""
    return bind(_watcher, watcher)


def following(dialog: str) -> AbstractContextManager[object]:
    """Return a context in which steps are those of this dialog."""
    return bind(_dialog, dialog)


def tell(kind: Kind, turn: int, text: str, label: str = "") -> None:
    """Tell of a step of this context's dialog."""
    if watcher := _watcher.get():
        watcher(Step(dialog=_dialog.get(), turn=turn, kind=kind, text=text, label=label))


def tell_found(turn: int, hits: Sequence[Hit], passages: Sequence[Passage]) -> None:
    """Tell what was found for a turn's question: the titles of the hits, best first."""
    titles = {passage.id: passage.title or passage.document_id for passage in passages}
    named = (f"{titles[hit.passage_id]}{'' if hit.new else ' (again)'}" for hit in hits)
    tell("found", turn, ", ".join(dict.fromkeys(named)))


def tell_turn(turn: Turn) -> None:
    """Tell of a finished turn; what was told of it before may come again."""
    tell("question", turn.turn, turn.query, turn.question_type)
    tell("answer", turn.turn, turn.answer, turn.answerability)
