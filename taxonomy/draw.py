"""Which type of question comes when: pure functions of the run's seed and the plan's number."""

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from taxonomy.mix import Share, Taxonomy
from taxonomy.types import QuestionType

BLOCK = 20

# Steps of the golden ratio fill the circle evenly however many are taken (a Kronecker sequence).
_GOLDEN = (5**0.5 - 1) / 2


def first_type(taxonomy: Taxonomy, seed: int, index: int) -> QuestionType:
    """The type that plan number `index` (from 0) opens with.

    In every 20 plans, a type's count differs from 20 times its share by less than 1, and over the run such
    differences cancel out. The order within 20 is random.
    """
    block, place = divmod(index, BLOCK)
    return _draw(taxonomy.first, BLOCK, block, f"{seed}/first")[place]


def later_types(taxonomy: Taxonomy, seed: int, index: int, n: int) -> tuple[QuestionType, ...]:
    """The types of the `n` later turns of plan number `index`, in order.

    In a dialog, a type's count differs from `n` times its share by less than 1; over dialogs such differences
    cancel out. A type that may not repeat never stands twice in a row.
    """
    return _draw(taxonomy.later, n, index, f"{seed}/later")


def _draw(shares: Sequence[Share], n: int, number: int, key: str) -> tuple[QuestionType, ...]:
    """Draw number `number` of `n` types: systematic sampling at an offset that fills [0, 1) over the draws."""
    offset = (random.Random(key).random() + number * _GOLDEN) % 1
    ends = list(accumulate(s.share for s in shares))[:-1]
    left = [shares[bisect(ends, (i + offset) / n)].type for i in range(n)]
    # Only `random()` gives the same numbers in every Python version; `shuffle` and `choice` promise less.
    rng = random.Random(f"{key}/{number}")
    order: list[QuestionType] = []
    while left:
        # A type that fills more than half of what is left stands twice in a row unless it comes now.
        due = [t for t in left if not t.may_repeat and 2 * left.count(t) > len(left)]
        free = due or [t for t in left if t.may_repeat or t not in order[-1:]]
        order.append(free[int(rng.random() * len(free))])
        left.remove(order[-1])
    return tuple(order)
