"""Draw the question types of a plan, as pure functions of the run's seed and the plan's number."""

import random
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

from taxonomy.mix import UNDERSPECIFIED, Share, Taxonomy
from taxonomy.scenarios import Scenario
from taxonomy.tasks import Task
from taxonomy.types import Facet, Form, QuestionType, Target
from taxonomy.users import User

T = TypeVar("T")

BLOCK = 20
# Question type and answerability of a turn that asks for nothing (Katsis et al. 2025, section 3.1).
NON_QUESTION = "non-question"
_CONVERSATIONAL = "conversational"
# What `Facet.kind` calls both.
_CLARIFICATION = "clarification"

# Multiples of the golden ratio, modulo 1, fill [0, 1) evenly, however many are taken (a Kronecker sequence).
_GOLDEN = (5**0.5 - 1) / 2


def first_type(taxonomy: Taxonomy, seed: int, index: int) -> QuestionType:
    """Return the type that plan number `index` (from 0) opens with.

    In every block of 20 plans, a type's count differs from 20 times its share by less than 1, and over the run such
    differences cancel out. The order within a block is random.
    """
    block, place = divmod(index, BLOCK)
    return _draw(taxonomy.first, BLOCK, block, f"{seed}/first")[place]


class TaskDraw:
    """Draws the tasks of a run's plans, in blocks as `first_type` draws types.

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
        return _draw(self._shares, BLOCK, block, self._key)


def draw_user(shares: Sequence[Share[User]], seed: int, index: int) -> User:
    """Return the user type of plan number `index` (from 0), drawn in blocks as `first_type` draws types."""
    block, place = divmod(index, BLOCK)
    return _draw(shares, BLOCK, block, f"{seed}/user")[place]


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
    # Not validated again, as in `turn_types`.
    leaving = Target.model_construct(**{**dict(chosen), "standalone": True, "new_topic": True})
    return (*types[:place], leaving, *types[place + 1 :]), place


def later_types(taxonomy: Taxonomy, seed: int, index: int, n: int) -> tuple[QuestionType, ...]:
    """Return the types of the `n` later turns of plan number `index`, in order.

    In a dialog, a type's count differs from `n` times its share by less than 1; over dialogs such differences
    cancel out. A type that may not repeat never comes twice in a row.
    """
    return _draw(taxonomy.later, n, index, f"{seed}/later")


def turn_types(taxonomy: Taxonomy, seed: int, index: int, first: QuestionType, n: int) -> tuple[QuestionType, ...]:
    """Return the types of all `n` turns of plan number `index`, which opens with `first`.

    Where a taxonomy plans more than types, each is a `Target`. Every dimension is drawn independently, as types are.
    Then dimensions are matched: conversational turns are later turns and non-questions, the turn after an
    underspecified one resolves it, and clarifications come first among non-standalone turns. A dialog of one turn is
    never conversational.
    """
    types = [first, *later_types(taxonomy, seed, index, n - 1)]
    if not taxonomy.has_targets:
        return tuple(types)
    _end_answerable(types, taxonomy, index)
    links: list[Facet | None] = [None, *_draw(taxonomy.multi_turn, n - 1, index, f"{seed}/multi_turn")]
    links += [None] * (n - len(links))
    aims = _draw_aims(taxonomy, types, seed, index)
    unclear = {place for place, aim in enumerate(aims) if _is_open(aim)}
    resolving = _resolve(links, aims, unclear, index)
    standalone = _standalone(taxonomy, seed, index, links, unclear)
    forms = _draw_forms(aims, unclear, index, f"{seed}/form")
    non_question = next((share.type for share in taxonomy.later if share.type.name == NON_QUESTION), None)
    own = {"checks": (), "reply": None, "answerability": "answerable"}  # their form and what they resolve tell
    asks_nothing = resolving | {place for place, aim in enumerate(aims) if _is_courtesy(aim)}
    return tuple(
        # Not validated again: a type may be shown without the examples that its file must have.
        Target.model_construct(
            **dict(non_question if non_question and place in asks_nothing else type_)
            | (own if place in resolving | unclear else {}),
            multi_turn=link,
            # What has a reply of its own can't be answered, whatever the share.
            aim=aim if not type_.reply or place in unclear | asks_nothing else None,
            standalone=alone,
            form=forms.get(place),
        )
        for place, (type_, link, aim, alone) in enumerate(zip(types, links, aims, standalone, strict=True))
    )


def _end_answerable(types: list[QuestionType], taxonomy: Taxonomy, number: int) -> None:
    """Let the last type be no underspecified one, which the next turn resolves: it changes places, or is replaced."""
    unclear = [type_.answerability == UNDERSPECIFIED for type_ in types]
    if len(types) > 1 and unclear[-1]:
        fit = [i for i in range(1, len(types) - 1) if not any(unclear[i - 1 : min(i + 2, len(types) - 1)])]
        others = [share.type for share in taxonomy.later if share.type.answerability != UNDERSPECIFIED]
        if fit:
            place = fit[number % len(fit)]
            types[-1], types[place] = types[place], types[-1]
        elif others:
            types[-1] = others[number % len(others)]


def _draw_aims(taxonomy: Taxonomy, types: Sequence[QuestionType], seed: int, index: int) -> list[Facet | None]:
    """Return the answerability of each turn, drawn and then moved: courtesy isn't first, what is unclear isn't last."""
    n = len(types)
    shares = [share for share in taxonomy.answerability if n > 1 or share.type.name != _CONVERSATIONAL]
    aims: list[Facet | None] = [*_draw(shares, n, index, f"{seed}/answerability")] or [None] * n
    for place in (place for place, aim in enumerate(aims) if _is_courtesy(aim)):
        fit = [i for i in range(1, n) if types[i].name == NON_QUESTION and aims[i] != aims[place]]
        other = place if place in fit else next(iter(fit), max(place, 1))
        aims[place], aims[other] = aims[other], aims[place]
    opens = [_is_open(aim) for aim in aims]
    if opens[-1]:  # the next turn is to resolve it
        places = range(n > 2, n - 1)  # seldom the first turn
        apart = (i for i in places if not any(opens[max(0, i - 1) : min(i + 2, n - 1)]))
        fit = [i for i in apart if not _is_courtesy(aims[i])]
        if fit:
            place = fit[index % len(fit)]
            aims[-1], aims[place] = aims[place], aims[-1]
    answerable = next((share.type for share in shares if share.type.name == "answerable"), None)
    _leave_room(aims, answerable)
    for place, type_ in enumerate(types):
        if place and _is_open(aims[place - 1]):  # it resolves that one, whatever its type
            aims[place] = answerable if _is_open(aims[place]) else aims[place]
        elif type_.answerability == UNDERSPECIFIED:
            aims[place] = taxonomy.underspecified
    return aims


def _is_courtesy(aim: Facet | None) -> bool:
    return aim is not None and aim.name == _CONVERSATIONAL


def _is_open(aim: Facet | None) -> bool:
    """Return true if the next turn has to resolve it."""
    return aim is not None and bool(aim.forms)


def _leave_room(aims: list[Facet | None], answerable: Facet | None) -> None:
    """Let no two underspecified turns follow each other, and none be the last, by moving or replacing some."""
    if not any(opens and follows for opens, follows in pairwise([*map(_is_open, aims), True])):
        return
    places = [place for place in range(len(aims) - 2, -1, -2) if not _is_courtesy(aims[place])]
    for place in range(len(aims)):
        if _is_open(aims[place]) and place not in places:
            free = next((i for i in places if not _is_open(aims[i])), None)
            if free is not None:
                aims[place], aims[free] = aims[free], aims[place]
            else:
                aims[place] = answerable  # None says the same, where a mix has no such turns


def _resolve(links: list[Facet | None], aims: list[Facet | None], unclear: set[int], number: int) -> set[int]:
    """Let the turn after each underspecified one resolve it, and return those turns.

    Both change places with other turns, so that the shares stay: no underspecified turn is a clarification, and what
    resolves one is answerable, where the dialog has another turn that can take its place. Over the plans, each other
    turn does so equally often: no place in a dialog tells what is asked there.
    """
    resolving = {place + 1 for place in unclear if place + 1 < len(aims)}
    free = [place for place in range(len(aims)) if place not in unclear | resolving]

    def swap(values: list[Facet | None], place: int, fits: Callable[[Facet], bool]) -> None:
        own = values[place]
        fit = [i for i in free if (value := values[i]) and fits(value)]
        if own and not fits(own) and fit:
            other = fit[(number + place) % len(fit)]
            values[place], values[other] = values[other], own

    for place in sorted(unclear | resolving):
        swap(links, place, lambda link: link.kind != _CLARIFICATION)
    for place in sorted(resolving):
        swap(aims, place, lambda aim: aim.name == "answerable")
        before = aims[place - 1]
        links[place] = before.resolution if before else None
    return resolving


def _draw_forms(aims: Sequence[Facet | None], unclear: Collection[int], number: int, key: str) -> dict[int, Form]:
    """Return the form of each underspecified turn; each form is equally likely."""
    # Not drawn evenly over the plans: how many such turns a plan has goes by the same sequence.
    rng = random.Random(f"{key}/{number}")
    forms = ((place, aim.forms) for place in sorted(unclear) if (aim := aims[place]))
    return {place: of[int(rng.random() * len(of))] for place, of in forms}


def _standalone(
    taxonomy: Taxonomy, seed: int, index: int, links: Sequence[Facet | None], unclear: Collection[int]
) -> list[bool | None]:
    """Return True for each turn that is planned to be standalone; None for the first turn, which always is.

    An underspecified one is: it leaves open what it is about, which the dialog must not tell.
    """
    rate = taxonomy.non_standalone
    if rate is None:
        return [None] * len(links)
    drawn = _draw([Share(False, rate), Share(True, 1 - rate)], len(links) - 1, index, f"{seed}/standalone")
    later = [True, *drawn]
    for place, link in enumerate(links):
        if link and link.kind == _CLARIFICATION and later[place]:
            others = (i for i, other in enumerate(links) if other and not later[i] and other.kind != _CLARIFICATION)
            if (other := next(others, None)) is not None:
                later[place], later[other] = False, True
    for place in sorted(unclear):
        if not later[place]:
            other = next((i for i in range(1, len(later)) if later[i] and i not in unclear), None)
            later[place] = True
            if other is not None:
                later[other] = False
    return [None, *later[1:]]


def _draw(shares: Sequence[Share[T]], n: int, number: int, key: str) -> tuple[T, ...]:
    """Return `n` values of draw number `number`: systematic sampling, at an offset that fills [0, 1) over the draws.

    A value whose `may_repeat` is false never comes twice in a row.
    """
    if not shares:
        return ()
    offset = (random.Random(key).random() + number * _GOLDEN) % 1
    *ends, total = accumulate(share.share for share in shares)  # below 1 if one was left out
    left = [shares[bisect(ends, (i + offset) / n * total)].type for i in range(n)]
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
