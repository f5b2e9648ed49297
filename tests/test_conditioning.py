"""The table of Katsis et al. 2025, section 6.3.3, cell by cell; and the median of several models."""

import pytest

from generator.schema import Answerability, Verdict
from judges.conditioning import conditioned
from judges.panel import median_of

TABLE: dict[tuple[Answerability, str], float | None] = {
    ("answerable", "no"): 0.25,
    ("answerable", "partial"): 0.25,
    ("answerable", "yes"): 0,
    ("partial", "no"): 0.25,
    ("partial", "partial"): 0.25,
    ("partial", "yes"): 0,
    ("unanswerable", "no"): 0,
    ("unanswerable", "partial"): 0,
    ("unanswerable", "yes"): 1,
    ("conversational", "no"): None,
    ("conversational", "yes"): None,
    ("answerable", "unjudged"): None,
    ("unanswerable", "unjudged"): None,
}


@pytest.mark.parametrize(("cell", "value"), TABLE.items(), ids=[" ".join(cell) for cell in TABLE])
def test_a_score_is_conditioned_as_the_table_says(cell: tuple[Answerability, str], value: float | None) -> None:
    assert conditioned(0.25, *cell) == value


def verdict(model: str, score: float | None) -> Verdict:
    label = "unjudged" if score is None else "scored"
    return Verdict(judge="rb_llm", label=label, explanation="…", model=model, score=score, decides=False)


@pytest.mark.parametrize(
    ("scores", "median"), [((3, 9, 8), 8), ((3, 8), 5.5), ((None, 8, 4), 6), ((None, 8), 8), ((None, None), None)]
)
def test_the_median_is_of_those_that_have_a_score(scores: tuple[float | None, ...], median: float | None) -> None:
    found = median_of([verdict(f"m{number}", score) for number, score in enumerate(scores)])
    assert (found.judge, found.score, found.decides) == ("rb_llm", median, False)
    assert found.label == ("unjudged" if median is None else "scored")
    assert found.model == f"median of {', '.join(f'm{number}' for number in range(len(scores)))}"
    assert ("m0 unjudged" in found.explanation) == (scores[0] is None)
