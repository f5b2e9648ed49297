"""Find where a text contradicts its sources: “isn't refunded” for “is refunded”, “after breakfast” for “before” it."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.support import ends_sentence, read_tokens

# A denial; one that only says which things are meant (“letters that aren't answered”), or on what condition.
_DENIED, _RESTRICTS = "not", "that not"
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
    """A sentence, or a part of one: its content words, whether it denies anything, and keys of what it excepts."""

    terms: tuple[_Term, ...]
    denies: bool
    excepted: frozenset[str]


def find_flips(text: str, sources: Sequence[str]) -> list[str]:
    """Return the words of a text of which it says the contrary of its sources.

    It denies them where its sources say the same without a “not”, or the other way round; or has “at least” or “before”
    for “at most” or “after” (the pattern `limit` of the language).

    Its clauses are compared with sentences that have half of their content words; one of these that agrees suffices.
    Clauses that are a small part of a long text say too little to find the sentence that they are of.
    """
    language = dialog_language()
    negates = any(language.matches("negation", each) for each in (text, *sources))
    limits = language.matches("limit", text)
    flips = list[str]()
    told = [part for each in sources for part in _read(each, "", limits)] if negates or limits else []
    for marks, wanted in ((",", negates), ("", limits)):
        clauses = _read(text, marks, limits) if wanted else ()
        size, keys = sum(len(each.terms) for each in clauses), {term.key for each in clauses for term in each.terms}
        for each in (each for each in clauses if len(each.terms) * 3 >= size):
            flips += _find_denials(each, told, keys) if marks else _find_limits(each, told)
    return flips


def _list_alike(clause: _Part, told: Sequence[_Part]) -> list[tuple[_Part, set[str]]]:
    keys = {term.key for term in clause.terms}
    alike = [(sentence, keys.intersection(term.key for term in sentence.terms)) for sentence in told]
    return [
        (sentence, shared)
        for sentence, shared in alike
        # Two things may be used by the same people.
        if 2 * len(shared) >= len(keys) and len(shared if shared == keys else shared - {_USE}) > 1
    ]


def _find_denials(clause: _Part, told: Sequence[_Part], of_text: set[str]) -> Iterator[str]:
    """Yield the words that a clause denies and sentences like it don't, or the other way round.

    Args:
        of_text: the keys of the text that the clause is of. It may speak of what a sentence excepts.
    """
    alike = _list_alike(clause, told)
    # “Wait an hour before you swim” doesn't say that you swim.
    for place, term in enumerate(clause.terms):
        if not term.marks.keys().isdisjoint((_BEFORE, _RESTRICTS)):
            continue
        if term.denied and any(each.denied or _RESTRICTS in each.marks for each in clause.terms[:place]):
            continue  # “That doesn't mean that dogs aren't allowed.”
        beside = {clause.terms[at].key for at in (place - 1, place + 1) if 0 <= at < len(clause.terms)}
        like = [sentence for sentence, shared in alike if term.key in shared]
        # Where both deny something they may well say the same: “may not be used” and “prohibits to use”.
        like = [] if clause.denies and any(sentence.denies for sentence in like) else like
        # “It isn't refunded, unless the ship is late” says both.
        like = [] if any(sentence.excepted & of_text for sentence in like) else like
        if like and not term.number and not any(term.denied in _denials(term.key, beside, each.terms) for each in like):
            yield f"not {term.spelt}" if term.denied else term.spelt


def _denials(key: str, beside: set[str], sentence: Sequence[_Term]) -> set[bool]:
    """Return whether a sentence denies a word: if it does and doesn't, as it does beside the same neighbours."""
    found = [
        (denied, place)
        for place, term in enumerate(sentence)
        if term.key == key
        for denied in ((True, False) if _RESTRICTS in term.marks else (term.denied,))
    ]
    near = {
        denied
        for denied, place in found
        if any(sentence[at].key in beside for at in (place - 1, place + 1) if 0 <= at < len(sentence))
    }
    return near or {denied for denied, _ in found}


def _find_limits(clause: _Part, told: Sequence[_Part]) -> Iterator[str]:
    alike, keys = _list_alike(clause, told), {term.key for term in clause.terms}
    near = [each for each in told if len({term.key for term in each.terms} & keys) > 1]
    for term in clause.terms:
        said, agreed = _limits(term.key, clause, [each for each, _ in alike]), _limits(term.key, clause, near)
        for mark, spelt in term.marks.items():
            if _CONTRARY.get(mark) in said and mark not in agreed:
                yield f"{spelt} {term.spelt}"


def _limits(key: str, clause: _Part, told: Sequence[_Part]) -> set[str]:
    """Return the limits that sentences have of a word; where only one denies, “nobody under 18” is “from 18 on”."""
    like = (each.terms for each in told if each.denies == clause.denies)
    return {mark for terms in like for term in terms if term.key == key for mark in term.marks}


@cached_by_language(4096)
def _read(text: str, marks: str, limits: bool) -> tuple[_Part, ...]:
    """Return the sentences of a text, or the parts of them between these marks; with limits if these are asked for."""
    language = dialog_language()
    text, tokens = read_tokens(text)
    limit, negation = limits and language.pattern("limit", text), language.pattern("negation", text)
    found = [(*each.span(), str(each.lastgroup), each[0]) for each in limit.finditer(text)] if limit else []
    inside = {at for start, end, *_ in found for at in range(start, end)}
    # “No more than” denies nothing.
    denials = (each for each in negation.finditer(text) if each.start() not in inside) if negation else ()
    marked = ((each, _RESTRICTS if _restricts(tokens, each.start()) else _DENIED) for each in denials)
    found = sorted([*found, *((*each.span(), mark, each[0]) for each, mark in marked)])
    exception = language.pattern("exception", text)
    exceptions = [each.end() for each in exception.finditer(text)] if exception else []
    parts, terms, denies, said, before = list[_Part](), list[_Term](), False, dict[str, str](), ""
    excepted, usual = set[str](), None  # the keys behind an exception, and those before it
    for word, key, start, is_number in tokens:
        while found and start >= found[0][1]:
            _, _, mark, spelt = found.pop(0)
            denies = denies or mark in (_DENIED, _RESTRICTS)
            if mark.endswith(_BEHIND):  # “12 months or more”
                more = {mark.removesuffix(_BEHIND): spelt}
                terms[-2:] = (term._replace(marks={**term.marks, **more}) for term in terms[-2:])
            elif mark != _DENIED or word.casefold() not in language.listed("clause"):  # “Not while …” denies no more
                said = {**said, mark: spelt}
        if exceptions and start >= exceptions[0]:
            usual = {term.key for term in terms}
            exceptions.pop(0)
        if key and (word.casefold() not in language.idle or key == _USE):
            if start not in inside:
                terms.append(_Term(key, word, said, is_number))
                said = {}
                if usual is not None and key not in usual:
                    excepted.add(key)
        elif not key and (word in marks or ends_sentence(word, before)):
            parts.append(_Part(tuple(terms), denies, frozenset(excepted)))
            terms, denies, said, excepted, usual = [], False, {}, set(), None
        elif word in ",;":  # “those without, while …”, “can't be made up, but …”
            said.pop(_DENIED, None)
        before = word
    denies = denies or any(mark in (_DENIED, _RESTRICTS) for _, _, mark, _ in found)
    parts.append(_Part(tuple(terms), denies, frozenset(excepted)))
    return tuple(part for part in parts if part.terms)


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
