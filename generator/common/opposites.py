"""Find where a text has the opposite of a word of its sources: “the pool is closed in July” for “is open”."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.support import ends_sentence, read_tokens, stem_words, term_keys


class _Sentence(NamedTuple):
    """A sentence, its words' stems in their order, how they are spelt, and which of them tell something.

    Attributes:
        denied: which of them a “not” denies: those up to the next that tells something.
        things: the stems that tell something and are neither numbers nor their units.
    """

    stems: tuple[str, ...]
    spelt: tuple[str, ...]
    denied: tuple[bool, ...]
    content: frozenset[str]
    things: frozenset[str]
    text: str

    @property
    def denies(self) -> bool:
        """True if it denies anything, by other words than one that has an opposite itself (“forbidden”)."""
        negation = dialog_language().pattern("negation", self.text)
        found = [match[0].casefold() for match in negation.finditer(self.text)] if negation else []
        return any(stem not in _opposites() for stem in stem_words(found))


def find_opposites(text: str, sources: Sequence[str]) -> list[str]:
    """Return the words of a text in whose place its sources have the opposite (the list `opposites` of the language).

    A sentence is compared with those that have half of its other content words, two at least, not only numbers. One of
    these that has the word, or denies where it doesn't, may say the same; so may any that shares three and has the word
    before the same one (“a different name”), and “B is slower than A” of “A is faster than B”. Limits (“at least”) are
    left to `denials`.
    """
    opposites = _opposites()
    words = stem_words([word.casefold() for word, *_ in read_tokens(text)[1]])
    others = frozenset().union(*(opposites.get(word, ()) for word in words))
    if not others or all(others.isdisjoint(term_keys(source)) for source in sources):  # most have none
        return []
    said = [sentence for sentence in _read(text) if not opposites.keys().isdisjoint(sentence.stems)]
    told = [sentence for source in sources for sentence in _read(source)] if said else []
    return [word for sentence in said for word in _find(sentence, told, opposites)]


def _find(said: _Sentence, told: list[_Sentence], opposites: Mapping[str, frozenset[str]]) -> Iterator[str]:
    for place, stem in enumerate(said.stems):
        others = opposites.get(stem, frozenset())
        if not others or not others.isdisjoint(said.stems):
            continue
        about, phrase = said.content - {stem}, (stem, *said.stems[place + 1 : place + 2])
        near = [each for each in told if len(about & each.content) > 2]
        if not about.isdisjoint(phrase[1:]) and any(phrase in [*pairwise(each.stems)] for each in near):
            continue
        alike = [each for each in told if _is_alike(about, said.things & each.things, each)]
        same = {stem}.union(*(opposites[other] for other in others)).difference({*said.stems} - {stem})
        if any(not same.isdisjoint(each.stems) or each.denies != said.denies for each in alike):
            continue
        if any(_contradicts(each, said, place, others) and not _is_turned(said, each) for each in alike):
            yield said.spelt[place]


def _is_alike(about: frozenset[str], things: frozenset[str], told: _Sentence) -> bool:
    shared = len(about & told.content)
    return shared > 1 and 2 * shared >= len(about) and not things.isdisjoint(about)


def _contradicts(told: _Sentence, said: _Sentence, place: int, others: frozenset[str]) -> bool:
    """Return True if a sentence has an opposite of a word, both denied or neither: “not easy” is “difficult”.

    The “New” of “New York” is none.
    """
    return any(
        stem in others and denied == said.denied[place] and not _begins_name(told.spelt[at : at + 2])
        for at, (stem, denied) in enumerate(zip(told.stems, told.denied, strict=True))
    )


def _begins_name(words: Sequence[str]) -> bool:
    return dialog_language().capitals and len(words) > 1 and all(word[0].isupper() for word in words)


def _is_turned(said: _Sentence, told: _Sentence) -> bool:
    """Return True if a sentence compares the same things in another order."""
    shared = said.content & told.content
    mine, theirs = ([stem for stem in each.stems if stem in shared] for each in (said, told))
    return mine != theirs and dialog_language().matches("comparison", said.text)


@cached_by_language(64)
def _opposites() -> Mapping[str, frozenset[str]]:
    found = dict[str, frozenset[str]]()
    for pair in dialog_language().opposites:
        one, other = (frozenset(stem_words([*words])) for words in pair)
        found.update({stem: found.get(stem, frozenset()) | other for stem in one})
        found.update({stem: found.get(stem, frozenset()) | one for stem in other})
    return found


@cached_by_language(4096)
def _read(text: str) -> tuple[_Sentence, ...]:
    language, (text, tokens) = dialog_language(), read_tokens(text)
    limit, negation = language.pattern("limit", text), language.pattern("negation", text)
    limits = {at for each in (limit.finditer(text) if limit else ()) for at in range(*each.span())}
    denials = [each.span() for each in negation.finditer(text)] if negation else []
    found, words = list[_Sentence](), list[tuple[str, int, bool, bool]]()
    denied, measured = False, False  # by a “not” before it; whether a number stands right before
    for spelt, key, start, is_number in [*tokens, (".", "", len(text), False)]:
        if key:
            while denials and denials[0][1] <= start:
                denied = bool(denials.pop(0))
            if start not in limits:
                words.append((spelt, start, denied, is_number or measured))
            denied = denied and spelt.casefold() in language.idle
        elif words and ends_sentence(spelt, words[-1][0]):
            stems = stem_words([word.casefold() for word, *_ in words])
            telling = {
                stem: measures
                for stem, (word, *_, measures) in zip(stems, words, strict=True)
                if word.casefold() not in language.idle
            }
            things = frozenset(stem for stem, measures in telling.items() if not measures)
            spelt_words, denials_of = tuple(word for word, *_ in words), tuple(each[2] for each in words)
            found.append(
                _Sentence(tuple(stems), spelt_words, denials_of, frozenset(telling), things, text[words[0][1] : start])
            )
            words = []
        denied, measured = denied and bool(key), is_number
    return tuple(found)
