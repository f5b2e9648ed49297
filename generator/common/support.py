"""Find what a text says that its sources don't: content words, numbers and names; no model is asked.

Words are compared by their stems, without function words, in the dialog's language; where no spaces part words, by
their pairs of letters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language, languages
from generator.common.numerals import find_numerals
from generator.common.passages import find_tokens
from generator.common.scripts import UNSPACED, words

# A number, and letters that follow it (`1980s`, `20th`, `500Mbps`); a name such as `B12` is a word.
_NUMBER = re.compile(rf"(?<![^\W{UNSPACED}])\d+(?:[.,]\d+)*(?=[^\W\d_]{{0,4}}\b|[{UNSPACED}])")
_UNIT = re.compile(r"(?<=\d)[^\W\d_]{1,4}\b")
_UNSPACED_LETTER, _UNSPACED_RUN = re.compile(f"[{UNSPACED}]"), re.compile(f"[{UNSPACED}]+")
# The number of a list's item: “1. ” at the start of a line, “1) ” and “(1) ” anywhere; and what may be one elsewhere.
_ITEM = re.compile(r"^\s*\d{1,2}[.)](?=\s)|(?<!\S)\(?\d{1,2}\)(?=\s)", re.MULTILINE)
_INNER_ITEM = re.compile(r"(?<=\s)(\d{1,2})\.(?=\s)")
# A decade (`1970s`), and the number by which its short form is known (`the '70s`).
_DECADE = re.compile(r"\b(?:1\d|20)(\d0)(?=['’]?s\b)")
# Names of several words; their initials are short for them (`NYC`, `WWI`).
_LONG_NAME = re.compile(r"\b[A-Z][\w-]*(?: (?:of |the |and |for )?[A-Z][\w-]*)+")
_MOST_INITIALS = 5
_DOTTED = re.compile(r"\b([ap])\.\s?m\b(?:\.(?!\s+[A-Z]))?", re.IGNORECASE)  # not the end of a sentence
_TIME = re.compile(r"\b([01]?\d|2[0-4])(?: ?h ?|[.](?=[0-5]\d ?(?:[ap]m|uhr|h)\b))([0-5]\d)\b( ?h\b)?", re.IGNORECASE)
_FULL_HOUR, _SPACED_THOUSANDS = (
    re.compile(r"(?<=\d)(?::00\b(?!:)| o['’]clock\b)"),
    re.compile(r"(?<=\d) (?=\d{3}(?!\d))"),
)
# One number, and no date or list.
_WITH_POINT = re.compile(r"\d+\.\d+|\d+,\d{1,3}|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?")
# Times in the afternoon, by either clock.
_LATE, _PM = (
    re.compile(r"\b(1[3-9]|2[0-3])[:.h][0-5]\d\b"),
    re.compile(r"\b(\d{1,2})(?:[:.]\d\d)? ?p\.?m\b", re.IGNORECASE),
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_DECIMAL, _SCALE = re.compile(r"\d+(?:\.\d+)?"), re.compile("10{2,}")
_THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
# The digits of numbers that may be said in round figures: years and prices have fewer, and what has more is no number.
_FEWEST_DIGITS, _MOST_DIGITS = 5, 18
# Texts with fewer words may have none by which one sees their language.
_TOO_SHORT = 5
_SOME_LENGTH = 40
_TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "st"))  # whose full stop ends no sentence
_SENTENCE_END = frozenset(".!?。！？؟।:;…\"“”'‘’()[]*#•-–—\n")


class Unsupported(NamedTuple):
    """A text's words, numbers and names that no source has, as it spells them, each once; a name is not a word."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]


class Term(NamedTuple):
    """A content word or number of a text.

    Attributes:
        text: as the text spells it.
        key: what makes it equal to others: the stem without accents, or the digits of a number (`1200` for "1,200",
            `12` for "twelve", `8500000` for "8.5 million").
        kind: `word`, `number`, or `name` for a word that is capitalised inside a sentence.
    """

    text: str
    key: str
    kind: str


@cached_by_language(8192)
def read_terms(text: str) -> tuple[Term, ...]:
    """Return the content words and numbers of a text in their order, without the numbers of a list's items."""
    language = dialog_language()
    stop, proper, spaced, capitals = language.idle, language.listed("proper"), language.spaced, language.capitals
    found: list[Term] = []
    text = drop_item_numbers(write_plainly(text))
    spelt = [(match.group(), match.start()) for match in find_tokens(text)]
    lows = [word.casefold() for word, _ in spelt]
    numbers = {m.start(): Term(m.group(), _digits(m.group()), "number") for m in _NUMBER.finditer(text)}
    for start, end, digits, ordinal in _find_spelt_out(text, spelt):
        numbers[start] = Term(text[start:end], digits, "word" if ordinal else "number")
    end, opens, before = 0, True, ""  # the end of the last number; whether a sentence begins here; the last word
    for (word, start), low, stem in zip(spelt, lows, language.stem(lows), strict=True):
        number = numbers.get(start)
        if start >= end and number and number.text.casefold() not in stop:
            end = start + len(number.text)
            found.append(number)
        elif start >= end and word[0].isalnum() and (spaced or not _UNSPACED_LETTER.match(word)):
            named = capitals and word[0].isupper() and not opens
            if named and low in proper:
                found.append(Term(word, word, "name"))
            elif low not in stop:
                found.append(Term(word, _fold(stem), "name" if named else "word"))
        opens = (word in _SENTENCE_END and before not in _TITLES) or (opens and not word[0].isalnum())
        before = low
    if not language.spaced:
        grams = (gram for run in _UNSPACED_RUN.findall(text) for gram in language.cut_content(run))
        found += (Term(gram, gram, "word") for gram in grams)
    return tuple(found)


def write_plainly(text: str) -> str:
    """Return a text with times and thousands in one form: `9:30` for "9.30 a.m." and "9 h 30", `9` for "9:00"."""
    text = _DOTTED.sub(r"\1m", unicodedata.normalize("NFKC", text))
    text = _FULL_HOUR.sub("", _TIME.sub(r"\1:\2\3", text))
    # English parts no thousands by spaces, and has numbers beside each other (“in 2020 500 people”).
    return text if dialog_language().code == "en" else _SPACED_THOUSANDS.sub("", text)


def join_thousands(text: str) -> str:
    """Return a text with large numbers in one piece: "1,200" as `1200`."""
    return _THOUSANDS.sub("", text)


def drop_item_numbers(text: str) -> str:
    """Return a text without the numbers of a list's items; those inside a line count from 1 on (“: 1. Ask 2. Pay”)."""
    text = _ITEM.sub(" ", text)
    items = list[re.Match[str]]()
    for match in _INNER_ITEM.finditer(text):
        if int(match[1]) == len(items) + 1:
            items.append(match)
    for item in reversed(items if len(items) > 1 else []):
        text = f"{text[: item.start()]} {text[item.end() :]}"
    return text


@cached_by_language(8192)
def term_keys(text: str) -> frozenset[str]:
    """Return the keys of all words and numbers of a text, function words too: what it supports.

    Short forms are among them: the initials of a name (`NYC`), a decade's last digits (`the '70s`), and what a large
    number is in round figures (`8500000` for "8,537,673").
    """
    language, times, text = dialog_language(), _find_times(text), write_plainly(text)
    spelt = [(match.group(), match.start()) for match in find_tokens(text)]
    # The 5 of 0.5 is no number by itself.
    parts = {at for m in _NUMBER.finditer(text) if _WITH_POINT.fullmatch(m.group()) for at in range(*m.span())}
    low = [word.casefold() for word, start in spelt if start not in parts]
    units = [unit.casefold() for unit in _UNIT.findall(text)]  # “8GB” supports “8 GB”
    keys = frozenset(map(_fold, language.stem([*low, *units])))
    numbers = [_digits(number) for number in (*_NUMBER.findall(text), *_DECADE.findall(text))]
    numbers += [digits for _, _, digits, _ in _find_spelt_out(text, spelt)]
    numbers += times
    present = {*low, *units, *numbers, *(word for word, _ in spelt)}
    groups = (group for group in language.same if not present.isdisjoint(group))
    same = [key for group in groups for key in language.stem([each.casefold() for each in group])]
    numbers += [rounded for number in numbers for rounded in _round(number)]
    grams = () if language.spaced else (*language.cut(text), *(term.key for term in read_terms(text)))
    short = _find_initials(text) if language.capitals else ()
    proper = (word for word, _ in spelt if word[0].isupper() and word.casefold() in language.listed("proper"))
    return keys.union(numbers, map(_fold, same), grams, short, proper)


def find_unsupported(text: str, sources: Sequence[str]) -> Unsupported:
    """Return the content words, numbers and names of a text that none of the sources has."""
    keys = [term_keys(source) for source in sources]
    missing: dict[str, Term] = {}
    for term in read_terms(text):
        if not any(term.key in of for of in keys):
            missing.setdefault(term.key, term)
    kinds = ("word", "number", "name")
    words, numbers, names = ([term.text for term in missing.values() if term.kind == kind] for kind in kinds)
    return Unsupported(tuple(words), tuple(numbers), tuple(names))


def shares_nothing(text: str, sources: Sequence[str], least: int = 1) -> bool:
    """Return True if a text has at least so many content words or numbers, and none of them is in a source.

    In another language than that of the sources a text shares few words with them whatever it says, and so it may in
    other words than theirs if they are a sentence or two: false unless the sources are of some length and, like the
    text, in the language of the dialog; of a text that is too short to tell this is taken for granted.
    """
    wanted, language = {term.key for term in read_terms(text)}, dialog_language()
    if len(wanted) < least or languages().differ or any(wanted & term_keys(source) for source in sources):
        return False
    if len(words(text)) > _TOO_SHORT and not language.is_in(text):
        return False
    known = " ".join(sources)
    return len(words(known)) >= _SOME_LENGTH and language.is_in(known)


def coverage(text: str, sources: Sequence[str]) -> float:
    """Return the share of a text's different content words and numbers that a source has, 0 to 1; 1 if it has none."""
    wanted, keys = {term.key for term in read_terms(text)}, [term_keys(source) for source in sources]
    return sum(any(key in of for of in keys) for key in wanted) / len(wanted) if wanted else 1.0


def _fold(word: str) -> str:
    """Return a word without accents: people leave them out of names."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))


def _find_initials(text: str) -> Iterator[str]:
    """Yield the initials of names of two words and more, and of their parts, in small letters."""
    for name in _LONG_NAME.findall(text):
        letters = "".join(word[0] for word in name.split() if word[0].isupper()).casefold()
        for length in range(2, _MOST_INITIALS + 1):
            yield from (letters[first : first + length] for first in range(len(letters) - length + 1))


def _find_spelt_out(text: str, tokens: Sequence[tuple[str, int]]) -> list[tuple[int, int, str, bool]]:
    """Return start, end and digits of numbers in words ("thirty-five", "8.5 million"), and whether each is an ordinal.

    Args:
        tokens: those of the text, with their starts.
    """
    found = list[tuple[int, int, str, bool]]()
    scaled = {match.end() + 1: match for match in _NUMBER.finditer(text)}
    for first, end, digits, ordinal in find_numerals([word.casefold() for word, _ in tokens]):
        start, last = tokens[first][1], tokens[end - 1]
        number = _DECIMAL.fullmatch(_digits(before.group())) if (before := scaled.get(start)) else None
        if before and number and _SCALE.fullmatch(digits):
            start, digits = before.start(), _digits(f"{Decimal(number.group()) * int(digits):f}")
        found.append((start, last[1] + len(last[0]), digits, ordinal))
    return found


def _find_times(text: str) -> Iterator[str]:
    """Yield what times in the afternoon are by the other clock: `5` and `pm` for "17:00", `17` and `0` for "5 p.m."."""
    for hour in _LATE.findall(text):
        yield from (str(int(hour) - 12), "pm", "p", "m")
    for hour in _PM.findall(text):
        yield from (str(int(hour) + 12), "0")


def _round(number: str) -> Iterator[str]:
    """Yield a large number in one to three figures, rounded and cut off, as one says it."""
    whole = number.partition(".")[0]
    if _FEWEST_DIGITS <= len(whole) <= _MOST_DIGITS:
        for unit in (10 ** (len(whole) - figures) for figures in (1, 2, 3)):
            yield from (str((int(whole) + more) // unit * unit) for more in (0, unit // 2))


def _digits(number: str) -> str:
    number = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in number)
    whole, point, fraction = _THOUSANDS.sub("", number).replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")
