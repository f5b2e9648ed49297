"""Agreement of people with each other, and of judges with people, each with a 95% interval by bootstrap over items.

The measures are those of `statsmodels` and `krippendorff` (extra `agreement`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from generator.errors import ConfigError
from generator.schema import Record
from taxonomy import Criterion

RESAMPLES = 1000
_LEVELS = (0.025, 0.975)
# The places on a criterion's scale that people chose: item to annotator to place.
Votes = Mapping[str, Mapping[str, int]]
V = TypeVar("V")


class Estimate(Record):
    """A figure with its 95% interval; None if it can't be computed, or if the resamples have none."""

    value: float | None
    low: float | None = None
    high: float | None = None


class PairAgreement(Record):
    """Agreement of two annotators on the `items` that both judged (Lee et al. 2024, table 2), with Cohen's kappa."""

    one: str
    other: str
    items: int
    agreed: int
    kappa: Estimate


class CriterionAgreement(Record):
    """Agreement on one criterion, over the items that two annotators or more judged.

    Attributes:
        ratings: of these items.
        percent: share of the pairs of ratings of an item that are equal.
        majority: of the items with three ratings or more, how many have one that most gave; None without such items.
            InspectorRAGet counts agreement so, which Katsis et al. 2025, section 7, report (docs/human.md).
        fleiss: Fleiss' kappa over the `fleiss_items` that have the most frequent number of ratings.
        alpha: Krippendorff's, ordinal for a scale in order, else nominal.
    """

    criterion: str
    items: int
    ratings: int
    percent: Estimate
    majority: Estimate
    fleiss: Estimate
    fleiss_items: int
    alpha: Estimate
    pairs: tuple[PairAgreement, ...]


class JudgeAgreement(Record):
    """Agreement of a judge with most people on whether a turn is good by a criterion.

    Attributes:
        marks: turns on which most people agreed and that the judge judged; `unjudged` are those that it failed on.
        good: share of the marks that people found good; None if the judge failed on all turns.
        threshold: of a judge with scores, from which on a score counts as good, so that kappa is the highest; None for
            labels.
        percent, kappa: of labels as they are; of scores at the threshold, less what fitting it to these marks flatters
            (the bootstrap's estimate of optimism).
        shuffled: how often the same verdicts in random order, scores each time with the best threshold, have at least
            this kappa: a coin's chance.
        needed: how many marks would tell it from a coin at the same kappa; None if these do, or if no number would.
    """

    judge: str
    model: str
    criterion: str
    marks: int
    unjudged: int
    good: float | None = None
    threshold: Estimate | None = None
    percent: Estimate = Estimate(value=None)
    kappa: Estimate = Estimate(value=None)
    shuffled: float | None = None
    needed: int | None = None

    @property
    def tells(self) -> bool:
        """Return whether the marks tell the judge from a coin."""
        by_chance = self.shuffled is None or self.shuffled > _LEVELS[0]
        return not by_chance and self.kappa.low is not None and self.kappa.low > 0


def majority_of(votes: Sequence[V]) -> V | None:
    """Return the most frequent vote; None if two are equally frequent."""
    (first, count), *others = Counter(votes).most_common(2)
    return None if others and others[0][1] == count else first


def pair_agreement(votes: Iterable[Sequence[object]]) -> float | None:
    """Return the chance that two raters of an item agree, the mean over items; None if no item has two."""
    shares = [fmean(one == other for one, other in combinations(each, 2)) for each in votes if len(each) > 1]
    return round(fmean(shares), 4) if shares else None


def fleiss(rows: Sequence[Sequence[int]]) -> float | None:
    """Return Fleiss' kappa of a category for each item and rater; None without two raters, or with one category.

    Raises:
        ConfigError: statsmodels isn't installed.
    """
    if not rows or len(rows[0]) < 2 or len({category for row in rows for category in row}) < 2:
        return None
    require()
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    return round(float(fleiss_kappa(aggregate_raters(rows)[0])), 4)


def require() -> None:
    """Raise ConfigError if a package of the extra `agreement` is missing."""
    try:
        import krippendorff  # noqa: F401
        import statsmodels  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"agreement: a package is missing ({error}); install the extra 'agreement' (uv sync --inexact --extra "
            "agreement)"
        ) from error


def measure_agreement(votes: Votes, criterion: Criterion, seed: int) -> CriterionAgreement:
    """Return the agreement of people on one criterion; needs the packages that `require` looks for."""
    import krippendorff
    from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

    shared = [by for by in votes.values() if len(by) > 1]
    levels = len(criterion.values)
    counts = np.array([np.bincount(list(by.values()), minlength=levels) for by in shared]).reshape(-1, levels)
    totals = counts.sum(axis=1)
    most = Counter(totals.tolist()).most_common(1)[0][0] if shared else 0
    level: Literal["ordinal", "nominal"] = "ordinal" if criterion.ordered and levels > 2 else "nominal"

    def percent(rows: NDArray[np.int64]) -> float:
        of = rows.sum(axis=1)
        return float((rows * (rows - 1)).sum() / (of * (of - 1)).sum())

    def alpha(rows: NDArray[np.int64]) -> float:
        used = rows.any(axis=0)
        if used.sum() < 2:
            return float("nan")
        domain = np.arange(levels)[used]
        return float(krippendorff.alpha(value_counts=rows[:, used], value_domain=domain, level_of_measurement=level))

    def kappa(rows: NDArray[np.int64]) -> float:
        return float(fleiss_kappa(rows)) if rows.any(axis=0).sum() > 1 else float("nan")

    def cohen(rows: NDArray[np.int64]) -> float:
        table = np.bincount(rows[:, 0] * levels + rows[:, 1], minlength=levels**2).reshape(levels, levels)
        alone = len(np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))) < 2
        return float("nan") if alone else float(cohens_kappa(table, return_results=False))

    pairs = []
    for one, other in combinations(sorted({name for by in shared for name in by}), 2):
        both = np.array([(by[one], by[other]) for by in shared if one in by and other in by])
        if len(both):
            agreed = int((both[:, 0] == both[:, 1]).sum())
            pairs.append(
                PairAgreement(one=one, other=other, items=len(both), agreed=agreed, kappa=_estimate(both, cohen, seed))
            )
    most_equal = (2 * counts.max(axis=1, initial=0) > totals)[totals > 2]
    return CriterionAgreement(
        criterion=criterion.name,
        items=len(shared),
        ratings=int(totals.sum()),
        percent=_estimate(counts, percent, seed),
        majority=_estimate(most_equal, lambda rows: float(rows.mean()), seed),
        fleiss=_estimate(counts[totals == most], kappa, seed),
        fleiss_items=int((totals == most).sum()),
        alpha=_estimate(counts, alpha, seed),
        pairs=tuple(pairs),
    )


def _estimate(rows: NDArray[Any], measure: Callable[[NDArray[Any]], float], seed: int) -> Estimate:
    """Return a measure of the rows, an item each, with its interval by resampling them."""
    if not len(rows):
        return Estimate(value=None)
    chance = np.random.default_rng(seed)
    resampled = [measure(rows[chance.integers(len(rows), size=len(rows))]) for _ in range(RESAMPLES)]
    return _interval(measure(rows), np.array(resampled))


def _interval(value: float, resampled: NDArray[np.float64]) -> Estimate:
    known = resampled[~np.isnan(resampled)]
    if np.isnan(value):
        return Estimate(value=None)
    low, high = np.quantile(known, _LEVELS) if len(known) > 1 else (np.nan, np.nan)
    return Estimate(value=_digits(value), low=_digits(low), high=_digits(high))


def _digits(number: float) -> float | None:
    return None if np.isnan(number) else round(float(number), 4) + 0.0  # no minus zero


def measure_judge(
    judge: str,
    model: str,
    criterion: str,
    good: Sequence[bool],
    judged: Sequence[float | bool],
    unjudged: int,
    seed: int,
) -> JudgeAgreement:
    """Return the agreement of a judge with people on at least one mark.

    Args:
        good: whether most people found a turn good, by mark.
        judged: whether the judge did; or its scores, as numbers, of which the best threshold is looked for.
    """
    people, values, marks = np.array(good, dtype=bool), np.array(judged, dtype=float), len(good)
    chance, scored, even = np.random.default_rng(seed), not isinstance(judged[0], bool), np.ones((RESAMPLES, marks))
    order = np.argsort(-values, kind="stable")
    values, people = values[order], people[order]
    # A threshold takes all marks with its score; of labels there is one.
    cuts = np.append(np.flatnonzero(np.diff(values)) + 1, marks) if scored else np.array([int(values.sum())])
    at_once = _by_cut(people, even[:1], cuts)
    drawn = _by_cut(people, chance.multinomial(marks, even[0] / marks, size=RESAMPLES).astype(float), cuts)
    coins = _by_cut(chance.permuted(np.tile(people, (RESAMPLES, 1)), axis=1), even, cuts)
    best, every = _best(at_once)[0], np.arange(RESAMPLES)
    value, resampled, bests = at_once[:, 0, best], drawn[:, every, _best(drawn)], _best(drawn)
    flattery = np.zeros(2)
    if scored and not np.isnan(resampled[0]).all():  # what a threshold fitted to a resample loses on all marks
        flattery = np.nanmean(resampled - at_once[:, 0, bests], axis=1)
        resampled = resampled - (np.nanmean(resampled, axis=1) - value)[:, None]
    kappa, share = np.clip(value - flattery, (-1, 0), 1)
    kappas, shares = resampled - flattery[:, None]
    limits = values[cuts - 1]
    thresholds = np.where(np.isnan(drawn[0, every, bests]), np.nan, limits[bests])
    by_chance = np.nan_to_num(coins[0, every, _best(coins)]) >= value[0] - 1e-9
    found = _interval(kappa, np.clip(kappas, -1, 1))
    agreement = JudgeAgreement(
        judge=judge,
        model=model,
        criterion=criterion,
        marks=marks,
        unjudged=unjudged,
        good=round(float(people.mean()), 4),
        threshold=_interval(np.nan if np.isnan(kappa) else limits[best], thresholds) if scored else None,
        percent=_interval(share, np.clip(shares, 0, 1)),
        kappa=found,
        shuffled=None if np.isnan(kappa) else round(float(by_chance.mean()), 4),
    )
    return agreement if agreement.tells else agreement.model_copy(update={"needed": _count_needed(found, marks)})


def _count_needed(kappa: Estimate, marks: int) -> int | None:
    """Return how many marks would tell a judge from a coin: the interval narrows with the root of their number."""
    if kappa.value is None or kappa.low is None or kappa.value <= 0:
        return None
    needed = max(marks + 1, marks * ((kappa.value - kappa.low) / kappa.value) ** 2)
    return int(np.ceil(needed / 10) * 10)


def _by_cut(people: NDArray[np.bool_], weights: NDArray[np.float64], cuts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Cohen's kappa and agreement where a judge finds the marks before a cut good; shape (2, rows, cuts).

    Kappa is NaN where judge and people gave one label.

    Args:
        people: whether they found each mark good, by the judge's score, the highest first; for each row or for all.
        weights: of the marks, shape (rows, marks).
    """
    good, bad = ((weights * of).cumsum(axis=1) for of in (people, ~people))
    goods, bads = good[:, -1:], bad[:, -1:]
    tp, fp = (np.pad(of, ((0, 0), (1, 0)))[:, cuts] for of in (good, bad))
    total = goods + bads
    observed = (tp + bads - fp) / total
    expected = ((tp + fp) * goods + (total - tp - fp) * bads) / total**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([np.where(expected < 1, (observed - expected) / (1 - expected), np.nan), observed])


def _best(figures: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cut with the highest kappa, for each row."""
    return np.where(np.isnan(figures[0]), -np.inf, figures[0]).argmax(axis=1)
