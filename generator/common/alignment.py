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


class _Words(NamedTuple):
    """The words of a text, with an end around each sentence: of each its key, its spelling, and what it is."""

    keys: tuple[str, ...]
    spelt: tuple[str, ...]
    tells: tuple[bool, ...]
    is_number: tuple[bool, ...]


class _Slot(NamedTuple):
    """A place between equal words: `size` words from `at` in the text, and as many from `place` in the source."""

    at: int
    place: int
    size: int
    context: int
    telling: int


def find_swaps(text: str, sources: Sequence[str]) -> list[Swap]:
    """Return the words of a text in whose place a source has others, if it has them nowhere in as long a context."""
    mine, found = _read(text), dict[int, tuple[_Slot, _Words]]()
    told = [_read(source) for source in sources]
    for source, words in zip(sources, told, strict=True):
        for slot in _find_slots(mine, words, _index(source)):
            best = found.get(slot.at)
            if best is None or best[0].context < slot.context:
                found[slot.at] = slot, words
    return [swap for slot, words in found.values() if (swap := _to_swap(mine, slot, words, told, sources))]


@cached_by_language(4096)
def _read(text: str) -> _Words:
    """Return the words of a text but those in brackets, which may be left out."""
    idle, end = dialog_language().idle, (_END, "", False, False)
    found, aside = [end], False
    for spelt, key, _, is_number in read_tokens(text)[1]:
        if spelt in "()":
            aside = spelt == "("
        elif aside:
            continue
        elif key:
            found.append((key, spelt, spelt.casefold() not in idle, is_number))
        elif found[-1] is not end and ends_sentence(spelt, found[-1][1]):
            found.append(end)
    return _Words(*zip(*found, *[end] * (found[-1] is not end), strict=True))


@cached_by_language(4096)
def _index(text: str) -> Mapping[tuple[str, str], list[int]]:
    """Return where each two words stand beside each other."""
    places = defaultdict[tuple[str, str], list[int]](list)
    for place, (one, other) in enumerate(pairwise(_read(text).keys)):
        places[one, other].append(place)
    return places


def _find_slots(text: _Words, source: _Words, index: Mapping[tuple[str, str], list[int]]) -> Iterator[_Slot]:
    for at, pair in enumerate(pairwise(text.keys)):
        for place in index.get(pair, ()):
            yield from _slot_beside(text, source, at, place, -1)
            yield from _slot_beside(text, source, at + 1, place + 1, 1)


def _slot_beside(text: _Words, source: _Words, at: int, place: int, step: int) -> Iterator[_Slot]:
    """Yield the slot beside two equal words in a direction, if there is one, with what is equal on both sides of it."""
    for size in range(LONGEST + 1):
        end, stop = at + step * (size + 1), place + step * (size + 1)
        if not (0 <= end < len(text.keys) and 0 <= stop < len(source.keys)):
            return
        if text.keys[end] == source.keys[stop]:
            if size:
                (before, mine), (behind, more) = (
                    _run(text, source, at, place, -step),
                    _run(text, source, end, stop, step),
                )
                if before + behind >= LEAST_WORDS and mine + more >= max(LEAST_TELLING, size):
                    yield _Slot(min(at, end) + 1, min(place, stop) + 1, size, before + behind, mine + more)
            return
        if not (text.tells[end] and source.tells[stop] and text.is_number[end] == source.is_number[stop]):
            return


def _run(text: _Words, source: _Words, at: int, place: int, step: int) -> tuple[int, int]:
    """Return how many words are the same from here on, and how many of them tell something; a sentence's end counts."""
    count = telling = 0
    while 0 <= at < len(text.keys) and 0 <= place < len(source.keys) and text.keys[at] == source.keys[place]:
        count, telling = count + 1, telling + text.tells[at]
        if text.keys[at] == _END:
            break
        at, place = at + step, place + step
    return count, telling


def _to_swap(text: _Words, slot: _Slot, source: _Words, told: Sequence[_Words], sources: Sequence[str]) -> Swap | None:
    """Return the swap that a slot is, or None if its words say the same, or are of the same list."""
    mine, others = slice(slot.at, slot.at + slot.size), slice(slot.place, slot.place + slot.size)
    keys = text.keys[mine]
    known = all(any(key in words.keys for words in told) for key in keys)
    in_another_form = not known and all(any(key in term_keys(each) for each in sources) for key in keys)
    if in_another_form or not set(keys).isdisjoint(source.keys[others]) or _enumerates(source, slot, keys):
        return None
    if any(_context_of_own(text, slot, words) >= slot.context for words in told):
        return None
    spelt, other = " ".join(text.spelt[mine]), " ".join(source.spelt[others])
    return Swap(spelt, other, slot.context, known, text.is_number[slot.at])


def _context_of_own(text: _Words, slot: _Slot, source: _Words) -> int:
    """Return the most words that are the same around the text's own words where a source has them."""
    behind = slot.at + slot.size
    keys = text.keys[slot.at : behind]
    return max(
        (
            _run(text, source, slot.at - 1, place - 1, -1)[0] + _run(text, source, behind, place + slot.size, 1)[0]
            for place, key in enumerate(source.keys)
            if key == keys[0] and source.keys[place : place + slot.size] == keys
        ),
        default=0,
    )


def _enumerates(source: _Words, slot: _Slot, keys: Sequence[str]) -> bool:
    """Return True if the words stand in the same list as those in their place: “art and decoration”."""
    for step, at in ((-1, slot.place), (1, slot.place + slot.size - 1)):
        joints = 0
        while 0 <= at < len(source.keys) and source.keys[at] != _END and joints <= 1:
            if source.keys[at] in keys:
                return True
            joints += not source.tells[at]
            at += step
    return False
