"""Make verdicts of what people judged, and count what tables need: one pass over the sets that the sample came from."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from generator.dialogs.columns import PERSON, is_person
from generator.dialogs.marks import Mark, human_verdicts
from generator.errors import CorpusError
from generator.schema import Dialog, Turn, Verdict
from judges.base import UNJUDGED
from judges.people.annotations import ALL, KEEP, KEPT, Annotation
from judges.people.measures import Votes, majority_of
from judges.people.sample import Key
from taxonomy import Criterion


class Facts(NamedTuple):
    """The facts that tables need of an item: its set, who wrote it, its dialog, the dialog's length, and its turn."""

    source: int
    lm: str
    dialog: str
    length: int
    turn: int | None


class Judged:
    """Annotations, by item and by criterion.

    Args:
        key: of the sample.
        annotations: of all annotators.
    """

    def __init__(self, key: Key, annotations: Sequence[Annotation]) -> None:
        used = {name for each in annotations for name in each.places}
        named = key.criteria.by_name() | {KEEP: KEPT}
        self.criteria: Mapping[str, Criterion] = {name: each for name, each in named.items() if name in used}
        self.key = key
        self.facts: dict[str, Facts] = {}
        self._of: dict[tuple[int, str, int | None], list[Annotation]] = defaultdict(list)
        for each in sorted(annotations, key=lambda annotation: annotation.annotator):
            self._of[each.item.source, each.item.dialog, each.item.turn].append(each)
        # Judges' verdicts on the turns that people judged, before people's are added: by item.
        self.others: dict[str, list[Verdict]] = {}

    def votes(self, criterion: str) -> Votes:
        """Return the places on a criterion's scale, by item and annotator."""
        found: dict[str, dict[str, int]] = {}
        for annotations in self._of.values():
            for each in annotations:
                if criterion in each.places:
                    found.setdefault(each.item.id, {})[each.annotator] = each.places[criterion]
        return found

    def add(self, source: int, dialogs: Iterable[Dialog], more: Mapping[str, Mapping[str, float]]) -> Iterator[Dialog]:
        """Yield the dialogs of a set with people's verdicts, which replace earlier ones, at the end of each turn's.

        What people said about a dialog as a whole stands at each of its turns.

        Args:
            more: scores that were published with the dialogs, by dialog and judge, to compare them with people.
        """
        seen: set[str] = set()
        for dialog in dialogs:
            if dialog.id in seen:  # people judged the first one with this id
                yield dialog
                continue
            seen.add(dialog.id)
            whole = self._of.get((source, dialog.id, None), [])
            scores = more.get(dialog.id, {}).items()
            published = [
                Verdict(judge=name, label="scored", explanation="", model="", score=score, decides=False)
                for name, score in scores
            ]
            turns = list(dialog.turns)
            for turn in dialog.own_turns:
                own = self._of.get((source, dialog.id, turn.turn), [])
                verdicts = [*published, *self._verdicts(own, whole)]
                names = {verdict.judge for verdict in verdicts}
                kept = [verdict for verdict in turn.verdicts if verdict.judge not in names]
                turns[turn.turn - 1] = turn.model_copy(update={"verdicts": (*kept, *verdicts)})
                self._note(source, dialog, own, turns[turn.turn - 1])
            self._note(source, dialog, whole, None)
            yield dialog.model_copy(update={"turns": tuple(turns)})

    def check_found(self) -> None:
        """Raise CorpusError if a judged item is in none of the sets that were read."""
        for annotations in self._of.values():
            item = annotations[0].item
            if item.id not in self.facts:
                what = item.dialog if item.turn is None else f"turn {item.turn} of {item.dialog}"
                raise CorpusError(
                    f"{self.key.sources[item.source].path}: has no {what} any more, which is {item.id} in the sample; "
                    "give the sets that it was drawn from (input=…)"
                )

    def _note(self, source: int, dialog: Dialog, annotations: Sequence[Annotation], turn: Turn | None) -> None:
        for each in annotations[:1]:
            number = None if turn is None else turn.turn
            self.facts[each.item.id] = Facts(source, dialog.lm, dialog.id, len(dialog.turns), number)
            if turn is not None:
                self.others[each.item.id] = [verdict for verdict in turn.verdicts if not is_person(verdict)]

    def _verdicts(self, own: Sequence[Annotation], whole: Sequence[Annotation]) -> Iterator[Verdict]:
        """Yield the verdicts of each annotator, and of all of them together, on each criterion; own marks go first."""
        for name, criterion in self.criteria.items():
            given = {each.annotator: each for each in (*whole, *own) if name in each.places}
            for annotator, each in given.items():
                value = criterion.values[each.places[name]]
                said = {"keep": value == "yes"} if name == KEEP else {"criteria": {name: value}}
                yield from human_verdicts(annotator, Mark(dialog_id=each.item.dialog, note=each.note, **said), False)
            if given:
                yield _together(name, criterion, [each.places[name] for each in given.values()])


def judge_name(annotator: str, criterion: str) -> str:
    """Return the name of the judge; whether a pair is kept is a mark of the report, and needs no further name."""
    return f"{PERSON}{annotator}" if criterion == KEEP else f"{PERSON}{annotator}:{criterion}"


def _together(name: str, criterion: Criterion, places: Sequence[int]) -> Verdict:
    """Return what most annotators said, of numbers the median; `unjudged` if as many said something else.

    A criterion that decides has `correct` or `incorrect`: whether most chose a value that is good.
    """
    said = ", ".join(f"{places.count(place)} {criterion.values[place]}" for place in sorted(set(places)))
    numbers, most = criterion.numbers, majority_of(places)
    if criterion.decides:
        good = majority_of([criterion.is_good(place) for place in places])
        label = UNJUDGED if good is None else "correct" if good else "incorrect"
    elif numbers is not None:
        label = "scored"
    else:
        label = UNJUDGED if most is None else criterion.values[most]
    return Verdict(
        judge=judge_name(ALL, name),
        label=label,
        explanation=f"a tie: {said}" if label == UNJUDGED else said,
        model="",
        score=None if numbers is None else median(numbers[place] for place in places),
        decides=criterion.decides and label != UNJUDGED,
    )
