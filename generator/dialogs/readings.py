"""Find the readings of a question that doesn't say which thing it is about (Rosenthal et al. 2026, section 2.1).

They are sentences of different documents that tell much the same of different things. Words are compared by stems.
"""

import re
from collections import Counter
from collections.abc import Sequence, Set
from itertools import combinations
from math import fsum, log, sqrt

from generator.common.language import dialog_language
from generator.common.scripts import words
from generator.common.sentences import sentences
from generator.common.support import read_terms
from generator.dialogs.checks.requests import topic_stems
from generator.dialogs.focus import put_title
from generator.prompts.message_text import on_one_line
from generator.schema import Evidence, Passage, Record

# Stems that readings share at least; those of a sentence that can be one, and of one for which a question is written:
# what “What does the café serve?” finds may be shorter.
_SHARED, _FEWEST, _SOME = 2, 3, 4
# Readings that a question is written for: where many things are alike, a search finds few of any three.
_MOST = 8
# How alike sentences are, of 1, whose titles share no word, so that nothing shows that they are of things of one sort.
_ALIKE = 0.5
_ENDS = (*".!?。！？؟।۔",)
_NUMBER, _DIGITS = re.compile(r"\b\w*\d\w*"), re.compile(r"\d+")
_STEP = re.compile(r"\d+[.)] ")  # of instructions
_INSIDE = re.compile(r"(?<!^)(?<![.!?:*_#-] )\b[^\W\d_][^\W_]*")  # a word that no sentence begins with


class Reading(Record):
    """A sentence of a passage: `passage.text[start:end]`.

    Attributes:
        title: stems of the title.
        sort: these but for numbers, which things of two sorts may share: “ls(1)” and “glob(1)”.
        stems: of its words and those of the title.
        plain: of its words but for names and numbers.
        names: of names, and numbers.
        around: of all words of the passage and the title.
    """

    passage: Passage
    start: int
    end: int
    title: frozenset[str]
    sort: frozenset[str]
    stems: frozenset[str]
    plain: frozenset[str]
    names: frozenset[str]
    around: frozenset[str]

    @property
    def text(self) -> str:
        """The sentence, below the title of its document."""
        return put_title(self.passage.title, self.sentence)

    @property
    def sentence(self) -> str:
        """The sentence on one line."""
        return on_one_line(self.passage.text[self.start : self.end])

    @property
    def evidence(self) -> Evidence:
        """The sentence as evidence."""
        text = self.passage.text[self.start : self.end]
        return Evidence(passage_id=self.passage.id, start=self.start, end=self.end, text=text)


def list_readings(passages: Sequence[Passage]) -> list[Reading]:
    """Return the sentences of passages that can be readings; headings, rows of tables and ends of sentences can't."""
    found = []
    for passage in passages:
        title, around = topic_stems(passage.title), topic_stems(passage.titled)
        sort = frozenset(stem for stem in title if not stem.isdigit())
        for start, end in sentences(passage.text):
            sentence = passage.text[start:end].strip()
            is_cut = passage.start and not start and sentence[:1].islower()
            if is_cut or not sentence.endswith(_ENDS) or "|" in sentence:
                continue
            named = topic_stems(" ".join(_find_names(sentence)))
            stems = topic_stems(sentence)
            plain = frozenset(stem for stem in stems - named if len(stem) > 1 or not stem.isascii())  # not of “e.g.”
            if len(plain) >= _FEWEST:
                # Of “9.4” both digits are stems, and “9.9” is another number.
                names = {stem for stem in named if not stem.isdigit()} | _find_numbers(sentence)
                kept = {"title": title, "sort": sort, "stems": stems | title, "plain": plain, "names": names}
                found.append(Reading(passage=passage, start=start, end=end, around=around, **kept))
    return found


def _find_numbers(sentence: str) -> set[str]:
    """Return the keys of the numbers of a sentence; in letters (五百) as it spells them, without 一, as in 一般."""
    language, terms = dialog_language(), [term for term in read_terms(sentence) if term.kind == "number"]
    if language.spaced or not language.numbers:
        return {term.key for term in terms}
    spelt = re.findall(f"[{''.join(language.numbers)}千万]+", sentence)
    digits = {term.key for term in terms if term.text not in language.numbers}
    return digits.union(number for number in spelt if language.numbers.get(number) != "1")


def _find_names(sentence: str) -> list[str]:
    """Return the numbers of a sentence, and where capitals show names, its words in capitals."""
    language = dialog_language()
    names = (_NUMBER if language.spaced else _DIGITS).findall(sentence)
    if language.spaced:  # else each letter of a number is one (一般)
        names += (term.text for term in read_terms(sentence) if term.kind == "number")
    if language.capitals:
        names += (word for word in _INSIDE.findall(sentence) if word[0].isupper())
    return names


def find_readings(
    passages: Sequence[Passage],
    spoken: Set[str] = frozenset(),
    document: str | None = None,
    last: Sequence[Reading] = (),
    told: Set[str] = frozenset(),
    rank: int = 0,
) -> list[Reading]:
    """Return up to eight sentences of different documents that tell the like of different things; empty if none do.

    They share plain words and no name or number, since sentences that share one tell the same of the same thing. No two
    tell the same but for the words of their titles, since a question about both has one answer. Each has a word that no
    other passage has, and can be told by it. Further readings are at least half as alike to the first as the second.
    Where their titles share no word (“museum”) they are much alike, or a question that fits both is about nothing.
    Steps of instructions are the last choice: what all of them share is “click” and “choose”.

    Args:
        spoken: the stems of what was said last. It may name none of them or several: if it names one, that is meant.
        document: the id of a document that one of the two most alike is of; None: any.
        last: what is told of the thing that the dialog is about. What fits one of these is taken to be meant of it.
        told: ids of documents that answers of the dialog rest on. Where one reading alone is of these, it is meant.
        rank: how many others go before: with 0 they are the most alike. Fewer do where fewer are half as alike.
    """
    all_readings = [reading for reading in list_readings(passages) if len(reading.plain) >= _SOME]
    count = Counter(stem for reading in all_readings for stem in reading.plain)
    rarity = {stem: log((1 + len(all_readings)) / number) for stem, number in count.items()}
    # `fsum`, since a set's order, and a sum's last bit with it, differs from process to process.
    weights = [sqrt(fsum(map(rarity.__getitem__, reading.plain))) for reading in all_readings]
    likeness: dict[tuple[int, int], float] = {}
    for (i, one), (j, other) in combinations(enumerate(all_readings), 2):
        if one.passage.document_id != other.passage.document_id and _fit_together([one, other]):
            alike = fsum(rarity[stem] for stem in one.plain & other.plain) / (weights[i] * weights[j])
            if one.sort & other.sort or alike >= _ALIKE:
                likeness[i, j] = alike

    steps = [_STEP.match(reading.sentence) is not None for reading in all_readings]

    def order(pair: tuple[int, int]) -> tuple[bool, bool, float]:
        one, other = (all_readings[place].title for place in pair)
        same = bool(one) and one == other  # under one name, likely of one thing
        return same, any(steps[place] for place in pair), -likeness[pair]

    found, used, end = list[Reading](), set[tuple[str, int]](), (True, True, 0.0)
    for i, j in sorted(likeness, key=order):  # stable: equal ones stay in order
        chosen = [all_readings[i], all_readings[j]]
        if order((i, j)) > end:
            break
        if any((reading.passage.id, reading.start) in used for reading in chosen):
            continue
        if document not in (None, *(reading.passage.document_id for reading in chosen)) or fits_any(chosen, last):
            continue
        near = ((of, n) for n in range(len(all_readings)) if (of := likeness.get((min(i, n), max(i, n)), 0)))
        for of, n in sorted(near, key=lambda pair: -pair[0]):
            elsewhere = all_readings[n].passage.document_id not in {r.passage.document_id for r in chosen}
            if (
                len(chosen) < _MOST
                and 2 * of >= likeness[i, j]
                and elsewhere
                and _fit_together([*chosen, all_readings[n]])
                and not fits_any([*chosen, all_readings[n]], last)
            ):
                chosen.append(all_readings[n])
        if not names_one(chosen, spoken, last) and not is_told(chosen, told):
            if not found:
                end = *order((i, j))[:2], -likeness[i, j] / 2
            found = chosen
            if not rank:
                break
            rank -= 1
            used.update((reading.passage.id, reading.start) for reading in chosen)  # each sentence is in one choice
    return found


def names_one(readings: Sequence[Reading], spoken: Set[str], last: Sequence[Reading] = ()) -> bool:
    """Return True if what was said, as stems, names exactly one of the readings, so that this one is meant.

    It has all that tells the title of that one from the others': who spoke of the Old Pool names no Garden Pool; and
    who spoke of the Garden Museum, the thing that `last` is told of, names no Garden Pool unless by its whole title.
    """
    beside = spoken - frozenset().union(*(reading.title for reading in last))
    named = (
        bool(names & spoken - one.title)
        or (bool(title := names & one.title) and title <= (spoken if one.title <= spoken else beside))
        for one, names in zip(readings, list_names(readings), strict=True)
    )
    return sum(named) == 1


def is_told(readings: Sequence[Reading], told: Set[str]) -> bool:
    """Return True if one of the readings alone is of a document that answers rest on, so that this one is meant."""
    return sum(reading.passage.document_id in told for reading in readings) == 1


def share(readings: Sequence[Reading]) -> frozenset[str]:
    """Return the plain stems that readings share, in their sentences and in their titles."""
    told, titles = (
        frozenset.intersection(*stems) for stems in ([r.plain for r in readings], [r.sort for r in readings])
    )
    return told | titles


def fits_any(readings: Sequence[Reading], others: Sequence[Reading]) -> bool:
    """Return True if one of some others has all that readings share."""
    shared = share(readings)
    return any(shared <= other.stems for other in others)


def list_meant(question: Set[str], shared: Set[str], passages: Sequence[Passage]) -> list[Reading]:
    """Return the readings of a question in the passages that a search for it found, in their order; one a document.

    They tell what it was written for: they have its words of those that the readings share, or all of these where it
    has one alone. And each has all words of the question that any has: a family's ticket isn't meant by “What does an
    adult's cost?”.

    Args:
        question: the stems of the question.
        shared: the plain stems that the readings share for which it was written.
    """
    told = question & shared if len(question & shared) >= _SHARED else shared
    alike = [reading for reading in list_readings(passages) if told <= reading.plain]
    asked = question & frozenset[str]().union(*(reading.stems for reading in alike))
    meant: list[Reading] = []
    for reading in alike:
        elsewhere = reading.passage.document_id not in {other.passage.document_id for other in meant}
        if asked <= reading.stems and elsewhere and (not meant or _fit_together([*meant, reading])):
            meant.append(reading)
    return meant


def own_stems(readings: Sequence[Reading]) -> list[set[str]]:
    """Return for each reading the stems that it alone has: in sentence or title, and no other passage, or in its title,
    and no other reading. Of two pools with a garden, the Garden Pool can be told by its name.
    """
    others = [[other for other in readings if other is not one] for one in readings]
    return [
        set(one.stems).difference(*(other.around for other in rest)) | one.title.difference(*(o.stems for o in rest))
        for one, rest in zip(readings, others, strict=True)
    ]


def list_names(readings: Sequence[Reading]) -> list[set[str]]:
    """Return for each reading the stems that name it: its own, and numbers of its title alone.

    What costs twelve crowns isn't every ferry that leaves at twelve, and who asks for a price doesn't name it.
    """
    own = zip(readings, own_stems(readings), strict=True)
    return [{stem for stem in stems if not stem.isdigit() or stem in one.title} for one, stems in own]


def _fit_together(readings: Sequence[Reading]) -> bool:
    if len(frozenset.intersection(*(reading.plain for reading in readings))) < _SHARED:
        return False
    *others, last = readings
    if any(last.names & other.names or not _differ(last, other) for other in others):
        return False
    return all(list_names(readings))


def _differ(one: Reading, other: Reading) -> bool:
    """Return True if two readings tell more than each other's words for another title."""
    return bool(((one.stems ^ other.stems) | (one.names ^ other.names)) - one.title - other.title)


def spell(stems: Set[str], text: str) -> str:
    """Return the words of a text that have these stems, each once."""
    return ", ".join(dict.fromkeys(word for word in words(text) if stems & topic_stems(word)))
