"""Measure how well answerability can be guessed without reading a passage.

A set whose unanswerable questions have no passage, or are all long, or begin alike, teaches that and not reading. So
three naive Bayes classifiers are trained and tested, each with one thing to see: the number of passages, the number of
words of the question, the words of the question.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from generator.common.scripts import count_words, words
from generator.schema import Dialog, Record, Turn

# Fewer pairs of a class say nothing; more pairs than `MOST` say no more, and cost time and memory.
LEAST, MOST = 20, 5000
# The area under the curve from which a set gives itself away.
AWAY = 0.7
FOLDS = 5
# Pairs that the prior of a feature's rate counts for.
_PRIOR = 5

Floats = NDArray[np.float64]


# What each guesser sees of a pair, as features that a pair has or hasn't. A length counts for its neighbours, too: few
# pairs have the same one. Function words count, too: “and” tells a question of which the documents answer one half.
_SEEN: Mapping[str, Callable[[Dialog, Turn], list[str]]] = {
    "number of passages": lambda dialog, turn: [str(len(dialog.grounding(turn.turn)))],
    "length of the question": lambda dialog, turn: [str(count_words(turn.query) + more) for more in range(-2, 3)],
    "question": lambda dialog, turn: words(turn.query),
}


class Guess(Record):
    """A measure of how well a class of answerability is told from the others, in cross-validation by dialog.

    Attributes:
        answerability: the class.
        sees: what the guesser sees.
        pairs: of this class.
        auc: area under the ROC curve, the mean of the folds: 0.5 is chance.
    """

    answerability: str
    sees: str
    pairs: int
    auc: float

    @property
    def gives_away(self) -> bool:
        return self.auc > AWAY

    def __str__(self) -> str:
        return f"{self.answerability} by the {self.sees} (AUC {self.auc:.2f})"


class GuessTally:
    """Collects pairs, the first 5,000."""

    def __init__(self) -> None:
        self._labels: list[str] = []
        self._folds: list[int] = []
        self._seen: dict[str, list[list[str]]] = {name: [] for name in _SEEN}

    def add(self, dialog: Dialog, turns: Iterable[Turn]) -> None:
        """Add pairs of a dialog; those that ask for nothing (`conversational`) are left out."""
        for turn in turns:
            if turn.answerability == "conversational" or len(self._labels) == MOST:
                continue
            self._labels.append(turn.answerability)
            self._folds.append(zlib.crc32(dialog.id.encode()) % FOLDS)
            for name, see in _SEEN.items():
                self._seen[name].append(see(dialog, turn))

    def guesses(self) -> tuple[Guess, ...]:
        """Return the guesses, sorted by what is seen and class.

        A class with fewer than 20 pairs, or with fewer than 20 pairs beside it, has none.
        """
        guesses = []
        total, folds = len(self._labels), np.array(self._folds)
        counts = {name: n for name, n in sorted(Counter(self._labels).items()) if LEAST <= n <= total - LEAST}
        if len(counts) == 2 and sum(counts.values()) == total:  # to tell one is to tell the other
            counts = dict([min(counts.items(), key=lambda item: item[1])])
        for sees, features in self._seen.items() if counts else ():
            of_pairs = _Features(features)
            for answerability, count in counts.items():
                wanted = np.array([label == answerability for label in self._labels], dtype=np.float64)
                aucs = []
                for held in (folds == fold for fold in range(FOLDS)):
                    if 0 < wanted[held].sum() < held.sum():
                        aucs.append((auc(of_pairs.odds(wanted, ~held)[held], wanted[held]), held.sum()))
                mean = sum(value * n for value, n in aucs) / sum(n for _, n in aucs) if aucs else 0.5
                guesses.append(Guess(answerability=answerability, sees=sees, pairs=count, auc=round(float(mean), 4)))
        return tuple(guesses)


class _Features:
    """The features of all pairs, as a list of entries: the pair, and the feature's number."""

    def __init__(self, features: Sequence[Sequence[str]]) -> None:
        numbers: dict[str, int] = {}
        pairs = [sorted({numbers.setdefault(name, len(numbers)) for name in of_one}) for of_one in features]
        self._pair = np.repeat(np.arange(len(pairs)), [len(pair) for pair in pairs])
        self._feature = np.array([number for pair in pairs for number in pair], dtype=np.int64)

    def odds(self, wanted: Floats, train: NDArray[np.bool_]) -> Floats:
        """Return the log odds of each pair by naive Bayes, from the pairs of `train`; shape (pairs,).

        The rate of a feature in a class is smoothed towards its rate in all pairs, so that one that `train` hasn't says
        nothing.
        """

        def count(of: Floats) -> Floats:
            return np.bincount(self._feature, of[self._pair]).astype(np.float64)

        ours, others = wanted * train, (1 - wanted) * train
        prior = _PRIOR * (seen := count(ours + others)) / train.sum()
        in_ours, in_others = ((count(of) + prior) / (of.sum() + _PRIOR) for of in (ours, others))
        ratio = np.log(np.where(seen > 0, in_ours, 1) / np.where(seen > 0, in_others, 1))
        start = np.log((ours.sum() + 1) / (others.sum() + 1))
        return np.asarray(start + np.bincount(self._pair, ratio[self._feature], minlength=len(wanted)))


def auc(scores: Floats, wanted: Floats) -> float:
    """Return the probability that a wanted pair scores higher than another; equal scores count a half."""
    others, ours = np.sort(scores[wanted == 0]), scores[wanted > 0]
    below = np.searchsorted(others, ours, "left") + np.searchsorted(others, ours, "right")
    return float(below.mean() / (2 * len(others)))
