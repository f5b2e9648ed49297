"""The command line: its output, files and exit codes."""

import errno
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import load_dataset

from generator.__main__ import COMMAND
from generator.dialogs.dedup import Repetition
from generator.dialogs.single import SingleDocumentDialog
from generator.estimate import COMMAND as ESTIMATE
from generator.index import COMMAND as INDEX
from tests.support import openai_server as fake
from tests.support.openai_server import Body, OpenAIServer, fill
from tests.support.runs import Site, command

ROOT = Path(__file__).parents[1]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture
def site(here: Path) -> Site:
    return Site(here)


def denying(body: Body) -> str:
    """Reply like a model whose own check always fails."""
    reply = json.loads(fill(body))
    return json.dumps(reply | {"consistent": False} if "consistent" in reply else reply)


def denying_odd(body: Body) -> str:
    """Reply like a model whose own check fails in every other dialog."""
    return denying(body) if body["seed"] % 2 else fill(body)


def judging(body: Body) -> bool:
    return "statements" in json.dumps(body["response_format"])


# A whole run


def test_a_run_folder_has_these_files_and_fields(site: Site, openai_server: OpenAIServer) -> None:
    done = site.run(openai_server, "dialogs=3", "max_attempts=30", "turns=2-3", "lm.concurrency=1")
    assert done.code == 0, done.err
    names = {path.name for path in site.run_dir.iterdir() if path.name != ".lock"}
    assert names == {"run.db", "dialogs.jsonl", "drops.jsonl", "summary.json", "dataset", "config.yaml", "report.html"}
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
    assert cost.keys() - {"evidence"} == {"ask", "rewrite", "answer", "judge", "all"}
    assert cost["all"]["calls"] == pytest.approx(summary["lm_calls"] / pairs, abs=0.01)
    assert sum(stage["calls"] for stage in cost.values()) == pytest.approx(2 * cost["all"]["calls"], abs=0.05)
    assert "cost of a pair" in done.out
    assert 0 <= summary["evidence_covers"] <= 1 and "covers the answer of" in done.out
    assert [*summary["difficulty"]] == [level for level in ("easy", "medium", "hard") if level in summary["difficulty"]]
    assert sum(summary["difficulty"].values()) == pairs and "none can be hard" not in done.out
    dialogs = site.dialogs()
    assert len(dialogs) == summary["accepted"] == 3
    for dialog in dialogs:
        for number, turn in enumerate(dialog["turns"], start=1):
            assert turn["turn"] == number
            assert turn["verdicts"][0].keys() >= {"judge", "label", "explanation", "model"}
    site.check_ledger()
    assert load_dataset(str(site.run_dir / "dataset"), cache_dir=str(site.folder / "hf"))["train"].num_rows > 0


def test_drops_have_their_stage_and_reason(site: Site) -> None:
    with OpenAIServer(denying_odd) as server:
        done = site.run(server, "dialogs=5", "max_attempts=6", "algorithm=single")
    site.check_ledger()
    drops, summary = site.drops(), site.summary()
    assert done.code == 0 and 0 < summary["accepted"] < 5, "some of both"
    assert re.search(r"difficulty +\d.*none can be hard", done.out), "one document has no ranks"
    assert all(drop.keys() == {"dialog_id", "scope", "turn", "stage", "reason", "text", "cost"} for drop in drops)
    assert {drop["stage"] for drop in drops} == {"ask"}
    assert summary["dropped"] == {"ask": {"inconsistent by its own check": 6 - summary["accepted"]}}
    assert f"stopped at max_attempts: {summary['accepted']} of 5 dialogs accepted" in done.err
    assert "max_attempts=" in done.err
    assert not CONTROL.search(done.err), "without a terminal, progress is plain lines"
    assert re.search(r"^\d/5 accepted  \d attempted  \d dropped  \d+ tokens/s", done.err, re.MULTILINE)
    assert f"run folder: {site.run_dir}" in done.out


@pytest.mark.parametrize(("attempts", "settings"), [(1, ["max_attempts=1"]), (20, [])], ids=["one", "ten a dialog"])
def test_a_run_that_accepts_nothing_names_the_stage_and_fails(attempts: int, settings: list[str], site: Site) -> None:
    with OpenAIServer(denying) as server:
        done = site.run(server, "dialogs=2", *settings)
    assert done.code == 1
    assert f"none of {attempts}" in done.error and f"{attempts} of them lost at ask (inconsistent" in done.error
    assert str(site.run_dir / "drops.jsonl") in done.error
    assert not (site.run_dir / "dataset").exists(), "an empty dataset is no dataset"
    site.check_ledger()


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
    assert "corpus.language" in site.run(openai_server, "dialogs=3").err, "which decides what the data is"
    assert site.run(openai_server, "dialogs=3", "corpus.language=de").code == 0
    card = (site.run_dir / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "dialogs=3" in card


def test_fresh_starts_over_when_the_server_is_there(site: Site) -> None:
    with OpenAIServer() as server:
        site.run(server, "dialogs=2", "seed=1")
        calls, before = len(server.bodies), site.data()
        assert site.run(server, "dialogs=2", "seed=1", "fresh=true").code == 0
        site.check_calls(len(server.bodies) - calls)
        assert site.data() == before
    assert "no model server" in site.run(server, "dialogs=2", "fresh=true").refused
    assert site.data() == before, "what can't be made again isn't thrown away"


@pytest.mark.parametrize("name", ["n" * 256, "q-${taxonomy}", "sw-${algorithm.name}-{x}"])
def test_a_run_folder_that_can_have_no_such_name_is_one_line(
    name: str, site: Site, openai_server: OpenAIServer
) -> None:
    for program in (COMMAND, ESTIMATE):
        given = site.arguments(openai_server, f"run_dir={site.folder}/{name}")
        assert command(*given, program=program).refused.startswith("run_dir: ")


def test_a_run_folder_that_may_not_be_looked_into_is_one_line(
    site: Site, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exists(path: Path) -> bool:
        if path.name == "run.db":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    real = Path.exists
    monkeypatch.setattr(Path, "exists", exists)
    assert "run.db: Permission denied; " in site.run(openai_server).refused


def test_the_choice_of_a_group_can_be_in_the_name_of_a_run_folder(site: Site, openai_server: OpenAIServer) -> None:
    run_dir = f"run_dir={site.folder}/q-${{hydra:runtime.choices.taxonomy}}"
    assert site.run(openai_server, "dialogs=1", "taxonomy=direct", run_dir).code == 0
    assert (site.folder / "q-direct" / "run.db").exists()


def test_files_count_by_their_content_wherever_they_are(site: Site, openai_server: OpenAIServer) -> None:
    def settings(folder: Path) -> list[str]:
        names = {"corpus.path": "d.jsonl", "taxonomy.path": "types", "dspy_program": "p.json", "dedup.against": "t.txt"}
        return ["algorithm=single", "taxonomy.later.odd=1", *(f"{s}={folder / name}" for s, name in names.items())]

    here, there = site.folder / "here", site.folder / "there"
    (here / "types").mkdir(parents=True)
    site.documents.rename(here / "d.jsonl")
    follow_up = (ROOT / "taxonomy" / "questions" / "follow-up.yaml").read_text("utf-8")
    (here / "types" / "odd.yaml").write_text(follow_up.replace("follow-up", "odd"), encoding="utf-8")
    SingleDocumentDialog(Repetition(0.8)).save(here / "p.json")
    (here / "t.txt").write_text("When is the ferry to the island repaired in winter?\n", encoding="utf-8")
    assert site.run(openai_server, "dialogs=1", *settings(here)).code == 0
    here.rename(there)
    assert site.run(openai_server, "dialogs=2", *settings(there)).code == 0
    changes = {
        "corpus.path": ("d.jsonl", '\n{"id": "new", "text": "Another lantern."}'),
        "taxonomy.path": ("types/odd.yaml", "\nmay_repeat: false\n"),
        "dspy_program": ("p.json", "\n"),
        "dedup.against": ("t.txt", "\n"),
    }
    for setting, (name, more) in changes.items():
        whole = (there / name).read_text(encoding="utf-8")
        (there / name).write_text(whole + more, encoding="utf-8")
        message = site.run(openai_server, "dialogs=3", *settings(there)).refused
        assert f"{setting} (other content)" in message and message.count("content)") == 1
        (there / name).write_text(whole, encoding="utf-8")


def test_an_index_is_built_ahead_of_a_run(site: Site, openai_server: OpenAIServer) -> None:
    with site.documents.open("a", encoding="utf-8") as file:
        file.write("\nno JSON\n")
    settings = site.arguments(openai_server, "lm.api_base=http://127.0.0.1:9/v1", "corpus.max_broken=0.5")
    done = command(*settings, program=INDEX)
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
    assert f"{stored} continues" in command(site.run_dir).refused
    done = command(stored, "dialogs=2")
    assert done.code == 0, done.err
    assert "continuing: 1 of 2" in done.err
    assert site.summary()["accepted"] == 2


# Endpoints


@pytest.mark.parametrize("part", ["lm", "judge.lm", "user.lm"])
def test_an_endpoint_that_is_not_there_is_named_by_its_setting(
    part: str, site: Site, openai_server: OpenAIServer
) -> None:
    with OpenAIServer() as gone:
        pass
    settings = [f"{part}=openai", f"{part}.model=m", f"{part}.api_base={gone.url}"]
    message = site.run(openai_server, "dialogs=1", *settings).refused
    assert gone.url in message and f"{part}.api_base" in message
    assert not site.run_dir.exists()


# A judge of its own


def test_a_judge_with_a_model_of_its_own_gets_the_judging_alone(site: Site, openai_server: OpenAIServer) -> None:
    with OpenAIServer() as other:
        assert site.run(openai_server, "dialogs=2", *other.settings("judge.lm")).code == 0
    assert other.bodies and all(map(judging, other.bodies))
    assert not any(map(judging, openai_server.bodies))
    assert len(other.bodies) >= sum(len(dialog["turns"]) for dialog in site.dialogs())


def test_a_run_that_keeps_no_unjudged_pair_stops_when_the_judge_is_gone(
    site: Site, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    undisturbed = Site(tmp_path / "undisturbed")
    settings = ("dialogs=3", "judge.filter=verified", "judge.grounding=false")
    with OpenAIServer() as judge:
        assert undisturbed.run(openai_server, *settings, *judge.settings("judge.lm")).code == 0
        judge.faults = lambda number, body: fake.status(401) if number > 2 else None
        stopped = site.run(openai_server, *settings, *judge.settings("judge.lm"))
        assert stopped.code == 2 and "HTTP 401" in stopped.error and not site.drops()
        judge.faults = ()
        assert site.run(openai_server, *settings, *judge.settings("judge.lm")).code == 0
    assert site.data() == undisturbed.data()


def test_a_judge_that_fails_leaves_pairs_unjudged(site: Site, openai_server: OpenAIServer) -> None:
    with OpenAIServer(faults=lambda number, body: fake.status(401, "gone") if number > 2 else None) as other:
        done = site.run(openai_server, "dialogs=3", "lm.concurrency=1", *other.settings("judge.lm"))
    assert done.code == 0, done.err
    summary = site.summary()
    assert summary["accepted"] == 3
    assert summary["unjudged_pairs"] == summary["pairs"] - 2 > 0
    assert [row["verdict"] for row in site.rows()].count("unjudged") == summary["unjudged_pairs"]
    reason = f"{other.url}/chat/completions answered HTTP 401"
    assert summary["unjudged"] == {reason: summary["unjudged_pairs"]}
    assert "HTTP 401" in done.out
    site.check_ledger()
