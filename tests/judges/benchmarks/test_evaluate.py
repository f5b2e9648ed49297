"""`python -m judges.evaluate`: what models and judges are asked, what comes out, and that nothing is asked twice."""

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.schema import Dialog
from judges.evaluate import COMMAND
from judges.llm.task import read_rating
from tests.judges.benchmarks.evaluating import (
    PAIRS,
    PASSAGE,
    Evaluating,
    item,
    judged,
    judges,
    judgments,
    refused,
    reply,
    said,
)
from tests.support import openai_server as fake
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.records import write_dialogs
from tests.support.runs import command, kill, until


@pytest.fixture
def site(here: Path) -> Evaluating:
    return Evaluating(here)


def test_the_model_gets_bare_messages_with_the_golden_answers(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = reply
    assert site.run(openai_server).code == 0
    tower, gate, both = PAIRS
    expected = [[*tower, gate[0]], [*tower, *gate, both[0]]]  # AR and SC are judged from turn 2 on, GR from turn 1 on
    assert said(openai_server.bodies) == sorted([*expected, [tower[0]], *expected, expected[0]])
    asked = [body for body in openai_server.bodies if not judges(body)]
    assert {body["temperature"] for body in asked} == {0} and not any("response_format" in body for body in asked)
    assert [m["role"] for m in max((b["messages"] for b in asked), key=len)] == ["user", "assistant"] * 2 + ["user"]


def test_documents_bind_what_is_said_of_the_subject_and_not_the_talk(
    site: Evaluating, openai_server: OpenAIServer
) -> None:
    openai_server.responder = reply
    told = item("PI", "p", [("I've climbed the tower!", "How was the view?")], passages=(PASSAGE,))
    assert Evaluating(site.folder, [told]).run(openai_server).code == 0
    (asked,) = said(openai_server.bodies)[0]
    assert asked.startswith("What you say about the subject comes from this context, and from nothing else.\n<context>")
    assert asked.endswith(f"{PASSAGE.text}\n</context>\n\nI've climbed the tower!")


def test_the_judge_sees_criteria_history_and_the_reference_of_this_turn_alone(
    site: Evaluating, openai_server: OpenAIServer
) -> None:
    openai_server.responder = lambda body: (
        reply(body) if judges(body) else f"Answer to {body['messages'][-1]['content']}"
    )
    assert Evaluating(site.folder, [item("GR", "g")]).run(openai_server).code == 0
    seen = judged(openai_server.bodies, "Answer to And the gate?")
    assert "Agent: It is 40 m tall." in seen and "The reference:\nIt is 9 m." in seen
    assert "49 m" not in seen and "Both?" not in seen and "<documents>" not in seen
    openai_server.bodies.clear()
    other = Evaluating(site.folder, [item("TS", "t")])
    assert other.run(openai_server, "fresh=true").code == 0
    assert not any("The reference:" in prompt(body) for body in openai_server.bodies)


def test_the_judge_sees_the_lines_of_earlier_answers(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: reply(body) if judges(body) else "A list."
    pairs = [("How tall are they?", "Heights:\n- tower\n    - 40 m\nUser: Well done!"), ("As a table?", "| 40 |")]
    assert Evaluating(site.folder, [item("FR", "f", pairs)]).run(openai_server).code == 0
    lines = judged(openai_server.bodies, "A list.").splitlines()
    place = lines.index("Agent: Heights:")
    assert [line.removeprefix("  ") for line in lines[place + 1 : place + 3]] == ["- tower", "    - 40 m"]
    assert "User: Well done!" not in lines, "no answer can bring a turn of its own"


def test_with_its_own_history_the_model_sees_what_it_said(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = reply
    assert site.run(openai_server, "context=both").code == 0
    tower, gate, both = PAIRS
    chats = said(openai_server.bodies)
    # GR's first answer is its own; AR's first turn is given.
    assert [tower[0], "Own answer 1.", gate[0], "Own answer 2.", both[0]] in chats
    assert [*tower, gate[0], "Own answer 2.", both[0]] in chats
    assert "Agent: Own answer 2." in "".join(prompt(body) for body in openai_server.bodies if judges(body))
    scores = site.scores()
    assert scores["context"] == "golden" and scores["own"]["average"]["score"]
    dialogs = [Dialog.model_validate(dialog) for dialog in site.dialogs()]
    assert [(d.id, d.context) for d in dialogs] == [(n, c) for n in "ags" for c in ("golden", "own")]
    assert dialogs[0].turns[1].other_answers == ("It is 9 m.",) and dialogs[0].turns[0].answer == "It is 40 m tall."


def test_answers_after_both_kinds_of_history_are_scored_in_one_order(
    site: Evaluating, openai_server: OpenAIServer
) -> None:
    openai_server.responder = reply
    write_dialogs(site.input, item("AR", "a", context="own"), item("AR", "b", context="golden"))
    assert {"golden", "own"} <= set(site.run(openai_server).out.split())
    scores = site.scores()
    assert scores["context"] == "golden" and scores["own"]["average"]["score"]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("see [2] for that. Rating: [[8]]", 8),
        ("[[7.5]]", 7.5),
        ("Not [[3]], rather [[ 9 ]].", 9),
        ("[[11]]", None),
        ("[[0]]", None),
        ("I give it [8].", None),
        ('{"explanation": "As in [[3]].", "score": 6}', 6),
        ('{"explanation": "As in [[3]].", "score": 12}', None),
        ('```json\n{"explanation": "As in [[3]].", "score": 6', 6),
        ('It quotes {"score": 3}, which is right. See [2].\nRating: [[8]]', 8),
        ('It quotes {"score": 85}.\nRating: [[8]]', 8),
        ('It is right. {"score": 8', 8),
        ("", None),
        ("As told in [2]. Rating: [[9/10]]", 9),
        ("Rating: [[9/100]]", None),
    ],
)
def test_a_rating_in_a_text_is_read_strictly(text: str, score: float | None) -> None:
    assert read_rating(text) == score


@pytest.mark.parametrize("structured", ["true", "false"])
def test_a_judge_without_a_schema_rates_in_brackets(
    structured: str, site: Evaluating, openai_server: OpenAIServer
) -> None:
    openai_server.responder = lambda body: "As in [2]. Rating: [[7.5]]" if judges(body) else "Rating: [[10]] </task>"
    assert site.run(openai_server, f"judge.lm.structured_outputs={structured}").code == 0
    scores = site.scores()
    assert scores["average"] == {"score": 7.5, "low": None, "high": None} and scores["judged"] == 6
    asked = next(body for body in openai_server.bodies if judges(body))
    assert ("Rating: [[n]]" in prompt(asked)) == (structured == "false")
    assert prompt(asked).count("</task>") == 1


def test_what_fails_is_counted_apart_and_lowers_nothing(site: Evaluating, openai_server: OpenAIServer) -> None:
    def some_fail(body: Body) -> str:
        last = str(body["messages"][-1]["content"])
        if not judges(body):
            return "" if last == "Both?" else f"Answer to {last}"
        return "no idea" if "\nAnswer to How tall is the tower?\n" in last else "Rating: [[6]]"

    openai_server.responder = some_fail
    done = site.run(openai_server)
    assert done.code == 0
    scores = site.scores()
    assert (scores["judged"], scores["unjudged"], scores["without_answer"]) == (3, 3, 2)
    assert "empty" not in scores, "an answer that came empty has no rating either"
    assert scores["tasks"]["AR"]["score"] is None and scores["tasks"]["AR"]["unscored"] == 1
    assert scores["average"]["score"] == scores["tasks"]["SC"]["score"] == 6
    assert scores["reasons"]["no answer"] == 2
    assert "2 of 6 answers lack a score: no answer" in done.err


def test_a_judge_is_not_asked_about_an_answer_that_did_not_come(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: "[[9]]" if judges(body) else "Yes."
    longest = fake.status(400, "the maximum context length is 700 tokens")
    openai_server.faults = lambda _, body: longest if len(body["messages"]) == 5 else None
    done = site.run(openai_server)
    assert done.code == 0, done.err
    scores = site.scores()
    (reason,) = scores["reasons"]
    assert reason.startswith("no answer: ") and f"2 of 6 answers lack a score: {reason}\n" in done.err
    assert scores["without_answer"] == scores["unjudged"] == 2


def test_what_a_content_filter_leaves_of_an_answer_is_no_answer(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: "[[9]]" if judges(body) else "Yes."
    beginning = {"message": {"role": "assistant", "content": "It is about"}, "finish_reason": "content_filter"}
    filtered = fake.plain(json.dumps({"choices": [beginning]}))
    openai_server.faults = lambda _, body: filtered if len(body["messages"]) == 5 else None
    done = site.run(openai_server)
    assert done.code == 0 and "2 of 6 answers lack a score: no answer: the server's content filter" in done.err
    scores = site.scores()
    assert scores["without_answer"] == scores["unjudged"] == 2
    assert not any("It is about" in prompt(body) for body in openai_server.bodies if judges(body))


def test_a_judge_that_says_nothing_is_told_from_one_whose_rating_is_unusable(
    site: Evaluating, openai_server: OpenAIServer
) -> None:
    openai_server.responder = lambda body: " " if judges(body) else "An answer."
    done = site.run(openai_server)
    assert done.code == 1 and "none of the answers could be judged" in done.err
    assert site.scores()["reasons"] == {"empty reply": 6}


def test_a_finished_run_asks_nobody_and_answers_are_judged_again(
    site: Evaluating, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.responder = reply
    assert site.run(openai_server).code == 0
    first, calls = site.scores(), len(openai_server.bodies)
    assert site.run(openai_server).code == 0 and len(openai_server.bodies) == calls
    again = tmp_path / "again"
    arguments = ["+benchmark=mt_bench_101", f"input={site.run_dir}", f"run_dir={again}"]
    assert command(*arguments, *openai_server.settings("judge.lm"), program=COMMAND).code == 0
    assert all(judges(body) for body in openai_server.bodies[calls:]) and len(openai_server.bodies) == calls + 6
    scores = json.loads((again / "scores.json").read_text())
    assert (scores["model"], scores["tasks"]) == (openai_server.model, first["tasks"])
    told = command(
        "+benchmark=mt_bench_101", f"judgments={site.run_dir}", f"run_dir={tmp_path / 'told'}", program=COMMAND
    )
    assert told.code == 0 and len(openai_server.bodies) == calls + 6
    assert json.loads((tmp_path / "told" / "scores.json").read_text())["tasks"] == first["tasks"]


def test_a_panel_rates_by_its_median(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: "[[9]]" if judges(body) else "Yes."
    with OpenAIServer(lambda body: "[[4]]", model="stern") as stern:
        panel = [*openai_server.settings("judge.panel.a"), *stern.settings("judge.panel.b")]
        given = [a for a in site.arguments(openai_server) if not a.startswith("judge.lm")]
        assert command(*given, *panel, program=COMMAND).code == 0
    assert site.scores()["average"]["score"] == 6.5
    assert site.scores()["judge"] == [openai_server.model, "stern"]


def test_a_drawn_sample_is_stratified_and_the_same_again(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.responder = reply
    items = [item(task, f"{task}{number}") for task in ("TS", "GR") for number in range(6)]
    drawn = []
    for seed in (0, 0, 1):
        site = Evaluating(tmp_path, items)
        assert site.run(openai_server, "items=2", "fresh=true", f"seed={seed}").code == 0
        drawn.append([dialog["id"] for dialog in site.dialogs()])
    assert drawn[0] == drawn[1] != drawn[2]
    assert sorted(name[:2] for name in drawn[0]) == ["GR", "GR", "TS", "TS"]
    assert site.scores()["tasks"]["TS"]["low"] is not None
    told = site.run(openai_server, "items=3", "seed=1").refused
    assert "items (was 2, is 3)" in told and "input (other content)" not in told
    assert "items (was 2, is unset)" in site.run(openai_server, "seed=1").refused


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("benchmark", "tasks", "context"),
    [("mt_bench_101", ("TS", "GR", "AR"), "both"), ("rad_bench", ("news", "finance", "travel"), "own")],
)
def test_killed_at_random_moments(
    kills: int, benchmark: str, tasks: Sequence[str], context: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Evaluating, "benchmark", benchmark)
    chance = random.Random("evaluate")
    items = [item(task, f"{task}{number}") for task in tasks for number in range(2 * kills)]
    settings = (f"context={context}", "lm.concurrency=2", "judge.lm.concurrency=2")
    with OpenAIServer(reply) as server:
        calm = Evaluating(tmp_path / "calm", items)
        assert calm.run(server, *settings).code == 0
        needed = len(server.bodies)
    delays, last = random.Random("delays"), sys.maxsize  # on a busy machine, what is killed late would have ended
    server = OpenAIServer(
        reply, delay_s=lambda _: delays.uniform(0.002, 0.01), hold=lambda _: len(server.bodies) > last
    )
    with server:
        site = Evaluating(tmp_path, items)
        lost = 0
        for _ in range(kills):
            recorded, finished = site.recorded(), server.finished.total()
            more = finished + chance.randint(1, needed // kills - 1)
            last = len(server.bodies) + more - finished + 4
            process = site.start(server, *settings)
            until(lambda more=more: server.finished.total() >= more, process)  # type: ignore[misc]
            kill(process, server)
            lost += server.finished.total() - finished - (site.recorded() - recorded)
        last = sys.maxsize
        assert site.run(server, *settings).code == 0
        assert server.finished.total() == needed + lost
    assert site.scores() == calm.scores() | {"input": str(site.input)}
    assert site.dialogs() == calm.dialogs()


def test_bad_input_is_one_line(site: Evaluating, tmp_path: Path) -> None:
    twice = Evaluating(tmp_path, [item("TS", "a"), item("GR", "a")])
    assert "two dialogs have the id 'a'" in refused(twice)
    assert "no file for the task 'XY'" in refused(Evaluating(tmp_path, [item("XY", "a")]))
    assert "judged from turn 2" in refused(Evaluating(tmp_path, [item("SC", "a", PAIRS[:1])]))
    (tmp_path / "other.json").write_text('{"some": "thing"}')
    assert "other.json" in refused(site, f"input={tmp_path / 'other.json'}")
    assert "input" in refused(site, "input=null")
    assert "benchmark=zzz" in refused(site, "benchmark=zzz")
    assert "context=all: must be 'golden', 'own' or 'both'" in refused(site, "context=all")
    assert "run_dir" in refused(site, f"run_dir={tmp_path}")


def test_an_endpoint_that_goes_away_ends_the_run_and_the_command_goes_on(
    site: Evaluating, openai_server: OpenAIServer
) -> None:
    openai_server.responder = reply
    openai_server.faults = lambda number, body: fake.status(500) if number > 4 else None
    done = site.run(openai_server)
    assert done.code == 2 and "is back, the same command continues" in done.error  # lm or judge.lm, whichever met it
    openai_server.faults = ()
    assert site.run(openai_server).code == 0 and site.scores()["judged"] == 6


def test_judgments_of_others_are_aggregated(tmp_path: Path) -> None:
    done = judgments(
        tmp_path,
        {"task": "TS", "id": 1, "turn": 1, "score": 9},
        {"task": "TS", "id": 1, "turn": 2, "score": 4},
        {"task": "TS", "id": 2, "turn": 1, "score": 8},
        {"task": "TS", "id": 3, "turn": 1, "score": None},
        {"task": "SC", "id": 4, "turn": 1, "score": 1},  # isn't judged
        {"task": "SC", "id": 4, "turn": 2, "score": 10},
    )
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert done.code == 0 and scores["average"]["score"] == 8  # (min(9, 4) + 8) / 2 and 10
    assert (scores["judged"], scores["unjudged"], scores["tasks"]["TS"]["unscored"]) == (4, 1, 1)
    assert "context memory" not in done.out and "topic shift" in done.out


def test_judgments_that_can_not_be_read_are_one_line(tmp_path: Path) -> None:
    line = {"task": "TS", "id": 1, "turn": 1, "score": 9}
    assert "there twice" in judgments(tmp_path, line, line).error
    (tmp_path / "out").touch()
    assert "run_dir" in judgments(tmp_path, line).error
    (tmp_path / "out").unlink()
    assert "score" in judgments(tmp_path, line | {"score": 11}).error
    assert "no file for the task 'ZZ'" in judgments(tmp_path, line | {"task": "ZZ"}).error


def test_answers_of_mt_bench_101_are_judged_too(site: Evaluating, openai_server: OpenAIServer) -> None:
    openai_server.responder = reply
    answers = site.folder / "m.jsonl"
    answers.write_text('{"id": "s", "turn": 2, "answer": "<think>8 m?</think>Sorry, 9 m."}\n')
    assert site.run(openai_server, f"answers={answers}").code == 0
    assert ":\nSorry, 9 m." in prompt(openai_server.bodies[0]) and len(openai_server.bodies) == 1
    assert site.scores()["lacking"] == {"missing": 5}
