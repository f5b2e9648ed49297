"""Several rankings of the same passages made one; on the client, so that no server's licence stands in the way."""

from collections import defaultdict
from collections.abc import Sequence


def fused(rankings: Sequence[Sequence[int]], weights: Sequence[float], constant: float) -> list[tuple[int, float]]:
    """Weighted reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, there without weights).

    Args:
        rankings: rows of passages, each ranking best first and without repetition.
        weights: of each ranking.
        constant: how little the first ranks stand out; 60 in the paper.

    Returns:
        (row, score), best first: the score is the sum of weight / (constant + rank) over the rankings that have the
        row, ranks from 1. Equal scores stand in the order of rows.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, row in enumerate(ranking, start=1):
            scores[row] += weight / (constant + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
