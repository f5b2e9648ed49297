"""Instructions are optimised: what is better on held-out labels is found, kept in a file, and loaded."""

import asyncio
import gc
import json
import os
import random
import re
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest

from generator.dialogs.calls import use_model
from generator.dialogs.dedup import Repetition
from generator.dialogs.program_file import list_predictors, load_program
from generator.dialogs.signatures import prompt_version
from generator.dialogs.single import SingleDocumentDialog
from generator.errors import ConfigError, ModelError
from generator.models.endpoints import Endpoint
from generator.models.lm import ChatReply, ChatRequest, Client, Profile, Sampling
from generator.optimization.card import compare
from generator.optimization.data import Example, find_groups, split_examples
from generator.optimization.run import Optimization, Reflection, run_optimization
from generator.optimization.targets import AnswerTarget, AskTarget, Outcome, RewriteTarget, compare_queries
from generator.optimize import COMMAND
from generator.schema import Dialog, Passage, Usage, Verdict
from judges.__main__ import COMMAND as judge
from judges.llm.correctness import CorrectnessJudge
from tests.support.openai_server import OpenAIServer, fill, prompt, status
from tests.support.records import make_dialog, make_passage, make_turn, write_dialogs
from tests.support.runs import Site, command
from tests.support.scripted import Scripted, said, task

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
        reply = json.loads(fill(request.body()))
        if "better" in reply:
            reply["better"] = self.better
        elif "label" not in reply:  # a step
            good = BETTER in text
            reply |= {"answer": "It is blue.", "consistent": True, "evidence": [1 if good else 2]}
            reply |= {"answerability": "answerable", "can_ask": True}
            question = f"Which colour is the door of {re.findall('house [0-9]+', text)[-1]}?"
            reply |= {"question": question if good else "What do the documents say of it?"}
            reply |= {"query": question if good else "Which colour is it?"}
        else:
            right = "response to judge:\nIt is blue" in text
            label = "correct" if right or BETTER not in text else "incorrect"
            finding = "correct" if label == "correct" else "contradicted"
            reply |= {"statements": [{"text": "It is.", "finding": finding}], "label": label}
        usage = Usage(calls=1, prompt=10, completion=5)
        return ChatReply(text=json.dumps(reply), finish_reason="stop", model=self.model, usage=usage)

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


@pytest.mark.parametrize("target", ["answer", "ask_first"])
def test_a_step_is_optimised_with_the_rules_of_a_run(target: str, data: Path) -> None:
    model = Model()
    run_optimization(settings(data, model, target=target), "")
    found = card(data)
    assert found["after"][f"{target}.predict"] == BETTER
    assert found["scores"]["score"]["before"]["value"] < found["scores"]["score"]["after"]["value"] == 1
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


def test_a_file_with_a_step_changes_that_step_alone(tmp_path: Path) -> None:
    program = SingleDocumentDialog(Repetition(0.8))
    program.answer.predict.signature = program.answer.predict.signature.with_instructions("Answer as a ferryman.")
    state = {"answer.predict": program.answer.predict.dump_state()}
    (tmp_path / "program.json").write_text(json.dumps(state), encoding="utf-8")
    other = SingleDocumentDialog(Repetition(0.8))
    load_program(tmp_path / "program.json", list_predictors(other))
    changed = {
        name
        for (name, one), two in zip(
            SingleDocumentDialog(Repetition(0.8)).named_predictors(), other.predictors(), strict=True
        )
        if one.signature.instructions != two.signature.instructions
    }
    assert changed == {"answer.predict"}
    with pytest.raises(ConfigError, match=r"judge\.correctness\.predict"):
        load_program(tmp_path / "program.json", list_predictors(None, [CorrectnessJudge("m")]))
    del state["answer.predict"]["signature"]["fields"][2]
    (tmp_path / "program.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"program\.json: its prompt of answer\.predict has other fields"):
        load_program(tmp_path / "program.json", list_predictors(other))


BAD: dict[str, tuple[str, str]] = {
    "target": ("target=judge.wisdom", "target=judge.wisdom: unknown; choose from: answer,"),
    "scores": ("target=judge.rl_f", "gives no labels"),
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
    "file": ("data=q2_wow:nowhere", "data=q2_wow:nowhere: can't be read"),
    "program": ("dspy_program=nowhere.json", "dspy_program=nowhere.json: not a program file"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_optimised_is_refused_in_one_line(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unlabelled = write_dialogs(tmp_path / "unlabelled.jsonl", *(labelled(n, "blue", None) for n in range(4)))
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(data.read_text(encoding="utf-8").replace("human:all:correctness", "human:all:answerability"))
    argument, said = BAD[name]
    usual = ("target=judge.correctness", f"data={data}", "train=8", "validation=8", "held_out=16")
    done = command(*usual, *argument.format(unlabelled=unlabelled, wrong=wrong).split(), program=COMMAND)
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert said in done.error
    assert not (tmp_path / "outputs").exists()


def test_another_model_reflects_over_http(data: Path, tmp_path: Path, openai_server: OpenAIServer) -> None:
    lm = [*openai_server.settings(), *openai_server.settings("reflection.lm"), "reflection.lm.max_tokens=300"]
    usual = ("target=judge.correctness", f"data={data}", "train=8", "validation=8", "held_out=16", "calls=16")
    done = command(*usual, f"run_dir={tmp_path / 'run'}", *lm, program=COMMAND)
    assert done.code == 0, done.err
    assert "no new instructions" in done.out and "Average Metric" not in done.out + done.err
    reflected = {body["max_tokens"] for body in openai_server.bodies if "The instructions so far" in prompt(body)}
    assert reflected == {300}
    assert {body["max_tokens"] for body in openai_server.bodies} == {256, 300}


def test_a_judge_without_a_verdict_is_no_success(data: Path, tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: "Hm."
    usual = ("target=judge.correctness", f"data={data}", "train=4", "validation=4", "held_out=4", "calls=8")
    done = command(*usual, f"run_dir={tmp_path / 'run'}", *openai_server.settings(), program=COMMAND)
    assert done.code == 1 and done.error.startswith("no reply was a verdict")


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
        async def chat(self, request: ChatRequest) -> ChatReply:
            if len(self.requests) == last:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(30)
            return await super().chat(request)

    with pytest.raises(KeyboardInterrupt):
        run_optimization(settings(data, first := Interrupting()), "")
    run_optimization(settings(data, rest := Model()), "")
    assert card(data)["after"] == {"judge.correctness.predict": BETTER}
    run_optimization(settings(data, whole := Model(), fresh=True), "")
    assert len(first.requests) + len(rest.requests) == len(whole.requests)


# --- the parts


def example(number: int, label: str, *keys: str) -> Example:
    turn = make_turn(1)
    return Example(str(number), "s", frozenset(keys or {str(number)}), (), (), turn, label)


def test_no_document_is_on_two_sides() -> None:
    chained = [example(n, "ab"[n % 2], f"d{n // 4}", f"d{n // 4 + n % 2 * 100}") for n in range(80)]
    split = split_examples(chained, {"train": 8, "validation": 8, "held_out": 16}, seed=1)
    assert [len(part) for part in split] == [8, 8, 16]
    keys = [set().union(*(each.keys for each in part)) for part in split]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])
    assert all(sum(each.label == "a" for each in part) == len(part) / 2 for part in split)
    assert split == split_examples(chained, {"train": 8, "validation": 8, "held_out": 16}, seed=1)
    joined = [example(0, "a", "x", "y"), example(1, "a", "y", "z"), example(2, "a", "z"), example(3, "a", "w")]
    assert [len(group) for group in find_groups(joined)] == [3, 1]


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


def test_a_split_takes_a_rare_label_from_as_many_documents_as_a_frequent_one() -> None:
    chance = random.Random(0)
    labels = ["rare" if chance.random() < 0.25 else "frequent" for _ in range(600)]
    examples = [example(number, label, str(number // 4)) for number, label in enumerate(labels)]
    split = split_examples(examples, {"train": 30, "validation": 30, "held_out": 60}, 0)
    assert [len(find_groups(part)) for part in split] == [30, 30, 60]


def test_a_split_takes_one_example_of_a_document_where_there_are_enough() -> None:
    examples = [example(number, "", str(number // 5)) for number in range(50)]
    for size, documents in ((4, 8), (16, 10)):
        parts = split_examples(examples, {"train": 2, "validation": 2, "held_out": size}, 0)
        assert [len(part) for part in parts] == [2, 2, size]
        assert sum(len(find_groups(part)) for part in parts) == documents


@pytest.mark.parametrize(
    ("query", "score"),
    [
        ("When did Zappa's band disband?", 1),
        ("When did they disband?", 0),  # as it was asked
        ("When did Zappa and Mary disband?", 0.5),  # one of two right, one of two found
        ("Zappa's band", 0),  # nothing is kept
    ],
)
def test_a_query_is_compared_by_what_it_adds_and_keeps(query: str, score: float) -> None:
    assert compare_queries("When did they disband?", query, "When did the band of Zappa disband?") == score


def test_a_rewrite_that_cannot_be_read_scores_nothing() -> None:
    target, passages = RewriteTarget(), (make_passage("p", "Zappa's band disbanded in 1969."),)
    turn = make_turn(2, query="When did they disband?")
    shown = Example("1", "s", frozenset({"d"}), passages, said(("Who led the band?", "Zappa.")), turn, "", "When?")
    outcome = Scripted(rewrite=["no", "no"]).run(lambda: target.attempt(target.step, shown, ("terms",)))
    assert outcome.score == 0 and "The reply was refused: " in outcome.feedback


def test_intervals_are_over_documents_and_unjudged_is_wrong() -> None:
    def outcomes(*labels: str) -> list[Outcome]:
        return [Outcome(float(label == "a"), label, "") for label in labels]

    examples = [example(n, "a", f"d{n // 5}") for n in range(10)]
    found = compare(examples, outcomes(*"aaaaabbbbb"), outcomes(*"aaaaa", *["unjudged"] * 5), 0, True)
    assert found["score"].before == found["score"].after, "two documents, one right"
    assert (found["score"].before.low, found["score"].before.high) == (0, 1)
    assert found["score"].verdict.startswith("not better") and found["score"].difference.value == 0
    right, wrong = outcomes(*"a" * 10), outcomes(*"b" * 10)
    assert compare(examples, wrong, right, 0, True)["score"].verdict.startswith("better")
    assert compare(examples, right, wrong, 0, True)["score"].verdict.startswith("worse")


def try_answer(reply: dict[str, Any], label: str = "", metrics: Sequence[str] = ("evidence",)) -> Outcome:
    passage = Passage(id="p", document_id="d", text="The gate is of iron. It opened in 1954.", start=0, end=39)
    target = AnswerTarget()
    shown = Example("1", "s", frozenset({"d"}), (passage,), (), make_turn(1, query="What is the gate made of?"), label)
    model = Scripted(answer=[reply] * 3)
    return model.run(lambda: target.attempt(target.step, shown, metrics))


def test_an_answer_is_scored_by_its_evidence_and_told_what_it_lacks() -> None:
    good = {"answer": "It is made of iron.", "evidence": [1], "consistent": True, "answerability": "answerable"}
    assert try_answer(good).score == 1
    poor = try_answer(good | {"answer": "It is made of copper and of glass.", "evidence": [2]})
    assert poor.score == 0 and "The evidence doesn't tell: " in poor.feedback and "copper" in poor.feedback
    unknown = good | {"answer": "I don't have information on that.", "answerability": "unanswerable", "evidence": []}
    assert [try_answer(unknown, label).score for label in ("unanswerable", "answerable", "")] == [1, 0, 0]
    assert try_answer(good, "answerable", ("labels",)).score == 1
    refused = try_answer(good | {"consistent": False, "consistency": "No."})
    assert refused.score == 0 and "The reply was refused: " in refused.feedback


@pytest.mark.parametrize(("refused", "score"), [([], 1), (["What do the documents say about the gate?"], 0.5)])
def test_a_question_is_scored_by_the_attempts_that_it_needs(refused: list[str], score: float) -> None:
    questions = [*refused, "What is the gate made of?"]
    passage = Passage(id="p", document_id="d", text="The gate is of iron. It opened in 1954.", start=0, end=39)
    target = AskTarget("ask_first", ["direct"])
    shown = Example("1", "s", frozenset({"d"}), (passage,), (), make_turn(1), "")
    good = {"can_ask": True, "consistent": True}
    model, trace = Scripted(ask=[good | {"question": each} for each in questions]), list[Any]()

    async def attempt() -> Outcome:
        with use_model(dspy.settings.lm, dspy.settings.adapter, trace):
            return await target.attempt(target.step, shown, ("checks",))

    outcome = model.run(attempt)
    assert len(trace) == len(questions)
    assert outcome.score == score and questions[-1] in outcome.feedback
    assert ("Refused before" in outcome.feedback) == (score < 1)


def test_unusable_replies_are_in_the_trace() -> None:
    judge, model, trace = CorrectnessJudge("m"), Scripted(judge=["no", "no"]), list[Any]()

    async def attempt() -> Verdict:
        with use_model(dspy.settings.lm, dspy.settings.adapter, trace):
            return await judge.judge((make_passage("p", "It is."),), (), said(("When?", "In May."))[0])

    assert model.run(attempt).label == "unjudged"
    assert trace[0][0] is judge.predict and trace[0][2].unusable == "no"
