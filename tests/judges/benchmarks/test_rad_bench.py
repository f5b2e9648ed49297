"""RAD-Bench: what models and judges are asked, what stored judgments add up to, and what can't be used."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taxonomy
from generator.schema import Dialog
from judges.benchmarks.rad_bench.scores import score_model
from judges.benchmarks.scores import Rated
from judges.evaluate import COMMAND
from judges.llm.task import read_rating
from taxonomy import read_scenarios
from tests.judges.benchmarks.evaluating import Evaluating, judged, judges, refused, reply, said
from tests.judges.benchmarks.evaluating import judgments as aggregate
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_dialog, make_hits, make_passage, make_turn, write_json_lines
from tests.support.runs import command

TEXTS = ("The pump costs 400.", "The valve costs 30.", "Both last nine years.")
PASSAGES = [make_passage(f"c{number}", text) for number, text in enumerate(TEXTS, start=1)]
REFERENCES = ("It is 400.", "It is 30.", "Nine years.")


def item(scenario: str, name: str, references: Sequence[str] = REFERENCES, **changes: Any) -> Dialog:
    """Return an item whose second turn found the passages of the first one again, below its own."""
    found = (["c1"], ["c2", "c1"], ["c3"])
    turns = [make_turn(n, answer=references[n - 1], hits=make_hits(*found[n - 1])) for n in range(1, 4)]
    return make_dialog(*turns, passages=PASSAGES, **{"id": name, "task": scenario} | changes)


PLAN = item("travel", "TR_travel_00", ("", "", "Take the ferry."))


class Scenarios(Evaluating):
    """Items of RAD-Bench in a file."""

    benchmark = "rad_bench"

    def __init__(self, folder: Path, *items: Dialog) -> None:
        super().__init__(folder, items or [item("finance", "RR_finance_00")])


def test_the_model_sees_its_own_answers_and_the_contexts_of_this_turn_alone(
    here: Path, openai_server: OpenAIServer
) -> None:
    openai_server.responder = reply
    assert Scenarios(here).run(openai_server).code == 0
    first, second, third = sorted(said(openai_server.bodies), key=len)
    assert TEXTS[0] in first[0] and TEXTS[1] not in first[0]
    assert second[:2] == ["Q1?", "Own answer 1."]
    assert second[2].index(TEXTS[1]) < second[2].index(TEXTS[0]) < second[2].index("Q2?")
    assert third[:4] == ["Q1?", "Own answer 1.", "Q2?", "Own answer 2."]
    assert TEXTS[2] in third[4] and TEXTS[0] not in third[4] and TEXTS[1] not in third[4]


def prompts(here: Path, server: OpenAIServer, asked: Dialog) -> list[str]:
    """Return the judge's prompts about the answers to the three turns."""
    server.responder = reply
    assert Scenarios(here, asked).run(server).code == 0
    found = [judged(server.bodies, f"Own answer {number}.") for number in (1, 2, 3)]
    assert not any(f"Agent: Own answer {number}." in seen for number in (1, 2, 3) for seen in found)
    return found


def test_reasoning_is_judged_by_references_and_the_contexts_of_this_turn(
    here: Path, openai_server: OpenAIServer
) -> None:
    first, second, third = prompts(here, openai_server, item("finance", "RR_finance_00"))
    assert "The reference:\nIt is 400." in first and TEXTS[0] in first and "<dialog>\n</dialog>" in first
    assert "<dialog>\nUser: Q1?\nAgent: It is 400.\n</dialog>" in second
    assert "The reference:\nIt is 30." in second and TEXTS[1] in second and TEXTS[2] not in second
    assert "Agent: It is 400.\nUser: Q2?\nAgent: It is 30.\n</dialog>" in third
    assert TEXTS[2] in third and TEXTS[0] not in third and TEXTS[1] not in third


def test_synthesis_is_judged_by_references_without_contexts(here: Path, openai_server: OpenAIServer) -> None:
    first, second, third = prompts(here, openai_server, item("news", "RS_news_00"))
    assert not any(text in seen for text in TEXTS for seen in (first, second, third))
    assert "Agent: It is 400." in second and "The reference:\nIt is 30." in second
    assert "Agent: It is 30." in third and "The reference:\nNine years." in third


def test_a_plan_is_judged_by_contexts_and_its_last_turn_by_the_reference_too(
    here: Path, openai_server: OpenAIServer
) -> None:
    first, second, third = prompts(here, openai_server, PLAN)
    assert "The reference:" not in first + second and "Take the ferry." not in first + second
    assert "<dialog>\nUser: Q1?\n</dialog>" in second and TEXTS[1] in second
    assert "<dialog>\nUser: Q1?\nUser: Q2?\n</dialog>" in third and TEXTS[2] in third
    assert "The reference:\nTake the ferry." in third


def test_a_scenario_of_ones_own_says_what_the_judge_sees(here: Path, openai_server: OpenAIServer) -> None:
    news = (Path(taxonomy.__file__).parent / "scenarios/news.yaml").read_text(encoding="utf-8")
    own = news.replace("name: news", "name: gossip").replace("judge: [reference]", "judge: [context]", 2)
    (here / "mine").mkdir()
    (here / "mine/gossip.yaml").write_text(own, encoding="utf-8")
    openai_server.responder = reply
    site = Scenarios(here, item("gossip", "RS_gossip_00"))
    assert site.run(openai_server, "benchmark.path=mine").code == 0
    second, third = (judged(openai_server.bodies, f"Own answer {number}.") for number in (2, 3))
    assert TEXTS[1] in second and "The reference:" not in second and "<dialog>\nUser: Q1?\n</dialog>" in second
    assert TEXTS[2] not in third and "The reference:\nNine years." in third
    assert set(site.scores()["models"][openai_server.model]["scenarios"]) == {"gossip"}


def test_answers_of_a_file_are_judged_in_place_of_asking(here: Path, openai_server: OpenAIServer) -> None:
    openai_server.responder = reply
    site = Scenarios(here, item("finance", "RR_finance_00"), item("finance", "RR_finance_01"), PLAN)
    lines = [
        {"question_id": "RR_finance_00", "model_id": "x", "choices": [{"index": 0, "turns": ["A", "$ERROR$", "C"]}]},
        {"question_id": "RR_finance_01", "choices": [{"turns": ["D", " ", "", "E", "F"]}]},
        {"question_id": "RS_news_07", "choices": [{"turns": ["other"]}]},
    ]
    answers = write_json_lines(here / "parrot.jsonl", *lines)
    done = site.run(openai_server, f"answers={answers}")
    assert done.code == 0 and all(map(judges, openai_server.bodies)) and len(openai_server.bodies) == 3
    assert "left out the answers to 1 dialog and 2 turns that" in done.err
    scores = site.scores()
    assert (scores["model"], scores["without_answer"]) == ("parrot", 6)
    assert scores["lacking"] == {"$ERROR$": 1, "empty": 2, "missing": 3}
    found = scores["models"]["parrot"]
    assert (found["judged"], found["unjudged"], found["reasons"]) == (3, 6, {"no answer": 6})
    assert found["scenarios"]["travel"] is None and found["as_published"]["scenarios"]["travel"] == -1
    again = site.run(openai_server, f"answers={answers}")
    assert again.code == 0 and len(openai_server.bodies) == 3
    calls = len(openai_server.bodies)
    told = command("+benchmark=rad_bench", f"judgments={site.run_dir}", f"run_dir={here / 'told'}", program=COMMAND)
    assert told.code == 0 and len(openai_server.bodies) == calls
    assert json.loads((here / "told" / "scores.json").read_text())["models"] == scores["models"]


@pytest.fixture
def published(data: Path) -> tuple[Path, list[dict[str, Any]]]:
    file = data / "rad_bench/model_judgment/gpt-4o.jsonl"
    return file, [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_every_stored_score_is_the_rating_of_its_text(published: tuple[Path, list[dict[str, Any]]]) -> None:
    found = [(read_rating(line["judgment"]) or -1, line["score"]) for line in published[1]]
    assert len(found) == 1869 and all(read == stored for read, stored in found)


def test_published_judgments_add_up_to_the_published_averages(
    published: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    file, lines = published
    done = command("+benchmark=rad_bench", f"judgments={file.parent}", f"run_dir={tmp_path}", program=COMMAND)
    models = json.loads((tmp_path / "scores.json").read_text())["models"]
    assert done.code == 0 and len(models) == 7 and "scores are not the rating" not in done.err
    names = ("RS_academic", "RS_news", "RS_education", "RR_finance", "RR_customer", "TR_travel")
    for model, found in models.items():
        for block, least in ((found, 1), (found["as_published"], -1)):
            means = [
                np.mean([mean(lines, model, name, turn, least) for turn in (1, 2, 3)])  # each turn counts alike
                for name in names
            ]
            assert block["average"] == round(float(np.mean(means)), 6)
            assert block["scenarios"] == {n[3:]: round(float(m), 6) for n, m in zip(names, means, strict=True)}
        low, high = found["intervals"]["average"]
        assert low < found["average"] < high
    assert models["breeze-7B-32k-instruct-v10"]["reasons"] == {"no rating": 1}
    assert [found["judged"] for found in models.values()].count(267) == 6
    assert [done.out.count(f"\n{model} ") for model in models] == [3] * 7, "a name is broken at 80 columns"


def mean(lines: list[dict[str, Any]], model: str, name: str, turn: int, least: int) -> float:
    of = [line for line in lines if line["model"] == model and line["question_id"].startswith(name)]
    return float(np.mean([line["score"] for line in of if line["turn"] == turn and line["score"] >= least]))


def test_a_scenario_is_the_mean_of_its_turns_and_an_ability_that_of_its_scenarios() -> None:
    scores = {
        "news": {"a": (8, 4, None), "b": (6, None, None)},  # turns 7 and 4
        "academic": {"c": (9, 9, 9)},
        "travel": {"d": (2, 2, 5)},
    }
    rated = [
        Rated(task=task, item=name, turn=number, score=score, reason="" if score else "no rating")
        for task, items in scores.items()
        for name, turns in items.items()
        for number, score in enumerate(turns, start=1)
    ]
    found = score_model(rated, read_scenarios())
    assert found.scenarios == {"academic": 9, "news": 5.5, "travel": 3}
    assert found.average == round((9 + 5.5 + 3) / 3, 6)
    assert found.turns == {"synthesis": {"1": 8, "2": 6.5, "3": 9}, "reasoning": {"1": 2, "2": 2, "3": 5}}
    assert found.as_published.scenarios["news"] == round((7 + 1.5 - 1) / 3, 6)
    assert (found.judged, found.unjudged, found.reasons) == (9, 3, {"no rating": 3})
    assert found.intervals.average is None and found.intervals.scenarios["news"] is not None


def test_bad_input_is_one_line(here: Path) -> None:
    short = item("news", "RS_news_00").model_copy(update={"turns": PLAN.turns[:2]})
    assert "has 2 turns; news has 3" in refused(Scenarios(here, short))
    assert "no file for the scenario 'GR'" in refused(Scenarios(here, item("GR", "g")))
    assert "turn 1 has no reference" in refused(Scenarios(here, item("news", "RS_news_00", ("", "b", "c"))))
    assert "context=golden: benchmark=rad_bench" in refused(Scenarios(here), "context=golden")
    assert f"benchmark.path={here / 'none'}: does not exist" in refused(Scenarios(here), f"benchmark.path={here}/none")
    (here / "a.jsonl").write_text('{"question_id": "RS_news_00"}\n')
    assert "a.jsonl:1: choices: Field required" in refused(Scenarios(here), f"answers={here / 'a.jsonl'}")
    (here / "a.jsonl").write_text('{"question_id": "RS_news_00", "choices": [{"turns": ["A"]}]}\n')
    assert "no answer is to one of the 1 dialogs" in refused(Scenarios(here), f"answers={here / 'a.jsonl'}")
    (here / "a.jsonl").write_text("")
    assert f"answers={here / 'a.jsonl'}: has no answers" in refused(Scenarios(here), f"answers={here / 'a.jsonl'}")
    (here / "answers").mkdir()
    for name in ("a", "b"):
        (here / "answers" / name).touch()
    assert "answers=answers: holds 2 files" in refused(Scenarios(here), "answers=answers")
    assert "answers: give input=" in refused(Scenarios(here), "answers=a.jsonl", "input=null", "judgments=x")


def test_judgments_that_can_not_be_read_are_one_line(tmp_path: Path) -> None:
    line = {"question_id": "RS_news_00", "turn": 1, "score": 7, "model": "m"}
    judgments = partial(aggregate, benchmark="rad_bench")
    assert "there twice for m" in judgments(tmp_path, line, line).error
    assert "score: " in judgments(tmp_path, line | {"score": 0}).error
    assert "question_id: " in judgments(tmp_path, line | {"question_id": "news"}).error
    assert "no file for the scenario 'sport'" in judgments(tmp_path, line | {"question_id": "RS_sport_00"}).error
    done = judgments(tmp_path, line | {"judgment": "Rating: [[7]]"}, line | {"turn": 2, "judgment": "so [7]"})
    assert done.code == 0 and "1 of 2 scores are not the rating that their text ends with" in done.err


def test_judgments_of_several_files_stand_side_by_side(tmp_path: Path) -> None:
    line = {"question_id": "RS_news_00", "turn": 1, "score": 7, "model": "a"}
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line | {"model": name}))
    paths = f"judgments=[{tmp_path / 'a.jsonl'},{tmp_path / 'b.jsonl'}]"
    assert command("+benchmark=rad_bench", paths, f"run_dir={tmp_path / 'out'}", program=COMMAND).code == 0
    assert set(json.loads((tmp_path / "out" / "scores.json").read_text())["models"]) == {"a", "b"}
    (tmp_path / "b.jsonl").write_text(json.dumps(line))
    done = command("+benchmark=rad_bench", paths, f"run_dir={tmp_path / 'out'}", program=COMMAND)
    assert done.code == 2 and "a was judged in another one, too" in done.error
