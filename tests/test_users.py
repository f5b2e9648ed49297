"""Runs with users who differ, and with a model of their own, over HTTP."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, prompt
from tests.support.runs import Site, stage


def test_the_users_model_gets_the_questions_and_nothing_else(site: Site) -> None:
    settings = ["taxonomy=mtrag", "taxonomy.measure=[]", "turns=6", "dialogs=3"]
    with OpenAIServer() as server, OpenAIServer(model="asker") as asker:
        assert site.run(server, *settings, *asker.settings("user.lm")).code == 0
        asked, answered = Counter(map(stage, asker.bodies)), Counter(map(stage, server.bodies))
    assert set(asked) == {"ask"} and "ask" not in answered
    site.check_ledger()
    assert site.summary()["stages"]["ask"]["calls"] == asked["ask"]
    assert not any("“ask_next”" in prompt(body) for body in asker.bodies), "its prompts hold no tasks of others"


def test_a_run_with_users_goes_on_where_it_stopped(site: Site, tmp_path: Path) -> None:
    whole = Site(tmp_path / "whole")
    settings = ["user=mixed", "user.types={hurried: 1, curious: 1, searcher: 1}", "turns=3"]
    with OpenAIServer() as server, OpenAIServer(model="asker") as asker:
        assert whole.run(server, *settings, *asker.settings("user.lm"), "dialogs=8", "lm.concurrency=8").code == 0
    with OpenAIServer() as server, OpenAIServer(model="asker") as asker:
        for dialogs in ("3", "8"):
            more = [*settings, *asker.settings("user.lm"), f"dialogs={dialogs}", "lm.concurrency=1"]
            assert site.run(server, *more).code == 0
        assert set(server.finished.values()) == set(asker.finished.values()) == {1}
    assert site.made() == whole.made()
    users = {dialog["user"] for dialog in site.dialogs()}
    assert users == {"hurried", "curious", "searcher"} == {row["user"] for row in site.rows()}
    for dialog in site.dialogs():
        for turn in dialog["turns"]:
            typed = dialog["user"] != "curious"
            assert bool(turn["clean_query"]) == typed and turn["query"].islower() == typed


@pytest.mark.parametrize("given", [["user=mixed"], ["user.lm=openai", "user.lm.model=m"], ["user.rewording=true"]])
def test_dialogs_that_are_written_as_a_whole_have_no_user(site: Site, given: list[str]) -> None:
    with OpenAIServer() as server:
        done = site.run(server, "+experiment=mt_bench_101", "lm=openai", *given)
    assert done.code == 2
    assert done.error.endswith("has no effect with algorithm=whole; leave it out")
