"""Recall and nDCG of rankings, by trec_eval's own code (pytrec_eval-terrier)."""

from collections.abc import Iterable, Mapping, Sequence

from generator.errors import ConfigError
from generator.schema import Record

CUTS = (1, 3, 5, 10)

# The grades of each query's relevant passages, 1 or more. Rankings as scores of passages: the highest is first.
Relevant = Mapping[str, Mapping[str, int]]
Scores = Mapping[str, Mapping[str, float]]


class Figures(Record):
    """Means over `number` queries.

    Attributes:
        recall: the share of the relevant passages that are among the first 1, 3, 5, 10.
        ndcg: at 1, 3, 5, 10, with the grades as gains (Järvelin and Kekäläinen 2002).
    """

    number: int
    recall: tuple[float, ...]
    ndcg: tuple[float, ...]


def to_scores(ranking: Sequence[str]) -> dict[str, float]:
    """Return scores that keep the order of a ranking; trec_eval would reorder equal ones."""
    return {name: 1 / rank for rank, name in enumerate(ranking, start=1)}


def measure(relevant: Relevant, found: Scores) -> dict[str, Figures]:
    """Return the figures of each query of `relevant`; they are 0 for one without a ranking in `found`.

    Raises:
        ConfigError: pytrec_eval-terrier isn't installed.
    """
    try:
        from pytrec_eval import RelevanceEvaluator
    except ImportError as error:
        raise ConfigError(
            f"Recall and nDCG: the package pytrec_eval-terrier is missing ({error}); install the extra 'metrics' (uv "
            "sync --inexact --extra metrics), or that package alone"
        ) from error
    cuts = ",".join(map(str, CUTS))
    qrels = {query: dict(graded) for query, graded in relevant.items()}
    run = {query: dict(found[query]) for query in qrels if found.get(query)}
    measured = RelevanceEvaluator(qrels, {f"recall.{cuts}", f"ndcg_cut.{cuts}"}).evaluate(run)

    def of(query: str, measure: str) -> tuple[float, ...]:
        return tuple(measured.get(query, {}).get(f"{measure}_{cut}", 0.0) for cut in CUTS)

    return {query: Figures(number=1, recall=of(query, "recall"), ndcg=of(query, "ndcg_cut")) for query in qrels}


def mean(each: Iterable[Figures]) -> Figures | None:
    """Return the mean of single queries' figures; None if there are none."""
    rows = list(each)
    if not rows:
        return None
    recall, ndcg = (
        tuple(sum(column) / len(rows) for column in zip(*measure, strict=True))
        for measure in ([row.recall for row in rows], [row.ndcg for row in rows])
    )
    return Figures(number=len(rows), recall=recall, ndcg=ndcg)
