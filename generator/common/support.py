"""Find what a text says that its sources don't: content words, numbers and names; no model is asked.

Words are compared by their stems, without function words, in the dialog's language; where no spaces part words, by
their pairs of letters.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import NamedTuple, cast

from generator.common.language import cached_by_language, dialog_language, languages
from generator.common.language_file import Language
from generator.common.numbers import (
    NUMBER,
    SCALE,
    SPACED,
    WITH_POINT,
    drop_item_numbers,
    has_digits,
    list_pointed_times,
    other_times,
    round_off,
    write_digits,
    write_plainly,
)
from generator.common.numerals import find_numerals
from generator.common.passages import find_tokens
from generator.common.scripts import find_runs, words

# What mostly counts what was just named, if it is in words and no unit is behind it.
COUNTS = frozenset("23")
_WORD_BEHIND = re.compile(r"[ -](\w+)")
_UNIT = re.compile(r"(?<=\d)[^\W\d_]{1,4}\b")
# A name made for programs, which another one doesn't stand for: `max_retries`, `maxRetries`, `--force`, an address.
_CODE = re.compile(r"[\w.+-]+@[\w-]+(?:\.\w+)+|(?<![\w-])--\w[\w-]*|\b[^\W\d_]+_\w+|\b[a-z]+[A-Z][A-Za-z]+\b")
_MAYBE_CODE = re.compile(r"[@_A-Z-](?:(?<=[@_])|(?<=--)|(?<=[a-z][A-Z]))")  # faster than to begin with what is common
# What such a name is: an error in `UnicodeDecodeError`.
_HEAD = re.compile(r"[A-Z](?<=[a-z][A-Z])[a-z]+\b")  # faster than to begin with what is common
# A decade (`1970s`, `1970er`), with the number by which its short form is known; and that (`the '70s`, `70er`).
_DECADE = re.compile(r"\b(?:1\d|20)(\d0)(?: ?['’]? ?s|ern?)\b")
_SHORT_DECADE = re.compile(r"(?<=['’])\d0(?=s\b)|\b\d0(?=ern?\b)")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
# Names of several words; their initials are short for them (`NYC`, `WWI`).
_LONG_NAME = re.compile(r"\b[A-Z][\w-]*(?: (?:of |the |and |for )?[A-Z][\w-]*)+")
_MOST_INITIALS = 5
_ACCENTS = re.compile("[\u0300-\u036f]")
_DECIMAL = re.compile(r"\d+(?:\.\d+)?")
_CLOCK, _POINT_OR_COLON = re.compile(r"(?:[01]?\d|2[0-4])[.:][0-5]\d"), str.maketrans(".:", ":.")  # “alle 18.30”
# Texts with fewer words may have none by which one sees their language.
_TOO_SHORT = 5
_SOME_LENGTH = 40
_SHORTEST_PART = 4  # letters of the stem of a word that is joined to another
_MOST_STEMS = 100_000  # that are kept
_CLAUSE_END = re.compile(r"[.,;:!?\n]")
_PARTICLE = re.compile(r"(?<=[A-Za-z])[가-힣](?![가-힣])")  # of Korean, behind a name: “CSV로”
_TITLES = frozenset(("dr", "mr", "mrs", "ms", "prof", "st"))  # whose full stop ends no sentence
_FULL_STOP = frozenset(".!?。！？؟।:;…")
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


@cached_by_language(64)  # those of one answer
def parse_text(text: str) -> tuple[str, list[tuple[str, int]], list[str], list[tuple[int, int, str, bool]]]:
    """Return a text, plain; tokens with starts; these in lower case; numbers: start, end, digits, whether ordinal."""
    plain, half = write_plainly(text), dialog_language().pattern("and_half")
    tokens = [(match.group(), match.start()) for match in find_tokens(plain)]
    lows = [word.casefold() for word, _ in tokens]
    in_digits = NUMBER.finditer(plain) if has_digits(plain) else ()
    numbers = [(*match.span(), write_digits(match.group()), False) for match in in_digits]
    scaled = {end + 1: (start, digits) for start, end, digits, _ in numbers}
    for first, last, digits, ordinal in find_numerals(lows):  # “thirty-five”, “8.5 million”, “two and a half”
        start, end = tokens[first][1], tokens[last - 1][1] + len(tokens[last - 1][0])
        if (before := scaled.get(start)) and SCALE.fullmatch(digits) and _DECIMAL.fullmatch(before[1]):
            spelt = plain[before[0] : start - 1]  # English “8.336 million” has no thousands
            number = spelt if dialog_language().code == "en" and _DECIMAL.fullmatch(spelt) else before[1]
            start, digits = before[0], f"{(Decimal(number) * int(digits)).normalize():f}"
        if digits.isdigit() and half and (more := half.match(plain, end)):
            end, digits = more.end(), f"{digits}.5"
        numbers.append((start, end, digits, ordinal))
    return plain, tokens, lows, numbers


@cached_by_language(8192)
def read_terms(text: str) -> tuple[Term, ...]:
    """Return the content words and numbers of a text in their order, without the numbers of a list's items."""
    language = dialog_language()
    stop, proper, spaced, capitals = language.idle, language.listed("proper"), language.spaced, language.capitals
    found: list[Term] = []
    text, tokens, lows, numbered = parse_text(drop_item_numbers(text))
    codes = _find_codes(text)
    numbers = {at: Term(text[at:end], digits, "word" if rank else "number") for at, end, digits, rank in numbered}
    end, opens, before = 0, True, ""  # the end of the last number; whether a sentence begins here; the last word
    for (word, start), low, stem in zip(tokens, lows, stem_words(lows), strict=True):
        number = numbers.get(start)
        if start >= end and number and number.text.casefold() not in stop:
            end = start + len(number.text)
            unit = _WORD_BEHIND.match(text, end) if number.key in COUNTS and number.text.isalpha() else None
            if unit and unit[1].casefold() in language.units:
                number = number._replace(text=text[start : unit.end()])  # “three months”
            found.append(number._replace(key=f"{number.key}s") if _DECADE.match(text, start) else number)
            if low[len(number.text) :] in ("a", "b"):  # Gate 12b; other letters are units and endings
                found.append(Term(word, low, "name"))
        elif start >= end and word[0].isalnum() and (spaced or not find_runs(word)[0][1]):
            if not spaced and (runs := find_runs(word))[-1][1]:  # “Calc에서” is Calc
                stem = runs[0][0]
            named = (capitals and word[0].isupper() and not opens) or word in codes
            if named and low in proper:
                found.append(Term(word, word, "name"))
            elif low not in stop:
                found.append(Term(word, stem, "name" if named else "word"))
        opens = (word in _SENTENCE_END and before not in _TITLES) or (opens and not word[0].isalnum())
        before = low
    if not language.spaced:
        runs = find_runs(_PARTICLE.sub(" ", text))
        grams = (gram for _, run in runs if run for gram in language.cut_content(run))
        found += (Term(gram, gram, "word") for gram in grams)
    found += (Term(code, code.casefold(), "name") for code in codes)
    return tuple(found)


def content_keys(text: str) -> set[str]:
    """Return the keys of the content words, names and numbers of a text."""
    return {term.key for term in read_terms(text)}


@cached_by_language(64)  # a passage's are asked for twice
def read_tokens(text: str) -> tuple[str, list[tuple[str, str, int, bool]]]:
    """Return a text with numbers in one form, and its words, numbers and marks in their order, function words too.

    Of each its spelling, its key (empty for a mark), where it starts, and whether it is a number.
    """
    text, words, lows, numbered = parse_text(text)
    numbers = {start: (end, digits) for start, end, digits, _ in numbered}
    found, past = list[tuple[str, str, int, bool]](), 0
    for (word, start), stem in zip(words, stem_words(lows), strict=True):
        if start >= past and start in numbers:
            past, digits = numbers[start]
            found.append((text[start:past], digits, start, True))
        elif start >= past:
            found.append((word, stem if word[0].isalnum() else "", start, False))
    return text, found


def ends_sentence(mark: str, before: str) -> bool:
    """Return True if a mark ends a sentence behind a word, which may be an initial or a title (“Dr.”).

    In German a digit may be a day of the month (“5. Mai”).
    """
    is_digit = before.isdigit() and dialog_language().code != "de"
    is_short = (len(before) == 1 and before.isalnum() and not is_digit) or before.casefold() in _TITLES
    return mark in _FULL_STOP and not (mark == "." and is_short)


@cached_by_language(8192)
def term_keys(text: str) -> frozenset[str]:
    """Return the keys of all words and numbers of a text, function words too: what it supports.

    Short forms are among them: the initials of a name (`NYC`), a decade's last digits (`the '70s`), and what a large
    number is in round figures (`8500000` for "8,537,673").
    """
    language, (text, tokens, lows, numbered) = dialog_language(), parse_text(text)
    hour = language.pattern("hour")  # else a number counts something: “fifteen guests”
    # The 5 of 0.5 is no number by itself, nor is that of 5:30.
    parts = {at for start, end, *_ in numbered if WITH_POINT.fullmatch(text, start, end) for at in range(start, end)}
    spelt = {word for word, start in tokens if start not in parts}
    low = {low for low, (_, start) in zip(lows, tokens, strict=True) if start not in parts}
    numbers = [digits for _, _, digits, _ in numbered]
    if has_digits(text):
        low.update(unit.casefold() for unit in _UNIT.findall(text))  # “8GB” supports “8 GB”
        numbers += [number.replace(" ", "") for number in SPACED.findall(text)]
        numbers += _DECADE.findall(text)
        numbers += [f"{century}{decade}s" for decade in _SHORT_DECADE.findall(text) for century in (19, 20)]
        numbers += [f"{digits[:3]}0s" for digits in numbers if _YEAR.fullmatch(digits)]  # 1987 supports “the 1980s”
    keys = frozenset(stem_words([*low]))
    for start, end, digits, _ in numbered:
        if language.code != "en" and _CLOCK.fullmatch(text, start, end):
            numbers.append(write_digits(text[start:end].translate(_POINT_OR_COLON)))
        if ":" in digits:
            numbers += other_times(digits, text[end : end + 3].strip().casefold())
        elif len(digits) <= 2 and (not hour or hour.match(text, end)):
            numbers.append(f"{digits}:00")
    for time in list_pointed_times(text) if language.code == "en" else ():
        time = write_digits(time.translate(_POINT_OR_COLON))
        numbers += (time, *(each for each in other_times(time, "") if not each.isdigit()))
    known = _same_by_word()
    same = [each for word in known.keys() & {*low, *numbers, *spelt} for each in known[word]]
    numbers += [rounded for number in numbers for rounded in round_off(number)]
    grams = () if language.spaced else (*language.cut(text), *content_keys(text))
    short = _find_initials(text) if language.capitals else ()
    proper = (word for word in spelt if word[0].isupper() and word.casefold() in language.listed("proper"))
    parted = stem_words([*_join_verbs(text), *map(str.casefold, _HEAD.findall(text))])
    return keys.union(numbers, same, grams, short, proper, parted, map(str.casefold, _find_codes(text)))


def _join_verbs(text: str) -> Iterator[str]:
    """Yield each word of a clause joined with the part of a verb at its end: one of them is the verb."""
    parted = dialog_language().pattern("parted")
    for part in parted.finditer(text) if parted else ():
        *_, clause = _CLAUSE_END.split(text[: part.start()])
        yield from (f"{part[0].casefold()}{word}" for word in words(clause))


def find_unsupported(text: str, sources: Sequence[str]) -> Unsupported:
    """Return the content words, numbers and names of a text that none of the sources has."""
    missing: dict[str, Term] = {}
    for term in find_new(read_terms(text), sources):
        missing.setdefault(term.key, term)
    kinds = ("word", "number", "name")
    return Unsupported(*(tuple(term.text for term in missing.values() if term.kind == kind) for kind in kinds))


def find_new(terms: Sequence[Term], sources: Sequence[str]) -> Sequence[Term]:
    """Return the terms that none of the sources has, as words of their own or joined to others."""
    for source in sources:
        if not terms:
            break
        keys = term_keys(source)
        terms = [term for term in terms if term.key not in keys and not (term.kind == "word" and joins(term.key, keys))]
    return terms


def joins(stem: str, keys: Collection[str]) -> bool:
    """Return True if a longer word among the keys begins or ends with a stem: “Ausweis” of “Jahresausweis”."""
    if not dialog_language().compounds or len(stem) < _SHORTEST_PART:
        return False
    return any(len(key) > len(stem) + 2 and (key.startswith(stem) or key.endswith(stem)) for key in keys)


@cached_by_language(64)
def _same_by_word() -> dict[str, frozenset[str]]:
    """Return the keys of what says the same as each word of `same`."""
    found: dict[str, frozenset[str]] = {}
    for group in dialog_language().same:
        keys = frozenset(stem_words([each.casefold() for each in group]))
        found.update({word: found.get(word, frozenset()) | keys for word in group})
    return found


def shares_nothing(text: str, sources: Sequence[str], least: int = 1) -> bool:
    """Return True if a text has at least so many content words or numbers, and none of them is in a source.

    In another language than that of the sources a text shares few words with them whatever it says, and so it may in
    other words than theirs if they are a sentence or two: false unless the sources are of some length and, like the
    text, in the language of the dialog; of a text that is too short to tell this is taken for granted.
    """
    wanted, language = content_keys(text), dialog_language()
    if len(wanted) < least or languages().differ or any(wanted & term_keys(source) for source in sources):
        return False
    if len(words(text)) > _TOO_SHORT and not language.is_in(text):
        return False
    known = " ".join(sources)
    return len(words(known)) >= _SOME_LENGTH and language.is_in(known)


def coverage(text: str, sources: Sequence[str]) -> float:
    """Return the share of a text's different content words and numbers that a source has, 0 to 1; 1 if it has none."""
    wanted, keys = content_keys(text), [term_keys(source) for source in sources]
    return sum(any(key in of for of in keys) for key in wanted) / len(wanted) if wanted else 1.0


def stem_words(words: list[str]) -> list[str]:
    """Return the stems of words without accents, which people leave out, and in one spelling (`color` of "colour")."""
    known = _known_stems(dialog_language())
    stems = list(map(known.get, words))
    if None not in stems:
        return cast(list[str], stems)
    new = [word for word, stem in zip(words, stems, strict=True) if stem is None]
    found = dict(zip(new, _stem(new), strict=True))
    if len(known) > _MOST_STEMS:
        known.clear()
    known.update(found)
    return [found[word] if stem is None else stem for word, stem in zip(words, stems, strict=True)]


@cache
def _known_stems(language: Language) -> dict[str, str]:
    """Return the stems found so far by their words: texts have the same few words again and again."""
    return {}


def _stem(words: list[str]) -> list[str]:
    language = dialog_language()
    if language.code == "en":  # “Beyoncé” has the end of no English word; elsewhere stems depend on accents
        words = [_drop_accents(word) for word in words]
    stems = _drop_accents("\n".join(language.stem(words)))
    for end, other in language.spelling.items():
        stems = re.sub(end, other, stems, flags=re.MULTILINE)
    return stems.split("\n")


def _drop_accents(text: str) -> str:
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    return text.replace("œ", "oe").replace("æ", "ae")


def _find_codes(text: str) -> list[str]:
    return _CODE.findall(text) if _MAYBE_CODE.search(text) else []


def _find_initials(text: str) -> Iterator[str]:
    """Yield the initials of names of two words and more, and of their parts, in small letters."""
    for name in _LONG_NAME.findall(text):
        letters = "".join(word[0] for word in name.split() if word[0].isupper()).casefold()
        for length in range(2, _MOST_INITIALS + 1):
            yield from (letters[first : first + length] for first in range(len(letters) - length + 1))
