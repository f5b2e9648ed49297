"""Variety of wording in a set of dialogs: distinct n-grams and repeated questions.

Memory grows with the dialogs, unlike that of `generator.output.stats.statistics`: `docs/statistics.md` says how much.
"""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from generator.common.minhash import Banding, Index
from generator.common.scripts import words
from generator.common.shingles import question_shingles
from generator.dialogs.dedup import USUAL_THRESHOLD, Repetition
from generator.schema import Dialog, Record

LENGTHS = (1, 2, 3)


class Variety(Record):
    """Shares, 0 to 1.

    Attributes:
        queries, responses: distinct-n for each n of `LENGTHS` (Li et al. 2016): different n-grams among all n-grams;
            None without n-grams.
        repeated_in_dialog, repeated: questions that are near-duplicates of an earlier one of the dialog or of the set;
            None without questions.
    """

    queries: tuple[float | None, ...]
    responses: tuple[float | None, ...]
    repeated_in_dialog: float | None
    repeated: float | None


class VarietyTally:
    """Counts the n-grams and the repeated questions of dialogs, one dialog at a time."""

    def __init__(self) -> None:
        self._queries = [_Ngrams(n) for n in LENGTHS]
        self._responses = [_Ngrams(n) for n in LENGTHS]
        self._repetition = Repetition(USUAL_THRESHOLD)
        self._asked = Index(question_shingles, USUAL_THRESHOLD, Banding(USUAL_THRESHOLD))
        self._questions = self._repeated_in_dialog = self._repeated = 0

    def add(self, dialog: Dialog) -> None:
        """Count a dialog. N-grams don't span queries or responses."""
        for turn in dialog.turns:
            for ngrams, text in ((self._queries, turn.query), (self._responses, turn.answer)):
                tokens = words(text)
                for counter in ngrams:
                    counter.add(tokens)
        questions = [turn.meant for turn in dialog.turns]
        for place, question in enumerate(questions):
            inside = self._repetition.find(question, questions[:place]) is not None
            match = self._asked.nearest(question)
            self._repeated_in_dialog += inside
            self._repeated += inside or match is not None
            if match is None or not match.exact:
                self._asked.add(question, "")
        self._questions += len(questions)

    def variety(self) -> Variety:
        """Return the shares so far."""
        return Variety(
            queries=tuple(ngrams.distinct() for ngrams in self._queries),
            responses=tuple(ngrams.distinct() for ngrams in self._responses),
            repeated_in_dialog=self._repeated_in_dialog / self._questions if self._questions else None,
            repeated=self._repeated / self._questions if self._questions else None,
        )


class _Ngrams:
    """The number of different n-grams, which are identified by 64-bit hashes.

    Among ten million n-grams two have the same hash with a probability of 1 in 400,000.
    """

    _LEAST = 1 << 16

    def __init__(self, n: int) -> None:
        self._n, self._total = n, 0
        self._known: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._new = array("q")

    def add(self, tokens: Sequence[str]) -> None:
        self._total += max(0, len(tokens) - self._n + 1)
        self._new.extend(map(hash, zip(*(tokens[first:] for first in range(self._n)), strict=False)))
        if len(self._new) >= max(self._LEAST, len(self._known) // 2):
            self._merge()

    def distinct(self) -> float | None:
        self._merge()
        return len(self._known) / self._total if self._total else None

    def _merge(self) -> None:
        self._known = np.union1d(self._known, np.array(self._new, dtype=np.int64))
        self._new = array("q")
