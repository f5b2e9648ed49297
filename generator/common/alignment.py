"""Find where a text has other words than its sources between the same words: “the state tax” for “the federal tax”."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from generator.common.language import cached_by_language, dialog_language
from generator.common.support import ends_sentence, read_tokens

_LONGEST = 3  # content words that stand in place of others
# So many content words around them are the same, on both sides together, and with the ends of parts such a share of the
# text. So near each other words may be of the same list.
_LEAST, _SHARE, _NEAR = 3, 0.75, 2
_END = "."


class Swap(NamedTuple):
    """Words of a text that stand where a source has others.

    Attributes:
        text, source: the content words of the text, and those of the source.
        number: whether they are numbers.
    """

    text: str
    source: str
    number: bool


class _Word(NamedTuple):
    key: str
    spelt: str
    number: bool


class _Slot(NamedTuple):
    """Hold what a text has between equal words, what the source has there, and where that is.

    Attributes:
        context, words: how many words and ends are equal, and how many words alone.
    """

    mine: tuple[_Word, ...]
    others: tuple[_Word, ...]
    source: tuple[_Word, ...]
    place: int
    context: int
    words: int

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(word.key for word in self.mine)

    @property
    def other_keys(self) -> tuple[str, ...]:
        return tuple(word.key for word in self.others)


def find_swaps(text: str, sources: Sequence[str]) -> list[Swap]:
    """Return the words of a text in whose place a source has others, if they have them elsewhere in no such context.

    The text has to be that source's for the most part. Function words don't count.
    """
    mine, found = _read(text), dict[tuple[int, int], _Slot]()
    told = [_read(source) for source in sources]
    for source, words in zip(sources, told, strict=True):
        for at, slot in _find_slots(mine, words, _index(source)):
            found.setdefault((at, len(slot.mine)), slot)
    pairs, swaps = {(slot.keys, slot.other_keys) for slot in found.values()}, list[Swap]()
    for (at, size), slot in found.items():
        length = len(mine) - 1 - size
        exchanged = (slot.other_keys, slot.keys) in pairs and 2 * slot.context >= length
        known = all(any(key == word.key for words in told for word in words) for key in slot.keys)
        copied = known and slot.words >= _LEAST and (exchanged or _is_copied(slot, length))
        if copied and all(_context_of_own(mine, at, slot, words) < slot.context for words in told):
            mine_spelt, others_spelt = (" ".join(word.spelt for word in of) for of in (slot.mine, slot.others))
            swaps.append(Swap(mine_spelt, others_spelt, all(word.number for word in (*slot.mine, *slot.others))))
    return swaps


@cached_by_language(4096)
def _read(text: str) -> tuple[_Word, ...]:
    """Return the content words of a text, with an end around each part of a sentence; those in brackets are one."""
    idle, end = dialog_language().idle, _Word(_END, "", False)
    found, aside, inside = [end], [end], False
    text, tokens = read_tokens(text)
    title = text.find("\n")  # a line without a full stop
    for spelt, key, start, is_number in tokens:
        if -1 < title < start:
            title = -1
            found += [end] * (found[-1] is not end)
        words = aside if inside else found
        if spelt in "()":
            inside = spelt == "("
        elif key and spelt.casefold() not in idle:
            words.append(_Word(key, spelt, is_number))
        elif not key and words[-1] is not end and (spelt in ",:" or ends_sentence(spelt, words[-1].spelt)):
            words.append(end)
    parts = [words for words in (found, aside) if words != [end]]
    return tuple(word for words in parts for word in (*words, *[end] * (words[-1] is not end)))


@cached_by_language(4096)
def _index(text: str) -> Mapping[str, list[int]]:
    """Return where each content word stands, and each end."""
    places = defaultdict[str, list[int]](list)
    for place, word in enumerate(_read(text)):
        places[word.key].append(place)
    return places


def _find_slots(
    text: Sequence[_Word], source: tuple[_Word, ...], index: Mapping[str, list[int]]
) -> Iterator[tuple[int, _Slot]]:
    """Yield the slots behind equal words, with where they are in the text."""
    mine, others = [word.key for word in text], [word.key for word in source]
    for at, key in enumerate(mine[:-2], 1):
        for place in index.get(key, ()):
            if place + 2 < len(others) and mine[at] != others[place + 1] and _END not in (mine[at], others[place + 1]):
                yield from ((at, slot) for slot in _slots_at(text, source, at, place + 1))


def _slots_at(text: Sequence[_Word], source: tuple[_Word, ...], at: int, place: int) -> Iterator[_Slot]:
    for end in range(at + 1, min(at + _LONGEST + 1, len(text))):
        for stop in range(place + 1, min(place + _LONGEST + 1, len(source))):
            if text[end].key == source[stop].key and text[at].number == source[place].number:
                mine, others = tuple(text[at:end]), source[place:stop]
                before, behind = _run(text, source, at - 1, place - 1, -1), _run(text, source, end, stop, 1)
                count = before[1] + behind[1]
                if count > 1 and {word.key for word in mine}.isdisjoint(word.key for word in others):
                    yield _Slot(mine, others, source, place, before[0] + behind[0], count)
            if source[stop].key == _END:
                break
        if text[end].key == _END:
            return


def _run(text: Sequence[_Word], source: Sequence[_Word], at: int, place: int, step: int) -> tuple[int, int]:
    """Return how many words and ends are the same from here to the end of the part, and how many words."""
    count = ends = 0
    while 0 <= at < len(text) and 0 <= place < len(source) and text[at].key == source[place].key:
        count += 1
        if ends := int(text[at].key == _END):
            break
        at, place = at + step, place + step
    return count, count - ends


def _is_copied(slot: _Slot, length: int) -> bool:
    """Return True if a text of so many other words and ends is a source's but for a slot, and no list goes on there."""
    near = slot.source[max(0, slot.place - _NEAR) : slot.place + len(slot.others) + _NEAR]
    return slot.context > _LEAST and slot.context >= _SHARE * length and not any(word.key in slot.keys for word in near)


def _context_of_own(text: Sequence[_Word], at: int, slot: _Slot, source: Sequence[_Word]) -> int:
    """Return the most words that are the same around the text's own words where a source has them."""
    behind, size = at + len(slot.mine), len(slot.mine)
    return max(
        (
            _run(text, source, at - 1, place - 1, -1)[0] + _run(text, source, behind, place + size, 1)[0]
            for place, word in enumerate(source)
            if word.key == slot.keys[0] and tuple(each.key for each in source[place : place + size]) == slot.keys
        ),
        default=0,
    )
