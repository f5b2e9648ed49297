"""What broken records and double ids of a corpus lead to."""

import hashlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from generator.corpora.base import Located
from generator.errors import CorpusError
from generator.schema import Corpus, Document, Record, SkippedRecord

R = TypeVar("R", bound=Record)


def documents(
    corpus: Corpus, strict: bool, max_broken: float, on_broken: Callable[[SkippedRecord], None]
) -> Iterator[Document]:
    """The documents of `corpus` as a stream; what is broken goes to `on_broken` instead, as in `kept`.

    Raises:
        CorpusError: as in `kept`, or two documents have one id.
    """
    ids = _Ids()
    for count, found in kept(corpus.read(), corpus.name, strict, max_broken, on_broken):
        if not ids.add(found.id) and (earlier := _earlier(corpus, found.id, count)):
            raise CorpusError(
                f"{_where(found, count)}: a second document with the id {found.id!r}, which {earlier} has; "
                "give each an id of its own"
            )
        yield found


def kept(
    records: Iterator[R | SkippedRecord],
    corpus: str,
    strict: bool,
    max_broken: float,
    on_broken: Callable[[SkippedRecord], None],
) -> Iterator[tuple[int, R]]:
    """What is whole among the records of a corpus, each with its number from 1; the rest goes to `on_broken`.

    Whether too many are broken shows at the end: only a stream that was read to its end is a good one.

    Args:
        strict: the first broken record is an error.
        max_broken: more than this share of all records is an error, 0 to 1.

    Raises:
        CorpusError: as above, or there is no record at all.
    """
    count = broken = 0
    first: SkippedRecord | None = None
    for count, found in enumerate(records, start=1):
        if not isinstance(found, SkippedRecord):
            yield count, found
            continue
        if strict:
            raise CorpusError(f"{found.where}: {found.reason}; mend it, or skip it with corpus.strict=false")
        first = first or found
        broken += 1
        on_broken(found)
    if first is not None and (broken == count or broken > max_broken * count):
        remedy = "mend them" if broken == count else "mend them, or raise corpus.max_broken"
        raise CorpusError(
            f"corpus {corpus}: {broken} of {count} records are broken, the first {first.where}: {first.reason}; "
            f"{remedy}"
        )
    if not count:
        raise CorpusError(f"corpus {corpus} holds no record; look at corpus.path")


def _earlier(corpus: Corpus, document_id: str, before: int) -> str | None:
    """Where the first document with this id was read; None if only the hashes of two ids are the same."""
    for number, found in zip(range(1, before), corpus.read(), strict=False):
        if isinstance(found, Document) and found.id == document_id:
            return _where(found, number)
    return None


def _where(document: Document, number: int) -> str:
    return document.where if isinstance(document, Located) else f"record {number}"


class _Ids:
    """A set of ids as 8-byte hashes, in little more than 8 bytes each."""

    _RECENT = 1 << 16  # a Python set takes about 80 bytes for each: only so many stay in one

    def __init__(self) -> None:
        self._sorted = np.empty(0, dtype=np.uint64)
        self._recent: set[int] = set()

    def add(self, name: str) -> bool:
        """Whether the id wasn't there yet."""
        key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())
        place = int(np.searchsorted(self._sorted, np.uint64(key)))
        if key in self._recent or (place < len(self._sorted) and int(self._sorted[place]) == key):
            return False
        self._recent.add(key)
        if len(self._recent) >= self._RECENT:
            recent = np.fromiter(self._recent, dtype=np.uint64, count=len(self._recent))
            self._sorted = np.concatenate((self._sorted, recent))
            self._sorted.sort()  # in place: a copy would double what this takes
            self._recent.clear()
        return True
