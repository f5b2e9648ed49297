"""Agreement of people with each other, and of judges with people, each with a 95% interval by bootstrap over items.

The measures are those of `statsmodels` and `krippendorff` (extra `agreement`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from generator.errors import ConfigError
from generator.schema import Record
from taxonomy import Criterion

RESAMPLES = 1000
_BATCH = 250  # resamples in memory at once
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
        near: of three ratings of an item or more, on a scale in order, how often all are equal, or all but one that is
            a step off (Katsis et al. 2025, appendix E); None without such items.
        fleiss: Fleiss' kappa over the `fleiss_items` that have the most frequent number of ratings.
        alpha: Krippendorff's, ordinal for a scale in order, else nominal.
    """

    criterion: str
    items: int
    ratings: int
    percent: Estimate
    near: Estimate
    fleiss: Estimate
    fleiss_items: int
    alpha: Estimate
    pairs: tuple[PairAgreement, ...]


class JudgeAgreement(Record):
    """Agreement of a judge with most people on whether a turn is good by a criterion.

    Attributes:
        marks: turns on which most people agreed and that the judge judged; `unjudged` are those that it failed on.
        good: share of the marks that people found good.
        threshold: of a judge with scores, from which on a score counts as good, so that kappa is the highest; None for
            labels.
        percent, kappa: of labels as they are; of scores at the threshold, less what fitting it to these marks flatters
            (the bootstrap's estimate of optimism).
        shuffled: how often the same verdicts in random order, scores each time with the best threshold, have at least
            this kappa: a coin's chance.
        needed: marks that would, if its kappa stays; None if these do, or if none would.
    """

    judge: str
    model: str
    criterion: str
    marks: int
    unjudged: int
    good: float
    threshold: Estimate | None
    percent: Estimate
    kappa: Estimate
    shuffled: float | None
    needed: int | None = None

    @property
    def tells(self) -> bool:
        """Whether the marks tell the judge from a coin."""
        by_chance = self.shuffled is None or self.shuffled > _LEVELS[0]
        return not by_chance and self.kappa.low is not None and self.kappa.low > 0


def majority_of(votes: Sequence[V]) -> V | None:
    """Return the most frequent vote; None if two are equally frequent."""
    (first, count), *others = Counter(votes).most_common(2)
    return None if others and others[0][1] == count else first


def fleiss(rows: Sequence[Sequence[int]]) -> float | None:
    """Return Fleiss' kappa of a category for each item and rater; None without two raters, or with one category.

    Raises:
        ConfigError: statsmodels isn't installed.
    """
    require()
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    if not rows or len(rows[0]) < 2 or len({category for row in rows for category in row}) < 2:
        return None
    return round(float(fleiss_kappa(aggregate_raters(rows)[0])), 4)


def require() -> None:
    """Raise ConfigError if a package of the extra `agreement` is missing."""
    try:
        import krippendorff  # noqa: F401
        import statsmodels  # noqa: F401
    except ImportError as error:
        raise ConfigError(
            f"agreement: a package is missing ({error}); install the extra 'agreement' (uv sync --extra agreement)"
        ) from error


def measure_agreement(votes: Votes, criterion: Criterion, seed: int) -> CriterionAgreement:
    """Return the agreement of people on one criterion.

    Raises:
        ConfigError: a package of the extra `agreement` is missing.
    """
    require()
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
    several = counts[totals > 2] if criterion.ordered and levels > 2 else counts[:0]
    return CriterionAgreement(
        criterion=criterion.name,
        items=len(shared),
        ratings=int(totals.sum()),
        percent=_estimate(counts, percent, seed),
        near=_estimate(_near(several), lambda rows: float(rows.mean()), seed),
        fleiss=_estimate(counts[totals == most], kappa, seed),
        fleiss_items=int((totals == most).sum()),
        alpha=_estimate(counts, alpha, seed),
        pairs=tuple(pairs),
    )


def _near(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return of each item whether all ratings are equal, or all but one that is a step off."""
    if not len(counts):
        return np.zeros(0, dtype=bool)
    total, first = counts.sum(axis=1), counts.argmax(axis=1)
    levels = np.arange(counts.shape[1])
    beside = np.where(abs(levels - first[:, None]) == 1, counts, 0).sum(axis=1)
    top = counts.max(axis=1)
    return (top == total) | ((top == total - 1) & (beside == 1))


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
    people = np.array(good, dtype=bool)
    chance = np.random.default_rng(seed)
    scored = not isinstance(judged[0], bool)
    values = np.array(judged, dtype=float)
    fit = _best_threshold if scored else _as_labelled
    threshold, kappa, share = (found[0] for found in fit(values, people, np.ones((1, len(people)))))
    batches = []
    for _ in range(RESAMPLES // _BATCH):
        weights = chance.multinomial(len(people), [1 / len(people)] * len(people), size=_BATCH).astype(float)
        batches.append((*fit(values, people, weights), weights))
    thresholds, kappas, shares = (np.concatenate([batch[place] for batch in batches]) for place in range(3))
    flattery = shift = np.zeros(2)
    if scored and not np.isnan(kappas).all():  # what a threshold fitted to a resample loses on all marks
        kept = np.array([_kappa(*_cells(values >= each, people, np.ones(len(people)))) for each in thresholds])
        flattery = np.nanmean(np.column_stack([kappas, shares]) - kept, axis=0)
        shift = np.nanmean(np.column_stack([kappas, shares]), axis=0) - [kappa, share]
    orders = chance.permuted(np.tile(people, (RESAMPLES, 1)), axis=1)
    coins = fit(values, orders, np.ones(orders.shape))[1]
    found = _interval(kappa - flattery[0], kappas - shift[0] - flattery[0])
    agreement = JudgeAgreement(
        judge=judge,
        model=model,
        criterion=criterion,
        marks=len(people),
        unjudged=unjudged,
        good=round(float(people.mean()), 4),
        threshold=_interval(threshold, thresholds) if scored else None,
        percent=_interval(share - flattery[1], np.clip(shares - shift[1] - flattery[1], 0, 1)),
        kappa=found,
        shuffled=None if np.isnan(kappa) else round(float((np.nan_to_num(coins) >= kappa - 1e-9).mean()), 4),
    )
    return agreement if agreement.tells else agreement.model_copy(update={"needed": _needed(found, len(people))})


def _needed(kappa: Estimate, marks: int) -> int | None:
    """Return how many marks would tell a judge from a coin: the interval narrows with the root of their number."""
    if kappa.value is None or kappa.low is None or kappa.value <= 0:
        return None
    needed = max(marks + 1, marks * ((kappa.value - kappa.low) / kappa.value) ** 2)
    return int(np.ceil(needed / 10) * 10)


Fit = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _as_labelled(values: NDArray[np.float64], people: NDArray[np.bool_], weights: NDArray[np.float64]) -> Fit:
    """Return no threshold, kappa and agreement of labels, for each row of weights."""
    kappas, shares = _kappa(*_cells(values > 0, people, weights))
    return np.full(len(weights), np.nan), kappas, shares


def _best_threshold(values: NDArray[np.float64], people: NDArray[np.bool_], weights: NDArray[np.float64]) -> Fit:
    """Return the threshold of the highest kappa, with kappa and agreement, for each row of weights."""
    order = np.argsort(-values, kind="stable")
    scores, good, bad = values[order], (weights * people)[:, order], (weights * ~people)[:, order]
    tp, fp = good.cumsum(axis=1), bad.cumsum(axis=1)
    ends = np.flatnonzero(np.append(np.diff(scores) < 0, True))  # a threshold takes all marks with its score
    tp, fp = tp[:, ends], fp[:, ends]
    kappas, shares = _kappa(tp, fp, good.sum(axis=1)[:, None] - tp, bad.sum(axis=1)[:, None] - fp)
    best = np.where(np.isnan(kappas), -np.inf, kappas).argmax(axis=1)
    rows = np.arange(len(weights))
    thresholds = np.where(np.isnan(kappas[rows, best]), np.nan, scores[ends][best])
    return thresholds, kappas[rows, best], shares[rows, best]


def _cells(
    says_good: NDArray[np.bool_], people: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Return the weights of the four cells of the table of judge and people, true positives first."""
    pairs = ((says_good, people), (says_good, ~people), (~says_good, people), (~says_good, ~people))
    return tuple((weights * (one & other)).sum(axis=-1) for one, other in pairs)


def _kappa(
    tp: NDArray[np.float64], fp: NDArray[np.float64], fn: NDArray[np.float64], tn: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Cohen's kappa and the agreement of tables of two by two; NaN where judge and people gave one label."""
    total = tp + fp + fn + tn
    observed = (tp + tn) / total
    expected = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / total**2
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)
    return kappa, observed
