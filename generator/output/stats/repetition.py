"""Count the repeated questions in a set of dialogs."""

from array import array
from collections.abc import Sequence

import numpy as np

from generator.common.minhash import Banding
from generator.common.shingles import Shingles, jaccard, question_shingles
from generator.dialogs.dedup import DedupSettings


class RepeatCounter:
    """Counts the questions of a set that repeat an earlier one, by `generator.common.shingles.question_shingles`.

    Questions are compared at the end, so each takes only its band hashes and shingles (about 300 bytes), and no index.
    One that was asked before word for word takes nothing.

    Attributes:
        questions: how many were added.
        repeated_in_dialog: how many repeat an earlier one of their own dialog; none of these is missed.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self.questions = self.repeated_in_dialog = 0
        self._threshold = settings.threshold
        self._banding = Banding(settings.threshold)
        self._seen: set[int] = set()
        self._word_for_word = 0
        # For each question: does it repeat one of its dialog, its bands' hashes, its shingles, and where these end.
        self._repeats: list[bool] = []
        self._bands = array("Q")
        self._shingles = array("I")
        self._ends = array("Q", [0])

    def add(self, questions: Sequence[str]) -> None:
        """Add the questions of one dialog, in their order."""
        found = [question_shingles(question) for question in questions]
        self.questions += len(found)
        for place, mine in enumerate(found):
            repeats = any(jaccard(mine, other) >= self._threshold for other in found[:place])
            self.repeated_in_dialog += repeats
            if len(mine):
                self._store(mine, repeats)

    def count_repeated(self) -> int:
        """Return how many questions repeat an earlier one of any dialog; MinHash misses a few."""
        repeats = np.array(self._repeats, dtype=np.bool_)
        for band in np.frombuffer(self._bands, dtype=np.uint64).reshape(-1, self._banding.bands).T:
            order = np.argsort(band, kind="stable")
            edges = np.concatenate(([0], np.flatnonzero(np.diff(band[order])) + 1, [len(order)]))
            for group in np.flatnonzero(np.diff(edges) > 1):
                rows = order[edges[group] : edges[group + 1]]
                for place, row in enumerate(rows[1:], start=1):
                    repeats[row] = repeats[row] or any(self._are_alike(row, other) for other in rows[:place])
        return self._word_for_word + int(repeats.sum())

    def _store(self, shingles: Shingles, repeats: bool) -> None:
        content = shingles.tobytes()
        if hash(content) in self._seen:
            self._word_for_word += 1
            return
        self._seen.add(hash(content))
        self._bands.frombytes(self._banding.hashes(shingles).tobytes())
        self._shingles.frombytes(content)
        self._ends.append(len(self._shingles))
        self._repeats.append(repeats)

    def _are_alike(self, *rows: int) -> bool:
        every = np.frombuffer(self._shingles, dtype=np.uint32)
        one, other = (every[self._ends[row] : self._ends[row + 1]] for row in rows)
        return jaccard(one, other) >= self._threshold
