"""The aggregation of MT-Bench-101 on ratings made by hand, and its tables."""

import json

import pytest

from judges.benchmarks.mt_bench_101.scores import MtBenchScores, print_scores, score_dialogs
from judges.benchmarks.scores import Rated
from taxonomy import Task
from tests.judges.benchmarks.test_scores import rated


def task(name: str, tier: str, ability: str, judged_from: int = 1) -> Task:
    return Task.model_validate(
        {
            "name": name,
            "title": f"task {name}",
            "tier": tier,
            "ability": ability,
            "definition": "d",
            "steps": ["s"],
            "turns": "2-5",
            "judged_from": judged_from,
            "criteria": ["c"],
            "bands": ["1", "2", "3", "4"],
            "examples": [{"dialog": [{"user": "u", "agent": "a"}] * 2}],
        }
    )


TASKS = {
    each.name: each
    for each in (
        task("own", "interactivity", "drawing"),
        task("CM", "perceptivity", "memory", 2),
        task("SI", "perceptivity", "understanding"),
        task("AR", "perceptivity", "understanding", 2),
        task("CR", "adaptability", "rephrasing", 2),
    )
}


def scored(*turns: list[Rated]) -> MtBenchScores:
    return score_dialogs([turn for dialog in turns for turn in dialog], TASKS)


def test_a_dialog_is_its_minimum_and_beside_it_its_mean() -> None:
    found = scored(rated("SI", "1", 9, 3, 6), rated("SI", "2", 8))
    assert found.tasks["SI"].model_dump() == {"score": 5.5, "low": 3, "high": 8, "mean": 7, "dialogs": 2, "unscored": 0}
    assert (found.average.score, found.mean.score, found.judged) == (5.5, 7, 4)


def test_first_turns_that_are_not_judged_are_in_nothing() -> None:
    found = scored(rated("CM", "1", 1, 8, 10), rated("CM", "2", None, 6))
    assert (found.tasks["CM"].score, found.tasks["CM"].mean, found.tasks["CM"].unscored) == (7, 7.5, 0)
    assert (found.judged, found.unjudged, list(found.turns["CM"])) == (3, 0, ["2", "3"])


def test_a_dialog_with_an_unjudged_turn_is_in_no_minimum_and_counted() -> None:
    found = scored(rated("SI", "1", 2, None, 2), rated("SI", "2", 8, 9), rated("SI", "3", 4, 5))
    assert found.tasks["SI"].model_dump(exclude={"low", "high"}) == {
        "score": 6,
        "mean": 6.5,
        "dialogs": 3,
        "unscored": 1,
    }
    # Its judged turns are still judged turns.
    assert (found.judged, found.unjudged, found.reasons) == (6, 1, {"no rating": 1})
    assert found.turns["SI"]["1"].judged == 3


def test_a_turn_that_is_missing_before_a_rated_one_is_unjudged() -> None:
    first, _, third = rated("SI", "1", 9, 1, 9)
    found = scored([third, first], rated("SI", "2", 4), rated("CM", "3", 1, 6)[1:])
    assert (found.tasks["SI"].score, found.tasks["SI"].unscored, found.tasks["CM"].score) == (4, 1, 6)
    assert (found.judged, found.unjudged, found.reasons) == (4, 1, {"missing turn": 1})


def test_a_task_without_any_score_is_in_no_mean() -> None:
    found = scored(rated("SI", "1", None, None), rated("AR", "2", 1, 4), rated("CR", "3", 1, 8))
    assert found.tasks["SI"].model_dump() == {
        "score": None,
        "low": None,
        "high": None,
        "mean": None,
        "dialogs": 1,
        "unscored": 1,
    }
    assert (found.average.score, found.abilities["understanding"].score, found.abilities["understanding"].unscored) == (
        6,
        4,
        1,
    )


def test_abilities_tiers_and_the_average_are_means_of_tasks() -> None:
    found = scored(
        rated("CR", "1", 1, 10),
        rated("own", "2", 1),
        rated("CM", "3", 1, 2),
        rated("AR", "4", 1, 6),
        *(rated("SI", str(n), 9) for n in range(5, 9)),
    )
    assert {name: ability.score for name, ability in found.abilities.items()} == {
        "memory": 2,
        "understanding": 7.5,
        "rephrasing": 10,
        "drawing": 1,
    }
    # (2 + 9 + 6) / 3, not the mean of two abilities, nor of six dialogs
    assert found.tiers["perceptivity"].score == 5.666667
    assert (found.average.score, found.average.low) == (5.6, None)
    assert list(found.tasks) == ["CM", "SI", "AR", "CR", "own"], "the paper's order, then the user's"


def test_the_record_is_what_scores_json_holds() -> None:
    found = json.loads(scored(rated("CM", "1", 1, 8), rated("CM", "2", 1, None)).model_dump_json())
    assert list(found) == ["average", "tasks", "abilities", "tiers", "mean", "turns", "judged", "unjudged", "reasons"]
    assert found["average"] == {"score": 8, "low": None, "high": None}
    assert found["turns"] == {"CM": {"2": {"score": 8, "judged": 1}}}
    assert json.loads(scored().model_dump_json())["average"]["score"] is None


def test_tables_stand_side_by_side_in_100_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    golden = scored(
        *(rated("CM", str(n), 1, 10, 10) for n in range(80)), rated("SI", "x", 4, None), rated("SI", "y", 9)
    )
    own = scored(*(rated("CM", str(n), 1, 7, 8) for n in range(80)), rated("SI", "x", 4, 2), rated("SI", "y", 9))
    print_scores({"golden": golden}, TASKS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["·", "·", "CM", "task", "CM", "10.00", "10.00–10.00", "10.00", "80", "0"] in lines
    assert ["·", "·", "SI", "task", "SI", "9.00", "–", "9.00", "2", "1"] in lines
    assert ["SI", "6.50", "(2)", "–", "–"] in lines
    print_scores({"golden": golden, "own": own}, TASKS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    sides = ["10.00", "10.00–10.00", "7.00", "7.00–7.00", "80", "0,", "0"]
    assert ["·", "·", "CM", *sides] in lines
    assert ["CM", "own", "–", "7.00", "(80)", "8.00", "(80)"] in lines
