"""The charts and tables of a report's overview, from counted sets of dialogs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from markupsafe import Markup

from generator.common.scripts import count_words
from generator.dialogs.columns import PERSON, is_person, label_order
from generator.output.html.charts import bars, columns, stacks
from generator.output.html.sources import ReportSet, RunCounts
from generator.output.stats.comparison import Column, share_of
from generator.output.stats.statistics import Portion, Statistics
from generator.output.summary import Counts, by_frequency
from generator.output.tables import ABSENT
from generator.schema import Dialog, Usage

_SHARE = "{:.1%}".format
_BINS = 9
# Title, how turns are counted, and the stage of the planned shares (`DialogSet.targets`), if any are planned.
_SHARES: Sequence[tuple[str, Callable[[Statistics], Sequence[Portion]], str]] = (
    ("Question types, first turns", lambda s: s.first_types, "first"),
    ("Question types, later turns", lambda s: s.later_types, "later"),
    ("Multi-turn types, later turns", lambda s: s.multi_turn_types, "multi_turn"),
    ("Standalone, later turns", lambda s: s.standalone, "standalone"),
    ("Answerability, all turns", lambda s: s.answerability, "answerability"),
    ("Users, all dialogs", lambda s: s.users, ""),
    ("Difficulty of finding the evidence", lambda s: s.difficulty, ""),
)


class Figure(NamedTuple):
    """A chart, and the table below it: its head and rows."""

    title: str
    chart: Markup
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    text: str = ""


class Distributions:
    """Counts dialogs by length, and collects what they were made of and by whom, which a blind sample doesn't say."""

    def __init__(self) -> None:
        titles = "Turns a dialog", "Unique passages a dialog", "Words of a question", "Words of an answer"
        self.lengths = {title: Counter[int]() for title in titles}
        self.origin: dict[str, dict[str, None]] = {"corpus": {}, "written by": {}, "judged by": {}}

    def add(self, dialog: Dialog) -> None:
        turns, passages, questions, answers = self.lengths.values()
        turns[len(dialog.turns)] += 1
        passages[len({hit.passage_id for t in dialog.turns for hit in t.hits} | {p.id for p in dialog.passages})] += 1
        for turn in dialog.own_turns:
            questions[count_words(turn.query)] += 1
            if turn.answer:  # some of RAD-Bench's have no reference
                answers[count_words(turn.answer)] += 1
        if dialog.lm:
            judges = (v for turn in dialog.own_turns for v in turn.verdicts if not is_person(v))
            named = (f"{v.judge} ({v.model})" if v.model else v.judge for v in judges)
            for found, names in zip(self.origin.values(), ([dialog.corpus], [dialog.lm], named), strict=True):
                found.update(dict.fromkeys(names))


def funnel(runs: Sequence[tuple[str, RunCounts]]) -> Iterator[Figure]:
    """Yield the way from attempted dialogs to accepted ones, and from their pairs to those that are kept.

    Args:
        runs: of which set, at the end of titles, and its counts. The same charts of all of them come one after another.
    """
    for of, counts in runs:
        dialogs = [_Step("attempted", counts.attempted), *_losses(counts.dropped), _Step("accepted", counts.accepted)]
        yield _steps(f"Dialogs, from attempted to accepted{of}", "dialogs", dialogs)
    for of, counts in runs:
        lost = _losses(counts.dropped_pairs)
        pairs = [
            _Step("of accepted dialogs", counts.pairs + sum(step.number for step in lost)),
            *lost,
            _Step("in the dataset", counts.pairs),
        ]
        unjudged = f"unjudged in the dataset: {counts.unjudged_pairs:,}" if counts.unjudged_pairs else ""
        if pairs[0].number:
            yield _steps(f"Pairs, from accepted dialogs to the dataset{of}", "pairs", pairs, unjudged)
    for what, why in (("turns", "each left its dialog shorter than planned"), ("candidates", "another one was chosen")):
        for of, counts in runs:
            if losses := _losses(counts.dropped_turns if what == "turns" else counts.dropped_candidates):
                yield _steps(f"Dropped {what}{of}", what, losses, f"Beside the dialogs above: {why}.")


class _Step(NamedTuple):
    label: str
    number: int
    lost: bool = False


def _losses(dropped: Counts) -> list[_Step]:
    return [_Step(f"− {why}", number, True) for why, number in by_frequency(dropped)]


def _steps(title: str, what: str, steps: Sequence[_Step], text: str = "") -> Figure:
    """Return bars of what is there and what is lost; of more than a dozen kinds of losses the rarest are one bar."""
    drawn = steps
    whole = sum(step.number for step in steps) if steps[0].lost else steps[0].number
    if len(steps) > 14:
        end = len(steps) if steps[-1].lost else len(steps) - 1
        rest = _Step("− other reasons", sum(step.number for step in steps[11:end]), True)
        drawn = [*steps[:11], rest, *steps[end:]]
    left, lost = ([n if gone == is_lost else None for _, n, is_lost in drawn] for gone in (False, True))
    labels = [step.label for step in drawn]
    return Figure(
        title,
        stacks(title, labels, {"remaining": left, "dropped": lost}, lambda n: f"{n:,.0f}" if n else "", values=True),
        (what, "number", "share"),
        [(label, f"{n:,}", _SHARE(n / whole) if whole else ABSENT) for label, n, _ in steps],
        text,
    )


def shares(sets: Sequence[ReportSet], counted: Sequence[Column]) -> Iterator[Figure]:
    """Yield the achieved shares of types and the planned ones, of all sets beside each other."""
    for title, portions_of, stage in _SHARES:
        portions_all = [portions_of(column.statistics) for column in counted]
        planned = [{name: share for (at, name), share in each.targets.items() if at == stage} for each in sets]
        names = list(dict.fromkeys(name for each in planned for name in each))
        names += sorted({p.name for portions in portions_all for p in portions}.difference(names), key=label_order)
        if len(names) < 2 and not any(planned):
            continue
        if (
            stage == "multi_turn"
            and not any(planned)
            and all(c.statistics.later_types == p for c, p in zip(counted, portions_all, strict=True))
        ):
            continue  # where turns have question types alone, they are these
        series: dict[str, list[float | None]] = {}
        drawn: dict[str, list[float | None]] = {}  # of several sets not the targets, so that each set has one colour
        for each, portions, targets in zip(sets, portions_all, planned, strict=True):
            label = "achieved" if len(sets) == 1 else each.name
            drawn[label] = series[label] = [share_of(portions, name) for name in names]
            if targets:
                series["target" if len(sets) == 1 else f"{each.name}, target"] = [targets.get(n) for n in names]
        chart = bars(title, names, series if len(sets) == 1 else drawn, _SHARE)
        yield Figure(title, chart, ("", *series), _table(names, series, _SHARE))


def lengths(names: Sequence[str], counted: Sequence[Distributions]) -> Iterator[Figure]:
    """Yield the distributions of lengths, in shares of dialogs or turns."""
    for title in counted[0].lengths:
        found = [each.lengths[title] for each in counted]
        if not any(found):
            continue
        most = max(max(each, default=0) for each in found)
        least = min(min(each, default=most) for each in found)
        width = next(w for e in range(9) for w in (10**e, 2 * 10**e, 5 * 10**e) if ceil((most - least + 1) / w) < _BINS)
        places = range(least // width, most // width + 1)
        ends = [(max(p * width, least), min((p + 1) * width - 1, most)) for p in places]
        labels = [str(low) if low == high else f"{low}–{high}" for low, high in ends]
        series: dict[str, list[float | None]] = {}
        for name, counts in zip(names, found, strict=True):
            total = counts.total() or 1
            series[name] = [
                sum(n for value, n in counts.items() if value // width == place) / total for place in places
            ]
        mean = [sum(v * n for v, n in each.items()) / (each.total() or 1) for each in found]
        chart = columns(title, labels, series, "{:.0%}".format)
        said = f"mean {_of_each(names, [f'{m:,.1f}' for m in mean])}"
        yield Figure(title, chart, ("", *series), _table(labels, series, _SHARE), said)


def verdicts(names: Sequence[str], counted: Sequence[Column]) -> Iterator[Figure]:
    """Yield the labels that each judge gave, in shares of the turns it judged.

    Judges that only score are left out, as are people who judged beside others: the table of all figures has them.
    """
    of_sets = [column.statistics.judges for column in counted]
    every = dict.fromkeys(judge for judges in of_sets for judge in judges)
    for judge in every:
        found = [judges.get(judge, ()) for judges in of_sets]
        labels = sorted({portion.name for portions in found for portion in portions})
        person, _, criterion = judge.removeprefix(PERSON).partition(":")
        together = f"{PERSON}all:{criterion}".removesuffix(":")
        if labels == ["scored"] or (judge.startswith(PERSON) and person != "all" and together in every):
            continue
        series: dict[str, list[float | None]] = {
            name: [share_of(portions, label) for label in labels] for name, portions in zip(names, found, strict=True)
        }
        title = f"Verdicts of {judge}"
        number = _of_each(names, [f"{sum(portion.count for portion in portions):,}" for portions in found])
        yield Figure(title, bars(title, labels, series, _SHARE), text=f"turns judged: {number}")


def costs(of: str, counts: RunCounts) -> Iterator[Figure]:
    """Yield calls and tokens by stage, and what a kept pair took; `of` the set, at the end of the title."""
    if not counts.stages:
        return
    rows = []
    for stage, usage in (*counts.stages.items(), ("all", sum(counts.stages.values(), Usage()))):
        cost = counts.pair_cost.get(stage)
        pair = (f"{cost.calls:,.2f}", f"{cost.computed:,.0f}", f"{cost.completion:,.0f}") if cost else (ABSENT,) * 3
        cached = _SHARE(usage.cached / usage.prompt) if usage.prompt else ABSENT
        rows.append((stage, f"{usage.calls:,}", f"{usage.prompt:,}", cached, f"{usage.completion:,}", *pair))
    parts: dict[str, list[float | None]] = {
        "prompt, computed": [usage.prompt - usage.cached for usage in counts.stages.values()],
        "prompt, cached": [usage.cached for usage in counts.stages.values()],
        "completion": [usage.completion for usage in counts.stages.values()],
    }
    head = ("stage", "calls", "prompt tokens", "cached", "completion tokens")
    of_pair = ("calls a pair", "computed prompt tokens a pair", "completion tokens a pair")
    title = f"Tokens by stage{of}"
    yield Figure(title, stacks(title, list(counts.stages), parts, _compact), head + of_pair, rows)


def _of_each(names: Sequence[str], figures: Sequence[str]) -> str:
    """Return a figure of each set, with its name if there are several."""
    return ", ".join(f"{n} ({name})" if len(names) > 1 else n for name, n in zip(names, figures, strict=True))


def _compact(number: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:,.4g}{unit}"
    return f"{number:,.0f}"


def _table(
    names: Iterable[str], series: Mapping[str, Sequence[float | None]], form: Callable[[float], str]
) -> list[Sequence[str]]:
    cells = zip(*series.values(), strict=True)
    return [
        (name, *(ABSENT if v is None else form(v) for v in values)) for name, values in zip(names, cells, strict=True)
    ]
