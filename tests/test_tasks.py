"""Runs of the tasks of MT-Bench-101, on topics and on documents, with a model server that invents."""

import asyncio
import json
import pickle
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from generator.config.choices import compose_choice
from generator.dialogs.generate import GeneratedDialog
from generator.models.lm import ChatReply
from generator.run import Run
from taxonomy import read_tasks
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.runs import Ended, Site, command, some, stage
from tests.support.settings import settings
from tests.support.tasks import reply

TASKS = read_tasks()


class Nothing:
    """No finished calls, and none to be kept."""

    def calls(self, dialog_id: str) -> dict[str, ChatReply]:
        return {}

    def add_call(self, dialog_id: str, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        pass


def run(site: Site, server: OpenAIServer, *more: str) -> Ended:
    """Run the experiment on its topics."""
    usual = [argument for argument in site.arguments(server) if not argument.startswith("corpus")]
    return command("experiment=mt_bench_101", *usual, "dialogs=40", "lm.context=16384", *more)


def test_the_experiment_on_topics(site: Site) -> None:
    with OpenAIServer(reply) as server:
        done = run(site, server, "dialogs=60", "min_turns=4")
        assert done.code == 0, done.err
        site.check_calls(server.finished.total())
        continued = run(site, server, "dialogs=60", "min_turns=4")
        assert "this run is finished" in continued.err + continued.out
    site.check_ledger()
    made = site.dialogs()
    found = Counter(dialog["task"] for dialog in made)
    shares = site.summary()["tasks"]
    assert shares.keys() == found.keys() == compose_choice("taxonomy", "mt_bench_101")["tasks"].keys()
    assert {name: share["turns"] for name, share in shares.items()} == found
    assert all(abs(share["achieved"] - share["target"]) < 0.05 for share in shares.values())
    assert not site.summary()["question_types"]
    topics = defaultdict(list)
    for dialog in made:
        task = TASKS[dialog["task"]]
        assert task.turns.least <= len(dialog["turns"]) <= task.turns.most
        assert {turn["question_type"] for turn in dialog["turns"]} == {task.name}
        assert (dialog["algorithm"], dialog["passages"], len(dialog["document_ids"])) == ("whole", [], 1)
        labels = [[verdict["label"] for verdict in turn["verdicts"]] for turn in dialog["turns"]]
        before = task.judged_from - 1
        assert labels == [["given"]] * before + [["correct"]] * (len(labels) - before)
        topics[task.name] += dialog["document_ids"]
    assert all(len(set(used)) == len(used) for used in topics.values()), "a topic returns after all others alone"
    exported = (site.run_dir / "mt_bench_101" / "mtbench101.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["task"] for line in exported] == [dialog["task"] for dialog in made]
    card = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "given only a topic" in card and " | dialogs | " in card and "bai2024" in card
    assert "retriev" not in card.partition("## Columns")[0].replace("- retriever: none", "")
    assert "tasks" in done.out and "first questions" not in done.out


def test_on_documents_every_answer_can_rest_on_sentences(site: Site) -> None:
    with OpenAIServer(reply) as server:
        more = ["taxonomy=mt_bench_101", "algorithm=whole", "judge=task", "lm.context=16384", "dialogs=13"]
        done = site.run(server, *more)
        assert done.code == 0, done.err
        judged = [prompt(body) for body in server.bodies if stage(body) == "judge"]
    assert judged and all("<documents>" in text for text in judged)
    spans = 0
    for dialog in site.dialogs():
        (passage,) = dialog["passages"]
        assert dialog["document_ids"] == [passage["document_id"]]
        for evidence in (one for turn in dialog["turns"] for one in turn["evidence"]):
            assert evidence["text"] == passage["text"][evidence["start"] : evidence["end"]] != ""
            spans += 1
    assert spans
    assert "<passages>" in site.rows()[0]["messages"][0]["content"]


def test_question_answering_is_data_to_train_with_and_no_task_of_the_benchmark(site: Site) -> None:
    with OpenAIServer(reply) as server:
        more = ["taxonomy=qa", "algorithm=whole", "judge=none", "lm.context=16384", "dialogs=6", "export=mtrag"]
        done = site.run(server, *more, "turns=5", "taxonomy.answerability.unanswerable=0.9")
        assert done.code == 0, done.err
    turns = [turn for dialog in site.dialogs() for turn in dialog["turns"]]
    assert len(turns) == 30
    unknown = [turn for turn in turns if turn["answerability"] == "unanswerable"]
    assert 13 <= len(unknown) <= 17 and not any(turn["evidence"] for turn in unknown)
    share = site.summary()["answerability"]["unanswerable"]
    assert share["target"] == 0.5 and abs(share["achieved"] - 0.5) < 0.07
    refusals = [row["messages"][-1]["content"].startswith("I don't have information on") for row in site.rows()]
    assert refusals == [row["answerability"] == "unanswerable" for row in site.rows()] and any(refusals)
    card = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "to train models for" in card and "MT-Bench-101" not in card.partition("## Columns")[0]
    (file,) = (site.run_dir / "mtrag").rglob("conversations.json")
    said = [m["enrichments"] for each in json.loads(file.read_text(encoding="utf-8")) for m in each["messages"][::2]]
    assert {tuple(labels["Question Type"]) for labels in said} == {("QA",)}
    assert {tuple(labels["Multi-Turn"]) for labels in said} == {("N/A",), ()}


def test_another_process_generates_the_same_dialogs(site: Site) -> None:
    """executor=ray gives this to its workers."""
    more = ["taxonomy=mt_bench_101", "algorithm=whole", "judge=task", "lm.context=16384", "dialogs=4"]
    with OpenAIServer(reply) as server:
        assert site.run(server, *more).code == 0
        made = settings(*site.arguments(server, *more))
        with made.executor.open() as executor:
            spec = Run(made, "", "", executor).spec

        async def again() -> list[GeneratedDialog]:
            async with pickle.loads(pickle.dumps(spec)).open(2) as generator:
                return [await generator.generate(generator.plan(number), Nothing()) for number in (2, 0)]

        two, zero = asyncio.run(again())
    stored = site.dialogs()
    assert [dialog.dialog and dialog.dialog.model_dump(mode="json") for dialog in (zero, two)] == [stored[0], stored[2]]


def test_a_dialog_that_its_judge_does_not_pass_is_a_drop(site: Site) -> None:
    def responder(body: Body) -> str:
        if stage(body) == "judge" and some(body, 0.2):
            return json.dumps({"explanation": "Wrong.", "score": 6}) if some(body, 0.1) else "no rating"
        return reply(body)

    with OpenAIServer(responder) as server:
        assert run(site, server).code == 0
    site.check_ledger()
    dropped = [drop for drop in site.drops() if drop["scope"] == "dialog"]
    assert {drop["stage"] for drop in dropped} == {"judge"}
    labels = {v["label"] for dialog in site.dialogs() for turn in dialog["turns"] for v in turn["verdicts"]}
    assert labels == {"given", "correct"}
    assert site.summary()["pairs"] == sum(len(dialog["turns"]) for dialog in site.dialogs())


WRONG = [
    (["taxonomy=mt_bench_101"], "algorithm=multi: can't write the tasks of taxonomy=mt_bench_101"),
    (["algorithm=whole"], "algorithm=whole: taxonomy=mixed has no tasks"),
    (["corpus=topics"], "corpus=topics: has topics, and no documents"),
    (["export=mt_bench_101"], "export=mt_bench_101: writes dialogs of tasks"),
    (["experiment=mt_bench_101", "corpus=topics", "export=mtrag"], "export=mtrag: writes the dialogs' documents"),
    (["experiment=mt_bench_101", "taxonomy.tasks={XY: 1}"], "taxonomy.tasks.XY: unknown task"),
    (["experiment=mt_bench_101", "lm.context=4096"], "lm.context=4096: leaves no room"),
    (["experiment=mt_bench_101", "turns=8"], "turns: no dialog of taxonomy=mt_bench_101 has more than 5 turns"),
    (["experiment=rad_bench", "turns=4"], "turns: no dialog of taxonomy=rad_bench has more than 3 turns"),
    (["experiment=mt_bench_101", "+taxonomy.answerability={unanswerable: 1}"], "taxonomy.answerability: none of"),
    (["algorithm=whole", "taxonomy=qa", "taxonomy.answerability={partial: 1}"], "taxonomy.answerability.partial: unk"),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=[" ".join(given) for given, _ in WRONG])
def test_settings_that_do_not_fit_together_are_one_line(tmp_path: Path, given: list[str], said: str) -> None:
    lm = ["lm=openai", "lm.model=m", "lm.api_base=http://127.0.0.1:9/v1", f"run_dir={tmp_path / 'run'}"]
    done = command(*given, *lm)
    assert (done.code, done.error.startswith(said)) == (2, True), done.err
    assert not (tmp_path / "run").exists()
