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
        return Hybrid(library, validation, self)


class Hybrid(Ranker):
    """Fuses the best `depth` passages (or `k`, if that is more) of both rankings; one that only one has counts, too."""

    def __init__(self, library: Library, validation: NDArray[np.bool_], settings: HybridSettings) -> None:
        super().__init__(library, validation)
        self._settings = settings
        self._rankers = [kind.open(settings, library, validation) for kind in (Bm25Settings, DenseSettings)]

    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        depth = max(self._settings.depth, k)
        rankings = await asyncio.gather(*(ranker.rank(query, depth, split, within) for ranker in self._rankers))
        return fuse(rankings, (self._settings.bm25_weight, 1), self._settings.rrf_k)[:k]


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
