"""Draw the types of questions, tasks and users of a plan, as pure functions of the run's seed and the plan's number."""

import random
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TypeVar

from taxonomy.mix import Share, Taxonomy
from taxonomy.scenarios import Scenario
from taxonomy.tasks import Task
from taxonomy.types import QuestionType, Target

T = TypeVar("T")

BLOCK = 20
# Multiples of the golden ratio, modulo 1, fill [0, 1) evenly, however many are taken (a Kronecker sequence).
_GOLDEN = (5**0.5 - 1) / 2


def draw_one(shares: Sequence[Share[T]], index: int, key: str) -> T:
    """Return the value of plan number `index` (from 0), such as the type that it opens with.

    In every block of 20 plans, a value's count differs from 20 times its share by less than 1, and over the run such
    differences cancel out. Within a block each value comes at equal distances from a random first place, so that a run
    of few plans has about the shares, too.
    """
    block, place = divmod(index, BLOCK)
    return _draw_block(shares, block, key)[place]


def _draw_block(shares: Sequence[Share[T]], block: int, key: str) -> tuple[T, ...]:
    rng, times = random.Random(f"{key}/{block}"), list[tuple[float, T]]()
    for _, group in groupby(_count_out(shares, BLOCK, block, key), id):
        values, first = [*group], rng.random()
        times += (((number + first) / len(values), value) for number, value in enumerate(values))
    return tuple(value for _, value in sorted(times, key=itemgetter(0)))


class TaskDraw:
    """Draws the tasks of a run's plans, in blocks as `draw_one` draws.

    A draw depends on the seed and the plan's number alone. The counts of the blocks before it are remembered, so that
    the draws of a run take linear time.
    """

    def __init__(self, taxonomy: Taxonomy, seed: int) -> None:
        self._tasks = {share.type.name: share.type for share in taxonomy.tasks}
        self._shares = [Share(share.type.name, share.share) for share in taxonomy.tasks]
        self._key = f"{seed}/task"
        self._before = [Counter[str]()]

    def draw(self, index: int) -> tuple[Task | Scenario, int]:
        """Return the task or scenario of plan number `index` (from 0), and how many plans before it have the same."""
        block, place = divmod(index, BLOCK)
        while len(self._before) <= block:
            self._before.append(self._before[-1] + Counter(self._names(len(self._before) - 1)))
        names = self._names(block)
        return self._tasks[names[place]], self._before[block][names[place]] + names[:place].count(names[place])

    def _names(self, block: int) -> tuple[str, ...]:
        return _draw_block(self._shares, block, self._key)


def leave_topic(
    taxonomy: Taxonomy, types: Sequence[QuestionType], draw: random.Random
) -> tuple[tuple[QuestionType, ...], int | None]:
    """Return the types of a dialog of which a later one leaves the topic, and its place from 0; None: no turn can.

    That question stands alone. A type that leans on the turn before, as the later ones of Lee et al. 2024 do, becomes
    one of those that open dialogs; neither a clarification nor a turn that asks for nothing can leave the topic.
    """
    places = [place for place, type_ in enumerate(types) if place and type_.may_leave_topic]
    if not places:
        return tuple(types), None
    place = places[int(draw.random() * len(places))]
    chosen = types[place]
    if not isinstance(chosen, Target):
        opening = [s for s in taxonomy.first if s.type.answerability == "answerable" and not s.type.may_decline]
        shares = opening or list(taxonomy.first)
        (chosen,) = draw.choices([s.type for s in shares], [s.share for s in shares])
    # Not validated again, as in `taxonomy.targets`.
    leaving = Target.model_construct(**{**dict(chosen), "standalone": True, "new_topic": True})
    return (*types[:place], leaving, *types[place + 1 :]), place


def draw_evenly(shares: Sequence[Share[T]], n: int, number: int, key: str) -> tuple[T, ...]:
    """Return `n` values of draw number `number`: systematic sampling, at an offset that fills [0, 1) over the draws.

    A value's count differs from `n` times its share by less than 1; over the draws such differences cancel out. A value
    whose `may_repeat` is false never comes twice in a row.
    """
    left = _count_out(shares, n, number, key)
    # Only `random()` is guaranteed to give the same numbers in every Python version.
    rng = random.Random(f"{key}/{number}")
    order: list[T] = []

    def may_repeat(value: T) -> bool:
        return bool(getattr(value, "may_repeat", True))

    while left:
        # A value that fills more than half of what is left comes twice in a row unless it comes now.
        due = [value for value in left if not may_repeat(value) and 2 * left.count(value) > len(left)]
        free = due or [value for value in left if may_repeat(value) or value not in order[-1:]]
        order.append(free[int(rng.random() * len(free))])
        left.remove(order[-1])
    return tuple(order)


def _count_out(shares: Sequence[Share[T]], n: int, number: int, key: str) -> list[T]:
    """Return the values of `draw_evenly` in the order of the shares."""
    if not shares:
        return []
    offset = (random.Random(key).random() + number * _GOLDEN) % 1
    *ends, total = accumulate(share.share for share in shares)  # below 1 if one was left out
    return [shares[bisect(ends, (i + offset) / n * total)].type for i in range(n)]
