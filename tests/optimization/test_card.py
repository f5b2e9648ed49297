"""Judge the scores before and after an optimisation."""

import pytest

from generator.optimization.card import compare
from generator.optimization.data import Example
from generator.optimization.targets import Outcome
from tests.support.records import make_turn


def test_intervals_are_over_documents_and_unjudged_is_wrong() -> None:
    def outcomes(*labels: str) -> list[Outcome]:
        return [Outcome(float(label == "a"), label, "") for label in labels]

    examples = [Example(str(n), "s", frozenset({f"d{n // 5}"}), (), (), make_turn(1), "a") for n in range(30)]
    half = "a" * 15
    found = compare(examples, outcomes(*half, *"b" * 15), outcomes(*half, *["unjudged"] * 15), 0, True)
    assert found["score"].before == found["score"].after, "six documents, three right"
    assert (found["score"].before.low, found["score"].before.high) == (0.1667, 0.8333)
    assert found["score"].verdict.startswith("not better") and found["score"].difference.value == 0
    right, wrong = outcomes(*"a" * 30), outcomes(*"b" * 30)
    assert compare(examples, wrong, right, 0, True)["score"].verdict.startswith("better")
    assert compare(examples, right, wrong, 0, True)["score"].verdict.startswith("worse")


@pytest.mark.parametrize("documents", [1, 2, 5])
def test_examples_of_few_documents_have_no_interval_and_are_never_called_better(documents: int) -> None:
    """They may all be better by chance."""
    names = [f"d{n % documents}" for n in range(10)]
    examples = [Example(str(n), "s", frozenset({d}), (), (), make_turn(1), "a") for n, d in enumerate(names)]
    before, after = ([Outcome(score, "a", "") for _ in names] for score in (0.5, 1))
    score = compare(examples, before, after, 0, False)["score"]
    assert (score.difference.low, score.difference.high, str(score.after)) == (None, None, "1.00")
    assert "better by more than" not in score.verdict
