"""Find what a text says that its sources don't: content words, numbers and names; no model is asked.

Words are compared by their stems, without function words, in the dialog's language; where no spaces part words, by
their pairs of letters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language, languages
from generator.common.numerals import find_numerals
from generator.common.passages import find_tokens
from generator.common.scripts import UNSPACED, words

_DIGIT = re.compile(r"\d")
_CLOCK = r"(?:[01]?\d|2[0-4]):[0-5]\d(?![:\d])"  # 9:30, one number
# A number, and letters that follow it (`1980s`, `20th`, `500Mbps`); a name such as `B12` is a word.
_NUMBER = re.compile(rf"(?<![^\W{UNSPACED}])(?:(?<!:){_CLOCK}|\d+(?:[.,]\d+)*)(?=[^\W\d_]{{0,4}}\b|[{UNSPACED}])")
_UNIT = re.compile(r"(?<=\d)[^\W\d_]{1,4}\b")
_UNSPACED_LETTER, _UNSPACED_RUN = re.compile(f"[{UNSPACED}]"), re.compile(f"[{UNSPACED}]+")
# A name made for programs, which another one doesn't stand for: `max_retries`, `maxRetries`, `--force`, an address.
_CODE = re.compile(r"[\w.+-]+@[\w-]+(?:\.\w+)+|(?<!\S)--\w[\w-]*|\b[^\W\d_]+_\w+|\b[a-z]+[A-Z][A-Za-z]+\b")
_MAYBE_CODE = re.compile(r"[@_]|--|[a-z][A-Z]")
# The number of a list's item: “1. ” at the start of a line, “1) ” and “(1) ” anywhere; and what may be one elsewhere.
_ITEM = re.compile(r"^\s*\d{1,2}[.)](?=\s)|(?<!\S)\(?\d{1,2}\)(?=\s)", re.MULTILINE)
_INNER_ITEM = re.compile(r"(?<=\s)(\d{1,2})\.(?=\s)")
# A decade (`1970s`), and the number by which its short form is known (`the '70s`).
_DECADE = re.compile(r"\b(?:1\d|20)(\d0)(?=['’]?s\b)")
# Names of several words; their initials are short for them (`NYC`, `WWI`).
_LONG_NAME = re.compile(r"\b[A-Z][\w-]*(?: (?:of |the |and |for )?[A-Z][\w-]*)+")
_MOST_INITIALS = 5
_FRACTION = re.compile(r"(?:(?<![\d.,/])(\d{1,4})[ ]?)?(?:([½¼¾⅛⅜⅝⅞⅕⅖⅗⅘])|(?<![\d/])\b([1357])/([248])\b(?![/\d]))")
# “$11k”, “3.5M”, “€2bn”
_SCALED = re.compile(
    r"(?:(?:(?<=[$€£])|(?<=[$€£] ))(\d+(?:[.,]\d{1,2})?) ?([kKmM]|bn|[bB])|(\d+(?:[.,]\d{1,2})?)(M|bn))\b"
)
_ISO_DATE = re.compile(r"\b(?P<year>[12]\d{3})-(?P<month>[01]?\d)-(?P<day>[0-3]?\d)\b")
_DATE = re.compile(r"\b(?P<day>[0-3]?\d)(?P<sign>[./])(?P<month>[0-3]?\d)(?P=sign)(?P<year>[12]\d{3})\b")
_DOTTED = re.compile(r"\b([ap])\.\s?m\b(?:\.(?!\s+[A-Z]))?", re.IGNORECASE)  # not the end of a sentence
_TIME = re.compile(
    r"\b([01]?\d|2[0-4])(?: ?h ?|[.](?=[0-5]\d ?(?:[ap]m|uhr|h)\b))([0-5]\d)(?:\b|(?=[ap]m\b))( ?h\b)?", re.IGNORECASE
)
_FULL_HOUR, _SPACED_THOUSANDS = (
    re.compile(r"(?<=\d)(?::00\b(?!:)| o['’]clock\b)"),
    re.compile(r"(?<=\d) (?=\d{3}(?!\d))"),
)
# One number, and no date or list.
_WITH_POINT = re.compile(r"\d+[.:]\d+|\d+,\d{1,3}|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+(?:,\d+)?")
# Times in the afternoon, by either clock.
_LATE, _PM = (
    re.compile(r"\b(1[2-9]|2[0-3])(?:[:.h]00|[:.h]([0-5]\d))\b"),
    re.compile(r"\b(\d{1,2})(?:[:.]00|[:.]([0-5]\d))? ?p\.?m\b", re.IGNORECASE),
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
    codes = _find_codes(text)
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
            named = (capitals and word[0].isupper() and not opens) or word in codes
            if named and low in proper:
                found.append(Term(word, word, "name"))
            elif low not in stop:
                found.append(Term(word, _fold(stem), "name" if named else "word"))
        opens = (word in _SENTENCE_END and before not in _TITLES) or (opens and not word[0].isalnum())
        before = low
    if not language.spaced:
        grams = (gram for run in _UNSPACED_RUN.findall(text) for gram in language.cut_content(run))
        found += (Term(gram, gram, "word") for gram in grams)
    found += (Term(code, code.casefold(), "name") for code in codes)
    return tuple(found)


def write_plainly(text: str) -> str:
    """Return a text with numbers in one form.

    `9:30` for "9.30 a.m." and "9 h 30", `9` for "9:00", `2.5` for "2½" and "2 1/2", `11000` for "$11k", and
    `30 June 2024` for "2024-06-30" if it is clear which number is the month.
    """
    text = unicodedata.normalize("NFKC", _FRACTION.sub(_write_fraction, text))
    if not _DIGIT.search(text):
        return text
    if half := dialog_language().pattern("and_half"):
        text = re.sub(rf"(?<=\d){half.pattern}", ".5", text, flags=re.IGNORECASE)
    text = _SCALED.sub(_write_scaled, _ISO_DATE.sub(_write_date, _DATE.sub(_write_date, text)))
    text = _FULL_HOUR.sub("", _TIME.sub(r"\1:\2\3", _DOTTED.sub(r"\1m", text)))
    # English parts no thousands by spaces, and has numbers beside each other (“in 2020 500 people”).
    return text if dialog_language().code == "en" else _SPACED_THOUSANDS.sub("", text)


def _write_fraction(found: re.Match[str]) -> str:
    whole, sign, top, bottom = found.groups()
    part = Fraction(unicodedata.numeric(sign)).limit_denominator(10) if sign else Fraction(int(top), int(bottom))
    return f"{int(whole or 0) + float(part):g}"


def _write_scaled(found: re.Match[str]) -> str:
    number, letters = filter(None, found.groups())
    scale = {"k": 3, "m": 6, "b": 9}[letters[0].casefold()]
    return f"{Decimal(number.replace(',', '.')).scaleb(scale):f}"


def _write_date(found: re.Match[str]) -> str:
    parts, language = found.groupdict(), dialog_language()
    day, month = int(parts["day"]), int(parts["month"])
    if parts.get("sign") == "/" and language.code == "en":
        day, month = (month, day) if day <= 12 else (day, month)
        month = 0 if day <= 12 else month  # the fifth of June, or the sixth of May
    known = language.months and 1 <= month <= 12
    return f"{day} {language.months[month - 1]} {parts['year']}" if known else found.group()


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
    # The 5 of 0.5 is no number by itself, nor is that of 5:30.
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
    return keys.union(numbers, map(_fold, same), grams, short, proper, map(str.casefold, _find_codes(text)))


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


def _find_codes(text: str) -> list[str]:
    return _CODE.findall(text) if _MAYBE_CODE.search(text) else []


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
    found, half = list[tuple[int, int, str, bool]](), dialog_language().pattern("and_half")
    scaled = {match.end() + 1: match for match in _NUMBER.finditer(text)}
    for first, end, digits, ordinal in find_numerals([word.casefold() for word, _ in tokens]):
        start, last = tokens[first][1], tokens[end - 1]
        number = _DECIMAL.fullmatch(_digits(before.group())) if (before := scaled.get(start)) else None
        if before and number and _SCALE.fullmatch(digits):
            start, digits = before.start(), _digits(f"{Decimal(number.group()) * int(digits):f}")
        stop = last[1] + len(last[0])
        if digits.isdigit() and (more := half and half.match(text, stop)):
            stop, digits = more.end(), f"{digits}.5"
        found.append((start, stop, digits, ordinal))
    return found


def _find_times(text: str) -> Iterator[str]:
    """Yield what times in the afternoon are by the other clock: `5:30` and `pm` for "17:30", `17` for "5 p.m."."""
    for hour, minutes in _LATE.findall(text):
        yield from (_join_time((int(hour) - 1) % 12 + 1, minutes), "pm", "p", "m")
    for hour, minutes in _PM.findall(text):
        yield _join_time(int(hour) % 12 + 12, minutes)


def _join_time(hour: int, minutes: str) -> str:
    return f"{hour}:{minutes}" if minutes else str(hour)


def _round(number: str) -> Iterator[str]:
    """Yield a large number in one to three figures, rounded and cut off, as one says it."""
    whole = number.partition(".")[0]
    if whole.isdigit() and _FEWEST_DIGITS <= len(whole) <= _MOST_DIGITS:
        for unit in (10 ** (len(whole) - figures) for figures in (1, 2, 3)):
            yield from (str((int(whole) + more) // unit * unit) for more in (0, unit // 2))


def _digits(number: str) -> str:
    number = "".join(str(unicodedata.digit(c)) if c.isdigit() else c for c in number)
    if ":" in number:
        return number.lstrip("0") if number[1] != ":" else number
    whole, point, fraction = _THOUSANDS.sub("", number).replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")
