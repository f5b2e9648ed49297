"""Means over questions, and Kendall's tau of two rankings of the same systems, with bootstrap draws of conversations.

Sets are samples by domain; "over all" is the mean of the domains. For `benchmarks.rank_agreement`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

OVERALL = "all"
BOUNDS = (0.025, 0.975)
Matrix = NDArray[np.float64]


class Sample(NamedTuple):
    """The figures of a set on one domain, summed over each conversation.

    Attributes:
        sums: shape (conversations, systems, metrics).
        counts: questions of each conversation, 1 or more.
    """

    sums: Matrix
    counts: NDArray[np.int64]

    def means(self, weights: NDArray[Any]) -> Matrix:
        """Return the means over questions; `weights` has a row for each draw; shape (draws, systems, metrics)."""
        total: Matrix = np.einsum("dc,csm->dsm", weights, self.sums)
        return total / (weights @ self.counts)[:, None, None]


Samples = Mapping[str, Sample]


def overall_means(samples: Samples, weights: Mapping[str, NDArray[Any]]) -> dict[str, Matrix]:
    """Return the means of each domain, and under `OVERALL` the mean of these; see `Sample.means`."""
    means = {domain: of.means(weights[domain]) for domain, of in samples.items()}
    return means | {OVERALL: np.mean(list(means.values()), axis=0)}


def set_means(samples: Samples) -> dict[str, Matrix]:
    """Return the means over all conversations, as one draw; see `overall_means`."""
    return overall_means(samples, {domain: np.ones((1, len(of.counts))) for domain, of in samples.items()})


def resample(samples: Samples, draws: int, rng: np.random.Generator) -> dict[str, Matrix]:
    """Return the means of bootstrap draws of conversations, each domain by itself."""
    sizes = {domain: len(of.counts) for domain, of in samples.items()}
    return overall_means(samples, {d: rng.multinomial(n, np.full(n, 1 / n), draws) for d, n in sizes.items()})


def split_people(
    people: Samples, questions: Mapping[str, int], draws: int, rng: np.random.Generator
) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
    """Return the means of two parts of conversations: drawn ones with so many questions, at most half; all others."""
    parts: dict[str, NDArray[np.bool_]] = {}
    for domain, of in people.items():
        wanted = min(questions[domain], of.counts.sum() // 2)
        orders = rng.permuted(np.tile(np.arange(len(of.counts)), (draws, 1)), axis=1)
        before = np.cumsum(of.counts[orders], axis=1) - of.counts[orders]
        parts[domain] = np.zeros(orders.shape, dtype=np.bool_)
        np.put_along_axis(parts[domain], orders, before < wanted, axis=1)
    others = {domain: ~part for domain, part in parts.items()}
    return overall_means(people, parts), overall_means(people, others)


def taus(one: Matrix, other: Matrix) -> Matrix:
    """Return Kendall's tau-b of the systems for each draw and metric, shape (draws, metrics); NaN if all are equal."""
    return np.array(
        [
            [kendalltau(a[:, metric], b[:, metric]).statistic for metric in range(one.shape[2])]
            for a, b in zip(one, other, strict=True)
        ]
    )


def summarise(taus: Matrix) -> dict[str, Any]:
    """Return the mean of those that exist, and the bounds of 95% of them; None if none does."""
    known = taus[~np.isnan(taus)]
    if not known.size:
        return {"tau": None, "interval": None}
    return {"tau": float(known.mean()), "interval": np.quantile(known, BOUNDS).tolist()}


def compare_people(
    people: Samples, sizes: Sequence[int], metrics: Sequence[str], draws: int, seed: int
) -> list[dict[str, Any]]:
    """Return how far people's questions agree with themselves, for numbers of questions over all domains."""
    rng = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        if any(round(size / len(people)) > of.counts.sum() // 2 for of in people.values()):
            continue  # a domain has too few questions for a half of this size
        parts = split_people(people, dict.fromkeys(people, round(size / len(people))), draws, rng)
        found = taus(*(part[OVERALL] for part in parts))
        each = {metric: summarise(found[:, place]) for place, metric in enumerate(metrics)}
        rows.append({"questions": size, "agreement": each})
    return rows


def compare(
    people: Samples,
    companion: Samples,
    forms: Mapping[str, NDArray[Any]],
    metrics: Sequence[str],
    draws: int,
    seed: int,
) -> list[dict[str, Any]]:
    """Return the agreement by domain over all systems, and over all domains for the systems of each form."""
    people = {domain: people[domain] for domain in companion}
    rng = np.random.default_rng(seed)
    seen = [set_means(people), set_means(companion)]
    drawn = [resample(people, draws, rng), resample(companion, draws, rng)]
    parts = split_people(people, {d: int(of.counts.sum()) for d, of in companion.items()}, draws, rng)
    every = np.sort(np.concatenate(list(forms.values())))
    subsets = [(domain, OVERALL, every) for domain in (OVERALL, *companion)]
    subsets += [(OVERALL, form, systems) for form, systems in forms.items()]
    rows = []
    for domain, form, systems in subsets:
        found, interval, limit = (taus(*(of[domain][:, systems] for of in pair)) for pair in (seen, drawn, parts))
        chosen = list(companion.values()) if domain == OVERALL else [companion[domain]]
        rows.append(
            {
                "domain": domain,
                "form": form,
                "systems": len(systems),
                "conversations": sum(len(of.counts) for of in chosen),
                "questions": sum(int(of.counts.sum()) for of in chosen),
                "agreement": {
                    metric: {
                        "tau": summarise(found[:, place])["tau"],
                        "interval": summarise(interval[:, place])["interval"],
                        "people": summarise(limit[:, place]),
                    }
                    for place, metric in enumerate(metrics)
                },
            }
        )
    return rows
