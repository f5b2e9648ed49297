"""Passages found by what they mean: vectors of a sentence encoder, compared with every query, in the process."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from generator.common.concurrency import Spread, one_by_one
from generator.common.console import note
from generator.common.passages import windows
from generator.corpora.library import Library, built_once
from generator.errors import RetrieverError
from generator.retrievers.base import Ranker, RetrieverSettings
from generator.retrievers.batching import Batched
from generator.retrievers.encoder import Encoder
from generator.schema import Record, Split

# Windows that are encoded and put on disk together: what a build that is broken off may lose.
CHUNK = 1024
# Vectors that are compared at a time: 50 MB of 384 dimensions.
BLOCK = 32_768
# Queries that are answered together, at most.
QUERIES = 64
# More than the error of a product of unit vectors in single precision (384 · 2⁻²⁴, twice).
MARGIN = 1e-4


class EncodedSettings(RetrieverSettings):
    """What can be said of vectors.

    Attributes:
        model: a sentence encoder: a name on the Hugging Face hub, or a local folder.
        window: tokens of a passage that make one vector; see `generator.common.passages.windows`.
        window_overlap: tokens that neighbouring windows share.
    """

    model: str = Field(min_length=1)
    window: int = Field(ge=1)
    window_overlap: int = Field(ge=0)

    @model_validator(mode="after")
    def _windows_can_be_cut(self) -> Self:
        if self.window_overlap >= self.window:
            raise ValueError(f"window_overlap ({self.window_overlap}) must be less than window ({self.window})")
        return self


class DenseSettings(EncodedSettings):
    """Settings of `Dense`."""

    def build(self, library: Library, spread: Spread) -> None:
        index_folder(library, Encoder(self.model), self.window, self.window_overlap, spread)

    def open(self, library: Library, validation: NDArray[np.bool_]) -> "Dense":
        return Dense(library, validation, self.model, self.window, self.window_overlap)


class Dense(Ranker):
    """Compares a query with every passage: exact, and good for some millions of vectors.

    An encoder reads a few hundred tokens and cuts off the rest, so a passage is seen through windows, each with the
    title before it. The score of a passage is the mean of two cosines: its first window's, which says what it is about,
    and its best one's. The vectors lie beside the passages, are made once, and are mapped into memory, not read. A
    build that was broken off goes on where it was.

    A query gets the same scores, to the last bit, whatever is asked beside it.
    """

    def __init__(
        self, library: Library, validation: NDArray[np.bool_], model: str, window: int, window_overlap: int
    ) -> None:
        super().__init__(library, validation)
        self._encoder = Encoder(model)
        folder = index_folder(library, self._encoder, window, window_overlap, one_by_one)
        try:
            self._firsts: NDArray[np.int64] = np.load(folder / "firsts.npy")
            shape = (int(self._firsts[-1]), self._encoder.dimensions)
            self._vectors = np.memmap(folder / "vectors.f32", np.float32, "r", shape=shape)
        except (OSError, ValueError, IndexError) as error:
            raise RetrieverError(f"can't read {folder}: {error}; delete that folder and it is built again") from error
        self._batched = Batched(self._answers, QUERIES)

    async def ranked(self, query: str, k: int, split: Split) -> list[tuple[int, float]]:
        """The rows of the best `k` passages of `split` with their cosines, equal ones in the order of the corpus."""
        return await self._batched.ask((query, k, split))

    def _answers(self, asked: Sequence[tuple[str, int, Split]]) -> list[list[tuple[int, float]]]:
        # One by one, since the last bits of a vector depend on what it is encoded with.
        queries = np.concatenate([self._encoder.encode([query]) for query, _, _ in asked])
        nearest = [_Nearest(k) for _, k, _ in asked]
        for rows in self._blocks():
            scores = self._scores(queries, rows)
            for found, row_scores, (_, _, split) in zip(nearest, scores, asked, strict=True):
                found.add(rows.start, row_scores, self._allowed[split][rows.start : rows.stop])
        return [self._exact(query, found, k) for query, found, (_, k, _) in zip(queries, nearest, asked, strict=True)]

    def _blocks(self) -> Iterator[range]:
        """Rows of passages, as many at a time as have `BLOCK` vectors, at least one."""
        start, end = 0, len(self._firsts) - 1
        while start < end:
            stop = int(np.searchsorted(self._firsts, self._firsts[start] + BLOCK, "right")) - 1
            stop = max(stop, start + 1)
            yield range(start, stop)
            start = stop

    def _scores(self, queries: NDArray[np.float32], rows: range) -> NDArray[np.float32]:
        """Of each query with each passage, in single precision; shape (queries, rows)."""
        first, end = int(self._firsts[rows.start]), int(self._firsts[rows.stop])
        scores: NDArray[np.float32] = queries @ self._vectors[first:end].T
        if end - first == len(rows):
            return scores
        starts = self._firsts[rows.start : rows.stop] - first
        return (scores[:, starts] + np.maximum.reduceat(scores, starts, axis=1)) / 2

    def _exact(self, query: NDArray[np.float32], found: "_Nearest", k: int) -> list[tuple[int, float]]:
        """The best `k` of the rows that were found, by scores that don't depend on which others were."""
        scores = []
        for row in found.rows:
            vectors = self._vectors[self._firsts[row] : self._firsts[row + 1]]
            cosines = (vectors * query.astype(np.float64)).sum(axis=1)
            scores.append(float(cosines[0] + cosines.max()) / 2)
        return sorted(zip(found.rows.tolist(), scores, strict=True), key=lambda item: (-item[1], item[0]))[:k]


class _Nearest:
    """The `k` best rows of what was added, and those that are worse by less than a rounding error."""

    def __init__(self, k: int) -> None:
        self._k, self._least = k, -np.inf
        self.rows: NDArray[np.int64] = np.empty(0, np.int64)
        self._scores: NDArray[np.float32] = np.empty(0, np.float32)

    def add(self, start: int, scores: NDArray[np.float32], allowed: NDArray[np.bool_]) -> None:
        """Take what is good enough of rows that count from `start`."""
        new = np.flatnonzero((scores > self._least) & allowed)
        self.rows = np.concatenate([self.rows, new + start])
        self._scores = np.concatenate([self._scores, scores[new]])
        if len(self.rows) > self._k:
            self._least = float(np.partition(self._scores, -self._k)[-self._k]) - MARGIN
            good = self._scores > self._least
            self.rows, self._scores = self.rows[good], self._scores[good]


def index_folder(library: Library, encoder: Encoder, window: int, window_overlap: int, spread: Spread) -> Path:
    """Where the vectors are, made if they aren't there yet."""
    settings = f"{encoder.identity()} {window} {window_overlap}"
    name = f"dense-{hashlib.sha256(settings.encode()).hexdigest()[:12]}"
    return built_once(
        library.folder / name,
        lambda unfinished: _build(library, unfinished, name, encoder, window, window_overlap, spread),
    )


def _build(
    library: Library, folder: Path, name: str, encoder: Encoder, window: int, window_overlap: int, spread: Spread
) -> None:
    # Beside the folder, which is emptied when it is begun again. Of a build that was broken off, whole chunks count.
    partial_file = library.folder / f"{name}.part"
    size = CHUNK * encoder.dimensions * 4
    done = partial_file.stat().st_size // size if partial_file.exists() else 0
    counts = (len(list(windows(passage.text, window, window_overlap))) for passage in library.passages())
    firsts = np.cumsum([0, *counts], dtype=np.int64)
    pieces = list(_pieces(firsts))
    with partial_file.open("ab") as file:
        file.truncate(done * size)
        encoded = spread(partial(_encoded, library, encoder, window, window_overlap), pieces[done:])
        for number, vectors in enumerate(encoded, done + 1):
            file.write(vectors.tobytes())
            file.flush()
            if number % 10 == 0:
                note(f"making vectors: {pieces[number - 1].rows.stop} of {library.passage_count} passages")
    np.save(folder / "firsts.npy", firsts)
    partial_file.replace(folder / "vectors.f32")


class _Piece(Record):
    """Windows that are encoded together: of the passages of some rows, from number `first` to before `end`."""

    model_config = Record.model_config | {"arbitrary_types_allowed": True}

    rows: range
    first: int
    end: int


def _pieces(firsts: NDArray[np.int64]) -> Iterator[_Piece]:
    """All windows, `CHUNK` at a time, of passages whose first windows have the numbers `firsts`."""
    total = int(firsts[-1])
    for start in range(0, total, CHUNK):
        end = min(start + CHUNK, total)
        row = int(np.searchsorted(firsts, start, "right")) - 1
        rows = range(row, int(np.searchsorted(firsts, end, "left")))
        yield _Piece(rows=rows, first=start - int(firsts[row]), end=end - int(firsts[row]))


def _encoded(
    library: Library, encoder: Encoder, window: int, window_overlap: int, piece: _Piece
) -> NDArray[np.float32]:
    """The vectors of a piece; shape (windows, dimensions)."""
    texts: list[str] = []
    for passage in library.passages(piece.rows):
        title = f"{passage.title}\n" if passage.title else ""
        texts += [f"{title}{passage.text[start:end]}" for start, end in windows(passage.text, window, window_overlap)]
    return encoder.encode(texts[piece.first : piece.end])
