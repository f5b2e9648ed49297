"""Find numbers in words, such as “thirty-five”: by text2num in its languages, else by a language's list."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from text_to_num import find_numbers

from generator.common.language import dialog_language
from generator.common.language_file import Language

_LANGUAGES = frozenset(("da", "de", "en", "es", "fr", "it", "nl", "pt"))
_PARTS = frozenset(map(str, (*range(2, 11), *range(20, 100, 10))))  # of which numbers below 100 are put together
_ARABIC_PREFIX = re.compile("[وف]?[بلك]?(?=.{3})")  # “and”, “by”, “for”: written with the word
_MOST_WORDS = 100_000


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


class _Words(dict[str, Numeral | None]):
    """Keeps the number that each word of a language is by itself; None if it is none."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self.language = language

    def __missing__(self, word: str) -> Numeral | None:
        if len(self) > _MOST_WORDS:
            self.clear()
        self[word] = next(iter(_read([word], self.language)), None) if word[0].isalpha() else None
        return self[word]


_words = lru_cache(maxsize=64)(_Words)


def find_numerals(tokens: Sequence[str]) -> Iterator[Numeral]:
    """Yield the numbers in words among the tokens of a text, which are in lower case."""
    language = dialog_language()
    known = _words(language)
    places = [place for place, token in enumerate(tokens) if known[token]]
    while places:
        length = 1  # of a run of numerals, with at most a hyphen or an “and” between two of them
        while length < len(places) and places[length] - places[length - 1] <= 2:
            length += 1
        first, end = places[0], places[length - 1] + 1
        for numeral in _read(tokens[first:end], language):
            listed = language.numbers and language.spaced
            if not listed or numeral.digits not in ("1", "0.5"):  # “one of them” counts nothing, “half” is a word
                yield numeral._replace(first=first + numeral.first, end=first + numeral.end)
        del places[:length]


def may_be_spelt_out(number: str) -> bool:
    """Return True for a number below 100 where the dialog's language has words for it that aren't known.

    Japanese and Chinese texts mostly have digits, so that a few words are enough.
    """
    language = dialog_language()
    listed = {*language.numbers.values()}
    known = language.code in _LANGUAGES or (listed >= _PARTS if language.spaced else bool(listed))
    return not known and number.isdigit() and len(number) <= 2


def digits_of(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the words that are numbers, without ordinals and articles, each with its digits."""
    language = dialog_language()
    known = _words(language)
    for word in words:
        if (numeral := known[word]) and not numeral.ordinal and word not in language.idle:
            yield word, numeral.digits


def _read(tokens: Sequence[str], language: Language) -> list[Numeral]:
    if language.numbers:
        return _read_listed(tokens, language)
    if language.code not in _LANGUAGES:
        return []
    found = find_numbers([_Token(token) for token in tokens], language.code, threshold=0)
    return [Numeral(each.start, each.end, f"{Decimal(each.value):f}", each.is_ordinal) for each in found]


def _read_listed(tokens: Sequence[str], language: Language) -> list[Numeral]:
    """Read numbers by a language's list, adjacent ones put together: “сто двадцать шесть”, “पाँच सौ”, “خمسة وعشرون”."""
    found: list[Numeral] = []
    for place, token in enumerate(tokens):
        digits = language.numbers.get(token)
        if digits is None and language.code == "ar":
            digits = language.numbers.get(_ARABIC_PREFIX.sub("", token, count=1))
        if digits is None:
            continue
        numeral = Numeral(place, place + 1, digits.rstrip("."), digits.endswith("."))
        last = found[-1] if found and found[-1].end == place else None
        if last and (joined := _join(Decimal(last.digits), Decimal(numeral.digits), token, language)):
            found.pop()
            digits = f"{joined.normalize():f}"
            numeral = numeral._replace(first=last.first, digits=digits, ordinal=last.ordinal or numeral.ordinal)
        found.append(numeral)
    return found


def _join(before: Decimal, value: Decimal, token: str, language: Language) -> Decimal | None:
    """Return the number that two adjacent ones are together, or None.

    5 x 100, 1.5 x 1000, 100 + 26, 20 + 6; Arabic 5 + 20, Hindi 0.5 + 4 (“साढ़े चार”).
    """
    digits = f"{value:f}"
    least = 100 if language.spaced else 10  # 二十 is 2 x 10
    if digits.rstrip("0") == "1" and value >= least and before % value:
        return before - before % value + before % value * value
    if value and before % 10 ** len(digits) == 0 and (before % 100 != 10 or not language.spaced):
        return before + value
    ten = value == 10 or (value in range(20, 100, 10) and token.startswith("و"))
    half = language.code == "hi" and before == Decimal("0.5")
    return before + value if half or (language.code == "ar" and ten and 0 < before % 100 < 10) else None
