"""Texts as sets of shingles, and the similarity of two texts; `generator.dialogs.dedup` uses them."""

import hashlib
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from generator.common.language import dialog_language
from generator.common.scripts import words

Shingles = NDArray[np.uint32]


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
    """Return the stems of a text's words in their order, without function words unless there are no others.

    Where no spaces part words, these are pairs of letters, or whatever n-grams the language has.
    """
    language, tokens = dialog_language(), words(text)
    if not language.spaced:
        return list(language.cut_content(text)) or tokens
    function = language.listed("function")
    return language.stem([word for word in tokens if word not in function] or tokens)


def text_shingles(text: str) -> Shingles:
    """Return all 5-grams of words as sorted hashes; one changed word in a hundred leaves a similarity of 0.91."""
    tokens = words(text)
    return _hashes([" ".join(tokens[first : first + 5]) for first in range(max(1, len(tokens) - 4))])


def digest(text: str) -> bytes:
    """Return 16 bytes that are equal for texts with the same words."""
    return hashlib.sha256(" ".join(words(text)).encode(errors="replace")).digest()[:16]


def _hashes(shingles: Sequence[str]) -> Shingles:
    return np.unique(np.array([zlib.crc32(shingle.encode(errors="replace")) for shingle in shingles], dtype=np.uint32))


def jaccard(one: Shingles, other: Shingles) -> float:
    """Return the Jaccard similarity of two sets of shingles, 0 to 1."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)
