"""Draw what people judge: a stratified sample of pairs or dialogs of several sets, shuffled, with opaque ids.

The same sets, settings and seed give the same sample.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, cycle
from typing import Any, NamedTuple

from pydantic import Field

from generator.common.console import note
from generator.dialogs.marks import fingerprint
from generator.errors import ConfigError
from generator.schema import TASK, Dialog, Record, Turn
from generator.sets import DialogSet, dialog_set
from judges.people import Stratum, Unit
from taxonomy import Criteria


class Source(Record):
    """A set of dialogs: its path as it was given, and the settings of the corpus that reads it."""

    path: str
    corpus: Mapping[str, Any] | None = None

    def open(self) -> DialogSet:
        """Return its dialogs, as `generator.sets.dialog_set` reads them.

        Raises:
            ConfigError, CorpusError, RunError: they can't be read.
        """
        return dialog_set(self.path, self.corpus)


class Item(Record):
    """Something that people judge.

    Attributes:
        id: says nothing about where it comes from.
        source: the place of its set in `Key.sources`.
        turn: of a pair, its number; None for a dialog as a whole.
        annotators: who is to judge it; empty: whoever wants to.
    """

    id: str
    source: int
    dialog: str
    turn: int | None = None
    annotators: tuple[str, ...] = ()


class Key(Record):
    """The meaning of the ids of a sample, and how it was drawn: for whoever reads the annotations, not for annotators.

    Attributes:
        strata: what the sample is stratified by.
        items: in the order in which people see them.
        report: the `fingerprint` of the sample's report, which its marks name; empty: each set has its own.
    """

    unit: Unit
    seed: int
    strata: tuple[Stratum, ...]
    sources: tuple[Source, ...] = Field(min_length=1)
    criteria: Criteria
    annotators: tuple[str, ...] = ()
    items: tuple[Item, ...] = Field(min_length=1)
    report: str = ""

    @property
    def runs(self) -> list[str]:
        """Return the runs that marks may be of, for the sample or by the place of the set."""
        return [self.report] if self.report else [fingerprint(next(one.open().dialogs())) for one in self.sources]


class Drawn(NamedTuple):
    """An item with what people are shown: its dialog, and of a pair its turn."""

    item: Item
    dialog: Dialog
    turn: Turn | None


def whole_key(sources: Sequence[Source], criteria: Criteria) -> Key:
    """Return a key of everything in these sets, for annotations that name dialogs by their own ids.

    The ids of items begin with the number of their set, if there are several: runs of two models have the same dialogs.

    Raises:
        ConfigError, CorpusError, RunError: a set can't be read, or has no dialog.
    """
    items = [
        Item(
            id=(f"{place + 1}/" if len(sources) > 1 else "") + dialog.id + (f"/{turn.turn}" if turn else ""),
            source=place,
            dialog=dialog.id,
            turn=turn.turn if turn else None,
        )
        for place, source in enumerate(sources)
        for dialog in source.open().dialogs()
        for turn in (*dialog.own_turns, None)
    ]
    return Key(unit="dialogs", seed=0, strata=(), sources=tuple(sources), criteria=criteria, items=tuple(items))


class _Candidate(NamedTuple):
    """A pair or dialog that could be drawn; all that is kept of it while a set is read."""

    source: int
    dialog: str
    turn: int | None
    stratum: tuple[str, ...]


# How many pairs or dialogs were drawn, and of how many, by stratum.
Strata = Mapping[tuple[str, ...], tuple[int, int]]


def draw_sample(
    sources: Sequence[Source],
    criteria: Criteria,
    unit: Unit,
    items: int,
    strata: Sequence[Stratum],
    seed: int,
    annotators: Sequence[str],
    each: int | None,
) -> tuple[Key, list[Drawn], Strata]:
    """Return a sample's key, what people are shown in order, and what was drawn of each stratum.

    Sets are drawn from in equal numbers, if `source` is a stratum. In a set each stratum gets its share of the items,
    rounded up or down (systematic sampling of the pairs or dialogs in the order of their strata). A drawn dialog has an
    item for each of its turns, in order, and one for the whole if a criterion is about that.

    Args:
        items: pairs or dialogs; all of them if there are fewer.
        each: annotators of each item, at most all, so that all pairs of annotators meet; None: all of them.

    Raises:
        ConfigError, CorpusError, RunError: a set can't be read, or has no dialog.
    """
    chance = random.Random(seed)
    opened = [source.open() for source in sources]
    candidates = [each for place, one in enumerate(opened) for each in _candidates(place, one, unit, strata)]
    chosen = _choose(candidates, items, "source" in strata, chance)
    chance.shuffle(chosen)
    dialogs = _dialogs(opened, {(each.source, each.dialog) for each in chosen})
    teams = list(combinations(annotators, each or len(annotators)))
    chance.shuffle(teams)
    # Which no spreadsheet takes for a number.
    ids = [f"x{number:08x}" for number in chance.sample(range(2**32), len(chosen))]
    whole = bool(criteria.about(True))
    drawn = [
        item
        for candidate, blind, team in zip(chosen, ids, cycle(teams), strict=False)
        for item in _items(candidate, dialogs[candidate.source, candidate.dialog], blind, team, whole)
    ]
    key = Key(
        unit=unit,
        seed=seed,
        strata=tuple(strata),
        sources=tuple(sources),
        criteria=criteria,
        annotators=tuple(annotators),
        items=tuple(each.item for each in drawn),
    )
    counts = Counter(each.stratum for each in chosen)
    available = Counter(each.stratum for each in candidates)
    return key, drawn, {stratum: (counts[stratum], total) for stratum, total in sorted(available.items())}


def _candidates(source: int, dialogs: DialogSet, unit: Unit, strata: Sequence[Stratum]) -> Iterator[_Candidate]:
    for dialog in _list_different(dialogs):
        for turn in _list_answered(dialog) if unit == "pairs" else [None]:
            of = _strata(dialog, turn) | {"source": dialogs.path}
            number = None if turn is None else turn.turn
            yield _Candidate(source, dialog.id, number, tuple(of[name] for name in strata))


def _dialogs(opened: Sequence[DialogSet], wanted: Set[tuple[int, str]]) -> dict[tuple[int, str], Dialog]:
    """Return the dialogs that are wanted, by the place of their set and their id."""
    dialogs: dict[tuple[int, str], Dialog] = {}
    for place, one in enumerate(opened):
        for dialog in one.dialogs():
            if (place, dialog.id) in wanted:
                dialogs.setdefault((place, dialog.id), dialog)
    return dialogs


def _items(candidate: _Candidate, dialog: Dialog, blind: str, team: tuple[str, ...], whole: bool) -> Iterator[Drawn]:
    """Yield a pair's item, or a dialog's: one for each of its turns, and one for the `whole`."""
    about = {"source": candidate.source, "dialog": candidate.dialog, "annotators": team}
    if candidate.turn is not None:
        yield Drawn(Item(id=blind, turn=candidate.turn, **about), dialog, dialog.turns[candidate.turn - 1])
        return
    for turn in _list_answered(dialog):
        yield Drawn(Item(id=f"{blind}-{turn.turn}", turn=turn.turn, **about), dialog, turn)
    if whole:
        yield Drawn(Item(id=blind, **about), dialog, None)


def _list_answered(dialog: Dialog) -> list[Turn]:
    """Return the turns that people can judge: some of RAD-Bench's have no reference. A model's empty answer stays."""
    tested = dialog.context or dialog.ended == TASK
    return [turn for turn in dialog.own_turns if turn.answer or tested]


def _list_different(dialogs: DialogSet) -> Iterator[Dialog]:
    """Yield the first dialog with each id, then report the others, as of `context=both`: marks couldn't tell them.

    Raises:
        ConfigError: none has an answer.
    """
    counts: Counter[str] = Counter()
    answered = False
    for dialog in dialogs.dialogs():
        counts[dialog.id] += 1
        if counts[dialog.id] == 1 and _list_answered(dialog):
            answered = True
            yield dialog
    if not answered:
        raise ConfigError(f"{dialogs.path}: has no answer to judge; judge a model's answers, or use judges.review")
    if others := counts.total() - len(counts):
        note(f"{dialogs.path}: {others} of {counts.total()} dialogs have the id of an earlier one; they aren't drawn")


def _strata(dialog: Dialog, turn: Turn | None) -> dict[Stratum, str]:
    """Return the strata of a pair, or of a dialog: its first question's type, its length, and all answerabilities."""
    turns = dialog.own_turns
    if turn is None:
        every = "+".join(sorted({each.answerability for each in turns}))
        return {"question_type": turns[0].question_type, "turn": str(len(turns)), "answerability": every}
    return {"question_type": turn.question_type, "turn": str(turn.turn), "answerability": turn.answerability}


def _choose(candidates: Sequence[_Candidate], items: int, by_source: bool, chance: random.Random) -> list[_Candidate]:
    """Return `items` candidates, or all: in equal numbers of each source, and in proportion to the strata in it."""
    groups: dict[int, list[_Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(candidate.source if by_source else 0, []).append(candidate)
    chosen: list[_Candidate] = []
    # The smallest first: what it lacks, the others give.
    for left, group in zip(range(len(groups), 0, -1), sorted(groups.values(), key=len), strict=True):
        quota = min(len(group), round((items - len(chosen)) / left))
        ordered = sorted(chance.sample(group, len(group)), key=lambda each: each.stratum)  # stable
        start = chance.random()
        chosen += [ordered[int((start + number) * len(group) / quota)] for number in range(quota)]
    return chosen
