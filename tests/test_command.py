"""The command line: its output, files and exit codes."""

import json
import os
import pty
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml
from datasets import load_dataset

from generator.command import CONF, run_command
from generator.dialogs.checks import Repetition
from generator.dialogs.single import SingleDocumentDialog
from generator.index import COMMAND as INDEX
from tests.support import openai_server as fake
from tests.support.openai_server import Body, OpenAIServer, fill, openai_server
from tests.support.runs import Ended, Site, command

__all__ = ["openai_server"]

ROOT = Path(__file__).parents[1]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Site(tmp_path)


def refused(done: Ended) -> str:
    """Return the error of a run that printed nothing else."""
    assert done.code == 2, done.err
    assert done.err.count("\n") == 1, done.err
    return done.error


def denying(body: Body) -> str:
    """Reply like a model whose own check always fails."""
    reply = json.loads(fill(body))
    return json.dumps(reply | {"consistent": False} if "consistent" in reply else reply)


def denying_odd(body: Body) -> str:
    """Reply like a model whose own check fails in every other dialog."""
    return denying(body) if body["seed"] % 2 else fill(body)


def judging(body: Body) -> bool:
    return "statements" in json.dumps(body["response_format"])


# Help


def test_help_has_a_line_for_each_choice_and_setting() -> None:
    done = command("corpus=quac", "--help")
    assert (done.code, done.err) == (0, "")
    for file in CONF.glob("*/[!_]*.yaml"):
        assert re.search(rf"^  {file.stem} +\S.{{10,}}$", done.out, re.MULTILINE), file
    for name in yaml.safe_load((CONF / "config.yaml").read_text(encoding="utf-8")).keys() - {"defaults", "hydra"}:
        assert re.search(rf"^  {name}[:=]", done.out, re.MULTILINE)


# A whole run


def test_a_run_folder_has_these_files_and_fields(site: Site, openai_server: OpenAIServer) -> None:
    done = site.run(openai_server, "dialogs=3", "max_attempts=30", "turns=2-3")
    assert done.code == 0, done.err
    names = {path.name for path in site.run_dir.iterdir() if path.name != ".lock"}
    assert names == {"run.db", "dialogs.jsonl", "drops.jsonl", "summary.json", "dataset", "config.yaml"}
    assert {path.name for path in site.folder.iterdir()} == {"documents.jsonl", "cache", "run"}, "no files of Hydra's"

    summary = site.summary()
    assert summary.keys() >= {
        *("attempted", "accepted", "dropped", "dropped_turns", "dropped_pairs", "pairs", "lm_calls", "tokens"),
        *("seconds", "question_types"),
    }
    assert summary["tokens"].keys() == {"prompt", "cached", "completion"}
    assert all(share.keys() >= {"target", "achieved"} for share in summary["question_types"].values())
    assert summary["lm_calls"] == len(openai_server.bodies)
    cost, pairs = summary["pair_cost"], summary["pairs"]
    assert cost.keys() == {"ask", "rewrite", "answer", "judge", "all"}
    assert cost["all"]["calls"] == pytest.approx(summary["lm_calls"] / pairs, abs=0.01)
    computed = summary["tokens"]["prompt"] - summary["tokens"]["cached"]
    assert cost["all"]["computed"] == pytest.approx(computed / pairs, abs=0.01)
    assert cost["all"]["completion"] == pytest.approx(summary["tokens"]["completion"] / pairs, abs=0.01)
    assert sum(stage["calls"] for stage in cost.values()) == pytest.approx(2 * cost["all"]["calls"], abs=0.05)
    assert "cost of a pair" in done.out
    dialogs = site.dialogs()
    assert len(dialogs) == summary["accepted"] == 3
    for dialog in dialogs:
        assert dialog.keys() >= {
            *("id", "corpus", "algorithm", "document_ids", "turns", "passages", "lm", "prompt_version", "seed"),
        }
        for passage in dialog["passages"]:
            assert passage.keys() >= {"id", "document_id", "title", "text", "url", "start", "end"}
        for number, turn in enumerate(dialog["turns"], start=1):
            assert turn["turn"] == number
            assert turn.keys() >= {
                *("query", "question_type", "multi_turn_type", "answerability", "retrieval_query", "hits", "reasoning"),
                *("answer", "consistent", "evidence", "verdicts", "usage"),
            }
            assert all(hit.keys() == {"passage_id", "score", "rank", "new"} for hit in turn["hits"])
            assert all(span.keys() == {"passage_id", "start", "end", "text"} for span in turn["evidence"])
            (verdict,) = turn["verdicts"]
            assert verdict.keys() >= {"judge", "label", "explanation", "model"}
    site.check_ledger()
    assert load_dataset(str(site.run_dir / "dataset"), cache_dir=str(site.folder / "hf"))["train"].num_rows > 0


def test_drops_have_their_stage_and_reason(site: Site) -> None:
    with OpenAIServer(denying_odd) as server:
        done = site.run(server, "dialogs=5", "max_attempts=6", "algorithm=single")
    site.check_ledger()
    drops, summary = site.drops(), site.summary()
    assert done.code == 0 and 0 < summary["accepted"] < 5, "some of both"
    assert all(drop.keys() == {"dialog_id", "scope", "turn", "stage", "reason", "text"} for drop in drops)
    assert {drop["stage"] for drop in drops} == {"ask"}
    assert summary["dropped"] == {"ask": {"inconsistent by its own check": 6 - summary["accepted"]}}
    assert f"stopped at max_attempts: {summary['accepted']} of 5 dialogs accepted" in done.err
    assert "max_attempts=" in done.err


def test_a_run_that_accepts_nothing_names_the_stage_and_fails(site: Site) -> None:
    with OpenAIServer(denying) as server:
        done = site.run(server, "dialogs=2", "max_attempts=4")
    assert done.code == 1
    assert "none of 4" in done.error and "ask (inconsistent" in done.error
    assert str(site.run_dir / "drops.jsonl") in done.error
    assert not (site.run_dir / "dataset").exists(), "an empty dataset is no dataset"
    site.check_ledger()


def test_without_a_terminal_progress_is_plain_lines(site: Site) -> None:
    with OpenAIServer(denying_odd) as server:
        done = site.ended(site.start(server, "dialogs=5", "max_attempts=4", "algorithm=single"))
    assert done.code == 0, done.err
    assert not CONTROL.search(done.err)
    accepted = site.summary()["accepted"]
    assert re.search(rf"^{accepted}/5 accepted  4 attempted  {4 - accepted} dropped  \d+ tokens/s", done.err, re.M)
    assert re.search(rf"^accepted +{accepted} of 4 attempted dialogs", done.err, re.M), "the closing table"
    assert f"run folder: {site.run_dir}" in done.err


@pytest.mark.slow
def test_on_a_terminal_there_is_a_bar(site: Site, openai_server: OpenAIServer) -> None:
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "generator", *site.arguments(openai_server, "dialogs=2", "algorithm=single")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"},
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    try:
        while block := os.read(main, 65536):
            shown += block
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(main)
    assert process.wait(60) == 0
    text = shown.decode()
    assert "2/2 accepted" in text and "━" in text, "the bar, full"
    assert "\x1b[" in text


# Continuing


def test_a_finished_run_makes_no_call(site: Site) -> None:
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=2").code == 0
        before = site.data()
    done = site.run(server, "dialogs=2")  # the server is gone
    assert done.code == 0, done.err
    assert "finished" in done.err and "dialogs=" in done.err
    assert site.data() == before


def test_the_card_has_the_command_that_made_the_data(site: Site, openai_server: OpenAIServer) -> None:
    assert site.run(openai_server, "dialogs=2", "corpus.language=de").code == 0
    assert site.run(openai_server, "dialogs=1", "corpus.language=de").code == 0, "which makes nothing"
    card = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "dialogs=2" in card and "dialogs=1" not in card
    assert "language:\n- de\n" in card
    assert site.run(openai_server, "dialogs=3").code == 0
    card = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "dialogs=3" in card and "language:" not in card


def test_fresh_starts_over_when_the_server_is_there(site: Site) -> None:
    with OpenAIServer() as server:
        site.run(server, "dialogs=2", "seed=1")
        calls, before = len(server.bodies), site.data()
        assert site.run(server, "dialogs=2", "seed=1", "fresh=true").code == 0
        assert len(server.bodies) == 2 * calls, "every call was made again"
        assert site.data() == before
    assert "no model server" in refused(site.run(server, "dialogs=2", "fresh=true"))
    assert site.data() == before, "what can't be made again isn't thrown away"


def test_changed_documents_are_another_configuration(site: Site, openai_server: OpenAIServer) -> None:
    site.run(openai_server, "dialogs=1")
    with site.documents.open("a", encoding="utf-8") as file:
        file.write('\n{"id": "new", "text": "Another lantern."}')
    assert "corpus.path (content)" in refused(site.run(openai_server, "dialogs=2"))


@pytest.mark.parametrize("setting", ["taxonomy.path", "dspy_program", "dedup.against"])
def test_files_count_by_their_content_wherever_they_are(
    setting: str, site: Site, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    place = tmp_path / {"taxonomy.path": "types", "dspy_program": "program.json", "dedup.against": "tests.txt"}[setting]
    settings, more, file = [f"{setting}={place}"], "\n", place
    if setting == "taxonomy.path":
        place.mkdir()
        file, more = place / "odd.yaml", "\nmay_repeat: false\n"
        follow_up = (ROOT / "taxonomy" / "questions" / "follow-up.yaml").read_text("utf-8")
        file.write_text(follow_up.replace("follow-up", "odd"), encoding="utf-8")
        settings += ["taxonomy.later.odd=0.3", "taxonomy.later.follow-up=0.2"]
    elif setting == "dspy_program":
        SingleDocumentDialog(Repetition(0.8), False).save(file)
    else:
        file.write_text("When is the ferry to the island repaired in winter?\n", encoding="utf-8")
    first = site.run(openai_server, "algorithm=single", "dialogs=1", *settings)
    assert first.code == 0, first.err
    moved = place.rename(tmp_path / f"moved{place.suffix}")
    file = moved / file.relative_to(place)
    settings[0] = f"{setting}={moved}"
    elsewhere = site.run(openai_server, "algorithm=single", "dialogs=2", *settings)
    assert elsewhere.code == 0, elsewhere.err
    with file.open("a", encoding="utf-8") as appended:
        appended.write(more)
    message = refused(site.run(openai_server, "algorithm=single", "dialogs=3", *settings))
    assert f"{setting} (content)" in message and str(moved) not in message


def test_an_index_is_built_ahead_of_a_run(site: Site, openai_server: OpenAIServer) -> None:
    with site.documents.open("a", encoding="utf-8") as file:
        file.write("\nno JSON\n")
    build = partial(run_command, INDEX)
    settings = site.arguments(openai_server, "lm.api_base=http://127.0.0.1:9/v1", "corpus.max_broken=0.5")
    done = command(*settings, program=build)
    assert done.code == 0, done.err
    (index,) = (site.folder / "cache").glob("*/bm25-*/")
    assert done.out == f"indexed: 8 passages of 8 documents, {index.parent}\n"
    (skipped,) = (site.folder / "cache").glob("*.skipped.jsonl")
    assert str(skipped) in done.err
    assert not site.run_dir.exists()
    built = index.stat().st_mtime_ns
    assert site.run(openai_server, "dialogs=1", "corpus.max_broken=0.5").code == 0
    assert index.stat().st_mtime_ns == built, "the run did not use it"


def test_the_stored_configuration_continues_its_run(site: Site, openai_server: OpenAIServer) -> None:
    site.run(openai_server, "dialogs=1", "retriever.k=3")
    stored = str(site.run_dir / "config.yaml")
    done = command(stored, "dialogs=2")
    assert done.code == 0, done.err
    assert "continuing: 1 of 2" in done.err
    assert site.summary()["accepted"] == 2
    assert {path.name for path in site.folder.iterdir()} == {"documents.jsonl", "cache", "run"}, "no files of Hydra's"


# Where a run is written


def test_the_run_folder_is_named_by_what_is_run(site: Site, openai_server: OpenAIServer) -> None:
    done = site.run(openai_server, "dialogs=1", "run_dir=null", "taxonomy=direct", "algorithm=single", "seed=7")
    assert done.code == 0
    assert [path.name for path in Path("outputs").iterdir()] == ["jsonl-direct-single-test-model-7"]


@pytest.mark.parametrize("fresh", ["false", "true"])
def test_a_folder_with_other_files_is_left_alone(site: Site, openai_server: OpenAIServer, fresh: str) -> None:
    site.run_dir.mkdir()
    (site.run_dir / "thesis.txt").write_text("mine")
    (site.run_dir / "data").mkdir()
    message = refused(site.run(openai_server, "dialogs=1", f"fresh={fresh}"))
    assert str(site.run_dir) in message and "run_dir" in message
    assert {path.name for path in site.run_dir.iterdir()} == {"thesis.txt", "data"}
    assert (site.run_dir / "thesis.txt").read_text() == "mine"


def test_a_run_folder_that_is_a_file_is_left_alone(site: Site, openai_server: OpenAIServer) -> None:
    site.run_dir.write_text("mine")
    assert "run_dir" in refused(site.run(openai_server, "dialogs=1"))
    assert site.run_dir.read_text() == "mine"
    assert "/dev/null/run" in refused(site.run(openai_server, "dialogs=1", "run_dir=/dev/null/run"))


# Endpoints


def test_an_endpoint_that_is_not_there(site: Site) -> None:
    with OpenAIServer() as server:
        pass
    message = refused(site.run(server, "dialogs=1"))
    assert server.url in message and "lm.api_base" in message
    assert not site.run_dir.exists()


def test_a_model_that_the_server_does_not_know(site: Site, openai_server: OpenAIServer) -> None:
    message = refused(site.run(openai_server, "dialogs=1", "lm.model=gpt-7"))
    assert "gpt-7" in message and "lm.model" in message and "test-model" in message
    assert not site.run_dir.exists() and not openai_server.bodies


@pytest.mark.parametrize("key", [None, "wrong"])
def test_an_endpoint_that_wants_a_key(site: Site, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if key:
        monkeypatch.setenv("TEST_KEY", key)
    with OpenAIServer(key="right") as server:
        assert "TEST_KEY" in refused(site.run(server, "dialogs=1", "lm.api_key_env=TEST_KEY"))
    assert not site.run_dir.exists()


# A judge of its own


def judge_of(server: OpenAIServer) -> list[str]:
    return ["judge.lm=openai", "judge.lm.model=test-model", f"judge.lm.api_base={server.url}", "judge.lm.retries=0"]


def test_a_judge_with_a_model_of_its_own_gets_the_judging_alone(site: Site, openai_server: OpenAIServer) -> None:
    with OpenAIServer() as other:
        assert site.run(openai_server, "dialogs=2", *judge_of(other)).code == 0
    assert other.bodies and all(map(judging, other.bodies))
    assert not any(map(judging, openai_server.bodies))
    assert len(other.bodies) == sum(len(dialog["turns"]) for dialog in site.dialogs())


def test_a_judge_that_fails_leaves_pairs_unjudged(site: Site, openai_server: OpenAIServer) -> None:
    with OpenAIServer(faults=lambda number, body: fake.status(401, "gone") if number > 2 else None) as other:
        done = site.run(openai_server, "dialogs=3", "lm.concurrency=1", *judge_of(other))
    assert done.code == 0, done.err
    summary = site.summary()
    assert summary["accepted"] == 3
    assert summary["unjudged_pairs"] == summary["pairs"] - 2 > 0
    assert [row["verdict"] for row in site.rows()].count("unjudged") == summary["unjudged_pairs"]
    reason = f"{other.url}/chat/completions answered HTTP 401"
    assert summary["unjudged"] == {reason: summary["unjudged_pairs"]}
    assert "HTTP 401" in done.out
    site.check_ledger()


def test_a_judge_that_is_not_there_is_named_by_its_own_settings(site: Site, openai_server: OpenAIServer) -> None:
    with OpenAIServer() as other:
        pass
    message = refused(site.run(openai_server, "dialogs=1", *judge_of(other)))
    assert other.url in message and "judge.lm.api_base" in message
    assert not site.run_dir.exists()


# Sweeps


def test_a_sweep_makes_a_run_folder_for_each(site: Site, openai_server: OpenAIServer) -> None:
    types = ["direct", "comparative", "aggregate"]
    sweep = f"+taxonomy={','.join(types)}"
    done = site.run(openai_server, sweep, "-m", "dialogs=1", "run_dir=null", "algorithm=single")
    assert done.code == 0, done.err
    folders = {path.name: path for path in Path("outputs").iterdir() if path.name != ".sweep"}
    assert folders.keys() == {f"jsonl-{kind}-single-test-model-0" for kind in types}
    for kind in types:
        (line,) = (folders[f"jsonl-{kind}-single-test-model-0"] / "dialogs.jsonl").read_text("utf-8").splitlines()
        assert json.loads(line)["turns"][0]["question_type"] == kind
    assert {path.name for path in Path().iterdir()} == {"documents.jsonl", "cache", "outputs"}, "no files of Hydra's"


def test_swept_settings_name_the_folders_and_a_failure_stops_no_other_run(
    site: Site, openai_server: OpenAIServer
) -> None:
    common = ["-m", "dialogs=1", "run_dir=null", "algorithm=single"]
    done = site.run(openai_server, *common, "retriever.k=2,0,3")
    assert done.code == 2, "the worst"
    assert "retriever.k" in done.err
    names = sorted(path.name for path in Path("outputs").iterdir() if path.name != ".sweep")
    assert names == [f"jsonl-mixed-single-test-model-0-retriever.k-{k}" for k in (2, 3)]
    calls = len(openai_server.bodies)
    assert site.run(openai_server, *common, "retriever.k=2,3").code == 0
    assert command(f"outputs/{names[0]}/config.yaml").code == 0
    assert len(openai_server.bodies) == calls, "the same sweep, or one of its runs, continues: all are finished"


def test_a_sweep_into_one_folder_is_refused(site: Site, openai_server: OpenAIServer) -> None:
    assert f"run_dir={site.run_dir}" in refused(site.run(openai_server, "-m", "retriever.k=2,3"))
    assert not site.run_dir.exists() and not openai_server.bodies


# A full disk


def test_a_full_disk_under_the_cache(site: Site, openai_server: OpenAIServer) -> None:
    done = site.ended(site.start(openai_server, "dialogs=1", largest_file=3000))
    message = refused(done)
    assert str(site.folder / "cache") in message and "cache_dir" in message
    assert not site.run_dir.exists() and not openai_server.bodies
    assert not [path for path in (site.folder / "cache").rglob("*") if "unfinished" in path.name]
    assert site.run(openai_server, "dialogs=1").code == 0, "what was left does no harm"


def test_a_dataset_that_cannot_be_written_leaves_the_old_one(site: Site, openai_server: OpenAIServer) -> None:
    site.run(openai_server, "dialogs=1")
    before = site.data()
    (site.run_dir / ".dataset.new").touch()  # in the way; tests/output/test_dataset.py fills a disk
    done = site.run(openai_server, "dialogs=2")
    assert done.code == 2
    assert str(site.run_dir / "dataset") in done.error and "same command" in done.error
    after = site.data()
    assert {name for name in after if "train" in name} == {name for name in before if "train" in name}
    (site.run_dir / ".dataset.new").unlink()
    calls = len(openai_server.bodies)
    assert site.run(openai_server, "dialogs=2").code == 0
    assert len(openai_server.bodies) == calls
    site.check_ledger()
