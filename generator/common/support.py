"""Find what a text says that its sources don't: content words, numbers and names; no model is asked.

Words are compared by their English stems, without function words; in scripts without spaces each letter is a word.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from generator.common.passages import TOKEN
from generator.common.shingles import is_english, stem_words, words

# A number, and letters that follow it (`1980s`, `20th`); a name such as `B12` is a word.
_NUMBER = re.compile(r"(?<!\w)\d+(?:[.,]\d+)*(?=[^\W\d_]{0,2}\b)")
_THOUSANDS = re.compile(r"[.,](?=\d{3}(?!\d))")
# Not "one", which is a pronoun more often.
_NUMERALS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety"
_NUMBER_WORDS = {
    **{word: str(number) for number, word in enumerate(_NUMERALS.split(), start=2)},
    **{word: str(10 * number) for number, word in enumerate(_TENS.split(), start=3)},
    "zero": "0",
}
# Beside bm25s's English stop words, words of dialog and those that say how sure something is.
_LITTLE = (
    "also although among around another away back can cannot could did didn does doesn don done else especially etc "
    "even ever every get gets getting got however indeed instead know just let like likely ll lot lots made make makes "
    "many may maybe me might mine much must need never nor oh ok okay one ones onto per perhaps please possible quite "
    "rather re really s said say says see seem seems shall since so something sometimes still sure t tell thank thanks "
    "therefore thing things though thus together too try upon us use used using usually ve very via want way ways well "
    "whether whose within without would yes yet you"
)
# Texts with fewer words may have none by which one sees that they are English.
_TOO_SHORT = 5
_SOME_LENGTH = 40
_SENTENCE_END = frozenset(".!?:;…\"“”'‘’()[]*#•-–—\n")


class Unsupported(NamedTuple):
    """A text's words, numbers and names that no source has, as it spells them, each once; a name is not a word."""

    words: tuple[str, ...]
    numbers: tuple[str, ...]
    names: tuple[str, ...]


class Term(NamedTuple):
    """A content word or number of a text.

    Attributes:
        text: as the text spells it.
        key: what makes it equal to others: the stem, or the digits of a number (`1200` for "1,200", `12` for "twelve").
        kind: `word`, `number`, or `name` for a word that is capitalised inside a sentence.
    """

    text: str
    key: str
    kind: str


@lru_cache(maxsize=8192)
def read_terms(text: str) -> tuple[Term, ...]:
    """Return the content words and numbers of a text in their order."""
    found: list[Term] = []
    text = unicodedata.normalize("NFKC", text)
    spelt = [(match.group(), match.start()) for match in TOKEN.finditer(text)]
    stems = stem_words([word.casefold() for word, _ in spelt])
    numbers = {match.start(): match for match in _NUMBER.finditer(text)}
    end, opens = 0, True  # the end of the last number; whether a sentence begins here
    for (word, start), stem in zip(spelt, stems, strict=True):
        if number := numbers.get(start):
            end = number.end()
            found.append(Term(number.group(), _digits(number.group()), "number"))
        elif start >= end and word[0].isalnum() and (low := word.casefold()) not in _stop_words():
            if low in _NUMBER_WORDS:
                found.append(Term(word, _NUMBER_WORDS[low], "number"))
            else:
                found.append(Term(word, stem, "name" if word[0].isupper() and not opens else "word"))
        opens = word in _SENTENCE_END or (opens and not word[0].isalnum())
    return tuple(found)


@lru_cache(maxsize=8192)
def term_keys(text: str) -> frozenset[str]:
    """Return the keys of all words and numbers of a text, function words too: what it supports."""
    low = [word.casefold() for word in TOKEN.findall(unicodedata.normalize("NFKC", text))]
    return frozenset((*stem_words(low), *(term.key for term in read_terms(text)), *(["1"] if "one" in low else [])))


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


def shares_nothing(text: str, sources: Sequence[str]) -> bool:
    """Return True if a text has content words or numbers, and none of them is in a source.

    In another language than that of the sources a text shares few words with them whatever it says, and so it may in
    other words than theirs if they are a sentence or two: false unless the sources are English and of some length, and
    the text English too or too short to tell.
    """
    wanted, known = {term.key for term in read_terms(text)}, " ".join(sources)
    if not wanted or not is_english(known) or (len(words(text)) > _TOO_SHORT and not is_english(text)):
        return False
    if len(words(known)) < _SOME_LENGTH:
        return False
    return not any(wanted & term_keys(source) for source in sources)


def coverage(text: str, sources: Sequence[str]) -> float:
    """Return the share of a text's different content words and numbers that a source has, 0 to 1; 1 if it has none."""
    wanted, keys = {term.key for term in read_terms(text)}, [term_keys(source) for source in sources]
    return sum(any(key in of for of in keys) for key in wanted) / len(wanted) if wanted else 1.0


def _digits(number: str) -> str:
    whole, point, fraction = _THOUSANDS.sub("", number).replace(",", ".").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset((*STOPWORDS_EN_PLUS, *_LITTLE.split()))
