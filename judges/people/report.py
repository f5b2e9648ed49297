"""Put what people found into numbers: the tables of Lee et al. 2024, agreement, and judges against people."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median
from typing import NamedTuple

from generator.output import markdown
from generator.output.tables import ABSENT, print_table
from generator.schema import Record
from judges.base import UNJUDGED
from judges.people.annotations import Effort
from judges.people.measures import (
    CriterionAgreement,
    Estimate,
    JudgeAgreement,
    majority_of,
    measure_agreement,
    measure_judge,
)
from judges.people.verdicts import Facts, Judged
from taxonomy import Criterion


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
        lengths: by the turns of a dialog (Lee et al. 2024, table 1); table 2 is in `agreement`.
        depths: by the number of a turn (table 3).
        sources: by set and model.
    """

    annotators: tuple[Effort, ...]
    items: int
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
        annotations=sum(effort.items for effort in efforts),
        lengths=table(facts, lambda fact: (fact.length, _count(fact.length, "turn")), whole=True),
        depths=table(turns, lambda fact: (fact.turn or 0, f"turn {fact.turn}")),
        sources=table(facts, source),
        given=_given(judged),
        agreement=tuple(
            measure_agreement(judged.votes(name), criterion.model_copy(update={"name": name}), seed)
            for name, criterion in judged.criteria.items()
        ),
        judges=tuple(_judges(judged, seed)),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


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


def _given(judged: Judged) -> Given | None:
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
        if criterion.of == "dialog":
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
            scores = {item: v.score for item, v in last.items() if v.score is not None}
            failed = sum(verdict.label == UNJUDGED for verdict in last.values())
            for by in (labels, scores):
                if by:
                    good_ones = [bool(people[item]) for item in by]
                    yield measure_judge(judge, model, name, good_ones, list(by.values()), failed, seed)
            if last and failed == len(last):
                yield JudgeAgreement(judge=judge, model=model, criterion=name, marks=0, unjudged=failed)


_PAIRS, _MEAN = "Pairs of annotators", ", mean"
# Columns that a terminal has no room for.
_WIDE = {"most agree", "over", "unjudged", "good", "agreement"}


class Section(NamedTuple):
    """A part of the report: a title, a table, and sentences below it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: str = ""


def as_markdown(report: HumanReport, criteria: Mapping[str, Criterion]) -> str:
    """Return the report as Markdown."""
    parts = ["# What people found", markdown.line(summary(report))]
    for section in sections(report, criteria):
        parts.append(f"## {markdown.line(section.title)}")
        rows = ([markdown.line(cell) for cell in row] for row in section.rows)
        parts.append(markdown.table([markdown.line(name) for name in section.head], rows))
        parts += [markdown.line(section.text)] if section.text else []
    return "\n\n".join(parts) + "\n"


def print_report(report: HumanReport, criteria: Mapping[str, Criterion]) -> None:
    """Print the report but for the tables of pairs of annotators and some columns, which its files have."""
    print(summary(report))
    for section in sections(report, criteria):
        if section.title.startswith(_PAIRS):
            continue
        shown = [place for place, name in enumerate(section.head) if name not in _WIDE and not name.endswith(_MEAN)]
        head, *rows = ([row[place] for place in shown] for row in (section.head, *section.rows))
        print(f"\n{section.title}")
        print_table(rows, head, right=head[1:])
        if section.text:
            print(section.text)


def summary(report: HumanReport) -> str:
    """Return what was judged by whom in one line."""
    done = "; ".join(_effort(effort) for effort in report.annotators)
    return f"{_count(report.annotations, 'annotation')} of {_count(report.items, 'item')}. {done}."


def sections(report: HumanReport, criteria: Mapping[str, Criterion]) -> Iterator[Section]:
    """Yield the parts of the report."""
    given = ""
    if report.given and report.given.annotations:
        of, good = report.given, criteria[report.given.criterion].title
        given = f"Of {of.annotations} annotations with {criteria[of.given].title} = yes, {of.good} "
        given += f"({of.good / of.annotations:.1%}) are {good}."
    for title, lines, head, text in (
        ("By length of the dialog (Lee et al. 2024, table 1)", report.lengths, "dialogs", ""),
        ("By depth of the turn (table 3)", report.depths, "turns", given),
        ("By source", report.sources, "items", ""),
    ):
        if lines:
            yield _table(title, lines, head, criteria, text)
    yield _agreement(report.agreement)
    yield from (_pairs(each) for each in report.agreement if each.pairs)
    by_criterion = [list(of) for _, of in groupby(report.judges, lambda judge: judge.criterion)]
    for number, judges in enumerate(by_criterion, start=1):
        yield _judges_section(judges, _all_told(report.judges) if number == len(by_criterion) else "")


def _effort(effort: Effort) -> str:
    more = [f"{effort.half} half-filled"] if effort.half else []
    more += [f"{effort.missing} missing"] if effort.missing else []
    return f"{effort.annotator}: {effort.items}{' (' + ', '.join(more) + ')' if more else ''}"


def _table(title: str, lines: Sequence[Line], head: str, criteria: Mapping[str, Criterion], text: str) -> Section:
    shown = {name: each for name, each in criteria.items() if any(name in line.cells for line in lines)}
    means = [name for name in shown if lines[-1].cells[name].mean is not None]
    heads = ["", head, *(f"% {each.title}" for each in shown.values()), *(f"{shown[n].title}{_MEAN}" for n in means)]
    rows = []
    for line in lines:
        goods = [f"{line.cells[name].good * 100:.1f}" if name in line.cells else "na" for name in shown]
        numbers = [_number(line.cells[name].mean if name in line.cells else None) for name in means]
        rows.append([line.name, str(line.count), *goods, *numbers])
    return Section(title, heads, rows, text)


def _agreement(agreement: Sequence[CriterionAgreement]) -> Section:
    rows = [
        [
            each.criterion,
            str(each.items),
            _interval(each.percent, True),
            _interval(each.majority, True),
            _interval(each.fleiss),
            str(each.fleiss_items),
            _interval(each.alpha),
        ]
        for each in agreement
    ]
    heads = ["criterion", "items", "percent", "most agree", "Fleiss' kappa", "over", "Krippendorff's α"]
    return Section("Agreement of people, with 95% intervals", heads, rows)


def _pairs(agreement: CriterionAgreement) -> Section:
    """Return the upper triangle of annotators as in table 2, with Cohen's kappa."""
    found = {(pair.one, pair.other): pair for pair in agreement.pairs}
    names = sorted({name for pair in found for name in pair})
    rows = []
    for place, one in enumerate(names[:-1]):
        row = [one, *([""] * place)]
        for other in names[place + 1 :]:
            pair = found.get((one, other))
            kappa = "" if pair is None or pair.kappa.value is None else f", κ {_number(pair.kappa.value)}"
            row.append(f"{pair.agreed / pair.items:.0%} ({pair.agreed}/{pair.items}){kappa}" if pair else ABSENT)
        rows.append(row)
    title = f"{_PAIRS}, {agreement.criterion} (table 2), with Cohen's kappa"
    return Section(title, ["", *names[1:]], rows)


def _judges_section(judges: Sequence[JudgeAgreement], text: str) -> Section:
    rows = [
        [
            f"{each.judge} ({each.model})" if each.model else each.judge,
            str(each.marks),
            str(each.unjudged),
            ABSENT if each.good is None else f"{each.good:.0%}",
            _interval(each.percent, True),
            _interval(each.threshold) if each.threshold else "label",
            _interval(each.kappa),
            _told(each),
        ]
        for each in judges
    ]
    heads = ["judge", "marks", "unjudged", "good", "agreement", "good from", "Cohen's kappa", "told from a coin"]
    return Section(f"Judges against these people, on {judges[0].criterion}", heads, rows, text)


def _all_told(judges: Sequence[JudgeAgreement]) -> str:
    told, marks = sum(each.tells for each in judges), max(each.marks for each in judges)
    return (
        f"{marks} marks tell {told} of these {len(judges)} from a coin: the interval of kappa is above 0, and the same "
        "verdicts in random order do as well at most once in 40 times."
    )


def _told(judge: JudgeAgreement) -> str:
    """Return whether the marks tell a judge from a coin, and else about how many would."""
    if not judge.marks:
        return "no: it failed on all"
    if judge.kappa.value is None:
        return "no: people said one thing" if judge.good in (0, 1) else "no: it said one thing"
    more = f": {judge.needed:,} would" if judge.needed else ""
    return "yes" if judge.tells else f"no{more}"


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:z.2f}"


def _interval(estimate: Estimate, percent: bool = False) -> str:
    if estimate.value is None:
        return ABSENT
    form = "{:z.1%}" if percent else "{:z.2f}"
    if estimate.low is None or estimate.high is None:
        return form.format(estimate.value)
    return f"{form.format(estimate.value)} [{form.format(estimate.low)}, {form.format(estimate.high)}]"
