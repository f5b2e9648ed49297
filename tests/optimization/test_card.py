"""Judge the scores before and after an optimisation."""

from generator.optimization.card import compare
from generator.optimization.data import Example
from generator.optimization.targets import Outcome
from tests.support.records import make_turn


def test_intervals_are_over_documents_and_unjudged_is_wrong() -> None:
    def outcomes(*labels: str) -> list[Outcome]:
        return [Outcome(float(label == "a"), label, "") for label in labels]

    examples = [Example(str(n), "s", frozenset({f"d{n // 5}"}), (), (), make_turn(1), "a") for n in range(10)]
    found = compare(examples, outcomes(*"aaaaabbbbb"), outcomes(*"aaaaa", *["unjudged"] * 5), 0, True)
    assert found["score"].before == found["score"].after, "two documents, one right"
    assert (found["score"].before.low, found["score"].before.high) == (0, 1)
    assert found["score"].verdict.startswith("not better") and found["score"].difference.value == 0
    right, wrong = outcomes(*"a" * 10), outcomes(*"b" * 10)
    assert compare(examples, wrong, right, 0, True)["score"].verdict.startswith("better")
    assert compare(examples, right, wrong, 0, True)["score"].verdict.startswith("worse")


def test_examples_of_one_document_have_no_interval_and_are_never_called_better() -> None:
    examples = [Example(str(n), "s", frozenset({"d"}), (), (), make_turn(1), "a") for n in range(3)]
    before, after = ([Outcome(score, "a", "") for score in scores] for scores in ((0.5, 1, 1), (1, 1, 1)))
    score = compare(examples, before, after, 0, False)["score"]
    assert (score.difference.low, score.difference.high, str(score.after)) == (None, None, "1.00")
    assert "better by more than" not in score.verdict
