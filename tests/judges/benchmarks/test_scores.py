"""Means and intervals of rated turns, by hand."""

import numpy as np

from generator.schema import Verdict
from judges.benchmarks.scores import Rated, Score, TurnScore, count_reasons, mean_score, rated_turns, score_turns
from tests.support.records import make_dialog, make_turn


def rated(task: str, item: str, *scores: float | None) -> list[Rated]:
    return [
        Rated(task=task, item=item, turn=turn, score=score, reason="" if score is not None else "no rating")
        for turn, score in enumerate(scores, start=1)
    ]


def test_a_task_with_many_dialogs_weighs_no_more() -> None:
    assert mean_score([[[1], [2], [3]], [[8], [8]]]).score == 5


def test_columns_are_turns_whose_means_are_averaged() -> None:
    # Turn means 4 and 10: the failed turn lowers nothing, and the dialog's other turn counts.
    assert mean_score([[[2, 10], [6, None]]]).score == 7
    assert mean_score([[[2, None], [6, None], [None, None]]]).score == 4


def test_an_interval_is_around_the_score_and_stratified_by_task() -> None:
    found = mean_score([[[n % 10 + 1] for n in range(100)], [[5] for _ in range(100)]])
    assert found.low is not None and found.high is not None
    assert found.score == 5.25
    # Half the standard error of the one task that varies: 2.872 / sqrt(100) / 2; the other adds nothing.
    assert np.allclose([found.low, found.high], [5.25 - 1.96 * 0.1436, 5.25 + 1.96 * 0.1436], atol=0.02)


def test_one_dialog_has_no_interval_nor_has_a_mean_with_its_task() -> None:
    assert mean_score([[[3]]]) == Score(score=3, low=None, high=None)
    assert mean_score([[[3]], [[1], [2]]]) == Score(score=2.25, low=None, high=None)
    assert mean_score([[[None], [3]], []]) == Score(score=3, low=None, high=None)
    assert mean_score([[[None]], []]) == mean_score([]) == Score(score=None, low=None, high=None)


def test_equal_input_gives_equal_intervals() -> None:
    tasks = [[[float(value)] for value in np.random.default_rng(task).integers(1, 11, 100)] for task in range(13)]
    first = mean_score(tasks)
    assert first == mean_score(tasks) != mean_score(tasks, seed=1)
    assert first.low is not None and first.score is not None and round(first.low, 6) == first.low < first.score


def test_turns_have_means_of_their_own_and_failures_are_counted_by_reason() -> None:
    turns = [*rated("a", "1", 4, 6, None), *rated("a", "2", 7, None), *rated("b", "3", None)]
    assert score_turns(turns) == {
        "a": {
            "1": TurnScore(score=5.5, judged=2),
            "2": TurnScore(score=6, judged=1),
            "3": TurnScore(score=None, judged=0),
        },
        "b": {"1": TurnScore(score=None, judged=0)},
    }
    others = [turn.model_copy(update={"reason": "timeout"}) for turn in rated("b", "4", None)]
    assert list(count_reasons(others + turns).items()) == [("no rating", 3), ("timeout", 1)]


def test_the_last_rating_rates_a_turn() -> None:
    def verdict(score: float | None, explanation: str = "", judge: str = "task") -> Verdict:
        return Verdict(judge=judge, label="x", explanation=explanation, model="m", score=score, decides=False)

    other = verdict(0.5, judge="grounding")
    turns = [
        make_turn(1, verdicts=(other,)),
        make_turn(2, verdicts=(verdict(3), verdict(5), other)),
        make_turn(3, verdicts=(verdict(None, "no rating: x"), other)),
    ]
    assert rated_turns(make_dialog(*turns, task="CM", id="7")) == [
        Rated(task="CM", item="7", turn=2, score=5),
        Rated(task="CM", item="7", turn=3, score=None, reason="no rating"),
    ]
