"""BM25 and vectors searched together, and their rankings fused."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.common.concurrency import Spread
from generator.corpora.library import Library
from generator.retrievers.base import Ranker, Ranking, RetrieverSettings
from generator.retrievers.bm25 import Bm25Settings
from generator.retrievers.dense import DenseSettings
from generator.schema import Split


class FusionSettings(RetrieverSettings):
    rrf_k: float = Field(
        ge=0,
        description="The constant k of reciprocal rank fusion: the smaller, the more the first ranks count (60 in the "
        "paper).",
    )
    depth: int = Field(ge=1, description="Passages that each ranking contributes to the fusion; `k`, if that is more.")


class HybridSettings(Bm25Settings, DenseSettings, FusionSettings):
    """Settings of `Hybrid`: those of both its rankings, and of their fusion."""

    bm25_weight: float = Field(gt=0, description="Weight of BM25's ranking in the fusion; the vectors' weight is 1.")

    def build(self, library: Library, spread: Spread) -> None:
        Bm25Settings.build(self, library, spread)
        DenseSettings.build(self, library, spread)

    def open(self, library: Library, validation: NDArray[np.bool_]) -> Ranker:
        rankers = (Bm25Settings.open(self, library, validation), DenseSettings.open(self, library, validation))
        return Hybrid(library, validation, rankers, (self.bm25_weight, 1), self.rrf_k, self.depth)


class Hybrid(Ranker):
    """Fuses the best `depth` passages (or `k`, if that is more) of each ranker; one that only one finds counts too."""

    def __init__(
        self,
        library: Library,
        validation: NDArray[np.bool_],
        rankers: Sequence[Ranker],
        weights: Sequence[float],
        rrf_k: float,
        depth: int,
    ) -> None:
        super().__init__(library, validation)
        self._rankers, self._weights, self._rrf_k, self._depth = rankers, weights, rrf_k, depth

    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        depth = max(self._depth, k)
        rankings = await asyncio.gather(*(ranker.rank(query, depth, split, within) for ranker in self._rankers))
        return fuse(rankings, self._weights, self._rrf_k)[:k]


def fuse(rankings: Sequence[Ranking], weights: Sequence[float], rrf_k: float) -> Ranking:
    """Fuse rankings by weighted reciprocal rank fusion (Cormack, Clarke and Büttcher 2009, there without weights).

    The score of a row is the sum of weight / (rrf_k + rank) over the rankings that have it, ranks from 1; the scores
    in the rankings don't count. Rows with equal scores are in ascending order.
    """
    scores: defaultdict[int, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, (row, _) in enumerate(ranking, start=1):
            scores[row] += weight / (rrf_k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
