"""Check that an answer doesn't contradict its passages: “not refunded” for “refunded”, a number of something else."""

from collections.abc import Sequence

from generator.common.denials import find_flips
from generator.common.misattribution import find_misattributed
from generator.common.opposites import find_opposites
from generator.schema import Passage


def find_contradiction(told: str, question: str, passages: Sequence[Passage]) -> str | None:
    """Return the reason why an answer can't be true if its passages are, or None.

    `judge=grounding` leaves the contrary of what is told unjudged, and so kept.

    Args:
        told: what the answer gives, without what it says isn't known.
    """
    texts = [p.titled for p in passages]
    if contrary := [*find_flips(told, texts), *find_opposites(told, texts)]:
        return f"says the contrary of what is told: “{contrary[0]}”"
    if wrong := find_misattributed(told, question, texts):
        return f"has the number of something else: “{wrong[0]}”"
    return None
