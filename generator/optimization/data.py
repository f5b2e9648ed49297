"""Examples of a target with their labels, and their split, in which, where it can be, no document is on two sides."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from generator.common.console import count_noun, note
from generator.common.linking import link
from generator.config.conf_files import choices
from generator.corpora.human import HUMAN
from generator.errors import ConfigError, CorpusError
from generator.optimization.labels import SETS
from generator.schema import Dialog, Passage, Turn
from generator.sets import check_name, dialog_set

PEOPLE = "human:all"
Stratum = tuple[str, str]  # source and label
_RATINGS = {"incorrect": 0.0, "correct": 1.0}
# Shorter messages are said about any document.
_TELLING = 5


class Example(NamedTuple):
    """A turn to judge or to write.

    Attributes:
        source: the set that it is from.
        keys: what links it with others: ids and texts of its documents, a message about them.
        passages, history, turn: the turn, the ones before it, and its grounding.
        label: what people say of it; empty if nothing is known.
        rating: people's score of its answer, as they gave it, the mean of several criteria; `correct` is 1, `incorrect`
            0. None if nothing is known.
        uneven: its set may have few of some labels, so that parts of a split aren't balanced by them.
        query: the turn's query as people rewrote it to stand alone; empty if none did.
        documents: those of its dialog, the one that it began with first.
    """

    id: str
    source: str
    keys: frozenset[str]
    passages: tuple[Passage, ...]
    history: tuple[Turn, ...]
    turn: Turn
    label: str
    query: str = ""
    uneven: bool = False
    documents: tuple[str, ...] = ()
    rating: float | None = None

    @property
    def stratum(self) -> Stratum:
        """The kind of example that parts of a split have equally many of."""
        return self.source, "" if self.uneven else self.label


class Split(NamedTuple):
    """Examples for the optimiser, and those that it never sees."""

    train: list[Example]
    validation: list[Example]
    held_out: list[Example]

    @property
    def shared(self) -> int:
        """The number of documents that are in more than one part."""
        parts = Counter(name for part in self for name in {name for example in part for name in example.documents})
        return sum(count > 1 for count in parts.values())


# What links examples; what comes later is for dialogs that share passages all over, as in a run that retrieves from
# one corpus.
_LINKS: Sequence[Callable[[Example], Iterable[str]]] = (
    lambda example: example.keys,
    lambda example: example.documents,
    lambda example: example.documents[:1],
)


def read_examples(data: Sequence[str], criteria: Sequence[str]) -> list[Example]:
    """Return the examples of sets, in their order.

    Args:
        data: as in the setting.
        criteria: of the verdicts of people that are labels or scores, where dialogs have them.

    Raises:
        ConfigError, CorpusError, RunError: a set can't be read.
    """
    found: list[Example] = []
    for number, path in enumerate(data):
        check_name(path, [*SETS, *choices("corpus")])
        name, _, folder = path.partition(":")
        labelled = name in SETS and folder and not Path(path).exists()
        # mtrag:DATA is the set, mtrag:FILE are dialogs, as for other commands.
        if labelled and (name not in choices("corpus") or (Path(folder) / name).exists()):
            found += _read_labelled(number, name, Path(folder))
        else:
            for dialog in dialog_set(path).dialogs():
                found += _turns(number, path, dialog, criteria)
    return found


def _read_labelled(number: int, name: str, folder: Path) -> Iterator[Example]:
    try:
        for item in SETS[name].read(folder):
            label = SETS[name].meaning[item.human]
            yield _example(number, name, item.dialog, item.dialog.turns[-1], label, _RATINGS.get(label))
    except (OSError, KeyError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise CorpusError(f"data={name}:{folder}: can't be read ({why}); give the folder that holds {name}/") from error


def _turns(number: int, source: str, dialog: Dialog, criteria: Sequence[str]) -> Iterator[Example]:
    wanted = [(f"{PEOPLE}:{each}", PEOPLE if each == "correctness" else "") for each in criteria]
    for turn in dialog.own_turns:
        if turn.answerability != "conversational":
            given = [v for names in wanted for v in [v for v in turn.verdicts if v.judge in names][-1:]]
            ratings = [_RATINGS.get(v.label) if v.score is None else v.score for v in given]
            known = [rating for rating in ratings if rating is not None]
            rating = fmean(known) if len(known) == len(criteria) else None
            example = _example(number, source, dialog, turn, given[-1].label if given else "", rating)
            if not given and dialog.lm == HUMAN and "answerability" in criteria:  # who answered knew
                example = example._replace(label=turn.answerability, uneven=True)
            yield example


def _example(number: int, source: str, dialog: Dialog, turn: Turn, label: str, rating: float | None) -> Example:
    passages = dialog.grounding(turn.turn)
    texts = [_normal(p.text) for p in passages]
    query = turn.retrieval_query if dialog.lm == HUMAN else ""
    said = _normal(query or turn.query)
    documents = tuple(dict.fromkeys([*(dialog.document_ids or (dialog.id,)), *(p.document_id for p in passages)]))
    keys = {*documents, *texts}
    keys |= {said} if len(said.split()) >= _TELLING else set()
    history = dialog.turns[: turn.turn - 1]
    name = f"{number} {dialog.id} {turn.turn}"
    return Example(
        name, source, frozenset(keys), passages, history, turn, label, query, documents=documents, rating=rating
    )


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def find_groups(examples: Sequence[Example]) -> list[list[Example]]:
    """Return examples that share a document, directly or through others, together."""
    groups: dict[int, list[Example]] = {}
    for example, group in zip(examples, link([example.keys for example in examples]), strict=True):
        groups.setdefault(group, []).append(example)
    return list(groups.values())


def split_examples(examples: Sequence[Example], sizes: Mapping[str, int], seed: int) -> Split:
    """Return so many examples of each part of a split, equally many of each source and label.

    Examples of a group are in one part; what a part doesn't need of it is left out. Each group gives few: scores on
    more documents are surer. If these are too few groups, only documents link examples, or else only those that their
    dialogs began with, and it is noted how many are in two parts; the examples have what linked them as their keys.

    Raises:
        ConfigError: there are too few.
    """
    if not examples:
        raise ConfigError("data: no turn of it can be used for this target: `ask_next` needs dialogs of several turns")
    strata = sorted({example.stratum for example in examples})
    needs = {
        part: Counter({each: size // len(strata) + (place < size % len(strata)) for place, each in enumerate(strata)})
        for part, size in sizes.items()
    }
    for keys in _LINKS:
        groups = find_groups([example._replace(keys=frozenset(keys(example))) for example in examples])
        for most in (1, 2, 4, 8, len(examples)):
            drawn, missing = _draw(groups, needs, most, random.Random(f"{seed} split"))
            if not missing:
                split = Split(**drawn)
                if split.shared:
                    note(f"data: its dialogs share documents; {split.shared} are on two sides")
                return split
    (source, label), lacking = missing.most_common(1)[0]
    raise ConfigError(
        f"{' + '.join(sizes)} = {sum(sizes.values())}: {source} lacks {count_noun(lacking, 'example')}"
        f"{f' labelled {label}' if label else ''}: data has {count_noun(len(examples), 'example')}, whose dialogs "
        f"begin with {count_noun(len(groups), 'document')}, each in one part; lower these settings, or add data"
    )


def _draw(
    groups: Sequence[Sequence[Example]], wanted: Mapping[str, Counter[Stratum]], most: int, chance: random.Random
) -> tuple[dict[str, list[Example]], Counter[Stratum]]:
    """Return the examples of each part, at most `most` of a group, and the number missing of each source and label."""
    needs = {part: Counter(need) for part, need in wanted.items()}
    drawn: dict[str, list[Example]] = {part: [] for part in wanted}
    supply = Counter(example.stratum for group in groups for example in group)
    for group in chance.sample(groups, len(groups)):
        have = Counter(example.stratum for example in group)

        def worth(part: str, have: Counter[Stratum] = have) -> float:
            useful = sum(min(number, needs[part][each]) for each, number in have.items())
            return useful and needs[part].total() / wanted[part].total()

        part, left = max(wanted, key=worth), most
        # What there is least of goes first, or frequent labels take the place of rare ones.
        for example in sorted(chance.sample(group, len(group)), key=lambda example: supply[example.stratum]):
            if left and needs[part][example.stratum] > 0:
                left -= 1
                needs[part][example.stratum] -= 1
                drawn[part].append(example)
    for chosen in drawn.values():
        chance.shuffle(chosen)
    return drawn, sum((+need for need in needs.values()), Counter[Stratum]())
