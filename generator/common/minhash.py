"""Texts that are like another one, found without a look at each: MinHash with banding (Broder 1997; `datasketch`).

It only finds candidates, and each is compared exactly: nothing is called alike that isn't, and a little is missed. The
result depends on the texts and on the order in which they are added, and on nothing else.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from generator.common.shingles import Shingles, digest, jaccard
from generator.errors import RunError


class Banding:
    """What makes two texts candidates: an equal band in their signatures, known by a hash of 64 bits.

    Bands and rows are those with the least cost if a miss weighs 19 times as much as a false candidate, which costs
    microseconds. With b bands of r rows a pair that is s alike becomes a candidate with probability
    1 - (1 - s^r)^b: at the defaults (threshold 0.8, 128 permutations: 16 bands of 8) that is 0.947 at s = 0.8 and
    0.99996 at s = 0.91; equal texts always do.

    Attributes:
        bands: how many there are.
    """

    def __init__(self, threshold: float, num_perm: int) -> None:
        from datasketch import MinHash, MinHashLSH

        lsh = MinHashLSH(threshold=threshold, num_perm=num_perm, weights=(0.05, 0.95))
        self.bands = lsh.b
        self._empty = MinHash(num_perm=num_perm, seed=1, hashfunc=int)
        self._factors = np.random.default_rng(1).integers(1 << 63, size=(lsh.b, lsh.r), dtype=np.uint64)

    def hashes(self, shingles: Shingles) -> NDArray[np.uint64]:
        """One for each band; shape (bands,)."""
        signature = self._empty.copy()
        signature.update_batch(shingles.tolist())
        values = signature.hashvalues[: self._factors.size].reshape(self._factors.shape)
        return (values * self._factors).sum(axis=1, dtype=np.uint64)


class Match(NamedTuple):
    """A text that is like another one; `exact`: its words are the same, but for case and punctuation."""

    name: str
    exact: bool


class _Looked(NamedTuple):
    """A text as it is looked at: its shingles, the hashes of its bands as SQLite keeps integers, its words' digest."""

    text: str
    shingles: Shingles
    bands: list[int]
    digest: bytes


class Index:
    """Texts that can be found by what is like them.

    They lie in a temporary database of SQLite: a file without a name, gone with the process; memory holds 2 MB of it.

    Args:
        shingles: what makes them of a text.
        threshold: the Jaccard similarity from which on two texts are alike.

    Raises (all methods):
        RunError: there is no room for the temporary file.
    """

    def __init__(self, shingles: Callable[[str], Shingles], threshold: float, banding: Banding) -> None:
        self._shingles, self._threshold, self._banding = shingles, threshold, banding
        self._last: _Looked | None = None
        self._count = 0
        with _roomy():
            # What is written is never committed: that would do nothing but flush it.
            self._db = sqlite3.connect("")
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("CREATE TABLE texts (number INTEGER PRIMARY KEY, name TEXT, digest BLOB, shingles BLOB)")
            self._db.execute(
                "CREATE TABLE bands (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number)) WITHOUT ROWID"
            )
        self._candidates = (
            "SELECT number, name, digest, shingles FROM texts WHERE number IN "
            f"(SELECT number FROM bands WHERE hash IN ({', '.join('?' * self._banding.bands)}))"
        )

    def __len__(self) -> int:
        return self._count

    def add(self, text: str, name: str) -> None:
        """Remember a text."""
        looked = self._looked(text)
        number, self._count = self._count, self._count + 1
        with _roomy():
            row = (number, name, looked.digest, looked.shingles.tobytes())
            self._db.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", row)
            bands = ((band, number) for band in looked.bands)
            self._db.executemany("INSERT OR IGNORE INTO bands VALUES (?, ?)", bands)

    def nearest(self, text: str) -> Match | None:
        """The first of the texts that are most like `text`, if any is like it."""
        if not self._count:
            return None
        looked = self._looked(text)
        alike: list[tuple[bool, float, int, str]] = []
        with _roomy():
            for number, name, hashed, content in self._db.execute(self._candidates, looked.bands):
                similarity = jaccard(looked.shingles, np.frombuffer(content, dtype=np.uint32))
                if similarity >= self._threshold:
                    alike.append((hashed == looked.digest, similarity, -number, name))
        if not alike:
            return None
        exact, _, _, name = max(alike)
        return Match(name, exact)

    def _looked(self, text: str) -> _Looked:
        """A text that isn't found is added next: it is looked at once."""
        if self._last is None or self._last.text != text:
            shingles = self._shingles(text)
            bands = self._banding.hashes(shingles).view(np.int64).tolist()
            self._last = _Looked(text, shingles, bands, digest(text))
        return self._last


@contextmanager
def _roomy() -> Iterator[None]:
    """Say where room is needed, if there is none."""
    try:
        yield
    except sqlite3.Error as error:
        raise RunError(
            f"dedup: can't keep the dialogs in a temporary file ({error}); make room in $TMPDIR, or in /var/tmp if "
            "that isn't set, and the same command continues"
        ) from error
