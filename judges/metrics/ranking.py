"""How well rankings find what is relevant: Recall and nDCG, by trec_eval's own code (pytrec_eval-terrier)."""

from collections.abc import Iterable, Mapping, Sequence

from generator.errors import ConfigError
from generator.schema import Record

CUTS = (1, 3, 5, 10)

# What is relevant to each query, and how much: 1 or more. Rankings as scores of passages: the highest is first.
Relevant = Mapping[str, Mapping[str, int]]
Scores = Mapping[str, Mapping[str, float]]


class Figures(Record):
    """Means over `number` queries.

    Attributes:
        recall: the share of the relevant passages that is among the first 1, 3, 5, 10.
        ndcg: the same, for which early ranks count more (Järvelin and Kekäläinen 2002), with gains as they are.
    """

    number: int
    recall: tuple[float, ...]
    ndcg: tuple[float, ...]


def scores(ranking: Sequence[str]) -> dict[str, float]:
    """Scores that keep the order of a ranking: trec_eval puts equal ones in an order of its own."""
    return {name: 1 / rank for rank, name in enumerate(ranking, start=1)}


def figures(relevant: Relevant, found: Scores) -> dict[str, Figures]:
    """The figures of each query of `relevant`; of one that isn't in `found`, or finds nothing, they are 0.

    Args:
        relevant: each query has a passage of grade 1 or more.

    Raises:
        ConfigError: pytrec_eval-terrier isn't installed.
    """
    try:
        from pytrec_eval import RelevanceEvaluator
    except ImportError as error:
        raise ConfigError(
            f"Recall and nDCG need the package pytrec_eval-terrier ({error}): install the extra 'metrics' (uv sync "
            "--extra metrics), or that package alone"
        ) from error
    cuts = ",".join(map(str, CUTS))
    asked = {query: dict(graded) for query, graded in relevant.items()}
    run = {query: dict(found[query]) for query in asked if found.get(query)}
    measured = RelevanceEvaluator(asked, {f"recall.{cuts}", f"ndcg_cut.{cuts}"}).evaluate(run)

    def of(query: str, measure: str) -> tuple[float, ...]:
        return tuple(measured.get(query, {}).get(f"{measure}_{cut}", 0.0) for cut in CUTS)

    return {query: Figures(number=1, recall=of(query, "recall"), ndcg=of(query, "ndcg_cut")) for query in asked}


def mean(each: Iterable[Figures]) -> Figures | None:
    """The mean of single queries' figures; None if there are none."""
    rows = list(each)
    if not rows:
        return None
    recall, ndcg = (
        tuple(sum(column) / len(rows) for column in zip(*measure, strict=True))
        for measure in ([row.recall for row in rows], [row.ndcg for row in rows])
    )
    return Figures(number=len(rows), recall=recall, ndcg=ndcg)
