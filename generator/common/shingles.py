"""Texts as sets of shingles, and the similarity of two texts; `generator.dialogs.dedup` uses them."""

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
# Words that don't change the meaning of a question; question words, pronouns, negations, "from" and "by" do.
FUNCTION_WORDS = frozenset(
    _WORD.findall(
        "a an the is are was were be been am do does did has have had can could would will please so and also s "
        "of to in on at for any it there that tell me you"
    )
)
# Common English words that no other language written in Latin letters has among its own.
_ENGLISH = frozenset(_WORD.findall("the and are what how why does did you your it its they this that with have not"))


def question_shingles(text: str) -> Shingles:
    """Return the stems of a question's words and its bigrams of stems as sorted hashes, without function words.

    Stems alone match "Did they go on tour?" with "Where did they go on tour?", and bigrams alone miss rewordings. At a
    threshold of 0.8, both together matched 13 of 16 trivial rewordings of ours, none of 23 pairs that differ in one
    thing asked ("What about X?", "What about Y?"), and 1 of 13,614 pairs of different questions in 575 human dialogs
    (mtRAG, CoQA, QuAC): "What is a similarity?", "What were the similarities?".
    """
    stems = content_stems(text)
    return _hashes([*stems, *map(" ".join, pairwise(stems))])


def content_stems(text: str) -> list[str]:
    """Return the stems of a text's words in their order, without function words unless there are no others."""
    tokens = words(text)
    return stem_words([word for word in tokens if word not in FUNCTION_WORDS] or tokens)


def stem_words(words: Sequence[str]) -> list[str]:
    """Return the English stem of each word, which is in lower case."""
    stems: list[str] = _stemmer().stemWords(words)
    return stems


def is_english(text: str) -> bool:
    """Return true if a text has one of the commonest English words, so that lists of English words apply to it."""
    return not _ENGLISH.isdisjoint(words(text))


def text_shingles(text: str) -> Shingles:
    """Return all 5-grams of words as sorted hashes; one changed word in a hundred leaves a similarity of 0.91."""
    tokens = words(text)
    return _hashes([" ".join(tokens[first : first + 5]) for first in range(max(1, len(tokens) - 4))])


def words(text: str) -> list[str]:
    """Return the words of a text in their order, case-folded and without punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def digest(text: str) -> bytes:
    """Return 16 bytes that are equal for texts with the same words."""
    return hashlib.sha256(" ".join(words(text)).encode(errors="replace")).digest()[:16]


def _hashes(shingles: Sequence[str]) -> Shingles:
    return np.unique(np.array([zlib.crc32(shingle.encode(errors="replace")) for shingle in shingles], dtype=np.uint32))


def jaccard(one: Shingles, other: Shingles) -> float:
    """Return the Jaccard similarity of two sets of shingles, 0 to 1."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")
