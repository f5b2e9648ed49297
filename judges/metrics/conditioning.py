"""What becomes of a metric's score where a response says that it doesn't know (Katsis et al. 2025, section 6.3.3).

Metrics compare a response with reference answers or passages, and the words of an "I don't know" are in neither. So
where it is said, or should have been, the score is set. Whether a response says it is the label of the judge `idk`.
"""

from collections.abc import Iterable

from generator.schema import Answerability

# Of the judge `idk`, where it has a verdict.
LABELS = ("yes", "partial", "no")
_KNOWN = (*LABELS, "unjudged")


def conditioned(score: float | None, answerability: Answerability, idk: str) -> float | None:
    """The score that counts: the metric's own, 0 or 1.

    | answerability | idk `no` or `partial` | idk `yes` |
    | --- | --- | --- |
    | answerable, partial | the score | 0 |
    | unanswerable | 0 | 1 |
    | conversational | 1 | 0 |

    The last line isn't in the paper, which leaves conversational questions out of its experiments. Its published values
    have 1 for all three of them; that an I-don't-know is then out of place is our reading.

    Args:
        score: of a metric, 0 to 1 (bring one of another range there first); None where it has none, such as a
            reference-based one without a reference.
        idk: does the response say that it doesn't know? `yes`, `partial` or `no`; `unjudged`: that isn't known.

    Returns:
        None: the response has no conditioned score.

    Raises:
        ValueError: `idk` is no such label.
    """
    if answerability == "conversational" and idk in LABELS:
        return 0.0 if idk == "yes" else 1.0
    right = answerability_right(answerability, idk)
    if right is None:
        return None
    if not right:
        return 0.0
    return 1.0 if answerability == "unanswerable" else score


def answerability_right(answerability: Answerability, idk: str) -> bool | None:
    """Whether a response knows that it can answer, or that it can't.

    None: the question is conversational and asks for nothing, or the label is `unjudged`.

    Raises:
        ValueError: `idk` is no such label.
    """
    if idk not in _KNOWN:
        raise ValueError(f"an I-don't-know label is one of {', '.join(_KNOWN)}, not {idk!r}")
    if answerability == "conversational" or idk == "unjudged":
        return None
    return (idk == "yes") == (answerability == "unanswerable")


def answerability_accuracy(pairs: Iterable[tuple[Answerability, str]]) -> float | None:
    """How often the I-don't-know label predicts the answerability (section 6.3.3), 0 to 1; None if of none.

    Args:
        pairs: answerability and label of each response; those that are not right or wrong don't count.
    """
    right = [r for answerability, idk in pairs if (r := answerability_right(answerability, idk)) is not None]
    return sum(right) / len(right) if right else None
