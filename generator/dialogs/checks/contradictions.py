"""Check that an answer doesn't contradict its passages: “not refunded” for “refunded”, a number of something else."""

from collections.abc import Sequence

from generator.common.denials import find_flips
from generator.common.language import dialog_language
from generator.common.misattribution import find_misattributed
from generator.common.opposites import find_opposites
from generator.common.passages import sentences, told_in
from generator.dialogs.checks.later_turns import content_of
from generator.schema import Passage

# Stems that an answer gives under a condition.
_LEAST_GIVEN, _STOPS = 3, " .!?"


def find_contradiction(told: str, question: str, passages: Sequence[Passage]) -> str | None:
    """Return the reason why an answer can't be true if its passages are, or None.

    Args:
        told: what the answer gives, without what it says isn't known.
    """
    texts = [p.titled for p in passages]
    if contrary := [*find_flips(told, texts), *find_opposites(told, texts)]:
        return (
            f"says the contrary of what is told: “{contrary[0]}”"  # `judge=grounding` leaves it unjudged, and so kept
        )
    if wrong := find_misattributed(told, question, texts):
        return f"has the number of something else: “{wrong[0]}”"
    if condition := _find_other_condition(told, question, passages):
        return f"gives under another condition what is told: “{condition}”"
    return None


def _find_other_condition(told: str, question: str, passages: Sequence[Passage]) -> str | None:
    """Return the condition under which the passages tell what an answer gives under another one, or None.

    “If you are late, you get your money back.” of “If we cancel a crossing, you get your money back.” All sentences
    that have two thirds of what the answer gives have a condition, which the answer doesn't give in its own words, and
    none has a word of the answer's or question's.
    """
    language = dialog_language()
    parts = [told[start:end].rstrip(_STOPS) for start, end in sentences(told)]
    asked = language.search("condition", question.rstrip(_STOPS)) if len(parts) == 1 else None
    for said in parts:
        if not (mine := language.search("condition", said) or asked):
            continue
        texts = [text.rstrip(_STOPS) for p in passages for text in told_in(p)]
        given = content_of(said.replace(mine[0], " "))
        condition = content_of(mine[0]) - given
        alike = [text for text in texts if 3 * len(given & content_of(text)) >= 2 * len(given) >= 2 * _LEAST_GIVEN]
        found = [other[0] for other in (language.search("condition", text) for text in alike) if other]
        others = [other for other in found if 2 * len(content_of(other) - given) > len(content_of(other))]
        known = frozenset[str]().union(*map(content_of, alike))
        if condition and others and len(others) == len(alike) and condition.isdisjoint(known):
            return others[0].rstrip(", ")
    return None
