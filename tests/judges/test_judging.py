"""`python -m judges`: what exists is judged, with any model, and a run that was broken off goes on."""

import gzip
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.output.summary import Tokens
from generator.schema import TASK, Dialog, Turn, Verdict
from judges.__main__ import COMMAND
from judges.summary import JudgingSummary, closing_table
from tests.support import openai_server as fake
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.records import load_dialogs, make_dialog, write_dialogs, write_json_lines
from tests.support.runs import Ended, Site, command, replying, until
from tests.support.scripted import piece, said

DIALOGS = 12


class Judging(Site):
    """Dialogs in a file, and a folder for their verdicts; 12 dialogs of two turns if not given."""

    program = COMMAND

    def __init__(self, folder: Path, dialogs: Sequence[Dialog] = ()) -> None:
        super().__init__(folder)
        self.input = write_dialogs(
            folder / "in.jsonl", *(dialogs or [dialog(f"d{number}") for number in range(DIALOGS)])
        )

    def arguments(self, server: OpenAIServer, *more: str) -> list[str]:
        """Return the command line; `more` comes last, so that it takes precedence."""
        return ["+judge=idk", f"input={self.input}", f"run_dir={self.run_dir}", *server.settings(), *more]

    def verdicts(self) -> list[list[list[dict[str, Any]]]]:
        """Return the verdicts by dialog and turn."""
        return [[turn["verdicts"] for turn in dialog["turns"]] for dialog in self.dialogs()]


def dialog(name: str, **changes: Any) -> Dialog:
    """Return a dialog of two turns, about a passage of its own."""
    turns = said((f"When did the {name} open?", "In May."), ("And its door?", "It is blue."))
    usual = {"id": name, "corpus": "trams", "algorithm": "single", "seed": 1}
    return make_dialog(*changes.pop("turns", turns), passages=(piece(name),), **usual | changes)


def judge(*arguments: str) -> Ended:
    return command(*arguments, program=COMMAND)


@pytest.fixture
def place(here: Path) -> Judging:
    return Judging(here)


# What is judged, and what comes of it


def test_every_turn_gets_a_verdict_and_nothing_else_changes(place: Judging, openai_server: OpenAIServer) -> None:
    done = place.run(openai_server)
    assert done.code == 0, done.err
    judged = place.dialogs()
    for turn in (turn for dialog in judged for turn in dialog["turns"]):
        (verdict,) = turn.pop("verdicts")
        assert verdict["label"] in ("yes", "partial", "no")
        assert (verdict["judge"], verdict["model"], verdict["decides"]) == ("idk", "test-model", False)
        turn["verdicts"] = []
    assert judged == [json.loads(line) for line in place.input.read_text("utf-8").splitlines()]
    assert len(openai_server.bodies) == 2 * DIALOGS
    assert {body["temperature"] for body in openai_server.bodies} == {0}, "a verdict is no draw"
    summary = place.summary()
    (figures,) = summary["judges"]
    assert (summary["dialogs"], summary["turns"], summary["skipped"]) == (DIALOGS, 2 * DIALOGS, 0)
    assert (summary["complete"], summary["lm_calls"]) == (True, 2 * DIALOGS)
    assert sum(figures["all"]["labels"].values()) == figures["all"]["turns"] == 2 * DIALOGS
    assert figures["answerability"] == {"answerable": figures["all"]}
    assert figures["question_type"] == {"direct": figures["all"]}
    assert figures["corpus"] == {"trams": figures["all"]}
    wrong = figures["all"]["labels"].get("yes", 0)
    assert figures["answerability_accuracy"] == pytest.approx(1 - wrong / (2 * DIALOGS), abs=1e-4)
    assert "idk (test-model)" in done.out and f"{figures['answerability_accuracy']:.1%} of" in done.out
    assert f"run folder: {place.run_dir}" in done.out


def test_a_run_of_the_generator_is_judged_beside_what_its_judge_said(here: Path) -> None:
    made = Site(here)
    with OpenAIServer() as server, OpenAIServer(model="other/strict-one") as other:
        assert made.run(server, "dialogs=3").code == 0
        calls = len(server.bodies)
        done = judge("judge=correctness", f"input={made.run_dir}", *other.settings())
        assert done.code == 0, done.err
        assert len(server.bodies) == calls
        turns = sum(len(dialog["turns"]) for dialog in made.dialogs())
        assert len(other.bodies) == turns
    judged = load_dialogs(Path("outputs/run-correctness-strict-one/dialogs.jsonl"))
    result = [turn for dialog in judged for turn in dialog.turns]
    assert [[v.model for v in turn.verdicts] for turn in result] == [["test-model", "", "other/strict-one"]] * turns


def test_a_verdict_takes_the_place_of_that_of_the_same_judge_and_model(tmp_path: Path) -> None:
    old = [
        Verdict(judge="idk", label="yes", explanation="old", model="test-model", decides=False),
        Verdict(judge="idk", label="yes", explanation="kept", model="another", decides=False),
        Verdict(judge="correctness", label="correct", explanation="kept", model="test-model"),
    ]
    turns = tuple(turn.model_copy(update={"verdicts": tuple(old)}) for turn in dialog("d").turns)
    place = Judging(tmp_path, [dialog("d", turns=turns)])
    with OpenAIServer(replying(judge=lambda _: {"label": "no", "explanation": "new"})) as server:
        assert place.run(server).code == 0
    kept = [verdict.model_dump(mode="json") for verdict in old[1:]]
    new = old[0].model_copy(update={"label": "no", "explanation": "new"}).model_dump(mode="json")
    assert place.verdicts() == [[[*kept, new], [*kept, new]]]


def test_an_answer_that_did_not_come_when_a_model_was_evaluated_has_no_score(place: Judging) -> None:
    def verdict(score: float | None, why: str = "") -> Verdict:
        label = "unjudged" if score is None else "scored"
        return Verdict(judge="token_f1", label=label, explanation=why, model="", score=score, decides=False)

    verdicts = verdict(0), verdict(None, "no answer: TimeoutError")
    answered = dialog("d", context="golden")
    turns = [
        turn.model_copy(update={"answer": "", "other_answers": (turn.answer,), "verdicts": (given,)})
        for turn, given in zip(answered.turns, verdicts, strict=True)
    ]
    write_dialogs(place.input, answered.model_copy(update={"turns": tuple(turns)}))
    assert judge("judge=token_recall", f"input={place.input}", f"run_dir={place.run_dir}").code == 0
    assert [turn[-1]["score"] for turn in place.verdicts()[0]] == [0, None], "an empty one came, and is wrong"
    for file in (place.input, place.run_dir):
        again = f"run_dir={place.folder / file.name}-again"
        assert judge("judge=token_f1", f"input={file}", again).code == 0
    written = load_dialogs(Path(again.partition("=")[2]) / "dialogs.jsonl")[0]
    assert [{v.judge: v.score for v in turn.verdicts} for turn in written.turns] == [
        {"token_f1": 0, "token_recall": 0},
        {"token_f1": None, "token_recall": None},
    ]


def test_a_gzipped_file_and_its_broken_lines(place: Judging, openai_server: OpenAIServer) -> None:
    assert place.run(openai_server).code == 0
    usual = place.dialogs()
    lines = place.input.read_bytes().splitlines(keepends=True)
    packed = place.folder / "some.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join([lines[0], b"{}\n", b"\n", *lines[1:]])))
    done = place.run(openai_server, f"input={packed}", "fresh=true")
    assert done.code == 0
    assert f"1 of {DIALOGS + 1} records can't be read, the first: {packed}:2: id: Field required" in done.err
    assert place.dialogs() == usual
    assert place.summary()["skipped"] == 1
    (skipped,) = (place.run_dir / "skipped.jsonl").read_text().splitlines()
    assert json.loads(skipped)["where"] == f"{packed}:2"


# mtRAG


def task(name: str, *given: str, answer: str, **more: Any) -> dict[str, Any]:
    speakers = ("user", "agent") * len(given)
    return {
        "task_id": name,
        "Collection": "mt-rag-fiqa-beir-elser-512-100-20240501",
        "input": [{"speaker": speaker, "text": text} for speaker, text in zip(speakers, given, strict=False)],
        "targets": [{"speaker": "agent", "text": answer}],
        "contexts": [{"document_id": "7-0-9", "text": "A bond is a loan.", "score": 3.5}],
        "Answerability": ["PARTIAL"],
        "Question Type": ["How-To", "Factoid"],
        "Multi-Turn": ["Follow-up"],
    } | more


PREDICTED = (
    task("c1<::>1", "What is a bond?", answer="A loan.", predictions=[{"text": "Some loan."}], contexts=[]),
    task(
        "c1::2",
        "What is a bond?",
        "A loan.",
        "Of whom?",
        answer="Yours.",
        predictions=[{"text": "<think>Hm.</think>Mine."}],
    ),
)


def test_of_predictions_the_models_answer_is_judged_with_the_targets_as_references(
    place: Judging, openai_server: OpenAIServer
) -> None:
    wrong = [{"input": [{"speaker": "user", "text": "A?"}] * 2}, {"predictions": []}, {"Collection": "mt-rag-other"}]
    file = write_json_lines(place.folder / "gpt.jsonl", *PREDICTED, *(PREDICTED[1] | change for change in wrong))
    done = place.run(openai_server, f"input={file}", "judge=rb_llm")
    assert done.code == 0
    assert "3 of 5 records can't be read" in done.err
    skipped = [json.loads(line)["reason"] for line in (place.run_dir / "skipped.jsonl").read_text().splitlines()]
    assert all(name in reason for name, reason in zip(("input: ", "predictions: ", "domain"), skipped, strict=True))
    first, second = (Dialog.model_validate(dialog) for dialog in place.dialogs())
    assert (first.id, second.id) == ("c1<::>1/gpt", "c1<::>2/gpt")
    assert (second.corpus, second.lm, second.ended) == ("mtrag-fiqa", "gpt", TASK)
    assert [(turn.query, turn.answer, turn.other_answers) for turn in second.turns] == [
        ("What is a bond?", "A loan.", ()),
        ("Of whom?", "Mine.", ("Yours.",)),
    ]
    assert [len(turn.verdicts) for turn in second.turns] == [0, 1], "what was given with the task is nobody's"
    (turn,) = second.own_turns
    assert (turn.answerability, turn.question_type, turn.multi_turn_type) == ("partial", "how-to+factoid", "follow-up")
    assert [(hit.passage_id, hit.score) for hit in turn.hits] == [("7-0-9", 3.5)]
    assert first.passages == ()
    assert len(openai_server.bodies) == 2
    shown = prompt(openai_server.bodies[1])
    assert ":\nYours.\n" in shown
    assert ":\nMine.\n" in shown
    assert "A bond is a loan." in shown
    (figures,) = place.summary()["judges"]
    assert place.summary()["turns"] == 2
    assert {name: of["turns"] for name, of in figures["question_type"].items()} == {"factoid": 2, "how-to": 2}

    # What was judged is judged again by another judge: still the last turn alone.
    again = Judging(place.folder / "again")
    assert again.run(openai_server, f"input={place.run_dir}").code == 0
    assert [[len(turns) for turns in dialog] for dialog in again.verdicts()] == [[2], [0, 2]]


def test_a_format_without_dialogs_is_refused_with_those_that_have_some(place: Judging) -> None:
    for name in ("nosuch", "folder"):
        setting, _, known = judge("judge=grounding", f"input={place.input}", f"format={name}").refused.partition(":")
        assert setting == f"format={name}" and "quac" in known and "folder" not in known


def test_the_line_in_the_guide_is_judged(place: Judging) -> None:
    guide = (Path(__file__).parents[2] / "docs/judging.md").read_text("utf-8")
    file = write_json_lines(place.folder / "one.jsonl", json.loads(guide.split("```json\n")[1].split("```")[0]))
    assert judge("judge=grounding", f"input={file}", f"run_dir={place.run_dir}").code == 0
    ((verdict,),) = place.verdicts()[0]
    assert verdict["label"] == "incorrect"
    assert [turn["other_answers"] for turn in place.dialogs()[0]["turns"]] == [["40 minutes."]]


def test_targets_are_judged_if_predictions_are_not_to_be(place: Judging, openai_server: OpenAIServer) -> None:
    targets = [task("c1<::>1", "What is a bond?", answer="A loan."), PREDICTED[1]]
    file = write_json_lines(place.folder / "gpt.jsonl", *targets)
    refused = place.run(openai_server, f"input={file}", "predictions=false")
    assert refused.code == 2 and "give format=NAME" in refused.err
    assert place.run(openai_server, f"input={file}", "predictions=false", "format=mtrag").code == 0
    (one,) = place.dialogs()
    assert (one["id"], [turn["answer"] for turn in one["turns"]]) == ("c1", ["A loan.", "Yours."])
    assert [len(turns) for dialog in place.verdicts() for turns in dialog] == [1, 1]


def test_of_an_evaluation_every_models_response_is_an_item(place: Judging, openai_server: OpenAIServer) -> None:
    with_ids = task(
        "c1<::>2", "What is a bond?", "A loan.", "Of whom?", answer="Yours.", contexts=[{"document_id": "7"}]
    )
    evaluation = {
        "documents": [{"document_id": "7", "text": "A bond is a loan."}],
        "tasks": [with_ids],
        "evaluations": [
            {"task_id": "c1<::>2", "model_id": "reference", "model_response": "Yours."},
            {"task_id": "c1<::>2", "model_id": "gpt-4o", "model_response": "Mine."},
            {"task_id": "c1<::>3", "model_id": "gpt-4o", "model_response": "Mine."},
            {"task_id": "c1<::>2", "model_id": "silent", "model_response": ""},
        ],
    }
    file = place.folder / "evaluated.json"
    file.write_text(json.dumps(evaluation), encoding="utf-8")
    assert place.run(openai_server, f"input={file}", "judge=rb_llm").code == 0
    dialogs = [Dialog.model_validate(dialog) for dialog in place.dialogs()]
    assert [dialog.id for dialog in dialogs] == ["c1<::>2/reference", "c1<::>2/gpt-4o", "c1<::>2/silent"]
    # Even the reference has a reference: its score says what is the most that a judge gives.
    assert [dialog.own_turns[0].other_answers for dialog in dialogs] == [("Yours.",)] * 3
    assert {dialog.passages[0].text for dialog in dialogs} == {"A bond is a loan."}
    skipped = [json.loads(line)["reason"] for line in (place.run_dir / "skipped.jsonl").read_text().splitlines()]
    assert skipped == ["task_id: no such task, or it can't be read"]


def test_models_that_answered_the_same_tasks_have_figures_each(place: Judging) -> None:
    answers = [{"model_id": "small", "text": "Mine."}, {"model_id": "large", "text": "Yours."}]
    file = write_json_lines(place.folder / "both.jsonl", *(PREDICTED[n] | {"predictions": answers} for n in (0, 1)))
    done = judge("judge=token_f1", f"input={file}", f"run_dir={place.run_dir}")
    (figures,) = place.summary()["judges"]
    means = {name: (of["turns"], of["mean"]) for name, of in figures["lm"].items()}
    assert means == {"large": (2, 0.5), "small": (2, 0)}
    assert figures["all"]["mean"] == 0.25
    rows = [line.split() for line in done.out.splitlines() if "scored" in line]
    shown = [(name, mean) for *_, name, _, _, _, mean, _ in rows]
    assert shown == [("token_f1", "0.25"), ("large", "0.5"), ("small", "0")]


@pytest.mark.parametrize("name", ["token_f1", "token_recall", "rouge_l", "k_precision"])
def test_an_empty_answer_counts_as_0_and_takes_no_other_models_with_it(place: Judging, name: str) -> None:
    answers = [{"model_id": "a", "text": ""}, {"model_id": "b", "text": "A bond is yours."}]
    file = write_json_lines(place.folder / "both.jsonl", PREDICTED[1] | {"predictions": answers})
    assert judge(f"judge={name}", f"input={file}", f"run_dir={place.run_dir}").code == 0
    found = [Dialog.model_validate(dialog) for dialog in place.dialogs()]
    empty, other = [(dialog.lm, dialog.own_turns[0].verdicts[0].score) for dialog in found]
    assert empty == ("a", 0) and other[0] == "b" and (other[1] or 0) > 0


def test_the_publishers_files(data: Path, place: Judging, openai_server: OpenAIServer) -> None:
    """The three shapes that mtRAG's authors give out."""
    human = data / "mtrag" / "evaluations" / "reference_subset_with_human_evaluations.json"
    assert place.run(openai_server, f"input={human}").code == 0
    assert (place.summary()["turns"], place.summary()["lm_calls"]) == (348, 345), "three ask for nothing"
    assert len({dialog["id"] for dialog in place.dialogs()}) == 348
    assert {dialog["lm"] for dialog in place.dialogs()} == {"reference", "gpt-4o", "llama-3.1-405b-instruct"}
    sample = data / "mtrag" / "sample_data" / "responses-10.jsonl"
    assert place.run(openai_server, f"input={sample}", "fresh=true").code == 0
    assert place.summary()["turns"] == 10
    (figures,) = place.summary()["judges"]
    assert {name: of["turns"] for name, of in figures["corpus"].items()} == {"mtrag-clapnq": 8, "mtrag-govt": 2}
    people = data / "mtrag" / "conversations.json"
    assert place.run(openai_server, f"input={people}", "format=mtrag", "fresh=true").code == 0
    assert place.summary()["dialogs"] == 84


# Interrupted


def test_an_interrupted_run_is_whole_and_goes_on(tmp_path: Path) -> None:
    undisturbed, broken_off = Judging(tmp_path / "undisturbed"), Judging(tmp_path / "broken off")
    with OpenAIServer() as server:
        assert undisturbed.run(server).code == 0
    last = 14  # on a busy machine, a run that is interrupted late would have ended
    server = OpenAIServer(delay_s=0.05, hold=lambda _: len(server.bodies) > last)
    with server:
        process = broken_off.start(server, "lm.concurrency=2")
        until(lambda: len(server.bodies) > 6, process)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        ended = broken_off.ended(process)
        assert ended.code == 130
        assert "Traceback" not in ended.err
        done = broken_off.summary()["dialogs"]
        assert 0 < done < DIALOGS
        assert f"interrupted: {done} of {DIALOGS} dialogs" in ended.err.splitlines()[-1]
        assert broken_off.dialogs() == undisturbed.dialogs()[:done]
        assert broken_off.summary()["complete"] is False

        last = sys.maxsize
        again = broken_off.run(server, "lm.concurrency=2")
        assert again.code == 0
        assert f"continuing: {done} of {DIALOGS} dialogs judged so far" in again.err
    assert broken_off.dialogs() == undisturbed.dialogs()


def test_a_finished_run_asks_nobody(place: Judging, openai_server: OpenAIServer) -> None:
    assert place.run(openai_server).code == 0
    before, calls = place.dialogs(), len(openai_server.bodies)
    done = place.run(openai_server)
    assert done.code == 0
    assert "this run is finished" in done.err
    assert (place.dialogs(), len(openai_server.bodies)) == (before, calls)
    assert judge(str(place.run_dir / "config.yaml"), "fresh=true").code == 0, "as that run"
    assert (place.dialogs(), len(openai_server.bodies)) == (before, 2 * calls)
    assert judge(str(place.run_dir / "config.yaml")).code == 0
    assert len(openai_server.bodies) == 2 * calls, "a run that began with fresh=true doesn't start over"


def test_another_model_judge_or_input_is_another_run(place: Judging, openai_server: OpenAIServer) -> None:
    assert place.run(openai_server).code == 0
    with OpenAIServer(model="other") as other:
        assert "lm.model (was test-model, is other)" in place.run(other).refused
    assert "judge (was idk, is mt_bench)" in place.run(openai_server, "judge=mt_bench").refused
    assert "lm.greedy.temperature" in place.run(openai_server, "lm.greedy.temperature=0.5").refused
    write_dialogs(place.input, dialog("another"))
    assert "input (other content)" in place.run(openai_server).refused
    assert len(place.dialogs()) == DIALOGS


def test_an_input_that_changes_while_it_is_judged_stops_the_run(tmp_path: Path) -> None:
    """Long enough that most of it isn't read yet; what was judged of it as it was stays."""
    dialogs = [dialog(f"d{number}", document_ids=(f"{number}" * 2000,)) for number in range(4 * DIALOGS)]
    place = Judging(tmp_path, dialogs)
    before = place.input.read_bytes()

    def responder(body: Body) -> str:
        if len(server.bodies) == 6:
            place.input.write_bytes(before.replace(b"When did the d47 open", b"Where did the d47 open"))
        return fake.fill(body)

    with OpenAIServer(responder) as server:
        stopped = place.run(server, "lm.concurrency=2")
        assert stopped.code == 2
        assert stopped.error.startswith(f"{place.input}: ") and "changed" in stopped.error
        assert 0 < place.summary()["dialogs"] == len(place.dialogs()) < len(dialogs)
        place.input.write_bytes(before)
        assert place.run(server, "lm.concurrency=2").code == 0
    assert [judged["id"] for judged in place.dialogs()] == [judged.id for judged in dialogs]
    assert place.summary()["lm_calls"] == 2 * len(dialogs)


# A server that fails


def test_calls_that_fail_leave_turns_unjudged_and_say_why(place: Judging) -> None:
    with OpenAIServer(faults=lambda number, body: fake.status(500) if body["seed"] % 1000 == 2 else None) as server:
        write_dialogs(place.input, dialog("a"), dialog("b", seed=2))
        done = place.run(server)
    assert done.code == 0
    assert re.search("test-model: unjudged turns: 2 of 4.* HTTP 500", done.err)
    assert [[turn[0]["label"] == "unjudged" for turn in turns] for turns in place.verdicts()] == [
        [False, False],
        [True, True],
    ]
    (figures,) = place.summary()["judges"]
    assert figures["unjudged"] == {"the server answers HTTP 500": 2}
    assert figures["all"]["labels"]["unjudged"] == 2


def test_when_no_turn_could_be_judged_the_run_fails(place: Judging, openai_server: OpenAIServer) -> None:
    done = place.run(openai_server, "judge=rb_llm")
    assert done.code == 1
    assert f"none of {2 * DIALOGS} turns could be judged" in done.err and "no reference answer" in done.err
    assert openai_server.bodies == []


def test_a_judge_that_is_not_there_is_named_by_its_setting(place: Judging) -> None:
    with OpenAIServer() as server:
        pass
    for setting in ("lm", "judge.lm", "judge.panel.a"):
        message = place.run(server, *server.settings(setting)).refused
        assert server.url in message
        assert f" {setting}.api_base" in message
    assert not place.run_dir.exists()


# Several models


def test_a_panel_gives_the_verdict_of_each_model_and_their_median(tmp_path: Path) -> None:
    turns = tuple(turn.model_copy(update={"other_answers": ("In spring.",)}) for turn in dialog("d").turns)
    place = Judging(tmp_path, [dialog("d", turns=turns)])
    scores = {"one": 3, "two": 10, "three": 6}
    servers = {
        name: OpenAIServer(replying(judge=lambda _, score=score: {"score": score}), model=name)  # type: ignore[misc]
        for name, score in scores.items()
    }
    with servers["one"], servers["two"], servers["three"]:
        endpoints = [setting for name, server in servers.items() for setting in server.settings(f"judge.panel.{name}")]
        lm = servers["one"]
        assert place.run(lm, "judge=rb_llm", *endpoints).code == 0
        assert [len(server.bodies) for server in servers.values()] == [2, 2, 2]
        twice = place.run(lm, "judge=rb_llm", *endpoints, *lm.settings("judge.panel.again")).refused
        assert "judge.panel: has the model one twice" in twice
        assert "judge.lm: " in place.run(lm, "judge=rb_llm", *endpoints, *lm.settings("judge.lm")).refused
        changed = place.run(lm, "judge=rb_llm", *endpoints, "judge.panel.two.greedy.temperature=1")
        assert "judge.panel.two.greedy.temperature" in changed.refused
    ((verdicts, _),) = place.verdicts()
    assert [(v["judge"], v["model"], v["score"]) for v in verdicts] == [
        ("rb_llm", "one", 3),
        ("rb_llm", "two", 10),
        ("rb_llm", "three", 6),
        ("rb_llm", "median of one, two, three", 6),
    ]
    assert verdicts[-1]["explanation"] == "one 3, two 10, three 6"
    assert [figures["all"]["mean"] for figures in place.summary()["judges"]] == [3, 10, 6, 6]
    assert place.summary()["lm_calls"] == 6


def test_means_are_conditioned_where_there_is_a_word_on_what_is_not_known(tmp_path: Path) -> None:
    def turn(answerability: str, idk: str | None) -> Turn:
        (made,) = said(("Who?", "He."))
        verdict = Verdict(judge="idk", label=idk or "unjudged", explanation="", model="m", decides=False)
        return made.model_copy(update={"answerability": answerability, "verdicts": (verdict,)})

    cells = [
        ("answerable", "no"),  # 0.5, as it is
        ("partial", "partial"),  # 0.5
        ("answerable", "yes"),  # 0
        ("unanswerable", "yes"),  # 1
        ("unanswerable", "no"),  # 0
        ("conversational", "no"),
        ("answerable", None),
        ("answerable", "perhaps"),  # a label of somebody else's judge
    ]
    place = Judging(tmp_path, [dialog(f"d{n}", turns=(turn(*cell),)) for n, cell in enumerate(cells)])
    with OpenAIServer(replying(judge=lambda _: {"score": 5})) as server:
        assert place.run(server, "judge=mt_bench").code == 0
    (figures,) = place.summary()["judges"]
    assert (figures["all"]["mean"], figures["all"]["median"]) == (5, 5)
    assert (figures["all"]["conditioned"], figures["all"]["conditioned_turns"]) == (0.4, 5)
    assert figures["answerability"]["unanswerable"]["conditioned"] == 0.5
    assert figures["answerability"]["conversational"]["conditioned"] is None
    # A response without claims has no score, so it counts where the table has a constant.
    with OpenAIServer(replying(judge=lambda _: {"claims": []})) as server:
        assert place.run(server, "judge=rl_f", "fresh=true").code == 0
    (figures,) = place.summary()["judges"]
    assert (figures["all"]["labels"], figures["all"]["mean"], figures["unjudged"]) == ({"no claims": 8}, None, {})
    assert (figures["all"]["conditioned"], figures["all"]["conditioned_turns"]) == (0.3333, 3)

    # Nor has a metric where there is nothing to compare with.
    bare = (dialog(f"d{n}", turns=(turn(*cell),)) for n, cell in enumerate(cells))
    write_dialogs(place.input, *(each.model_copy(update={"passages": ()}) for each in bare))
    with OpenAIServer() as server:
        assert place.run(server, "judge=k_precision", "fresh=true").code == 1
    (figures,) = place.summary()["judges"]
    assert (figures["all"]["labels"], figures["all"]["mean"]) == ({"unjudged": 8}, None)
    assert (figures["all"]["conditioned"], figures["all"]["conditioned_turns"]) == (0.3333, 3)

    for name in ("answerability", "question_type", "needs_documents"):  # which say nothing about the answer's quality
        with OpenAIServer() as server:
            assert place.run(server, f"judge={name}", "fresh=true").code == 0
        (figures,) = place.summary()["judges"]
        assert (figures["all"]["conditioned"], figures["all"]["conditioned_turns"]) == (None, 0)


def test_what_a_run_took_is_written_as_counts(capsys: pytest.CaptureFixture[str]) -> None:
    spent = {"lm_calls": 1, "tokens": Tokens(prompt=1234567, cached=0, completion=1000), "seconds": 65}
    closing_table(JudgingSummary(input="x", dialogs=1, turns=1, skipped=0, judges=(), complete=True, **spent))
    assert capsys.readouterr().out.endswith("1 call, 1,234,567 prompt tokens, 1,000 completion tokens, 0:01:05\n")


# A judge that asks no model


def test_a_judge_without_a_model_opens_none(place: Judging) -> None:
    arguments = ["judge=k_precision", f"input={place.input}"]
    done = judge(*arguments, "lm=openai", "lm.model=m", "lm.api_base=http://127.0.0.1:1/v1")
    assert done.code == 0, done.err
    summary = json.loads(Path("outputs/in-k_precision/summary.json").read_text())
    (figures,) = summary["judges"]
    assert (summary["lm_calls"], figures["model"], figures["all"]["labels"]) == (0, "", {"scored": 2 * DIALOGS})
    assert judge(*arguments).code == 0, "another model changes nothing"
    assert judge(*arguments, "judge.panel.a=embedded").refused.startswith("judge.panel: ")


# Errors of settings and input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("judge=idk", "input: "),
        ("input=in.jsonl", "judge: is missing"),
        ("judge=idk input=in.jsonl judge.filter=dialog", "judge.filter: "),
        ("judge=idkk input=in.jsonl", "judge=idkk: "),
        ("judge=none input=in.jsonl", "judge=none: judges nothing"),
        ("judge=idk input=nowhere", "nowhere: "),
        ("judge=idk input=empty.jsonl", "empty.jsonl: "),
        ("judge=idk input=made/dataset", "made/dataset: belongs to a run; give the run folder, made"),
        ("judge=idk input=in.jsonl dialogs=3", "dialogs: "),
        ("judge=idk input=in.jsonl judge.panel.a.model=x", "such as judge.panel.a=openai"),
        ("judge=idk input=in.jsonl run_dir=.", "run_dir=.: "),
    ],
)
def test_what_is_wrong_is_one_line(arguments: str, message: str, place: Judging) -> None:
    (place.folder / "empty.jsonl").touch()
    (place.folder / "made" / "dataset").mkdir(parents=True)
    write_dialogs(place.folder / "made" / "dialogs.jsonl", dialog("d"))
    before = sorted(place.folder.rglob("*"))
    assert message in judge(*arguments.split()).refused
    assert sorted(place.folder.rglob("*")) == before
