"""Draw the questions of a plan in all dimensions, and match these: not every value goes with every other.

Turns change places for it, so that the shares stay.
"""

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from taxonomy.draw import draw_evenly
from taxonomy.mix import UNDERSPECIFIED, Share, Taxonomy
from taxonomy.types import Facet, Form, QuestionType, Target

T = TypeVar("T")

# Question type and answerability of a turn that asks for nothing (Katsis et al. 2025, section 3.1).
NON_QUESTION = "non-question"
_CONVERSATIONAL = "conversational"
_PARTIAL = "partial"
# Words of a question that asks for one thing, at most, and for two, as a composite one does, and a partial one must.
_USUAL, _TWO_THINGS = 12, 20
# What `Facet.kind` calls both.
_CLARIFICATION = "clarification"


def turn_types(taxonomy: Taxonomy, seed: int, index: int, first: QuestionType, n: int) -> tuple[QuestionType, ...]:
    """Return the types of all `n` turns of plan number `index`, which opens with `first`.

    Where a taxonomy plans more than types, each is a `Target`. Every dimension is drawn independently, as types are.
    Then dimensions are matched: conversational turns are later turns and non-questions, the turn after an
    underspecified one resolves it, and clarifications come first among non-standalone turns. A dialog of one turn is
    never conversational.
    """
    types = [first, *draw_evenly(taxonomy.later, n - 1, index, f"{seed}/later")]
    if not taxonomy.has_targets:
        return tuple(types)
    _end_answerable(types, taxonomy, index)
    links: list[Facet | None] = [None, *draw_evenly(taxonomy.multi_turn, n - 1, index, f"{seed}/multi_turn")]
    links += [None] * (n - len(links))
    aims = _draw_aims(taxonomy, types, seed, index)
    unclear = {place for place, aim in enumerate(aims) if _is_open(aim)}
    resolving = _resolve(links, aims, unclear, index)
    _match_clarifications(links, types, aims, unclear | resolving, index)
    _match_aims(aims, links, types, unclear | resolving, index)
    standalone = _standalone(taxonomy, seed, index, links, unclear)
    forms = _draw_forms(aims, unclear, index, f"{seed}/form")
    non_question = next((share.type for share in taxonomy.later if share.type.name == NON_QUESTION), None)
    own = {"checks": (), "reply": None, "answerability": "answerable"}  # their form and what they resolve tell
    asks_nothing = resolving | {place for place, aim in enumerate(aims) if _is_courtesy(aim)}
    return tuple(
        # Not validated again: a type may be shown without the examples that its file must have.
        Target.model_construct(
            **dict(non_question if non_question and place in asks_nothing else type_)
            | (own if place in resolving | unclear else {})
            | ({"words": _TWO_THINGS} if aim and aim.name == _PARTIAL and _USUAL <= type_.words < _TWO_THINGS else {}),
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
    opens = [type_.answerability == UNDERSPECIFIED for type_ in types]
    if len(types) > 1 and opens[-1] and not _swap_last(types, opens, range(1, len(types) - 1), number):
        others = [share.type for share in taxonomy.later if share.type.answerability != UNDERSPECIFIED]
        if others:
            types[-1] = others[number % len(others)]


def _swap_last(values: list[T], opens: Sequence[bool], places: Iterable[int], number: int) -> bool:
    """Let the last value, which the next turn would resolve, change places with one that is apart from others like it.

    Returns:
        False if none of the places is.
    """
    apart = [place for place in places if not any(opens[max(0, place - 1) : min(place + 2, len(opens) - 1)])]
    if apart:
        place = apart[number % len(apart)]
        values[-1], values[place] = values[place], values[-1]
    return bool(apart)


def _draw_aims(taxonomy: Taxonomy, types: Sequence[QuestionType], seed: int, index: int) -> list[Facet | None]:
    """Return the answerability of each turn, drawn and then moved: courtesy isn't first, what is unclear isn't last."""
    n = len(types)
    shares = [share for share in taxonomy.answerability if n > 1 or share.type.name != _CONVERSATIONAL]
    aims: list[Facet | None] = [*draw_evenly(shares, n, index, f"{seed}/answerability")] or [None] * n
    for place in (place for place, aim in enumerate(aims) if _is_courtesy(aim)):
        fit = [i for i in range(1, n) if types[i].name == NON_QUESTION and aims[i] != aims[place]]
        other = place if place in fit else next(iter(fit), max(place, 1))
        aims[place], aims[other] = aims[other], aims[place]
    opens = [_is_open(aim) for aim in aims]
    if opens[-1]:
        seldom_first = range(n > 2, n - 1)
        _swap_last(aims, opens, (place for place in seldom_first if not _is_courtesy(aims[place])), index)
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


def _match_clarifications(
    links: list[Facet | None],
    types: Sequence[QuestionType],
    aims: Sequence[Facet | None],
    kept: Collection[int],
    number: int,
) -> None:
    """Let clarifications come where they can, by changing places with follow-ups.

    Courtesy isn't clarified, and clarifies nothing. What the last answer means is asked by questions: a type with
    checks of its own, such as an opinion, asks for something else, or nothing; a refusal means no more than it says.
    """
    names = [aim.name if aim else "answerable" for aim in aims]

    def fits(link: Facet, place: int) -> bool:
        before = names[place - 1]
        if link.takes_up == "neither" or _CONVERSATIONAL in (before, names[place]):
            return link.takes_up == "neither"
        return link.takes_up == "question" or (not types[place].checks and before in ("answerable", _PARTIAL))

    for place, link in enumerate(links):
        if link and place not in kept and not fits(link, place):
            follows = (i for i, other in enumerate(links) if other and i not in kept and other.takes_up == "neither")
            if fit := [i for i in follows if fits(link, i)]:
                other = fit[(number + place) % len(fit)]
                links[place], links[other] = links[other], link


def _match_aims(
    aims: list[Facet | None],
    links: Sequence[Facet | None],
    types: Sequence[QuestionType],
    kept: Collection[int],
    number: int,
) -> None:
    """Let what the documents don't hold be asked for where a prompt can, by changing places with what they do.

    A statement asks for nothing, a clarification for what the answer means, a type that may decline for what they hold,
    and of two things they hold one. A refusal isn't clarified.
    """
    clarifies = [link is not None and link.takes_up == "answer" for link in (*links, None)]

    def fits(aim: Facet, place: int) -> bool:
        type_ = types[place]
        if clarifies[place] or type_.reply or type_.may_decline or "asks-nothing" in type_.checks:
            return False
        return aim.name == _PARTIAL or not ("asks-twice" in type_.checks or clarifies[place + 1])

    for place, aim in enumerate(aims):
        if aim and aim.steps and place not in kept and not fits(aim, place):
            others = (i for i, other in enumerate(aims) if i not in kept and other and other.name == "answerable")
            fit = [i for i in others if fits(aim, i)]
            if fit := fit[len(fit) > 1 and not fit[0] :]:  # most could be asked first
                other = fit[(number + place) % len(fit)]
                aims[place], aims[other] = aims[other], aim


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
    drawn = draw_evenly([Share(False, rate), Share(True, 1 - rate)], len(links) - 1, index, f"{seed}/standalone")
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
