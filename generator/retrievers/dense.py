"""Dense retrieval: the vectors of a sentence encoder, compared exactly with every query, in the process."""

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from generator.common.concurrency import Spread, one_by_one
from generator.common.console import paced
from generator.corpora.library import Library, as_retriever_error, built_once
from generator.retrievers.base import Ranker, Ranking, divide
from generator.retrievers.batching import Batcher
from generator.retrievers.encoder import Encoder, EncoderSettings
from generator.schema import Split

# Passages that are encoded and written together: the most that an interrupted build loses.
CHUNK = 256
# Passages that are compared at a time: with three windows each, 38 MB of 384 dimensions.
BLOCK = 8192
# Queries in a batch, at most.
QUERIES = 64
# More than the error of a product of unit vectors in single precision (384 · 2⁻²⁴, twice).
MARGIN = 1e-4


class DenseSettings(EncoderSettings):
    def build(self, library: Library, spread: Spread) -> None:
        build_index(library, self.load(), self, spread)

    def open(self, library: Library, validation: NDArray[np.bool_]) -> Ranker:
        return Dense(library, validation, self)


class Dense(Ranker):
    """Compares a query with every passage: exact, and fast enough for some millions of vectors.

    An encoder truncates texts after a few hundred tokens, so a passage is encoded in windows, each after the title. The
    score of a passage is the mean of two cosines: its first window's, which tells what it is about, and its best
    window's. The vectors are stored beside the passages, computed once, and memory-mapped. An interrupted build
    continues where it stopped.

    The scores of a query are the same, to the last bit, whatever other queries are in its batch.
    """

    def __init__(self, library: Library, validation: NDArray[np.bool_], settings: EncoderSettings) -> None:
        super().__init__(library, validation)
        self._encoder = settings.load()
        folder = build_index(library, self._encoder, settings, one_by_one)
        with as_retriever_error(folder):
            # Of each passage the number of its first vector; then the number of all vectors.
            self._firsts: NDArray[np.int64] = np.load(folder / "firsts.npy")
            shape = (int(self._firsts[-1]), self._encoder.dimensions)
            self._vectors = np.memmap(folder / "vectors.f32", np.float32, "r", shape=shape)
        self._batcher = Batcher(self._rank_batch, QUERIES)

    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        return await self._batcher.submit((query, k, self._searched(split, within)))

    def _rank_batch(self, batch: Sequence[tuple[str, int, NDArray[np.bool_]]]) -> list[Ranking]:
        queries = np.stack([self._encoder.encode_query(query) for query, _, _ in batch])
        nearest = [_Nearest(k) for _, k, _ in batch]
        for rows in divide(len(self._firsts) - 1, BLOCK):
            scores = self._scores(queries, rows)
            for candidates, row_scores, (_, _, searched) in zip(nearest, scores, batch, strict=True):
                candidates.add(rows.start, row_scores, searched[rows.start : rows.stop])
        return [
            self._rescore(query, candidates.rows, k)
            for query, candidates, (_, k, _) in zip(queries, nearest, batch, strict=True)
        ]

    def _scores(self, queries: NDArray[np.float32], rows: range) -> NDArray[np.float32]:
        """Return the score of each query and passage in single precision; shape (queries, rows)."""
        first, end = int(self._firsts[rows.start]), int(self._firsts[rows.stop])
        scores: NDArray[np.float32] = queries @ self._vectors[first:end].T
        starts = self._firsts[rows.start : rows.stop] - first
        return (scores[:, starts] + np.maximum.reduceat(scores, starts, axis=1)) / 2

    def _rescore(self, query: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> Ranking:
        """Return the best `k` of some rows, by scores that don't depend on the other rows."""
        scores = []
        for row in rows:
            vectors = self._vectors[self._firsts[row] : self._firsts[row + 1]]
            cosines = (vectors * query.astype(np.float64)).sum(axis=1)
            scores.append(float(cosines[0] + cosines.max()) / 2)
        return sorted(zip(rows.tolist(), scores, strict=True), key=lambda item: (-item[1], item[0]))[:k]


class _Nearest:
    """The `k` best of the rows that were added, and those that are worse by less than a rounding error."""

    def __init__(self, k: int) -> None:
        self._k, self._least = k, -np.inf
        self.rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._scores: NDArray[np.float32] = np.empty(0, np.float32)

    def add(self, start: int, scores: NDArray[np.float32], allowed: NDArray[np.bool_]) -> None:
        """Add the rows from `start` on that are good enough and allowed."""
        new = np.flatnonzero((scores > self._least) & allowed)
        self.rows = np.concatenate([self.rows, new + start])
        self._scores = np.concatenate([self._scores, scores[new]])
        if len(self.rows) > self._k:
            self._least = float(np.partition(self._scores, -self._k)[-self._k]) - MARGIN
            good = self._scores > self._least
            self.rows, self._scores = self.rows[good], self._scores[good]


def build_index(library: Library, encoder: Encoder, settings: EncoderSettings, spread: Spread) -> Path:
    """Return the folder of the vectors, computing them unless they exist."""
    parts = (encoder.identity(), settings.window, settings.window_overlap, encoder.passage_prefix)
    identity = " ".join(str(part) for part in parts if part != "")
    name = f"dense-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"

    def build(folder: Path) -> None:
        # Beside the folder, which is emptied when a build starts. Of an interrupted build, whole chunks count.
        partial_file = library.folder / f"{name}.part"
        settings.note_unread(library, encoder)
        counts = (len(settings.windows(passage)) for passage in library.passages())
        firsts = np.cumsum([0, *counts], dtype=np.int64)
        chunks, tell = divide(library.passage_count, CHUNK), paced()
        ends = [int(firsts[rows.stop]) * encoder.dimensions * 4 for rows in chunks]
        done = bisect_right(ends, partial_file.stat().st_size) if partial_file.exists() else 0
        with partial_file.open("ab") as file:
            file.truncate(ends[done - 1] if done else 0)
            encoded = spread(partial(_encode_chunk, library, encoder, settings), chunks[done:])
            for rows, vectors in zip(chunks[done:], encoded, strict=True):
                file.write(vectors.tobytes())
                file.flush()
                tell(f"encoding: {rows.stop} of {library.passage_count} passages")
        np.save(folder / "firsts.npy", firsts)
        partial_file.replace(folder / "vectors.f32")

    return built_once(library.folder / name, build)


def _encode_chunk(library: Library, encoder: Encoder, settings: EncoderSettings, rows: range) -> NDArray[np.float32]:
    """Return the vectors of some passages; shape (windows, dimensions)."""
    return encoder.encode_passages([text for passage in library.passages(rows) for text in settings.windows(passage)])
