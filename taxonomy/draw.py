"""Which types of question come when: pure functions of the run's seed and the plan's number."""

import random
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeVar

from taxonomy.mix import FacetShare, Share, Taxonomy
from taxonomy.types import Facet, QuestionType, Target

T = TypeVar("T")

BLOCK = 20
# What a turn that asks for nothing is, among question types (Katsis et al. 2025 label their own so).
_NOT_ASKING = "non-question"
# And what its answerability is.
_CONVERSATIONAL = "conversational"

# Steps of the golden ratio fill the circle evenly however many are taken (a Kronecker sequence).
_GOLDEN = (5**0.5 - 1) / 2


def first_type(taxonomy: Taxonomy, seed: int, index: int) -> QuestionType:
    """The type that plan number `index` (from 0) opens with.

    In every 20 plans, a type's count differs from 20 times its share by less than 1, and over the run such
    differences cancel out. The order within 20 is random.
    """
    block, place = divmod(index, BLOCK)
    return _draw_types(taxonomy.first, BLOCK, block, f"{seed}/first")[place]


def later_types(taxonomy: Taxonomy, seed: int, index: int, n: int) -> tuple[QuestionType, ...]:
    """The types of the `n` later turns of plan number `index`, in order.

    In a dialog, a type's count differs from `n` times its share by less than 1; over dialogs such differences
    cancel out. A type that may not repeat never stands twice in a row.
    """
    return _draw_types(taxonomy.later, n, index, f"{seed}/later")


def turn_types(taxonomy: Taxonomy, seed: int, index: int, first: QuestionType, n: int) -> tuple[QuestionType, ...]:
    """The types of all `n` turns of plan number `index`, which opens with `first`.

    Where a taxonomy plans more than types, each is a `Target`. Every dimension is drawn for itself, as types are, and
    then two things are put together: what asks for nothing is a later turn and no question, and the turns that lean on
    what was said are clarifications before they are others. A single turn is one of those that ask for something.
    """
    kinds = [first, *later_types(taxonomy, seed, index, n - 1)]
    if not taxonomy.has_targets:
        return tuple(kinds)
    links: list[Facet | None] = [None, *(_draw_facets(taxonomy.multi_turn, n - 1, index, f"{seed}/multi_turn"))]
    links += [None] * (n - len(links))
    aimed = [share for share in taxonomy.answerability if n > 1 or share.type.name != _CONVERSATIONAL]
    aims: list[Facet | None] = list(_draw_facets(aimed, n, index, f"{seed}/answerability")) or [None] * n
    for place in (place for place, aim in enumerate(aims) if aim and aim.name == _CONVERSATIONAL):
        fit = [i for i in range(1, n) if kinds[i].name == _NOT_ASKING and aims[i] != aims[place]]
        better = place if place in fit else next(iter(fit), max(place, 1))
        aims[place], aims[better] = aims[better], aims[place]
    alone = _standalone(taxonomy, seed, index, links)
    asks_nothing = next((share.type for share in taxonomy.later if share.type.name == _NOT_ASKING), None)
    return tuple(
        # Checked when it was read; and types may be shown without the examples that a file has to have.
        Target.model_construct(
            **dict(asks_nothing if asks_nothing and aim and aim.name == _CONVERSATIONAL else kind),
            multi_turn=link,
            aim=aim,
            standalone=stands,
        )
        for kind, link, aim, stands in zip(kinds, links, aims, alone, strict=True)
    )


def _standalone(taxonomy: Taxonomy, seed: int, index: int, links: Sequence[Facet | None]) -> list[bool | None]:
    """Which turns are to stand alone; a first turn does anyway."""
    rate = taxonomy.non_standalone
    if rate is None:
        return [None] * len(links)
    drawn = _draw((False, True), (rate, 1 - rate), len(links) - 1, index, f"{seed}/standalone")
    later = [True, *drawn]
    for place, link in enumerate(links):
        if link and link.name.startswith("clarification") and later[place]:
            others = (
                i for i, other in enumerate(links) if other and not later[i] and "clarification" not in other.name
            )
            if (other := next(others, None)) is not None:
                later[place], later[other] = False, True
    return [None, *later[1:]]


def _draw_types(shares: Sequence[Share], n: int, number: int, key: str) -> tuple[QuestionType, ...]:
    values, parts = [share.type for share in shares], [share.share for share in shares]
    return _draw(values, parts, n, number, key, lambda kind: kind.may_repeat)


def _draw_facets(shares: Sequence[FacetShare], n: int, number: int, key: str) -> tuple[Facet, ...]:
    if not shares:
        return ()
    total = sum(share.share for share in shares)  # below 1 where a share is left out
    values, parts = [share.type for share in shares], [share.share / total for share in shares]
    return _draw(values, parts, n, number, key, lambda facet: facet.may_repeat)


def _draw(
    values: Sequence[T],
    shares: Sequence[float],
    n: int,
    number: int,
    key: str,
    may_repeat: Callable[[T], bool] = lambda _: True,
) -> tuple[T, ...]:
    """Draw number `number` of `n` values: systematic sampling at an offset that fills [0, 1) over the draws."""
    offset = (random.Random(key).random() + number * _GOLDEN) % 1
    ends = list(accumulate(shares))[:-1]
    left = [values[bisect(ends, (i + offset) / n)] for i in range(n)]
    # Only `random()` gives the same numbers in every Python version; `shuffle` and `choice` promise less.
    rng = random.Random(f"{key}/{number}")
    order: list[T] = []
    while left:
        # A value that fills more than half of what is left stands twice in a row unless it comes now.
        due = [value for value in left if not may_repeat(value) and 2 * left.count(value) > len(left)]
        free = due or [value for value in left if may_repeat(value) or value not in order[-1:]]
        order.append(free[int(rng.random() * len(free))])
        left.remove(order[-1])
    return tuple(order)
