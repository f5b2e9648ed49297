"""Find where a text contradicts its sources: “isn't refunded” for “is refunded”, “after breakfast” for “before” it."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.scripts import has_question_mark
from generator.common.support import ends_sentence, read_tokens

# A denial; an exception, which is also a “not” that only says what is meant: “letters that aren't answered”, “if not”.
_DENIED, _EXCEPTS = "not", "except"
# Tells nothing by itself, but is what “must not be used in the pool” denies.
_USE = "use"
# The groups of the pattern `limit`, and what each contradicts.
_BEHIND, _BEFORE = "_behind", "before"
_CONTRARY = {"least": "most", "most": "least", _BEFORE: "after", "after": _BEFORE}


class _Term(NamedTuple):
    """A content word or number, and what is said of it: `not`, or a group of the pattern `limit`, as it is spelt."""

    key: str
    spelt: str
    marks: Mapping[str, str]
    number: bool

    @property
    def denied(self) -> bool:
        return _DENIED in self.marks


class _Part(NamedTuple):
    """A sentence, or a part of one: its content words, whether it denies anything, and whether it excepts something.

    `lacks` are the words by which it says that something isn't there (“absent”).
    """

    terms: tuple[_Term, ...]
    denies: bool
    excepts: bool
    lacks: frozenset[str]

    def denies_unlike(self, other: "_Part", key: str) -> bool:
        """Return whether it denies anything, or says that something is absent in a word that isn't `key` or theirs."""
        return self.denies or bool(self.lacks - other.lacks - {key})


def find_flips(text: str, sources: Sequence[str]) -> list[str]:
    """Return the words of a text of which it says the contrary of its sources.

    It denies them where its sources say the same without a “not”, or the other way round; or has “at least” or “before”
    for “at most” or “after” (the pattern `limit` of the language).

    Its clauses are compared with sentences that have half of their content words; one of these that agrees suffices.
    Clauses that are a small part of a long text say too little to find the sentence that they are of.
    """
    language = dialog_language()
    limits = language.matches("limit", text)
    if not limits and not any(language.matches("negation", each) for each in (text, *sources)):
        return []
    told, clauses = [part for each in sources for part in _read(each, "")], _read(text, ",")
    size = sum(len(each.terms) for each in clauses)
    telling = [each for each in clauses if len(each.terms) * 3 >= size]
    said = {(term.key, term.denied) for each in clauses for term in each.terms}
    return [word for each in telling for word in (*_find_denials(each, told, said), *_find_limits(each, told))]


def _list_alike(clause: _Part, told: Sequence[_Part]) -> list[tuple[_Part, set[str]]]:
    keys = {term.key for term in clause.terms}
    alike = [(sentence, keys.intersection(term.key for term in sentence.terms)) for sentence in told]
    return [
        (sentence, shared)
        for sentence, shared in alike
        # Two things may be used by the same people.
        if 2 * len(shared) >= len(keys) and len(shared if shared == keys else shared - {_USE}) > 1
    ]


def _find_denials(clause: _Part, told: Sequence[_Part], said: Set[tuple[str, bool]]) -> Iterator[str]:
    """Yield the words that a clause denies and sentences like it don't, or the other way round.

    Args:
        said: the words of the whole text, and whether it denies them: what it does both to is of two things.
    """
    alike, denied = _list_alike(clause, told), sum(term.denied for term in clause.terms)
    for term in () if clause.excepts else clause.terms:
        if term.number or _BEFORE in term.marks or (term.denied and denied > 1) or (term.key, not term.denied) in said:
            continue  # “Wait before you swim” doesn't say that you swim, nor “it's not that dogs aren't allowed” either
        like = [sentence for sentence, shared in alike if term.key in shared]
        # Where both deny something they may well say the same: “may not be used” and “prohibits to use”. “It isn't
        # refunded, unless the ship is late” says both.
        if any(
            sentence.excepts or (clause.denies_unlike(sentence, term.key) and sentence.denies_unlike(clause, term.key))
            for sentence in like
        ):
            continue
        if like and not any(
            (each.key, each.denied) == (term.key, term.denied) for sentence in like for each in sentence.terms
        ):
            yield f"not {term.spelt}" if term.denied else term.spelt


def _find_limits(clause: _Part, told: Sequence[_Part]) -> Iterator[str]:
    # Where only one denies, “nobody under 18” is “from 18 on”.
    alike = [sentence for sentence, _ in _list_alike(clause, told) if sentence.denies == clause.denies]
    keys = {term.key for term in clause.terms}
    near = [each for each in told if len({term.key for term in each.terms} & keys) > 1]
    for term in clause.terms:
        said, agreed = _limits(term.key, alike), _limits(term.key, near)
        for mark, spelt in term.marks.items():
            if _CONTRARY.get(mark) in said and mark not in agreed:
                yield f"{spelt} {term.spelt}"


def _limits(key: str, told: Sequence[_Part]) -> set[str]:
    """Return the limits that sentences have of a word."""
    return {mark for each in told for term in each.terms if term.key == key for mark in term.marks}


@cached_by_language(4096)
def _read(text: str, marks: str) -> tuple[_Part, ...]:
    """Return the sentences of a text, or the parts of them between these marks."""
    language = dialog_language()
    text, tokens = read_tokens(text)
    limit = language.pattern("limit", text)
    found = [(*each.span(), str(each.lastgroup), each[0]) for each in limit.finditer(text)] if limit else []
    inside = {at for start, end, *_ in found for at in range(start, end)}
    for mark, pattern in (
        (_DENIED, language.pattern("negation", text)),
        (_EXCEPTS, language.pattern("exception", text)),
    ):
        others = pattern.finditer(text) if pattern else ()
        for each in (each for each in others if each.start() not in inside):  # “no more than”
            found.append((*each.span(), _EXCEPTS if _restricts(tokens, each.start()) else mark, each[0]))
    found.sort()
    parts, terms, of_part, said, before = list[_Part](), list[_Term](), set[str](), dict[str, str](), ""
    for word, key, start, is_number in [*tokens, (".", "", len(text), False)]:
        while found and start >= found[0][1]:
            _, _, mark, spelt = found.pop(0)
            of_part.add(mark)
            if mark.endswith(_BEHIND):  # “12 months or more”
                more = {mark.removesuffix(_BEHIND): spelt}
                terms[-2:] = (term._replace(marks={**term.marks, **more}) for term in terms[-2:])
            elif mark != _DENIED or word.casefold() not in language.listed("clause"):  # “Not while …” denies no more
                said = {**said, mark: spelt}
        if key and (word.casefold() not in language.idle or key == _USE):
            if start not in inside:
                terms.append(_Term(key, word, said, is_number))
                said = {}
        elif not key and (word in marks or ends_sentence(word, before)):
            if terms and not has_question_mark(word):  # a question says nothing
                lacks = frozenset(term.key for term in terms if term.spelt.casefold() in language.listed("absent"))
                parts.append(_Part(tuple(terms), _DENIED in of_part, _EXCEPTS in of_part, lacks))
            goes_on = word == ":" and terms and _DENIED in said  # “An appeal is not: …”
            said = {_DENIED: said[_DENIED]} if goes_on else {}
            terms, of_part = [], {*said}
        elif word in ",;":  # “those without, while …”, “can't be made up, but …”
            said.pop(_DENIED, None)
        before = word
    return tuple(parts)


def _restricts(tokens: Sequence[tuple[str, str, int, bool]], start: int) -> bool:
    """Return True if a “not” that starts there stands right behind “that”, “who” or “if”, but for “is” or “does”.

    Behind a comma it tells something: “…, which isn't refunded.”
    """
    language = dialog_language()
    place = bisect_left(tokens, start, key=lambda token: token[2]) - 1
    while place >= 0 and tokens[place][0].casefold() in language.listed("auxiliary"):
        place -= 1
    openers = language.listed("clause") | language.listed("question")
    return place > 0 and tokens[place][0].casefold() in openers and tokens[place - 1][0] not in ",;:"
