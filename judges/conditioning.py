"""What becomes of a metric's score where a response says that it doesn't know (Katsis et al. 2025, section 6.3.3).

Metrics compare a response with reference answers or passages, and the words of an "I don't know" are in neither. So
where it is said, or should have been, the score is set. Whether a response says it is the label of the judge `idk`.
"""

from generator.schema import Answerability


def conditioned(score: float | None, answerability: Answerability, idk: str) -> float | None:
    """The score that counts: the metric's own, 0 or 1.

    | answerability | idk `no` or `partial` | idk `yes` |
    | --- | --- | --- |
    | answerable, partial | the score | 0 |
    | unanswerable | 0 | 1 |

    Args:
        score: of a metric, 0 to 1 (bring one of another range there first); None where it has none, such as a
            reference-based one without a reference.
        idk: does the response say that it doesn't know? `yes`, `partial` or `no`; any other label: that isn't known.

    Returns:
        None: the response has no conditioned score.
    """
    right = answerability_right(answerability, idk)
    if right is None:
        return None
    if not right:
        return 0.0
    return 1.0 if answerability == "unanswerable" else score


def answerability_right(answerability: Answerability, idk: str) -> bool | None:
    """Whether a response knows that it can answer, or that it can't.

    None: the question is conversational and asks for nothing (the paper leaves these out), or the label is none of
    `conditioned`'s, such as `unjudged`.
    """
    if answerability == "conversational" or idk not in ("yes", "partial", "no"):
        return None
    return (idk == "yes") == (answerability == "unanswerable")
