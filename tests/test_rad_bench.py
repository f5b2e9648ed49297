"""Items of RAD-Bench from the command line: what is asked, what is kept, what is counted, and what is refused."""

import re
from collections import Counter
from pathlib import Path

import pytest

from generator.config.choices import compose_choice
from taxonomy import read_scenarios
from tests.support.openai_server import Body, prompt
from tests.support.runs import Site, replying, stage
from tests.support.scenarios import scenario_server, settings, write_set

SCENARIOS = read_scenarios()


def test_items_of_all_scenarios_in_their_shares_with_everything_in_the_ledger(site: Site) -> None:
    with scenario_server() as server:
        assert site.run(server, *settings("dialogs=20")).code == 0
    site.check_ledger()
    summary, dialogs = site.summary(), site.dialogs()
    assert {name: share["turns"] for name, share in summary["tasks"].items()} == Counter(d["task"] for d in dialogs)
    assert summary["tasks"].keys() == compose_choice("taxonomy", "rad_bench")["scenarios"].keys()
    candidates = sum(n for why in summary["dropped_candidates"].values() for n in why.values())
    assert candidates >= 2 * summary["attempted"], "of three sets at least two aren't chosen"
    assert summary["candidates_cost"]["calls"] >= 2 * candidates, "each was written and rated"
    assert set(summary["stages"]) == {"candidates", "score", "reference", "judge"}
    for dialog in dialogs:
        scenario = SCENARIOS[dialog["task"]]
        assert (dialog["algorithm"], dialog["ended"], len(dialog["turns"])) == ("progressive", "complete", 3)
        for turn, planned in zip(dialog["turns"], scenario.turns, strict=True):
            assert bool(turn["answer"]) == (planned.reference != "none")
            assert 1 <= len(turn["hits"]) <= 5
            if planned.context != "corpus":
                names = {hit["passage_id"].partition(":")[0] for hit in turn["hits"]}
                assert names == {dialog["document_ids"][0]}
    questions = (site.run_dir / "rad_bench" / "question.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(questions) == len(dialogs)


def test_items_without_any_pair_are_exported_too(site: Site) -> None:
    with scenario_server() as server:
        assert site.run(server, *settings("dialogs=2", "taxonomy.scenarios={travel: 1}")).code == 0
    assert (site.summary()["accepted"], site.summary()["pairs"]) == (2, 0)
    assert len((site.run_dir / "rad_bench" / "question.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert not (site.run_dir / "dataset").exists()


def test_the_judge_sees_the_contexts_of_its_turn_alone(site: Site) -> None:
    with scenario_server() as server:
        assert site.run(server, *settings("taxonomy.scenarios={education: 1}", "dialogs=2", "retriever.k=1")).code == 0
        shown = [prompt(body) for body in server.bodies if stage(body) == "judge"]
    for dialog in site.dialogs():
        texts = {passage["id"]: passage["text"] for passage in dialog["passages"]}
        for turn in dialog["turns"]:
            (own,) = [text for text in shown if f"The User says:\n{turn['query']}\n" in text]
            first = {name: text.split(".")[0] for name, text in texts.items()}
            hits = {hit["passage_id"] for hit in turn["hits"]}
            assert {name for name, text in first.items() if text in own} == hits


def test_an_item_whose_contexts_do_not_suffice_is_a_drop(site: Site) -> None:
    def insufficient(body: Body) -> dict[str, object]:
        return {"suffices": "The User says:\nGo on with" not in prompt(body)}

    responder = replying(judge=insufficient, candidates=write_set)
    with scenario_server(responder=responder) as server:
        done = site.run(server, *settings("taxonomy.scenarios={news: 1, travel: 1}", "dialogs=20", "max_attempts=20"))
    assert done.code == 0
    site.check_ledger()
    assert {dialog["task"] for dialog in site.dialogs()} == {"travel"}, "its second turn has no reference to look for"
    assert site.summary()["dropped"]["judge"] == {"an answer that its judge did not pass": 10}


def test_sets_come_from_several_endpoints_and_are_rated_by_others(site: Site) -> None:
    with (
        scenario_server() as server,
        scenario_server(model="writer-b") as writer,
        scenario_server(model="rater") as rater,
    ):
        models = [*writer.settings("algorithm.generators.b"), *rater.settings("algorithm.scorers.one")]
        assert site.run(server, *settings("dialogs=4", "algorithm.candidates=4", *models)).code == 0
        asked = [Counter(map(stage, each.bodies)) for each in (server, writer, rater)]
    site.check_ledger()
    assert set(asked[0]) == {"candidates", "reference", "judge"}
    assert (set(asked[1]), set(asked[2])) == ({"candidates"}, {"score"})
    stages = site.summary()["stages"]
    assert {name: usage["calls"] for name, usage in stages.items()} == dict(asked[0] + asked[1] + asked[2])
    temperatures = [body["temperature"] for body in writer.bodies]
    assert set(temperatures) <= {0.4, 0.7, 1.0}


def test_a_run_goes_on_where_it_stopped_without_a_repeated_call(site: Site, tmp_path: Path) -> None:
    whole = Site(tmp_path / "whole")
    with scenario_server() as server:
        assert whole.run(server, *settings("dialogs=4")).code == 0
    with scenario_server() as server:
        assert site.run(server, *settings("dialogs=4", "max_attempts=2")).code == 0
        assert site.run(server, *settings("dialogs=4")).code == 0
        assert set(server.finished.values()) == {1}
    assert site.made() == whole.made()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("taxonomy=mixed", "algorithm=progressive: taxonomy=mixed has no scenarios; set one that has, such as "),
        ("algorithm=whole", "algorithm=whole: can't write the scenarios of taxonomy=rad_bench; set algorithm=progress"),
        ("algorithm.candidates=0", "algorithm.candidates=0: must be 1 or more"),
        ("algorithm.temperatures=[0.4]", "algorithm.temperatures: unknown setting"),
        ("taxonomy.scenarios.newz=1", "taxonomy.scenarios.newz: unknown scenario; did you mean 'news'?"),
        ("taxonomy.path=nowhere", "taxonomy.path=nowhere: does not exist (looked in "),
        ("algorithm.generators.b=openai", "algorithm.generators.b.model: has no value"),
        (
            "algorithm.generators.b.model=x",
            "algorithm.generators.b.model: there is no such model yet; choose one first",
        ),
        (
            "algorithm.generators.b=openai algorithm.generators.b.model=test-model",
            "algorithm.generators.b: the model test-model is there already; give another model",
        ),
        ("lm.context=4096", "lm.context=4096: leaves no room for documents"),
    ],
)
def test_a_wrong_setting_is_one_line(given: str, said: str, site: Site) -> None:
    with scenario_server() as server:
        done = site.run(server, *settings(*re.split(r" (?=\w+\.)", given)))
    assert done.code == 2
    assert done.error.startswith(said)
    assert not site.run_dir.exists()
