"""Judge the scores before and after an optimisation."""

import pytest
from scipy.stats import kendalltau

from generator.optimization.card import compare
from generator.optimization.data import Example
from generator.optimization.targets import Outcome
from tests.support.records import make_turn


def test_intervals_are_over_documents_and_unjudged_is_wrong() -> None:
    def outcomes(*labels: str) -> list[Outcome]:
        return [Outcome(float(label == "a"), label, "") for label in labels]

    examples = [Example(str(n), "s", frozenset({f"d{n // 5}"}), (), (), make_turn(1), "a") for n in range(30)]
    half = "a" * 15
    found = compare(examples, outcomes(*half, *"b" * 15), outcomes(*half, *["unjudged"] * 15), 0, "kappa")
    assert found["score"].before == found["score"].after, "six documents, three right"
    assert (found["score"].before.low, found["score"].before.high) == (0.1667, 0.8333)
    assert found["score"].verdict.startswith("not better") and found["score"].difference.value == 0
    right, wrong = outcomes(*"a" * 30), outcomes(*"b" * 30)
    assert compare(examples, wrong, right, 0, "kappa")["score"].verdict.startswith("better")
    assert compare(examples, right, wrong, 0, "kappa")["score"].verdict.startswith("worse")


def test_tau_is_kendalls_of_the_answers_that_have_a_score() -> None:
    people, given = [0.0, 0.5, 0.5, 1, 1, 0, 1, 0.2], [0.1, 0.1, None, 0.9, 0.4, 0.3, 0.9, 0.2]
    turn = make_turn(1)
    examples = [
        Example(str(n), "s", frozenset({str(n)}), (), (), turn, "", rating=each) for n, each in enumerate(people)
    ]
    outcomes = [Outcome(0, "scored", "", rating) for rating in given]
    found = compare(examples, outcomes, outcomes, 0, "tau")["tau"].before
    known = [pair for pair in zip(people, given, strict=True) if pair[1] is not None]
    assert found.value == round(kendalltau(*zip(*known, strict=True)).statistic, 4)


@pytest.mark.parametrize("documents", [1, 2, 5])
def test_examples_of_few_documents_have_no_interval_and_are_never_called_better(documents: int) -> None:
    """They may all be better by chance."""
    names = [f"d{n % documents}" for n in range(10)]
    examples = [Example(str(n), "s", frozenset({d}), (), (), make_turn(1), "a") for n, d in enumerate(names)]
    before, after = ([Outcome(score, "a", "") for _ in names] for score in (0.5, 1))
    score = compare(examples, before, after, 0, "")["score"]
    assert (score.difference.low, score.difference.high, str(score.after)) == (None, None, "1.00")
    assert "better by more than" not in score.verdict
