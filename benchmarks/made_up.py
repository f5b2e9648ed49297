"""Made-up words with frequencies as 1/rank, as in a language: texts that no model has to write."""

import random
from itertools import accumulate

VOCABULARY = 30_000


class Words:
    """A vocabulary, drawn by `chance`."""

    def __init__(self, chance: random.Random) -> None:
        letters = "abcdefghijklmnoprstuvw"
        self._words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(VOCABULARY)]
        self._steps = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))

    def draw(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._words, cum_weights=self._steps, k=count)

    def text(self, chance: random.Random, count: int) -> str:
        """Return so many words as a text."""
        return " ".join(self.draw(chance, count))
