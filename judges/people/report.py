"""Put what people found into numbers: the tables of Lee et al. 2024, agreement, and judges against people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median

from generator.common.console import count_noun
from generator.schema import Record
from judges.base import UNJUDGED
from judges.people.annotations import Effort
from judges.people.measures import CriterionAgreement, JudgeAgreement, majority_of, measure_agreement, measure_judge
from judges.people.verdicts import Facts, Judged

# Labels of turns that a judge wasn't asked about, or can't tell.
_NOT_ASKED = {UNJUDGED, "given", "conversational", "underspecified"}


class Cell(Record):
    """Annotations by one criterion: how many, the share that is good, and of numbers the mean of each item's median."""

    annotations: int
    good: float
    mean: float | None


class Line(Record):
    """A row of a table: its name, how many dialogs or turns it is about, and a cell for each criterion."""

    name: str
    count: int
    cells: Mapping[str, Cell]


class Given(Record):
    """Of the annotations that find `given` good, how many find `criterion` good too (Lee et al. 2024, table 3)."""

    criterion: str
    given: str
    annotations: int
    good: int


class HumanReport(Record):
    """The figures of what people found.

    Attributes:
        left: items of the sample that nobody judged; None if there is no sample.
        lengths: by the turns of a dialog (Lee et al. 2024, table 1); table 2 is in `agreement`.
        depths: by the number of a turn (table 3).
        sources: by set and model.
    """

    annotators: tuple[Effort, ...]
    items: int
    left: int | None
    annotations: int
    lengths: tuple[Line, ...]
    depths: tuple[Line, ...]
    sources: tuple[Line, ...]
    given: Given | None
    agreement: tuple[CriterionAgreement, ...]
    judges: tuple[JudgeAgreement, ...]


def measure(judged: Judged, efforts: Sequence[Effort], sources: Sequence[str], seed: int) -> HumanReport:
    """Return what people found.

    Args:
        sources: names of the sets.
    """
    facts = judged.facts

    def table(items: Iterable[str], group: Callable[[Facts], tuple[int, str]], whole: bool = False) -> tuple[Line, ...]:
        groups: dict[tuple[int, str], set[str]] = {}
        for item in items:
            groups.setdefault(group(facts[item]), set()).add(item)
        every = [(name, groups[order, name]) for order, name in sorted(groups)]
        every += [("overall", set().union(*groups.values()))] if groups else []
        return tuple(_line(name, members, judged, whole) for name, members in every)

    turns = [item for item, fact in facts.items() if fact.turn is not None]
    several = len({fact.lm for fact in facts.values()}) > 1

    def source(fact: Facts) -> tuple[int, str]:
        named = [sources[fact.source]] if len(sources) > 1 or not several else []
        return fact.source, ", ".join([*named, *([fact.lm] if several else [])])

    return HumanReport(
        annotators=tuple(efforts),
        items=len(facts),
        left=len(judged.key.items) - len(facts) if judged.key.report else None,
        annotations=sum(effort.items for effort in efforts),
        lengths=table(facts, lambda fact: (fact.length, count_noun(fact.length, "turn")), whole=True),
        depths=table(turns, lambda fact: (fact.turn or 0, f"turn {fact.turn}")),
        sources=table(facts, source),
        given=_measure_given(judged),
        agreement=tuple(
            measure_agreement(judged.votes(name), criterion.model_copy(update={"name": name}), seed)
            for name, criterion in judged.criteria.items()
        ),
        judges=tuple(_judges(judged, seed)),
    )


def _line(name: str, items: set[str], judged: Judged, whole: bool) -> Line:
    """Return the figures of some items; `count` is of their dialogs if `whole`."""
    dialogs = {(judged.facts[item].source, judged.facts[item].dialog) for item in items}
    cells = {}
    for each, criterion in judged.criteria.items():
        votes = [list(by.values()) for item, by in judged.votes(each).items() if item in items]
        places = [place for of in votes for place in of]
        if places:
            numbers = criterion.numbers
            mean = fmean(median(numbers[place] for place in of) for of in votes) if numbers else None
            good = fmean(map(criterion.is_good, places))
            cells[each] = Cell(
                annotations=len(places), good=round(good, 4), mean=None if mean is None else round(mean, 4)
            )
    return Line(name=name, count=len(dialogs if whole else items), cells=cells)


def _measure_given(judged: Judged) -> Given | None:
    pair = judged.key.criteria.given
    if pair is None or not set(pair) <= judged.criteria.keys():
        return None
    good, given = (judged.votes(name) for name in pair)
    one, other = (judged.criteria[name] for name in pair)
    both = [
        one.is_good(good[item][name])
        for item, by in given.items()
        for name, place in by.items()
        if other.is_good(place) and name in good.get(item, {})
    ]
    return Given(criterion=pair[0], given=pair[1], annotations=len(both), good=sum(both))


def _judges(judged: Judged, seed: int) -> Iterable[JudgeAgreement]:
    """Yield each judge's agreement with most people, on each criterion of turns: of its labels, and of its scores."""
    names = sorted({(v.judge, v.model) for verdicts in judged.others.values() for v in verdicts})
    for name, criterion in judged.criteria.items():
        if criterion.about == "dialog":
            continue
        people = {
            item: majority_of([criterion.is_good(p) for p in by.values()]) for item, by in judged.votes(name).items()
        }
        for judge, model in names:
            last = {
                item: verdict
                for item, good in people.items()
                for verdict in judged.others.get(item, [])
                if good is not None and (verdict.judge, verdict.model) == (judge, model)
            }
            labels = {item: criterion.labels[v.label] for item, v in last.items() if v.label in criterion.labels}
            # “partial” of `idk` isn't that of `answerability`: its other labels answer another question.
            others = {v.label for v in last.values()} - criterion.labels.keys() - _NOT_ASKED
            if others and len(set(labels.values())) < 2:
                labels = {}
            scores = {item: v.score for item, v in last.items() if v.score is not None}
            failed = sum(verdict.label == UNJUDGED for verdict in last.values())
            for by in (labels, scores):
                if by:
                    good_ones = [bool(people[item]) for item in by]
                    yield measure_judge(judge, model, name, good_ones, list(by.values()), failed, seed)
            if last and failed == len(last):
                yield JudgeAgreement(judge=judge, model=model, criterion=name, marks=0, unjudged=failed)
