"""Draw the pairs to learn from and those to validate with, of other documents where it can be."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from generator.common.console import note
from generator.common.linking import link
from generator.errors import ConfigError, CorpusError
from generator.training.data import Finetuning, Pair


class _Set(NamedTuple):
    """The pairs of one of `data` that are short enough, and what is needed of them.

    Attributes:
        fit: says in a message why some are left out; empty if none is.
        training: the number to learn from.
        validation: the number to validate with.
        exactly: whether no more are taken.
    """

    path: str
    pairs: list[Pair]
    fit: str
    training: int
    validation: int
    exactly: bool


_Sides = list[tuple[list[Pair], list[Pair]]]  # of each set: to learn from, to validate with


def draw_pairs(
    settings: Finetuning, read: Sequence[Sequence[Pair]], measure: Callable[[Pair], int], positions: int | None = None
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs to learn from and those to validate with; where it can be, no document or passage has both.

    Pairs that are too long are counted and left out before any is drawn. Of `pairs`, each set gives the same number to
    either side.

    Args:
        read: the pairs of each of `data`.
        measure: returns a pair's length in tokens of the student; raises ValueError if its template refuses the chat.
        positions: the most tokens that the student can hold; None: any number.

    Raises:
        ConfigError: `pairs` is less than two for each set.
        CorpusError: there are too few pairs, or the student's template refuses one.
    """
    least = 2 * len(settings.data)
    if settings.pairs and settings.pairs < least:
        raise ConfigError(f"pairs={settings.pairs}: each set of data gives two at least; give {least} or more")
    most, limit = settings.student.max_tokens, f"student.max_tokens={settings.student.max_tokens}"
    if positions is not None and positions < most:
        most, limit = positions, f"student.model has {positions} positions"
    chance, sets = random.Random(settings.seed), list[_Set]()
    for number, (path, pairs) in enumerate(zip(settings.data, read, strict=True)):
        try:
            short = [pair for pair in pairs if measure(pair) <= most]
        except ValueError as error:
            raise CorpusError(f"data={path}: {error}") from error
        if len(short) < len(pairs):
            note(f"{limit}: {len(pairs) - len(short)} of {len(pairs)} pairs of {path} are left out")
        sets.append(_find_needs(settings, number, short, f" that fit ({limit})" if len(short) < len(pairs) else ""))
    training, validation = list[Pair](), list[Pair]()
    for of, (learned, others) in zip(sets, _split(settings, sets, chance), strict=True):
        if of.exactly:
            if len(others) < of.validation:
                note(
                    f"pairs={settings.pairs}: {of.path} gives {len(others)} pairs to validate with, not {of.validation}"
                )
            learned = chance.sample(learned, of.training)
            others = chance.sample(others, min(len(others), of.validation))
        training += learned
        validation += others
    documents, texts = (
        len(set(chain.from_iterable(map(keys, training))) & set(chain.from_iterable(map(keys, validation))))
        for keys in (lambda pair: pair.documents, lambda pair: pair.texts)
    )
    if documents or texts:
        note(
            f"data: its dialogs share {documents} documents and {texts} passages that are both learned from and "
            "validated with"
        )
    chance.shuffle(training)
    chance.shuffle(validation)
    return training, validation


def _find_needs(settings: Finetuning, number: int, pairs: list[Pair], fit: str) -> _Set:
    """Return what is needed of set `number`, from 0."""
    path, sets = settings.data[number], len(settings.data)
    validation = max(1, round(len(pairs) * settings.held_out))
    if not settings.pairs:  # a validation split may be of any size
        training = 1 if any(pair.validation for pair in pairs) else len(pairs) - 2 * validation
        return _Set(path, pairs, fit, max(1, training), validation, exactly=False)
    wanted = share(settings.pairs, number, sets)
    if len(pairs) < wanted:
        fix = "lower pairs or passage_tokens" if fit else "lower pairs"
        raise CorpusError(f"pairs={settings.pairs}: {path} has {len(pairs)} pairs{fit}, {wanted} are needed; {fix}")
    validation = share(max(1, round(settings.pairs * settings.held_out)), number, sets)
    return _Set(path, pairs, fit, max(1, wanted - validation), validation, exactly=True)


def share(count: int, number: int, of: int) -> int:
    """Return how many of `count` are set number `number`'s, from 0, if `of` sets share them."""
    return count // of + (number < count % of)


def _split(settings: Finetuning, sets: Sequence[_Set], chance: random.Random) -> _Sides:
    """Return the pairs of each set on two sides: pairs that share a passage or a document are on one, if it can be.

    Else those that share a document, those whose dialogs began with the same one, or those of a split that is given.
    """
    links: list[Callable[[Pair], tuple[str, ...]]] = [
        lambda pair: pair.documents + pair.texts,
        lambda pair: pair.documents,
        lambda pair: pair.documents[:1],
    ]
    if any(pair.validation for of in sets for pair in of.pairs):
        links.append(lambda pair: ())
    for keys in links:
        numbers = iter(link([keys(pair) for of in sets for pair in of.pairs]))
        groups = [[next(numbers) for _ in of.pairs] for of in sets]
        held = _hold_out(sets, groups, chance)
        sides = [
            (
                [pair for pair, group in zip(of.pairs, own, strict=True) if group not in held],
                [pair for pair, group in zip(of.pairs, own, strict=True) if group in held],
            )
            for of, own in zip(sets, groups, strict=True)
        ]
        lacking = [
            f"data={of.path}: gives {len(learned)} pairs{of.fit} to learn from and {len(others)} of other documents to "
            f"validate with; at least {of.training} and {min(1, of.validation)} are needed"
            for of, (learned, others) in zip(sets, sides, strict=True)
            if len(learned) < of.training or len(others) < min(1, of.validation)
        ]
        if not lacking:
            return sides
    fix = "lower pairs, or add dialogs" if settings.pairs else "add dialogs"
    raise CorpusError(f"{lacking[0]}; {fix} on other documents")


def _hold_out(sets: Sequence[_Set], groups: Sequence[Sequence[int]], chance: random.Random) -> set[int]:
    """Return the groups to validate with: those of the validation split, else some by chance.

    Of the latter, each set gives as many pairs as it needs, if it keeps as many to learn from.
    """
    given = [
        {g for pair, g in zip(of.pairs, own, strict=True) if pair.validation}
        for of, own in zip(sets, groups, strict=True)
    ]
    held = set[int]().union(*given)
    for of, own, split in zip(sets, groups, given, strict=True):
        sizes = Counter(own)
        for group in chance.sample(sorted(sizes), len(sizes)):
            have = sum(sizes[each] for each in held)
            if have >= of.validation or split:
                break
            if group not in held and len(of.pairs) - have - sizes[group] >= of.training:
                held.add(group)
    return held
