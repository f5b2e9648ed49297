"""Find numbers in words, such as “thirty-five”: by text2num in its languages, else by a language's list."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from text_to_num import find_numbers

from generator.common.language import cached_by_language, dialog_language

_LANGUAGES = frozenset(("da", "de", "en", "es", "fr", "it", "nl", "pt"))


class Numeral(NamedTuple):
    """A number in words: tokens `first` to before `end`; `digits` such as `35`; whether it is an ordinal (“second”)."""

    first: int
    end: int
    digits: str
    ordinal: bool


class _Token(str):
    """A token as text2num wants it."""

    __slots__ = ()

    def text(self) -> str:
        return str(self)

    def nt_separated(self, previous: "_Token") -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


def find_numerals(tokens: Sequence[str]) -> Iterator[Numeral]:
    """Yield the numbers in words among the tokens of a text, which are in lower case."""
    places = [place for place, token in enumerate(tokens) if _read_word(token)]
    while places:
        length = 1  # of a run of numerals, with at most a hyphen or an “and” between two of them
        while length < len(places) and places[length] - places[length - 1] <= 2:
            length += 1
        first, end = places[0], places[length - 1] + 1
        for numeral in _read(tokens[first:end]):
            yield numeral._replace(first=first + numeral.first, end=first + numeral.end)
        del places[:length]


def read_cardinal(word: str) -> str | None:
    """Return the digits of a number that is one word; None for other words, ordinals, and what is an article, too."""
    numeral = None if word in dialog_language().idle else _read_word(word)
    return None if numeral is None or numeral.ordinal else numeral.digits


@cached_by_language(65536)
def _read_word(word: str) -> Numeral | None:
    return next(iter(_read([word])), None) if word[0].isalpha() else None


def _read(tokens: Sequence[str]) -> list[Numeral]:
    language = dialog_language()
    if language.numbers:
        return [
            Numeral(place, place + 1, language.numbers[token], False)
            for place, token in enumerate(tokens)
            if token in language.numbers
        ]
    if language.code not in _LANGUAGES:
        return []
    found = find_numbers([_Token(token) for token in tokens], language.code, threshold=0)
    return [Numeral(each.start, each.end, f"{Decimal(each.value):f}", each.is_ordinal) for each in found]
