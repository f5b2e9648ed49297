"""Dialogs and drops as the report's page reads them, in a bounded number of bytes."""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from generator.dialogs.columns import difficulty, new_passages, overlap
from generator.output.chat import kept_turns
from generator.schema import TASK, Dialog, Drop, Record, Turn

# Levels above give a twentieth less for twice the time.
_LEVEL = 4
# What the page has of a dialog from its entry, or doesn't show.
_NOT_SHOWN: Any = {
    "turns": {
        "__all__": {"query": True, "answer": True, "usage": True, "planned": True, "evidence": {"__all__": {"text"}}}
    }
}


class ListedTurn(Record):
    """The part of a turn that the list shows, searches and filters by.

    Attributes:
        overlap, new_passages, difficulty: what the pair is worth; see `generator.dialogs.columns`.
        given: a task came with it, so that it is no pair.
        kept: whether its pair is in the dataset; None if it is no pair, or nothing tells.
    """

    turn: int
    query: str
    answer: str
    question_type: str
    multi_turn_type: str | None
    answerability: str
    verdicts: tuple[tuple[str, str], ...]
    overlap: float | None
    new_passages: int | None
    difficulty: str | None
    given: bool
    kept: bool | None


class Entry(Record):
    """An attempted dialog in the list, with all its drops; a dropped one has no turns.

    Attributes:
        run: the place of its run among the report's.
        title: of its first document, or the document's id.
    """

    run: int
    id: str
    accepted: bool
    title: str = ""
    documents: tuple[str, ...] = ()
    user: str = ""
    task: str = ""
    ended: str = ""
    turns: tuple[ListedTurn, ...] = ()
    drops: tuple[Drop, ...] = ()


class Packed(NamedTuple):
    """An entry, its bytes in the page, and the dialog behind it as `pack` makes it; empty if the page has not got it.

    Attributes:
        number: its place among the entries of its run, from 0.
    """

    number: int
    entry: Entry
    bytes: int
    shown: str


class Sample:
    """Entries and the dialogs behind them, in a bounded number of bytes: all, or every second, fourth, … of them.

    Dialogs are thinned out before their entries are, which are a tenth of the bytes.

    Attributes:
        every: one in so many entries is in it.
        every_shown: one in so many has its dialog.
        seen: how many entries there were.
    """

    def __init__(self, entries: int, shown: int) -> None:
        """Take at most so many bytes for the entries, and for the dialogs."""
        self.limits = entries, shown
        self.every, self.every_shown, self.seen = 1, 1, 0
        self.packed: list[Packed] = []
        self._bytes = [0, 0]

    @property
    def shown(self) -> int:
        """Return the number of dialogs in it."""
        return sum(bool(packed.shown) for packed in self.packed)

    def add(self, entry: Entry, dialog: Dialog | None) -> None:
        """Add an entry and its dialog, if it is their turn."""
        number, self.seen = self.seen, self.seen + 1
        if number % self.every:
            return
        packed = pack(dialog.model_dump(exclude=_NOT_SHOWN)) if dialog and not number % self.every_shown else ""
        # Entries are packed together, to about half.
        self.packed.append(Packed(number, entry, len(entry.model_dump_json()) // 2, packed))
        self._add_bytes(self.packed[-1:])
        while self._bytes[1] > self.limits[1] and self.every_shown < self.seen:
            self.every_shown *= 2
            self._keep([each._replace(shown="") if each.number % self.every_shown else each for each in self.packed])
        while self._bytes[0] > self.limits[0] and self.every < self.seen:
            self.every *= 2
            self._keep([each for each in self.packed if not each.number % self.every])

    def _keep(self, packed: list[Packed]) -> None:
        self.packed, self._bytes = packed, [0, 0]
        self._add_bytes(packed)

    def _add_bytes(self, packed: Sequence[Packed]) -> None:
        self._bytes[0] += sum(each.bytes for each in packed)
        self._bytes[1] += sum(len(each.shown) for each in packed)


def listed(run: int, dialog: Dialog, drops: Sequence[Drop] | None) -> Entry:
    """Return the entry of an accepted dialog; `drops` is None if nothing tells which of its pairs were dropped."""
    known = drops is not None
    drops = drops or ()
    dropped = {drop.turn for drop in drops if drop.scope == "pair"}
    first = next(iter(dialog.document_ids), "")
    title = next((p.title for p in dialog.passages if p.document_id == first and p.title), first)
    own, pairs = ({turn.turn for turn in turns} for turns in (dialog.own_turns, kept_turns(dialog, None)))
    return Entry(
        run=run,
        id=dialog.id,
        accepted=True,
        title=title,
        documents=dialog.document_ids,
        user=dialog.user,
        task=dialog.task,
        ended="" if dialog.ended in ("complete", TASK) else dialog.ended,
        # A sample for people to judge names no model, and has no labels.
        turns=tuple(
            _listed_turn(dialog, t, t.turn not in own, t.turn not in dropped if known and t.turn in pairs else None)
            for t in dialog.turns
        ),
        drops=tuple(drops),
    )


def pack(data: Any) -> str:
    """Return data as JSON, deflated and in base64: no text ends a tag, and browsers unpack it when needed."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=lambda record: record.model_dump())
    return base64.b64encode(zlib.compress(text.encode(), _LEVEL)).decode()


def _listed_turn(dialog: Dialog, turn: Turn, given: bool, kept: bool | None) -> ListedTurn:
    same = {name: getattr(turn, name) for name in ("turn", "query", "answer", "question_type", "multi_turn_type")}
    verdicts = tuple((verdict.judge, verdict.label) for verdict in turn.verdicts)
    share = overlap(turn)
    return ListedTurn(
        **same,
        answerability=turn.answerability if dialog.lm else "",
        verdicts=verdicts,
        overlap=None if share is None else round(share, 2),
        new_passages=new_passages(dialog, turn),
        difficulty=difficulty(turn),
        given=given,
        kept=kept,
    )
