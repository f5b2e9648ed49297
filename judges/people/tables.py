"""Show what people found: as Markdown, and on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from generator.common.console import count_noun
from generator.output import markdown
from generator.output.tables import ABSENT, cell, print_table
from judges.people.annotations import Effort
from judges.people.measures import CriterionAgreement, Estimate, JudgeAgreement
from judges.people.report import HumanReport, Line
from taxonomy import Criterion

_PAIRS, _MEAN = "Pairs of annotators", ", mean"
# Columns that a terminal has no room for.
_WIDE = {"most agree", "over", "unjudged", "good", "agreement"}
_TWO = "{:z.2f}"


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
    left = f", {report.left} more of the sample by nobody" if report.left else ""
    return f"{count_noun(report.annotations, 'annotation')} of {count_noun(report.items, 'item')}{left}. {done}."


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
        yield _judges_section(judges, _tell_all(report.judges) if number == len(by_criterion) else "")


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
        goods = [f"{line.cells[name].good * 100:.1f}" if name in line.cells else ABSENT for name in shown]
        numbers = [cell(line.cells[name].mean if name in line.cells else None, _TWO) for name in means]
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
    heads = ["criterion", "items", "equal pairs", "most agree", "Fleiss' kappa", "over", "Krippendorff's α"]
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
            kappa = "" if pair is None or pair.kappa.value is None else f", κ {_TWO.format(pair.kappa.value)}"
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
            cell(each.good, "{:.0%}"),
            _interval(each.percent, True),
            _interval(each.threshold) if each.threshold else "label",
            _interval(each.kappa),
            _tell(each),
        ]
        for each in judges
    ]
    heads = ["judge", "marks", "unjudged", "good", "agreement", "good from", "Cohen's kappa", "told from a coin"]
    return Section(f"Judges against these people, on {judges[0].criterion}", heads, rows, text)


def _tell_all(judges: Sequence[JudgeAgreement]) -> str:
    told, marks = sum(each.tells for each in judges), max(each.marks for each in judges)
    return (
        f"Judges that these marks, {marks} at most of each, tell from a coin: {told} of {len(judges)}. Their interval "
        "of kappa is above 0, and the same verdicts in random order do as well at most once in 40 times."
    )


def _tell(judge: JudgeAgreement) -> str:
    """Return whether the marks tell a judge from a coin, and else about how many would."""
    if not judge.marks:
        return "no: it failed on all"
    if judge.kappa.value is None:
        return "no: people said one thing" if judge.good in (0, 1) else "no: it said one thing"
    more = f": {judge.needed:,} marks would" if judge.needed else ""
    return "yes" if judge.tells else f"no{more}"


def _interval(estimate: Estimate, percent: bool = False) -> str:
    if estimate.value is None:
        return ABSENT
    value = ("{:z.1%}" if percent else _TWO).format(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    low, high = (f"{100 * end:z.1f}" if percent else _TWO.format(end) for end in (estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"
