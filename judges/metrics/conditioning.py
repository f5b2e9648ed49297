"""Condition a metric's score on answerability and on "I don't know" (IDK; Katsis et al. 2025, section 6.3.3).

Metrics compare a response with reference answers or passages, and the words of an "I don't know" are in neither. So the
score is replaced where a response says it, or should have said it, by the label of the judge `idk`.
"""

from collections.abc import Iterable

from generator.schema import Answerability

# Labels of the judge `idk`, without `unjudged`.
LABELS = ("yes", "partial", "no")


def conditioned(score: float | None, answerability: Answerability, idk: str) -> float | None:
    """Return the conditioned score: the metric's own, 0 or 1; None if there is none.

    | answerability | idk `no` or `partial` | idk `yes` |
    | --- | --- | --- |
    | answerable, partial | the score | 0 |
    | unanswerable | 0 | 1 |
    | conversational | 1 | 0 |
    | underspecified | none | none |

    Rosenthal et al. 2026 score underspecified questions by none of these metrics (section 3.1). The row above them is
    not in the paper, which leaves conversational questions out. Its published values have 1 for all three of them, none
    with an "I don't know"; the 0 for those is our reading.

    Args:
        score: of a metric, scaled to 0 to 1; None where it has none, such as a reference-based one without a reference.
        idk: label of the judge `idk`: `yes`, `partial`, `no` or `unjudged`.
    """
    if answerability == "conversational" and idk in LABELS:
        return 0.0 if idk == "yes" else 1.0
    if (right := _is_right(answerability, idk)) is None:
        return None
    if not right:
        return 0.0
    return 1.0 if answerability == "unanswerable" else score


def _is_right(answerability: Answerability, idk: str) -> bool | None:
    """Return True if the response says "I don't know" exactly where the passages don't tell.

    None if the question asks for nothing (conversational) or has several readings (underspecified), or the label is
    `unjudged`.
    """
    if answerability in ("conversational", "underspecified") or idk == "unjudged":
        return None
    return (idk == "yes") == (answerability == "unanswerable")


def answerability_accuracy(pairs: Iterable[tuple[Answerability, str]]) -> float | None:
    """Return the share of responses whose label predicts the answerability (section 6.3.3), 0 to 1; None if of none."""
    right = [r for answerability, idk in pairs if (r := _is_right(answerability, idk)) is not None]
    return sum(right) / len(right) if right else None
