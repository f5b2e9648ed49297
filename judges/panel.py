"""One verdict of several models (Katsis et al. 2025, appendix F.1): the median of their scores."""

from collections.abc import Sequence
from statistics import median

from generator.schema import Verdict
from judges.base import SCORED, UNJUDGED


def median_name(models: Sequence[str]) -> str:
    """What stands as the model of the median of several."""
    return f"median of {', '.join(models)}"


def median_of(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict with the median score of those that have one; `unjudged` if none has.

    Args:
        verdicts: of one judge with different models.
    """
    first = verdicts[0]
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    said = (f"{v.model} {v.label if v.score is None else format(v.score, 'g')}" for v in verdicts)
    return Verdict(
        judge=first.judge,
        label=SCORED if scores else UNJUDGED,
        explanation=", ".join(said),
        model=median_name([verdict.model for verdict in verdicts]),
        score=median(scores) if scores else None,
        decides=False,
    )
