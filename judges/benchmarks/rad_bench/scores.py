"""Scores of RAD-Bench (Kuo et al. 2025, section 4): by scenario, ability and turn, and the tables of them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from pydantic import Field

from generator.output.tables import ABSENT, cell, print_table
from generator.schema import Record
from judges.benchmarks.rad_bench.judgments import FAILED
from judges.benchmarks.scores import DIGITS, Rated, Score, count_reasons, mean_score, score_turns, sort_tasks
from taxonomy import Scenario
from taxonomy.scenarios import QUESTIONS

# The order of the paper's table 2; a user's own scenarios follow.
ORDER = ("academic", "news", "education", "finance", "customer", "travel")
_TWO = "{:.2f}"
# The paper's abbreviations of the abilities.
_SHORT = {"synthesis": "RS", "reasoning": "RR"}

Interval = tuple[float, float] | None


class Averages(Record):
    """A score for each scenario, and their unweighted mean; null: nothing in it has a score."""

    average: float | None
    scenarios: Mapping[str, float | None]


class Intervals(Record):
    """The 95% intervals of averages, by bootstrap over dialogs; null: it needs two dialogs of each scenario."""

    average: Interval
    scenarios: Mapping[str, Interval]


class RadScores(Averages):
    """Scores of a model's answers. A scenario is the unweighted mean of its three turns, each the mean of its dialogs.

    A turn without a score is in no mean.
    """

    as_published: Averages = Field(description="The same with -1 as the score of turns that the judge didn't rate.")
    intervals: Intervals
    turns: Mapping[str, Mapping[str, float | None]] = Field(
        description="By ability and number of the turn: the unweighted mean of the ability's scenarios (figure 3)."
    )
    dialogs: int
    judged: int = Field(description="Turns with a score.")
    unjudged: int
    reasons: Mapping[str, int] = Field(description="Why turns have no score.")


def score_model(rated: Sequence[Rated], scenarios: Mapping[str, Scenario], seed: int = 0) -> RadScores:
    """Return the scores of the rated turns of one model.

    Args:
        scenarios: by name, at least those of the turns.
        seed: of the intervals.
    """
    names = sort_tasks({turn.task for turn in rated}, ORDER)
    found = _average(names, rated, seed)
    reasons = count_reasons(rated)
    published = _average(names, [turn.model_copy(update={"score": turn.score or FAILED}) for turn in rated])
    turns = score_turns(rated)
    abilities = dict.fromkeys(scenarios[name].ability for name in names)
    by_ability: dict[str, dict[str, float | None]] = {}
    for ability in abilities:
        of = [turns[name] for name in names if scenarios[name].ability == ability]
        for number in sorted({number for each in of for number in each}):
            means = [each[number].score for each in of if number in each]
            scored = [mean for mean in means if mean is not None]
            mean = round(fmean(scored), DIGITS) if scored else None
            by_ability.setdefault(ability, {})[number] = mean
    return RadScores(
        **_numbers(found),
        as_published=Averages(**_numbers(published)),
        intervals=Intervals(
            average=_interval(found[""]), scenarios={name: _interval(score) for name, score in found.items() if name}
        ),
        turns=by_ability,
        dialogs=len({turn.item for turn in rated}),
        judged=len(rated) - sum(reasons.values()),
        unjudged=sum(reasons.values()),
        reasons=reasons,
    )


def _average(names: Sequence[str], rated: Sequence[Rated], seed: int | None = None) -> dict[str, Score]:
    """Return the score of each scenario by name, and of all under the empty name."""
    rows: dict[str, dict[str, list[float | None]]] = {name: {} for name in names}
    for turn in rated:
        rows[turn.task].setdefault(turn.item, [None] * QUESTIONS)[turn.turn - 1] = turn.score
    dialogs = {name: list(found.values()) for name, found in rows.items()}
    return {"": mean_score(list(dialogs.values()), seed), **{name: mean_score([dialogs[name]], seed) for name in names}}


def _numbers(scores: Mapping[str, Score]) -> dict[str, Any]:
    named = {name: score.score for name, score in scores.items()}
    return {"average": named.pop(""), "scenarios": named}


def _interval(score: Score) -> Interval:
    return None if score.low is None or score.high is None else (score.low, score.high)


def print_scores(models: Mapping[str, RadScores], scenarios: Mapping[str, Scenario]) -> None:
    """Print the tables: models by scenario (table 2), the best first, and by turn and ability (figure 3)."""
    names = sort_tasks({name for scores in models.values() for name in scores.scenarios}, ORDER)
    ranked = sorted(models.items(), key=lambda pair: pair[1].average or 0, reverse=True)
    heads = ["average", "95% interval", "as published", "unjudged"]
    rows = []
    for model, scores in ranked:
        low_high = scores.intervals.average
        interval = f"{low_high[0]:.2f}{ABSENT}{low_high[1]:.2f}" if low_high else ABSENT
        published = cell(scores.as_published.average, _TWO)
        rows.append([model, cell(scores.average, _TWO), interval, published, str(scores.unjudged)])
    print_table(rows, ["", *heads], right=heads)
    print()
    rows = [[model, *(cell(scores.scenarios.get(name), _TWO) for name in names)] for model, scores in ranked]
    print_table(rows, ["", *names], right=names)
    print()
    abilities = dict.fromkeys(scenarios[name].ability for name in names)
    columns = [(ability, n) for ability in abilities for n in map(str, range(1, QUESTIONS + 1))]
    heads = [f"{_SHORT[ability]} {n}" for ability, n in columns]
    rows = [[model, *(cell(scores.turns.get(a, {}).get(n), _TWO) for a, n in columns)] for model, scores in ranked]
    print_table(rows, ["", *heads], right=heads)
