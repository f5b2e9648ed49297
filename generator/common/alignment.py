"""Find where a text has another word than its sources between the same words: “the state tax” for “the federal tax”."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.support import ends_sentence, read_tokens, term_keys

LONGEST = 3  # words that stand in place of as many others
# So many words around them are the same, on both sides together, and so many of these tell something. Less is chance.
LEAST_WORDS, LEAST_TELLING = 4, 2
_END = "."


class Swap(NamedTuple):
    """Words of a text that stand where a source has others.

    Attributes:
        text, source: the words of the text, and those of the source.
        context: how many words around them are the same, of the sentence and its end.
        known: whether the sources have the words of the text elsewhere.
        number: whether they are numbers.
    """

    text: str
    source: str
    context: int
    known: bool
    number: bool


class _Word(NamedTuple):
    key: str
    spelt: str
    tells: bool
    number: bool


class _Slot(NamedTuple):
    """A place between equal words: `size` words from `at` in the text, and as many from `place` in the source."""

    at: int
    place: int
    size: int
    context: int
    telling: int


def find_swaps(text: str, sources: Sequence[str]) -> list[Swap]:
    """Return the words of a text in whose place a source has others, if it has them nowhere in as long a context."""
    mine, found = _read(text), dict[int, tuple[_Slot, Sequence[_Word]]]()
    told = [_read(source) for source in sources]
    for source, words in zip(sources, told, strict=True):
        for slot in _find_slots(mine, words, _index(source)):
            best = found.get(slot.at)
            if best is None or best[0].context < slot.context:
                found[slot.at] = slot, words
    return [swap for slot, words in found.values() if (swap := _to_swap(mine, slot, words, told, sources))]


@cached_by_language(4096)
def _read(text: str) -> tuple[_Word, ...]:
    """Return the words of a text but those in brackets, which may be left out, with an end around each sentence."""
    idle, end = dialog_language().idle, _Word(_END, "", False, False)
    found, aside = [end], False
    for token in read_tokens(text)[1]:
        if token.text in "()":
            aside = token.text == "("
        elif aside:
            continue
        elif token.key:
            found.append(_Word(token.key, token.text, token.text.casefold() not in idle, token.number))
        elif found[-1] is not end and ends_sentence(token.text, found[-1].spelt):
            found.append(end)
    return (*found, end) if found[-1] is not end else tuple(found)


@cached_by_language(4096)
def _index(text: str) -> Mapping[tuple[str, str], list[int]]:
    """Return where each two words stand beside each other."""
    places = defaultdict[tuple[str, str], list[int]](list)
    for place, (one, other) in enumerate(pairwise(_read(text))):
        places[one.key, other.key].append(place)
    return places


def _find_slots(
    text: Sequence[_Word], source: Sequence[_Word], index: Mapping[tuple[str, str], list[int]]
) -> Iterator[_Slot]:
    for at, (one, other) in enumerate(pairwise(text)):
        for place in index.get((one.key, other.key), ()):
            yield from _slot_beside(text, source, at, place, -1)
            yield from _slot_beside(text, source, at + 1, place + 1, 1)


def _slot_beside(text: Sequence[_Word], source: Sequence[_Word], at: int, place: int, step: int) -> Iterator[_Slot]:
    """Yield the slot beside two equal words in a direction, if there is one, with what is equal on both sides of it."""
    for size in range(LONGEST + 1):
        end, stop = at + step * (size + 1), place + step * (size + 1)
        if not (0 <= end < len(text) and 0 <= stop < len(source)):
            return
        if text[end].key == source[stop].key:
            if size:
                (before, mine), (behind, more) = (
                    _run(text, source, at, place, -step),
                    _run(text, source, end, stop, step),
                )
                if before + behind >= LEAST_WORDS and mine + more >= max(LEAST_TELLING, size):
                    yield _Slot(min(at, end) + 1, min(place, stop) + 1, size, before + behind, mine + more)
            return
        if not (text[end].tells and source[stop].tells and text[end].number == source[stop].number):
            return


def _run(text: Sequence[_Word], source: Sequence[_Word], at: int, place: int, step: int) -> tuple[int, int]:
    """Return how many words are the same from here on, and how many of them tell something; a sentence's end counts."""
    count = telling = 0
    while 0 <= at < len(text) and 0 <= place < len(source) and text[at].key == source[place].key:
        count, telling = count + 1, telling + text[at].tells
        if text[at].key == _END:
            break
        at, place = at + step, place + step
    return count, telling


def _to_swap(
    text: Sequence[_Word], slot: _Slot, source: Sequence[_Word], told: Sequence[Sequence[_Word]], sources: Sequence[str]
) -> Swap | None:
    """Return the swap that a slot is, or None if its words say the same, or are of the same list."""
    mine, others = text[slot.at : slot.at + slot.size], source[slot.place : slot.place + slot.size]
    keys = [word.key for word in mine]
    known = all(any(word.key == key for words in told for word in words) for key in keys)
    in_another_form = not known and all(any(key in term_keys(each) for each in sources) for key in keys)
    if in_another_form or not set(keys).isdisjoint(word.key for word in others) or _enumerates(source, slot, keys):
        return None
    if any(_context_of_own(text, slot, words) >= slot.context for words in told):
        return None
    spelt, other = (" ".join(word.spelt for word in of) for of in (mine, others))
    return Swap(spelt, other, slot.context, known, mine[0].number)


def _context_of_own(text: Sequence[_Word], slot: _Slot, source: Sequence[_Word]) -> int:
    """Return the most words that are the same around the text's own words where a source has them."""
    keys, behind = [word.key for word in text[slot.at : slot.at + slot.size]], slot.at + slot.size
    return max(
        (
            _run(text, source, slot.at - 1, place - 1, -1)[0] + _run(text, source, behind, place + slot.size, 1)[0]
            for place, word in enumerate(source)
            if word.key == keys[0] and [each.key for each in source[place : place + slot.size]] == keys
        ),
        default=0,
    )


def _enumerates(source: Sequence[_Word], slot: _Slot, keys: Sequence[str]) -> bool:
    """Return True if the words stand in the same list as those in their place: “art and decoration”."""
    for step, at in ((-1, slot.place), (1, slot.place + slot.size - 1)):
        joints = 0
        while 0 <= at < len(source) and source[at].key != _END and joints <= 1:
            if source[at].key in keys:
                return True
            joints += not source[at].tells
            at += step
    return False
