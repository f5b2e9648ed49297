"""Texts as sets of shingles, and how alike two of them are. What is made of that is `generator.dialogs.dedup`'s."""

import hashlib
import re
import unicodedata
import zlib
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shingles = NDArray[np.uint32]

_WORD = re.compile(r"\w+")
# They make no difference to what is asked; question words, pronouns, negations, "from" and "by" do.
_FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a an the is are was were be been am do does did has have had can could would will please so and also s "
        "of to in on at for any it there that tell me you"
    )
)


def question_shingles(text: str) -> Shingles:
    """The stems of a question's words, and its pairs of neighbouring stems, as sorted hashes; without function words.

    Single stems alone call "Did they go on tour?" and "Where did they go on tour?" alike, and pairs alone miss what is
    reworded. At 0.8, both together found 13 of 16 trivial rewordings of ours, none of 23 pairs that differ in one
    thing asked ("What about X?", "What about Y?"), and 1 of 13,614 pairs of different questions in 575 dialogs by
    people (mtRAG, CoQA, QuAC): "What is a similarity?", "What were the similarities?".
    """
    stems = content_stems(text)
    return _hashes([*stems, *map(" ".join, pairwise(stems))])


def content_stems(text: str) -> list[str]:
    """The stems of a text's words in their order, without function words unless it has no others."""
    said = words(text)
    return _stem([word for word in said if word not in _FUNCTION_WORDS] or said)


def text_shingles(text: str) -> Shingles:
    """All runs of five words, as sorted hashes: one word in a hundred changed leaves two texts 0.91 alike."""
    said = words(text)
    return _hashes([" ".join(said[first : first + 5]) for first in range(max(1, len(said) - 4))])


def words(text: str) -> list[str]:
    """The words of a text in their order, in one case and without punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def digest(text: str) -> bytes:
    return hashlib.sha256(" ".join(words(text)).encode(errors="replace")).digest()[:16]


def _hashes(shingles: Sequence[str]) -> Shingles:
    return np.unique(np.array([zlib.crc32(shingle.encode(errors="replace")) for shingle in shingles], dtype=np.uint32))


def jaccard(one: Shingles, other: Shingles) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def _stem(words: list[str]) -> list[str]:
    stems: list[str] = _stemmer().stemWords(words)
    return stems
