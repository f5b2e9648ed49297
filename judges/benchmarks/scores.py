"""Scores of rated turns, with bootstrap intervals: what MT-Bench-101 and RAD-Bench share."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.schema import Context, Dialog, Record, Turn, Verdict
from judges.llm.task import RatingJudge

DIGITS = 6
# How the explanation of a verdict on an answer that didn't come begins; why it didn't follows, then the server's words.
NO_ANSWER = "no answer"
# Resamples in memory at once.
_BATCH = 1000


class Rated(Record):
    """A turn that a judge rated, or failed to.

    Attributes:
        task: the task or scenario of its dialog.
        item: its dialog.
        turn: its number, from 1.
        score: None if it has none.
        reason: why it has none, a short phrase by which failures are counted.
    """

    task: str
    item: str
    turn: int
    score: float | None
    reason: str = ""

    @classmethod
    def of(cls, verdict: Verdict, task: str, dialog: Dialog, turn: Turn) -> "Rated":
        """Return what a verdict on a turn says."""
        end = "\n" if verdict.explanation.startswith(NO_ANSWER) else ":"
        reason = verdict.explanation.partition(end)[0] if verdict.score is None else ""
        return cls(task=task, item=dialog.id, turn=turn.turn, score=verdict.score, reason=reason)


# The rated turns of models, by the context that each was shown.
Ratings = Mapping[str, Mapping[Context, Sequence[Rated]]]


class Score(Record):
    """A score with its 95% interval by bootstrap over dialogs; rounded to six decimals."""

    score: float | None = Field(description="null: nothing in it has a score.")
    low: float | None = Field(description="null: the interval needs two dialogs of each task.")
    high: float | None


class TurnScore(Record):
    """The mean of `judged` turns with the same number; null if there are none."""

    score: float | None
    judged: int


def rated_turns(dialog: Dialog) -> list[Rated]:
    """Return the turns of a dialog that were rated, each as its last rating says, a panel's median."""
    return [
        Rated.of(rating, dialog.task, dialog, turn)
        for turn in dialog.turns
        for rating in [verdict for verdict in turn.verdicts if verdict.judge == RatingJudge.name][-1:]
    ]


def mean_score(tasks: Sequence[Sequence[Sequence[float | None]]], seed: int | None = 0) -> Score:
    """Return the unweighted mean over tasks.

    A task has a row of values for each dialog: one value, or one for each turn. Its score is the mean over the columns
    of their means over the dialogs. The interval is of 9,999 resamples with replacement of the dialogs of each task.

    Args:
        tasks: None marks a value that is missing; rows without any value, and tasks without such rows, are left out.
        seed: of the resamples; None: no interval.
    """
    scored = ([row for row in task if any(value is not None for value in row)] for task in tasks)
    arrays = [np.array(rows, dtype=np.float64) for rows in scored if rows]
    if not arrays:
        return Score(score=None, low=None, high=None)

    def statistic(*chosen: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        return np.mean([_mean(array[rows]) for array, rows in zip(arrays, chosen, strict=True)], axis=0)

    return bootstrap([np.arange(len(array)) for array in arrays], statistic, seed)


def bootstrap(
    samples: Sequence[NDArray[Any]], statistic: Callable[..., Any], seed: int | None, *, paired: bool = False
) -> Score:
    """Return a statistic of samples, with an interval of 9,999 resamples if each sample has two values at least.

    Args:
        seed: of the resamples; None: no interval.
        paired: resample the values of all samples together.
    """
    from scipy import stats  # slow to import, and most commands score nothing

    low = high = None
    if seed is not None and all(len(sample) > 1 for sample in samples):
        chance = np.random.default_rng(seed)
        ends = stats.bootstrap(
            samples, statistic, paired=paired, batch=_BATCH, method="percentile", rng=chance
        ).confidence_interval
        low, high = round(float(ends.low), DIGITS), round(float(ends.high), DIGITS)
    return Score(score=round(float(statistic(*samples, axis=-1)), DIGITS), low=low, high=high)


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over the last axis of the means over the axis before it; nan is left out of either."""
    with np.errstate(invalid="ignore"):  # a column without values has no mean
        columns = np.nansum(values, axis=-2) / np.sum(~np.isnan(values), axis=-2)
    return np.nanmean(columns, axis=-1)


def score_turns(rated: Iterable[Rated]) -> dict[str, dict[str, TurnScore]]:
    """Return the mean score by task and number of the turn, as in figure 4 of Bai et al. 2024."""
    found: dict[str, dict[str, TurnScore]] = {}
    ordered = sorted(rated, key=lambda turn: (turn.task, turn.turn))
    for (task, number), turns in groupby(ordered, key=lambda turn: (turn.task, turn.turn)):
        scores = [turn.score for turn in turns if turn.score is not None]
        mean = round(float(np.mean(scores)), DIGITS) if scores else None
        found.setdefault(task, {})[str(number)] = TurnScore(score=mean, judged=len(scores))
    return found


def sort_tasks(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """Return names of tasks in the order of a paper's tables; a user's own follow, sorted."""
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def count_reasons(rated: Iterable[Rated]) -> dict[str, int]:
    """Return how many turns have no score, by reason, the most frequent first."""
    return dict(Counter(turn.reason for turn in rated if turn.score is None).most_common())
