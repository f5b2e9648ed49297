"""Dialogs and drops as the report's page reads them, in a bounded number of bytes."""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from generator.schema import TASK, Dialog, Drop, Record, Turn

# Levels above give a twentieth less for twice the time.
_LEVEL = 4


class ListedTurn(Record):
    """What the list of dialogs shows of a turn, searches and filters. `kept` is None for a turn that is no pair."""

    turn: int
    query: str
    answer: str
    question_type: str
    multi_turn_type: str | None
    answerability: str
    verdicts: tuple[tuple[str, str], ...]
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


class ShownTurn(Record):
    """What a dialog that is opened shows more of a turn; hits and evidence name passages by their place.

    Attributes:
        hits: the place of the passage, None if the dialog doesn't hold it; rank, score, and whether it was new.
        evidence: the place of the passage, and start and end in characters.
        reasons: of the verdicts, in their order: explanation, model, score, and whether it decides.
    """

    search_query: str
    reasoning: str
    clean_query: str
    other_answers: tuple[str, ...]
    original_answer: str
    hits: tuple[tuple[int | None, int, float, bool], ...]
    evidence: tuple[tuple[int | None, int, int], ...]
    reasons: tuple[tuple[str, str, float | None, bool], ...]


class ShownPassage(Record):
    """A passage of an opened dialog."""

    id: str
    title: str
    text: str
    url: str | None


class Shown(Record):
    """An opened dialog. `facts` are names and values."""

    facts: tuple[tuple[str, str], ...]
    turns: tuple[ShownTurn, ...]
    passages: tuple[ShownPassage, ...]


class Packed(NamedTuple):
    """An entry, and the dialog behind it as `pack` makes it; empty for a dropped one."""

    entry: Entry
    shown: str


class Sample:
    """Entries in at most `limit` bytes: all, or every second, fourth, … of them.

    Attributes:
        step: each how manieth entry is in it.
        seen: how many there were.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.step, self.seen = limit, 1, 0
        self._packed: list[Packed] = []
        self._bytes = 0

    def add(self, entry: Entry, shown: Shown | None) -> None:
        """Add an entry, if it is its turn."""
        self.seen += 1
        if (self.seen - 1) % self.step:
            return
        self._packed.append(Packed(entry, pack(shown.model_dump()) if shown else ""))
        self._bytes += _size(self._packed[-1])
        while self._bytes > self.limit and len(self._packed) > 1:
            self._packed, self.step = self._packed[::2], self.step * 2
            self._bytes = sum(map(_size, self._packed))

    @property
    def packed(self) -> Sequence[Packed]:
        return self._packed


def listed(run: int, dialog: Dialog, drops: Sequence[Drop]) -> Entry:
    """Return the entry of an accepted dialog."""
    dropped = {drop.turn for drop in drops if drop.scope == "pair"}
    first = next(iter(dialog.document_ids), "")
    title = next((p.title for p in dialog.passages if p.document_id == first and p.title), first)
    own = {turn.turn for turn in dialog.own_turns}
    return Entry(
        run=run,
        id=dialog.id,
        accepted=True,
        title=title,
        documents=dialog.document_ids,
        user=dialog.user,
        task=dialog.task,
        ended="" if dialog.ended in ("complete", TASK) else dialog.ended,
        turns=tuple(_listed_turn(t, t.turn not in dropped if t.turn in own else None) for t in dialog.turns),
        drops=tuple(drops),
    )


def shown(dialog: Dialog) -> Shown:
    """Return what opening a dialog shows."""
    places = {passage.id: place for place, passage in enumerate(dialog.passages)}
    facts = {
        "corpus": dialog.corpus,
        "collection": dialog.collection,
        "algorithm": dialog.algorithm,
        "split": dialog.split,
        "documents": ", ".join(dialog.document_ids),
        "user": dialog.user,
        "task": dialog.task,
        "model": dialog.lm,
        "prompt version": dialog.prompt_version,
        "seed": str(dialog.seed) if dialog.seed else "",
    }
    return Shown(
        facts=tuple((name, value) for name, value in facts.items() if value),
        turns=tuple(_shown_turn(turn, places) for turn in dialog.turns),
        passages=tuple(ShownPassage(id=p.id, title=p.title, text=p.text, url=p.url) for p in dialog.passages),
    )


def pack(data: Any) -> str:
    """Return data as JSON, deflated and in base64: no text ends a tag, and browsers unpack it when needed."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=lambda record: record.model_dump())
    return base64.b64encode(zlib.compress(text.encode(), _LEVEL)).decode()


def _size(packed: Packed) -> int:
    # The list is packed as a whole, to about half.
    return len(packed.shown) + len(packed.entry.model_dump_json()) // 2


def _listed_turn(turn: Turn, kept: bool | None) -> ListedTurn:
    return ListedTurn(
        turn=turn.turn,
        query=turn.query,
        answer=turn.answer,
        question_type=turn.question_type,
        multi_turn_type=turn.multi_turn_type,
        answerability=turn.answerability,
        verdicts=tuple((verdict.judge, verdict.label) for verdict in turn.verdicts),
        kept=kept,
    )


def _shown_turn(turn: Turn, places: dict[str, int]) -> ShownTurn:
    return ShownTurn(
        search_query=turn.retrieval_query,
        reasoning=turn.reasoning,
        clean_query=turn.clean_query,
        other_answers=turn.other_answers,
        original_answer=turn.original_answer,
        hits=tuple((places.get(hit.passage_id), hit.rank, hit.score, hit.new) for hit in turn.hits),
        evidence=tuple((places.get(e.passage_id), e.start, e.end) for e in turn.evidence),
        reasons=tuple((v.explanation, v.model, v.score, v.decides) for v in turn.verdicts),
    )
