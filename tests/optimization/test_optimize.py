"""Instructions are optimised: what is better on held-out labels is found, kept in a file, and loaded."""

import asyncio
import gc
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest

from generator.errors import ModelError
from generator.models.endpoints import Endpoint
from generator.models.lm import ChatReply, ChatRequest, Client, Profile, Sampling
from generator.optimization.run import Optimization, Reflection, run_optimization
from generator.optimize import COMMAND
from generator.prompts.adapter import describe_outputs
from generator.prompts.program_file import list_predictors, load_program
from generator.prompts.signatures import prompt_version
from generator.schema import Dialog, Usage, Verdict
from judges.__main__ import COMMAND as judge
from judges.llm.correctness import CorrectnessJudge
from tests.support.openai_server import OpenAIServer, fill, prompt, status
from tests.support.records import make_dialog, make_passage, make_turn, write_dialogs
from tests.support.runs import Site, command
from tests.support.scripted import task

BETTER = "Judge only by colours. A response that names another colour than the documents is incorrect."


class Model:
    """A model that judges well with the better instructions alone, and writes these when it reflects.

    Args:
        last: number of the call at which the server is gone; None: never.
        better: the instructions that it writes.
    """

    model, max_tokens, context = "scripted", 256, 1_000_000

    def __init__(self, last: int | None = None, better: str = BETTER) -> None:
        self.last, self.better, self.requests = last, better, list[ChatRequest]()

    @contextmanager
    def for_dialog(self, document: str) -> Iterator[Client]:
        yield self

    def sampling(self, profile: Profile) -> Sampling:
        return Sampling(temperature=0)

    async def chat(self, request: ChatRequest) -> ChatReply:
        if self.last is not None and len(self.requests) >= self.last:
            raise dspy.lm15.TransportError("the server is gone")
        self.requests.append(request)
        text = request.messages[-1].content
        if request.top_logprobs:
            return self._weigh(text)
        reply = json.loads(fill(request.body()))
        if "better" in reply:
            reply["better"] = self.better
        elif "score" in reply:
            reply["score"] = 10 if "response to judge:\nIt is blue" in text or BETTER not in text else 1
        elif "findings" in reply:
            reply["findings"] = [{"reason": "1", "supported": "1. It is blue" in text or BETTER not in text}]
        elif "claims" in reply:
            reply["claims"] = [re.findall("It is (?:blue|red)", text)[-1]]
        elif "label" not in reply:  # a step
            good = BETTER in text
            reply |= {"answer": "It is blue.", "consistent": True, "evidence": [1 if good else 2]}
            reply |= {"answerability": "answerable", "can_ask": True}
            question = f"Which colour is the door of {re.findall('house [0-9]+', text)[-1]}?"
            if "takes_up" in reply:
                question = "And how old is it?"
            reply |= {"question": question if good else "What do the documents say of it?"}
            reply |= {"query": question if good else "Which colour is it?"}
        else:
            right = "response to judge:\nIt is blue" in text
            label = "correct" if right or BETTER not in text else "incorrect"
            finding = "correct" if label == "correct" else "contradicted"
            reply |= {"statements": [{"text": "It is.", "finding": finding}], "label": label}
        usage = Usage(calls=1, prompt=10, completion=5)
        return ChatReply(text=json.dumps(reply), finish_reason="stop", model=self.model, usage=usage)

    def _weigh(self, text: str) -> ChatReply:
        right = "It is blue" in text.rpartition("Statement:")[2] or BETTER not in text
        likely = (("Yes", -0.01), ("No", -5.0)) if right else (("No", -0.01), ("Yes", -5.0))
        usage = Usage(calls=1, prompt=10, completion=1)
        return ChatReply(text=likely[0][0], finish_reason="length", model=self.model, usage=usage, likely=likely)

    @property
    def reflections(self) -> list[str]:
        return [text for each in self.requests if "The instructions so far" in (text := each.messages[-1].content)]


class ScriptedEndpoint(Endpoint):
    """The settings of a scripted model."""

    _scripted: Model

    @classmethod
    def of(cls, model: Model) -> "ScriptedEndpoint":
        self = cls(
            model="scripted", context=1_000_000, max_tokens=256, concurrency=2, timeout_s=9, retries=0, retry_wait_s=1
        )
        self._scripted = model
        return self

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[Model]:  # type: ignore[override]
        yield self._scripted

    def model_copy(self, **_: Any) -> "ScriptedEndpoint":  # type: ignore[override]
        return self


def labelled(number: int, colour: str, label: str | None) -> Dialog:
    """Return a dialog about a document of its own, whose answer people judged."""
    passage = make_passage(f"p{number}", f"The door of house {number} is blue. It is old.", document_id=f"d{number}")
    named = [Verdict(judge="human:all:correctness", label=label, explanation="", model="")] if label else []
    said = {"query": f"Which colour is house {number}?", "answer": f"It is {colour}."}
    turn = make_turn(1, **said, verdicts=tuple(named))
    return make_dialog(turn, id=f"dialog{number}", passages=(passage,))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    pairs = [("blue", "correct"), ("red", "incorrect")]
    return write_dialogs(tmp_path / "data.jsonl", *(labelled(n, *pairs[n % 2]) for n in range(40)))


def settings(data: Path, model: Model, **changes: Any) -> Optimization:
    usual: dict[str, Any] = {"target": "judge.correctness", "data": (str(data),), "metric": (), "train": 8, "seed": 0}
    usual |= {"validation": 8, "held_out": 16, "calls": 40, "minibatch": 4, "dspy_program": None, "fresh": False}
    usual |= {"run_dir": data.with_name("run"), "lm": ScriptedEndpoint.of(model), "reflection": Reflection()}
    return Optimization(**usual | changes)


def card(data: Path) -> dict[str, Any]:
    return dict(json.loads(data.with_name("run").joinpath("card.json").read_text(encoding="utf-8")))


def test_a_tie_among_people_is_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = [("blue", "correct"), ("red", "incorrect"), ("red", "unjudged")]
    mixed = write_dialogs(tmp_path / "data.jsonl", *(labelled(n, *labels[n % 3]) for n in range(60)))
    run_optimization(settings(mixed, Model()), "")
    assert "data: 20 " in capsys.readouterr().err


def test_better_instructions_are_found_and_scored_on_documents_that_the_optimiser_never_saw(data: Path) -> None:
    model = Model()
    run_optimization(settings(data, model), "")
    found = card(data)
    assert found["after"] == {"judge.correctness.predict": BETTER}
    score, kappa = found["scores"]["score"], found["scores"]["kappa"]
    assert (score["before"]["value"], score["after"]["value"]) == (0.5, 1)
    assert (kappa["before"]["value"], kappa["after"]["value"]) == (0, 1)
    assert 0 < score["difference"]["low"] < 0.5 < score["difference"]["high"]
    assert "better by more than its interval" in (data.with_name("run") / "card.md").read_text(encoding="utf-8")

    def houses(texts: Sequence[str]) -> set[str]:
        return set(re.findall(r"house (\d+)", "\n".join(texts)))

    first = houses([each.messages[-1].content for each in model.requests[:16]])  # the held-out ones, before
    assert len(first) == 16 and model.reflections and not first & houses(model.reflections)
    assert "People say incorrect: the verdict is wrong." in model.reflections[0]
    assert "A comparison of the words says" in model.reflections[0]
    form = describe_outputs(CorrectnessJudge("").predict.signature)
    assert form in model.reflections[0], "new instructions can contradict what stays beside them"


def test_the_question_of_a_judge_by_certainty_is_optimised(data: Path) -> None:
    run_optimization(settings(data, Model(), target="judge.p_true"), "")
    score = card(data)["scores"]["score"]
    assert card(data)["after"] == {"judge.p_true.predict": BETTER}
    assert score["before"]["value"] < score["after"]["value"] == 1


@pytest.mark.parametrize("target", ["judge.mt_bench", "judge.rl_f"])
def test_a_judge_that_scores_is_optimised_by_how_near_it_comes_to_peoples_scores(target: str, data: Path) -> None:
    model = Model()
    run_optimization(settings(data, model, target=target, metric=("correctness",)), "")
    found = card(data)
    assert set(found["after"].values()) == {BETTER}
    for name, before in (("score", 0.5), ("tau", 0)):
        score = found["scores"][name]
        assert (score["before"]["value"], score["after"]["value"]) == (before, 1)
        assert score["difference"]["low"] > 0
    assert re.search(r"The score: 10?\. People's score, from [01] to 10?: [01]\.0", model.reflections[0])
    run_optimization(settings(data, again := Model(), target=target, metric=("correctness",)), "")
    assert not again.requests


@pytest.mark.parametrize(
    "better",
    [
        "The new instructions should clearly state that a verdict is judged by colours.",
        "Rewrite the instructions so that they clearly state what is to be judged by colours.",
    ],
)
def test_what_is_written_about_instructions_is_not_taken_for_instructions(
    better: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Model(better=better)
    run_optimization(settings(data, model, calls=16), "")
    assert model.reflections and card(data)["after"] == card(data)["before"]
    told = capsys.readouterr().err
    assert "round 1: left out" in told


def test_what_is_wrong_with_a_reflection_is_said(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_optimization(settings(data, Model(better="Be good."), calls=16), "")
    (told, *_) = re.findall("round 1: left out, since (.+)", capsys.readouterr().err)
    assert "better" in told and "40 characters" in told


@pytest.mark.parametrize("target", ["answer", "ask_first", "ask_next"])
def test_a_step_is_optimised_with_the_rules_of_a_run(target: str, data: Path) -> None:
    model = Model()
    if target == "ask_next":
        second = make_turn(2, query="And its age?", answer="It is old.")
        dialogs = [Dialog.model_validate_json(line) for line in data.read_text(encoding="utf-8").splitlines()]
        write_dialogs(data, *(each.model_copy(update={"turns": (*each.turns, second)}) for each in dialogs))
    run_optimization(settings(data, model, target=target), "")
    found = card(data)
    assert found["after"][f"{target}.predict"] == BETTER
    score = found["scores"]["score"]
    assert score["before"]["value"] < score["after"]["value"]
    assert score["after"]["value"] == 1 or target == "ask_next", "one question doesn't do for its three types"
    changed = [text for each in model.requests if BETTER in (text := each.messages[-1].content)]
    for text in set(changed) - set(model.reflections):
        rules, _, rest = text.partition("<documents>")
        assert "“answer”: " in rules and "“ask_next”: " in rules
        assert (BETTER in rules) == (target == "answer") and "Reply with" in task(rest)


def test_a_rewrite_is_scored_by_what_it_shares_with_the_query_that_people_wrote(data: Path, tmp_path: Path) -> None:
    records = [
        {
            "History": [f"House {n}", "The house", f"Where is house {n}?", "In the north."][: 4 if n < 32 else 2],
            "QuAC_dialog_id": f"d{n}",
            "Question": "Which colour?",
            "Question_no": 2,
            "Rewrite": f"Which colour is the door of house {n}?",
        }
        for n in range(40)
    ]
    (tmp_path / "canard").mkdir()
    (tmp_path / "canard/dev.json").write_text(json.dumps(records), encoding="utf-8")
    model = Model()
    canard = settings(data, model, target="rewrite").model_copy(update={"data": (f"canard:{tmp_path}",)})
    run_optimization(canard, "")
    found = card(data)
    assert found["documents"] == [8, 8, 16] and found["after"] == {"rewrite.predict": BETTER}
    score = found["scores"]["score"]
    assert (score["before"]["value"], score["after"]["value"]) == (0, 1)
    assert "The query that people wrote:\nWhich colour is the door of house" in model.reflections[0]
    assert "Its score: 0.00 of 1" in model.reflections[0], "of two queries nobody sees which one counts as good"


def test_the_same_command_goes_on_and_makes_no_call_twice(data: Path) -> None:
    whole = Model()
    run_optimization(settings(data, whole), "")
    wanted, program = card(data), (data.with_name("run") / "program.json").read_bytes()
    again = Model()
    (data.with_name("run") / "card.json").unlink()
    run_optimization(settings(data, again), "")
    assert again.requests == [] and card(data)["after"] == wanted["after"]
    run_optimization(settings(data, again, fresh=True), "")
    assert len(again.requests) == len(whole.requests)

    broken = Model(last=25)
    with pytest.raises(ModelError):
        run_optimization(settings(data, broken, fresh=True), "")
    assert not (data.with_name("run") / "card.json").exists()
    rest = Model()
    run_optimization(settings(data, rest), "")
    assert len(broken.requests) + len(rest.requests) == len(whole.requests)
    assert (data.with_name("run") / "program.json").read_bytes() == program


def test_a_larger_budget_continues_a_finished_optimisation(data: Path) -> None:
    run_optimization(settings(data, Model(), calls=8), "")
    assert card(data)["after"] == card(data)["before"]
    more = Model()
    run_optimization(settings(data, more, calls=40), "")
    assert card(data)["after"] != card(data)["before"]
    held_out = len({each.key for each in more.requests if BETTER not in each.messages[-1].content})
    assert held_out < 16, "the scores before weren't asked for again"


def test_where_no_candidate_can_be_better_nothing_more_is_tried(tmp_path: Path) -> None:
    right = write_dialogs(tmp_path / "data.jsonl", *(labelled(n, "blue", "correct") for n in range(40)))
    run_optimization(settings(right, model := Model()), "")
    assert not model.reflections and card(right)["tried"] == 8
    assert "nothing to improve" in (tmp_path / "run/card.md").read_text(encoding="utf-8")


def test_a_sweep_has_a_folder_for_each_whose_configuration_continues_it(
    data: Path, here: Path, openai_server: OpenAIServer
) -> None:
    usual = ["target=judge.correctness", f"data={data}", "train=4", "validation=4", "held_out=4", "fresh=true"]
    assert command("-m", *usual, "calls=4,8", *openai_server.settings(), program=COMMAND).code == 0
    folders = {path.name: path for path in Path("outputs/prompts").iterdir()}
    assert folders.keys() == {f"judge.correctness-test-model-0-calls-{calls}" for calls in (4, 8)}
    calls = len(openai_server.bodies)
    for folder in folders.values():
        assert command(str(folder / "config.yaml"), program=COMMAND).code == 0
    assert len(openai_server.bodies) == calls


def test_a_program_file_is_loaded_by_judges_and_runs(
    data: Path, tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_optimization(settings(data, Model()), "")
    program = data.with_name("run") / "program.json"
    plain, changed = CorrectnessJudge("m"), CorrectnessJudge("m")
    load_program(program, list_predictors(None, [changed]))
    assert prompt_version(changed.signatures) != prompt_version(plain.signatures)
    folder = tmp_path / "judged"
    given = [f"input={data}", "judge=correctness", f"run_dir={folder}", *openai_server.settings()]
    assert command(*given, f"dspy_program={program}", program=judge).code in (0, 1)
    assert openai_server.bodies and all(task(prompt(body)).startswith(BETTER) for body in openai_server.bodies)
    refused = command(*given, program=judge)
    assert refused.code == 2 and "dspy_program (other content)" in refused.error

    openai_server.bodies.clear()
    site = Site(tmp_path / "site")
    assert site.run(openai_server, "dialogs=1", "algorithm=single", f"dspy_program={program}").code in (0, 1)
    prompts = [prompt(body) for body in openai_server.bodies]
    assert all(BETTER in text.partition("<documents>")[0] for text in prompts), "the shared rules have it"
    assert any(task(text).startswith("Judge only by colours, as under “correctness”.") for text in prompts)


BAD: dict[str, tuple[str, str]] = {
    "target": ("target=judge.wisdom", "target=judge.wisdom: unknown; choose from: answer,"),
    "scores": ("target=judge.rl_f", "40 examples have 0 different scores of people by faithfulness"),
    "no scores": ("target=judge.task", "no label or score that people give, too; choose from: answer,"),
    "no model": ("target=judge.grounding", "target=judge.grounding: asks no model"),
    "metric": ("metric=beauty", "metric=beauty: unknown for target=judge.correctness; choose from: labels"),
    "labels": ("data={unlabelled}", "none of 4 examples has a label of people"),
    "other labels": ("target=judge.answerability", "none of 40 examples"),
    "labels of a judge": (
        "target=answer metric=labels data={wrong}",
        "has the label correct, and answer gives answerable,",
    ),
    "queries": ("target=rewrite", "none of 40 examples is a later question that people rewrote"),
    "no later turn": ("target=ask_next", "data: no turn of it can be used"),
    "few": ("held_out=100", "train + validation + held_out = 116: "),
    "set": ("data=q2wow:nowhere", "q2wow is the name of no set; did you mean q2_wow:nowhere?"),
    "file": ("data=q2_wow:nowhere", "data=q2_wow:nowhere: can't be read"),
    "program": ("dspy_program=nowhere.json", "dspy_program=nowhere.json: no such file"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_optimised_is_refused_in_one_line(name: str, data: Path, here: Path) -> None:
    unlabelled = write_dialogs(here / "unlabelled.jsonl", *(labelled(n, "blue", None) for n in range(4)))
    wrong = here / "wrong.jsonl"
    wrong.write_text(data.read_text(encoding="utf-8").replace("human:all:correctness", "human:all:answerability"))
    argument, said = BAD[name]
    usual = ("target=judge.correctness", f"data={data}", "train=8", "validation=8", "held_out=16")
    done = command(*usual, *argument.format(unlabelled=unlabelled, wrong=wrong).split(), program=COMMAND)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert said in done.error
    assert not (here / "outputs").exists()


def test_another_model_reflects_over_http(data: Path, tmp_path: Path, openai_server: OpenAIServer) -> None:
    lm = [*openai_server.settings(), *openai_server.settings("reflection.lm"), "reflection.lm.max_tokens=300"]
    usual = ("target=judge.correctness", f"data={data}", "train=8", "validation=8", "held_out=16", "calls=16")
    done = command(*usual, f"run_dir={tmp_path / 'run'}", *lm, program=COMMAND)
    assert done.code == 0, done.err
    assert "no new instructions" in done.out and "Average Metric" not in done.out + done.err
    reflected = {body["max_tokens"] for body in openai_server.bodies if "The instructions so far" in prompt(body)}
    assert reflected == {300}
    assert {body["max_tokens"] for body in openai_server.bodies} == {256, 300}


@pytest.mark.parametrize("target", ["judge.correctness", "judge.rl_f metric=correctness", "answer", "ask_first"])
def test_a_target_without_a_usable_reply_is_no_success(
    target: str, data: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.responder = lambda body: "Hm."
    usual = (*f"target={target}".split(), f"data={data}", "train=4", "validation=4", "held_out=4", "calls=8")
    done = command(*usual, f"run_dir={tmp_path / 'run'}", *openai_server.settings(), program=COMMAND)
    assert done.code == 1 and done.error.startswith("no reply could be used")


def test_a_server_that_refuses_the_key_is_one_line(
    data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with OpenAIServer(faults=lambda number, _: status(401) if number > 1 else None) as server:
        usual = ("target=judge.correctness", f"data={data}", "train=8", "validation=8", "held_out=16")
        done = command(*usual, f"run_dir={tmp_path / 'run'}", *server.settings(), program=COMMAND)
    gc.collect()  # which reports what nobody waited for
    assert done.code == 2 and "HTTP 401" in done.error and not caplog.records, caplog.text


@pytest.mark.parametrize("last", [5, 20], ids=["before", "search"])
def test_interrupted_it_stops_and_goes_on(last: int, data: Path) -> None:
    class Interrupting(Model):
        interrupted = False

        async def chat(self, request: ChatRequest) -> ChatReply:
            if len(self.requests) == last:
                if not self.interrupted:  # a second signal would end this process
                    self.interrupted = True
                    os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(30)
            return await super().chat(request)

    with pytest.raises(KeyboardInterrupt):
        run_optimization(settings(data, first := Interrupting()), "")
    run_optimization(settings(data, rest := Model()), "")
    assert card(data)["after"] == {"judge.correctness.predict": BETTER}
    run_optimization(settings(data, whole := Model(), fresh=True), "")
    assert len(first.requests) + len(rest.requests) == len(whole.requests)


def test_where_everything_is_linked_the_first_documents_are_on_one_side(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    shared = make_passage("p", "The doors of all houses are old.", document_id="all")
    pairs = [("blue", "correct"), ("red", "incorrect")]
    dialogs = [labelled(n, *pairs[n % 2]) for n in range(40)]
    linked = [d.model_copy(update={"passages": (*d.passages, shared)}) for d in dialogs]
    linked = [d.model_copy(update={"document_ids": (d.passages[0].document_id, "all")}) for d in linked]
    data = write_dialogs(tmp_path / "data.jsonl", *linked)
    usual = ("target=judge.correctness", f"data={data}", "train=8", "validation=8", "held_out=16", "calls=16")
    done = command(*usual, f"run_dir={tmp_path / 'run'}", *openai_server.settings(), program=COMMAND)
    assert done.code == 0 and "data: its dialogs share documents; 1 are on two sides" in done.err
    found = card(data)
    assert (found["documents"], found["shared"]) == ([8, 8, 16], 1)
    score = found["scores"]["score"]["before"]
    assert score["low"] < score["value"] < score["high"], "resampled by the first documents"
    refused = command(*usual, "held_out=100", f"run_dir={tmp_path / 'other'}", program=COMMAND)
    assert refused.code == 2 and "40 documents" in refused.error
