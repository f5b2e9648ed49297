"""The median verdict of several models (Katsis et al. 2025, appendix F.1)."""

from collections.abc import Sequence
from statistics import median

from generator.schema import Verdict
from judges.base import SCORED, UNJUDGED


def median_name(models: Sequence[str]) -> str:
    """Return the name that stands as the model of the median verdict."""
    return f"median of {', '.join(models)}"


def median_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict with the median of all scores; `unjudged` if there is none."""
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    each = (f"{v.model} {v.label if v.score is None else format(v.score, 'g')}" for v in verdicts)
    return Verdict(
        judge=verdicts[0].judge,
        label=SCORED if scores else UNJUDGED,
        explanation=", ".join(each),
        model=median_name([verdict.model for verdict in verdicts]),
        score=median(scores) if scores else None,
        decides=False,
    )
