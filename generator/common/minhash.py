"""Near-duplicate search without comparing every pair: MinHash with banding (Broder 1997; `datasketch`).

MinHash only finds candidates, and each is compared exactly: there are no false matches, and few misses. The result
depends only on the texts and the order in which they are added.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generator.common.shingles import Shingles, digest, jaccard
from generator.errors import RunError

if TYPE_CHECKING:
    from datasketch import MinHash


_PERMUTATIONS = 128


class Banding:
    """The bands of MinHash signatures, each as a hash of 64 bits: two texts with an equal band are candidates.

    Bands and rows minimise the cost if a miss weighs 19 times as much as a false candidate, which costs microseconds.
    With b bands of r rows a pair of similarity s becomes a candidate with probability 1 - (1 - s^r)^b: at the default
    threshold of 0.8 (16 bands of 8) that is 0.947 at s = 0.8 and 0.99996 at s = 0.91; equal texts always do.

    `datasketch` is imported when the first text is hashed: it takes most of a second, in which a run may ask its model.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    @cached_property
    def _factors(self) -> NDArray[np.uint64]:
        from datasketch import MinHashLSH

        lsh = MinHashLSH(threshold=self._threshold, num_perm=_PERMUTATIONS, weights=(0.05, 0.95))
        return np.random.default_rng(1).integers(1 << 63, size=(lsh.b, lsh.r), dtype=np.uint64)

    @cached_property
    def _empty(self) -> "MinHash":
        from datasketch import MinHash

        return MinHash(num_perm=_PERMUTATIONS, seed=1, hashfunc=int)

    @property
    def bands(self) -> int:
        return len(self._factors)

    def hashes(self, shingles: Shingles) -> NDArray[np.uint64]:
        """Return one hash for each band; shape (bands,)."""
        signature = self._empty.copy()
        signature.update_batch(shingles.tolist())
        values = signature.hashvalues[: self._factors.size].reshape(self._factors.shape)
        return (values * self._factors).sum(axis=1, dtype=np.uint64)


class Match(NamedTuple):
    """A text that matches another one; `exact`: their words are equal, apart from case and punctuation."""

    name: str
    exact: bool


class _Features(NamedTuple):
    """A text's shingles, the hashes of its bands as signed integers (SQLite's), and the digest of its words."""

    shingles: Shingles
    bands: list[int]
    digest: bytes


class Index:
    """Texts that can be searched for near-duplicates.

    They are in a temporary SQLite database: an unnamed file that ends with the process; memory holds 2 MB of it.

    Args:
        shingles: returns the shingles of a text.
        threshold: the least Jaccard similarity of a match.

    Raises (all methods):
        RunError: there is no space for the temporary file.
    """

    def __init__(self, shingles: Callable[[str], Shingles], threshold: float, banding: Banding) -> None:
        self._shingles, self._threshold, self._banding = shingles, threshold, banding
        # A text without a match is added next.
        self._features: Callable[[str], _Features] = lru_cache(maxsize=1)(self._read)
        self._count = 0
        with _space_error():
            # Nothing is ever committed: that would only flush the file.
            self._db = sqlite3.connect("")
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("CREATE TABLE texts (number INTEGER PRIMARY KEY, name TEXT, digest BLOB, shingles BLOB)")
            self._db.execute(
                "CREATE TABLE bands (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number)) WITHOUT ROWID"
            )

    @cached_property
    def _candidates(self) -> str:
        return (
            "SELECT number, name, digest, shingles FROM texts WHERE number IN "
            f"(SELECT number FROM bands WHERE hash IN ({', '.join('?' * self._banding.bands)}))"
        )

    def __len__(self) -> int:
        return self._count

    def add(self, text: str, name: str) -> None:
        features = self._features(text)
        number, self._count = self._count, self._count + 1
        with _space_error():
            row = (number, name, features.digest, features.shingles.tobytes())
            self._db.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", row)
            bands = ((band, number) for band in features.bands)
            self._db.executemany("INSERT OR IGNORE INTO bands VALUES (?, ?)", bands)

    def nearest(self, text: str) -> Match | None:
        """Return the text most similar to `text`, the first among equals; None if there is no match."""
        if not self._count:
            return None
        features = self._features(text)
        matches: list[tuple[bool, float, int, str]] = []
        with _space_error():
            for number, name, hashed, content in self._db.execute(self._candidates, features.bands):
                similarity = jaccard(features.shingles, np.frombuffer(content, dtype=np.uint32))
                if similarity >= self._threshold:
                    matches.append((hashed == features.digest, similarity, -number, name))
        if not matches:
            return None
        exact, _, _, name = max(matches)
        return Match(name, exact)

    def _read(self, text: str) -> _Features:
        shingles = self._shingles(text)
        return _Features(shingles, self._banding.hashes(shingles).view(np.int64).tolist(), digest(text))


@contextmanager
def _space_error() -> Iterator[None]:
    """Raise SQLite's errors as a RunError that says where space is needed."""
    try:
        yield
    except sqlite3.Error as error:
        raise RunError(
            f"dedup: can't write its temporary file ({error}); free space in $TMPDIR (/var/tmp if that isn't set), and "
            "the same command continues"
        ) from error
