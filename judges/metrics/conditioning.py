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
        idk: label of the judge `idk`, one of `LABELS`.
    """
    if answerability == "underspecified":
        return None
    if idk == "yes":
        return 1.0 if answerability == "unanswerable" else 0.0
    if answerability == "conversational":
        return 1.0
    return 0.0 if answerability == "unanswerable" else score


def answerability_accuracy(pairs: Iterable[tuple[Answerability, str]]) -> float | None:
    """Return the share of responses whose label predicts the answerability (section 6.3.3), 0 to 1; None if of none.

    A label is right if it is `yes` exactly where the passages don't tell. Questions that ask for nothing, or have
    several readings, are left out.
    """
    asked = [(kind, idk) for kind, idk in pairs if kind not in ("conversational", "underspecified")]
    right = [(idk == "yes") == (kind == "unanswerable") for kind, idk in asked]
    return sum(right) / len(right) if right else None
