"""BM25 and vectors asked together, and their rankings fused here."""

import asyncio

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.common.concurrency import Spread
from generator.corpora.library import Library
from generator.retrievers import bm25, dense
from generator.retrievers.base import Ranker
from generator.retrievers.bm25 import Bm25
from generator.retrievers.dense import Dense, EncodedSettings
from generator.retrievers.encoder import Encoder
from generator.retrievers.fusion import fused
from generator.schema import Split


class HybridSettings(EncodedSettings):
    """Settings of `Hybrid`.

    Attributes:
        bm25_weight: of BM25's ranking; that by vectors has 1.
        constant: how little the first ranks stand out; see `generator.retrievers.fusion`.
        depth: passages that each part gives, at least `k`.
        k1, b: as in `generator.retrievers.bm25`.
    """

    bm25_weight: float = Field(gt=0)
    constant: float = Field(ge=0)
    depth: int = Field(ge=1)
    k1: float = Field(gt=0)
    b: float = Field(ge=0, le=1)

    def build(self, library: Library, spread: Spread) -> None:
        bm25.index_folder(library, self.k1, self.b, spread)
        dense.index_folder(library, Encoder(self.model), self.window, self.window_overlap, spread)

    def open(self, library: Library, validation: NDArray[np.bool_]) -> "Hybrid":
        return Hybrid(
            library,
            validation,
            (
                Bm25(library, validation, self.k1, self.b),
                Dense(library, validation, self.model, self.window, self.window_overlap),
            ),
            (self.bm25_weight, 1),
            self.constant,
            self.depth,
        )


class Hybrid(Ranker):
    """Fuses the best `depth` passages (or `k`, if that is more) of each part; one that a part doesn't find may still be
    found by another. The score is that of weighted reciprocal rank fusion.
    """

    def __init__(
        self,
        library: Library,
        validation: NDArray[np.bool_],
        parts: tuple[Ranker, ...],
        weights: tuple[float, ...],
        constant: float,
        depth: int,
    ) -> None:
        super().__init__(library, validation)
        self._parts, self._weights, self._constant, self._depth = parts, weights, constant, depth

    async def ranked(self, query: str, k: int, split: Split) -> list[tuple[int, float]]:
        """The rows of the best `k` passages of `split` with their scores, equal ones in the order of the corpus."""
        depth = max(self._depth, k)
        rankings = await asyncio.gather(*(part.ranked(query, depth, split) for part in self._parts))
        return fused([[row for row, _ in ranking] for ranking in rankings], self._weights, self._constant)[:k]
