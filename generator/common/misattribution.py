"""Find where a text gives a number of its sources to another thing: “110 minutes in turbo mode” for “110 minutes in
quiet mode and 70 minutes in turbo mode”.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, compress, groupby
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.numbers import drop_item_numbers, has_digits
from generator.common.sentences import sentences
from generator.common.support import ends_sentence, parse_text, read_terms, read_tokens, term_keys
from generator.common.units import kind_of_unit

_MARKS = frozenset(",;:、，،；：")
_TIME = "time"
_WRAPPED = re.compile(r"\n(?=[\da-zß-öø-ÿ])")  # no new sentence
_YEAR = re.compile(r"1\d{3}|20\d\d")  # without a unit it counts nothing
_CELL_END, _ROW = re.compile(r" ?\| "), re.compile(r"^\|( .*) \|$")  # “a | b”, “| b”, “| a | b |”
_CODE = re.compile(r"[^\W\d_]-(?=\d)")
# Words of an answer's part that are another sentence's and not those of the number's own, at least.
_COPIED = 2
_Token = tuple[str, str, int, bool]  # as `read_tokens` returns it


class _Value(NamedTuple):
    """A number, how it is spelt with its unit, and what that measures, or None."""

    key: str
    spelt: str
    kind: str | None


class _Row(NamedTuple):
    """A row of a table: the words and numbers of its first cell, and the numbers of each of the others."""

    label: frozenset[str]
    cells: tuple[frozenset[str], ...]

    @property
    def numbers(self) -> frozenset[str]:
        return frozenset[str]().union(*self.cells)


class _Part(NamedTuple):
    """A part of a sentence with a number, or with several of a kind that no comma or “and” with words behind it parts.

    Attributes:
        words: its content words.
        sentence: the number of its sentence.
    """

    values: tuple[_Value, ...]
    words: frozenset[str]
    sentence: int

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(value.key for value in self.values)


def find_misattributed(text: str, question: str, sources: Sequence[str]) -> list[str]:
    """Return the numbers of a text that its sources have of something else than it says, or than was asked.

    Wherever they have the number, they have another of its kind (minutes and hours, pounds) with words that the text or
    the question has and the number's own place lacks. Sentences with a “not” aren't looked at.
    """
    language = dialog_language()
    if not parse_text(text)[3] or not language.spaced:  # most have no number; letters aren't words
        return []
    if language.matches("negation", text):  # “It isn't 110 minutes in turbo mode”
        parted = (text[start:end] for start, end in sentences(text))
        text = " ".join(each for each in parted if not language.matches("negation", each))
    parts, told = _read(text), [_read(source) for source in sources]
    # Who says what isn't meant asks for none of its words.
    asked = frozenset[str]() if language.matches("negation", question) else term_keys(question)
    found = list[str]()
    for said in parts:
        for value in said.values:
            places = [(own, each) for each in told for own in each if value.key in own.keys]
            if places and all(
                any(_is_of(other, said, own, parts, asked) for other in each if _is_rival(other, value, said, own))
                for own, each in places
            ):
                found.append(value.spelt)
    tables = [table for source in sources for table in _read_tables(source)]
    if not tables:
        return found
    beside = [line for source in sources for line in source.split("\n") if " | " not in line]
    rows = (_find_of_other_rows(text[start:end], asked, tables, beside) for start, end in sentences(text))
    return [*found, *(number for row in rows for number in row if number not in found)]


def _find_of_other_rows(
    sentence: str, asked: frozenset[str], tables: Sequence[Sequence[_Row]], beside: Sequence[str]
) -> list[str]:
    """Return the numbers of a sentence that stand in other rows of a table than the one that it names.

    The row that it names, or else the question, has other numbers in that column, and none of the sentence's own. What
    another row has that it names, too, is that row's, unless it lists both (“for books and films”). One that a line
    beside the tables has, with another word or number of the sentence, needs no row.
    """
    terms = read_terms(sentence)
    numbers = {term.key: term.text for term in terms if term.kind == "number" and has_digits(term.text)}
    keys = {term.key for term in terms}
    told = [keys & term_keys(line) for line in beside] if numbers else []
    numbers = {key: spelt for key, spelt in numbers.items() if not any(key in line and len(line) > 1 for line in told)}
    found = list[str]()
    for table in tables if numbers else ():
        named = [row for row in table if row.label <= keys]
        if not named and len(meant := [row for row in table if row.label <= asked]) == 1:
            named = meant
        labels = frozenset[str]().union(*(row.label for row in named))
        places = [place for place, term in enumerate(terms) if term.key in labels]
        listed = not places or places[-1] - places[0] < len(places)
        theirs = frozenset[str]() if listed else frozenset[str]().union(*(row.numbers for row in named))
        for row in named:
            if row.numbers.isdisjoint(numbers) and not any(row.label < other.label for other in named):
                columns = zip(*(other.cells for other in table), strict=True)
                others = frozenset[str]().union(*chain.from_iterable(compress(columns, row.cells))) - row.label - theirs
                found.extend(spelt for key, spelt in numbers.items() if key in others and spelt not in found)
    return found


def _is_rival(other: _Part, value: _Value, said: _Part, own: _Part) -> bool:
    """Return True if a part of a source has a number of the same kind, and none that the text has beside this one."""
    kind = next(each.kind for each in own.values if each.key == value.key)
    alike = kind is not None and value.kind in (kind, None) and any(each.kind == kind for each in other.values)
    return alike and said.keys.isdisjoint(other.keys - own.keys)


def _is_of(other: _Part, said: _Part, own: _Part, parts: Sequence[_Part], asked: frozenset[str]) -> bool:
    """Return True if a text says of a part of its sources what these say of their own part."""
    mine, theirs = own.words - other.words, other.words - own.words
    if own.sentence != other.sentence:
        return len(theirs & said.words) >= _COPIED and said.words <= other.words
    # The question alone tells what is meant only if the answer has one part.
    told = theirs & said.words or (theirs and len(parts) == 1)
    return bool(told) and theirs <= said.words | asked and not mine <= said.words | asked


@cached_by_language(4096)
def _read(text: str) -> tuple[_Part, ...]:
    """Return the parts of a text's sentences that have numbers."""
    tokens = (
        sentence
        for line in _WRAPPED.sub(" ", drop_item_numbers(text)).split("\n")
        for sentence in _list_sentences(line)
    )
    return tuple(part for number, sentence in enumerate(tokens) for part in _list_parts(sentence, number))


@cached_by_language(4096)
def _read_tables(text: str) -> tuple[tuple[_Row, ...], ...]:
    """Return the tables of a text without their heads: rows of the same length, one behind the other, with a label."""
    rows = filter(None, map(str.strip, text.split("\n"))) if " | " in text else ()
    lines = [_CELL_END.split(_ROW.sub(r"\1", row)) for row in rows]
    tables = (list(rows) for size, rows in groupby(lines, len) if size > 1)
    return tuple(tuple(row for row in map(_read_row, table[1:]) if row.label) for table in tables)


def _read_row(cells: Sequence[str]) -> _Row:
    label, *others = (read_terms(cell) for cell in cells)
    numbers = (frozenset(term.key for term in cell if term.kind == "number") for cell in others)
    return _Row(frozenset(term.key for term in label), tuple(numbers))


def _list_sentences(line: str) -> Iterator[Sequence[_Token]]:
    """Yield the words and marks of each sentence; “first” and “one” are words, and so is the 44 of “MV-44”."""
    idle, ordinals = dialog_language().idle, {start for start, *_, ordinal in parse_text(line)[3] if ordinal}
    sentence, before = list[_Token](), ""
    text, tokens = read_tokens(line)
    words = {match.end() for match in _CODE.finditer(text)} | ordinals
    for spelt, key, start, is_number in tokens:
        if not key and spelt not in _MARKS and ends_sentence(spelt, before):
            yield sentence
            sentence = []
        else:
            sentence.append((spelt, key, start, is_number and start not in words and spelt.casefold() not in idle))
        before = spelt
    yield sentence


def _list_parts(sentence: Sequence[_Token], number: int) -> Iterator[_Part]:
    """Yield the parts of a sentence; what stands between two commas without a number belongs to none of them."""
    joins, idle = dialog_language().listed("joining"), dialog_language().idle
    values, before, behind = list[_Value](), set[str](), set[str]()
    aside: set[str] | None = None  # the words behind a comma, until the next number
    past, kind = 0, None
    for at, (spelt, key, _, is_number) in enumerate(sentence):
        if at < past:
            continue
        if is_number:
            kind, start, past = _read_unit(sentence, at, kind)
            if aside is not None and (behind or aside or kind != values[-1].kind):
                yield _Part(tuple(values), frozenset(before | behind), number)
                values, before, behind = [], aside, set()
            values.append(_Value(key, " ".join(word for word, *_ in sentence[start:past]), kind))
            aside = None
        elif spelt in _MARKS or spelt.casefold() in joins:
            aside = set() if values else None
        elif key and spelt.casefold() not in idle:
            (before if not values else behind if aside is None else aside).add(key)
    if values:
        yield _Part(tuple(values), frozenset(before | behind), number)


def _read_unit(sentence: Sequence[_Token], at: int, last: str | None) -> tuple[str | None, int, int]:
    """Return what the unit of a number measures, and where both begin and end; “ten” behind “two days” has the same.

    It is a sign before the number, one of the next two words, or else any word behind it, by its stem.
    """
    key, passed = sentence[at][1], dialog_language().idle | dialog_language().listed("joining")
    if at and not sentence[at - 1][1] and (kind := kind_of_unit(sentence[at - 1][0])):
        return kind, at - 1, at + 1
    behind = list[_Token]()
    for word, stem, start, is_number in sentence[at + 1 : at + 3]:
        if is_number or word.casefold() in passed or not (stem or kind_of_unit(word)):
            break
        behind.append((word, stem, start, is_number))
        if kind := kind_of_unit(word):
            return _TIME if ":" in key else kind, at, at + 1 + len(behind)
    if ":" in key:
        return _TIME, at, at + 1
    if _YEAR.fullmatch(key):
        return None, at, at + 1
    return (behind[0][1], at, at + 2) if behind else (last, at, at + 1)
