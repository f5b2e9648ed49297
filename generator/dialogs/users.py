"""Ask as a user: in their words by the prompt, with their typing by code, and of their own model if there is one.

A model can't be trusted with slips and small letters: it makes none, or too many, or changes a number.
"""

import random
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass

from generator.common.language import dialog_language
from generator.common.scripts import QUESTION_MARK
from generator.prompts.calls import Model, use_other
from taxonomy import PLAIN, QuestionType, User

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEIGHBOURS = {
    key: row[max(0, place - 1) : place] + row[place + 1 : place + 2] for row in _ROWS for place, key in enumerate(row)
}
# Words of four letters or more in pieces without a digit, so that no number, unit or code is touched.
_WORD = re.compile(r"(?<!\S)[^\W\d_]{4,}(?=[?!.,;:]*(?:\s|$))")
_WITH_SLIPS = 0.5  # the share of a user's messages that have any
_TWO_SLIPS = 6  # such words that a message with two slips has: of fewer, hardly one would be left to search for
# A question mark, or the full stop of “Tell me about …”, but that of “5 p.m.” isn't the sentence's.
_LAST_MARK = re.compile(rf"\s*(?:{QUESTION_MARK}+|(?<=\w\w\w)\.)?\s*\Z")


@dataclass(frozen=True)
class Asker:
    """The user of one dialog.

    Attributes:
        seed: the dialog's, from which slips come.
        model: the model that asks; None: the one that answers.
    """

    user: User = PLAIN
    seed: int = 0
    model: Model | None = None

    def speaking(self) -> AbstractContextManager[None]:
        """Return a context in which modules call the user's model."""
        return use_other(self.model)

    def adapt(self, question_type: QuestionType, place: int) -> QuestionType:
        """Return a type as this user asks it at a place from 0: with its beginnings in another order in each turn.

        Small models begin as the first of them does.
        """
        adapted = self.user.adapt(localise(question_type))
        beginnings = random.Random(f"{self.seed}/phrasings/{place}").sample(adapted.phrasings, len(adapted.phrasings))
        return adapted.model_copy(update={"phrasings": tuple(beginnings)})

    def type_out(self, text: str, turn: int) -> str:
        """Return a message as the user types it in turn number `turn`; digits stay as they are."""
        draw = random.Random(f"{self.seed}/typos/{turn}")
        if "typos" in self.user.typing and draw.random() < _WITH_SLIPS:
            text = make_slips(text, draw)
        if "lower-case" in self.user.typing:
            # “İ” in small letters is an “i” and a dot of its own, which nobody types.
            text = _LAST_MARK.sub("", text.lower().replace("i\u0307", "i").replace("¿", ""))
        return text


def localise(question_type: QuestionType) -> QuestionType:
    """Return a question type with the beginnings that its questions have in the dialog's language, if any are known."""
    language = dialog_language()
    if language.code == "en":
        return question_type
    return question_type.model_copy(update={"phrasings": language.phrasings.get(question_type.name, ())})


def make_slips(text: str, draw: random.Random) -> str:
    """Return a text with a slip in a content word, a long one perhaps with two: letters swapped, or a neighbour's key.

    The first letter of a word is never wrong, as people's seldom is; nor is the only content word, without which nobody
    could tell what is asked (“et le vert ?”, “et le very ?”).
    """
    words = [
        match.span()
        for match in _WORD.finditer(text)
        if match[0].casefold() not in dialog_language().listed("function")
    ]
    slips = 1 + (draw.random() < 0.5 and len(words) >= _TWO_SLIPS) if len(words) > 1 else 0
    for start, end in sorted(draw.sample(words, slips)):
        text = text[:start] + _slip(text[start:end], draw) + text[end:]
    return text


def _slip(word: str, draw: random.Random) -> str:
    swaps = [place for place in range(1, len(word) - 1) if word[place] != word[place + 1]]
    keys = [place for place in range(1, len(word)) if word[place] in _NEIGHBOURS]
    if keys and (not swaps or draw.random() < 0.5):
        place = draw.choice(keys)
        return word[:place] + draw.choice(_NEIGHBOURS[word[place]]) + word[place + 1 :]
    if not swaps:
        return word
    place = draw.choice(swaps)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
