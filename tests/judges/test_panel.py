"""The verdict of several models."""

import pytest

from generator.schema import Verdict
from judges.panel import median_of


def verdict(model: str, score: float | None, label: str = "", why: str = "") -> Verdict:
    label = label or ("unjudged" if score is None else "scored")
    return Verdict(judge="rb_llm", label=label, explanation=why or model, model=model, score=score, decides=False)


@pytest.mark.parametrize(
    ("scores", "median"), [((3, 9, 8), 8), ((3, 8), 5.5), ((None, 8, 4), 6), ((None, 8), 8), ((None, None), None)]
)
def test_the_median_is_of_those_that_have_a_score(scores: tuple[float | None, ...], median: float | None) -> None:
    found = median_of([verdict(f"m{number}", score) for number, score in enumerate(scores)])
    assert (found.judge, found.score, found.decides) == ("rb_llm", median, False)
    assert found.label == ("unjudged" if median is None else "scored")
    assert found.model == f"median of {', '.join(f'm{number}' for number in range(len(scores)))}"
    assert ("m0 unjudged" in found.explanation) == (scores[0] is None)


def test_a_turn_without_scores_has_the_label_that_most_gave() -> None:
    labels = ("unjudged", "unjudged", "no claims")
    assert median_of([verdict("m", None, label) for label in labels]).label == "no claims"


def test_what_nobody_could_judge_for_one_reason_has_that_reason() -> None:
    found = median_of([verdict(model, None, why="no answer") for model in ("a", "b")])
    assert (found.label, found.explanation) == ("unjudged", "no answer")
    found = median_of([verdict("a", None, why="no answer"), verdict("b", 3, why="no answer")])
    assert found.explanation == "a unjudged, b 3"
