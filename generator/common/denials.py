"""Find what a text denies and its sources say, or the other way round: “isn't refunded” beside “is refunded”."""

from collections.abc import Sequence
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.support import ends_sentence, read_tokens

_REACH = 4  # words without content that may stand between “not” and what it denies (“not have to be paid”)


class _Term(NamedTuple):
    key: str
    spelt: str
    denied: bool
    number: bool


class _Part(NamedTuple):
    """A sentence, or a part of one: its content words, and whether it denies anything."""

    terms: tuple[_Term, ...]
    denies: bool


def find_flips(text: str, sources: Sequence[str]) -> list[str]:
    """Return the words of a text that it denies where its sources say the same without a “not”, or the other way round.

    Its clauses are compared with sentences that have half of their content words; one of these that agrees suffices.
    Clauses that are a small part of a long text say too little to find the sentence that they are of. Empty where the
    language has no pattern of negations.
    """
    if not any(dialog_language().matches("negation", each) for each in (text, *sources)):
        return []
    clauses = _read(text, ",")
    size = sum(len(clause.terms) for clause in clauses)
    told = [sentence for source in sources for sentence in _read(source, "")]
    return [flip for clause in clauses if len(clause.terms) * 3 >= size for flip in _find_in_clause(clause, told)]


def _find_in_clause(clause: _Part, told: Sequence[_Part]) -> list[str]:
    keys = {term.key for term in clause.terms}
    alike = [(sentence, keys.intersection(term.key for term in sentence.terms)) for sentence in told]
    alike = [(sentence, shared) for sentence, shared in alike if len(shared) > 1 and 2 * len(shared) >= len(keys)]
    flips = []
    for place, term in enumerate(clause.terms):
        beside = {clause.terms[at].key for at in (place - 1, place + 1) if 0 <= at < len(clause.terms)}
        like = [sentence for sentence, shared in alike if term.key in shared]
        # Where both deny something they may well say the same: “may not be used” and “prohibits to use”.
        like = [] if clause.denies and any(sentence.denies for sentence in like) else like
        if like and not term.number and not any(term.denied in _denials(term.key, beside, each.terms) for each in like):
            flips.append(f"not {term.spelt}" if term.denied else term.spelt)
    return flips


def _denials(key: str, beside: set[str], sentence: Sequence[_Term]) -> set[bool]:
    """Return whether a sentence denies a word: if it does and doesn't, as it does beside the same neighbours."""
    found = [(term.denied, place) for place, term in enumerate(sentence) if term.key == key]
    near = {
        denied
        for denied, place in found
        if any(sentence[at].key in beside for at in (place - 1, place + 1) if 0 <= at < len(sentence))
    }
    return near or {denied for denied, _ in found}


@cached_by_language(4096)
def _read(text: str, marks: str) -> tuple[_Part, ...]:
    """Return the sentences of a text, or the parts of them between these marks."""
    language = dialog_language()
    text, tokens = read_tokens(text)
    negation = language.pattern("negation", text)
    ends = [found.end() for found in negation.finditer(text)] if negation else []
    parts, terms, denies, reach, before = list[_Part](), list[_Term](), False, 0, ""
    for word, key, start, is_number in tokens:
        while ends and start >= ends[0]:
            del ends[0]
            denies, reach = True, _REACH + 1
        if key and word.casefold() not in language.idle:
            terms.append(_Term(key, word, reach > 0, is_number))
            reach = 0
        elif key:
            reach -= 1
        elif word in marks or ends_sentence(word, before):
            parts.append(_Part(tuple(terms), denies))
            terms, denies, reach = [], False, 0
        elif word in ",;":
            reach = 0
        before = word
    parts.append(_Part(tuple(terms), denies or bool(ends)))
    return tuple(part for part in parts if part.terms)
