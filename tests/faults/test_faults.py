"""A run whose model servers fail; tests/models/test_client.py has the single faults, docs/reliability.md all of them.

A transient fault leaves no trace. A permanent one stops the run in one line, with all finished work kept, and the same
command continues it to the data of an undisturbed run. Only faults of single calls are dropped, and counted.
"""

import json
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count as count_from
from pathlib import Path

import pytest

from generator.models import client, connection
from tests.support import openai_server as fake
from tests.support.openai_server import Body, Fault, OpenAIServer, fill
from tests.support.runs import Ended, Site, stage

SETTINGS = ("dialogs=6", "lm.concurrency=4", "lm.retries=2", "lm.retry_wait_s=0.01")
CONTINUES = "; when it is back, the same command continues"


def twice(fault: Fault, every: int = 5) -> Callable[[int, Body], Fault | None]:
    """Fail at the first two attempts of one in so many calls."""
    attempts: dict[str, list[int]] = {}

    def faults(_: int, body: Body) -> Fault | None:
        call = attempts.setdefault(fake.digest(body), [len(attempts), 0])
        call[1] += 1
        return fault if call[0] % every == 0 and call[1] <= 2 else None

    return faults


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A run without faults."""
    site = Site(tmp_path_factory.mktemp("undisturbed"))
    with OpenAIServer() as server:
        assert site.run(server, *SETTINGS).code == 0
    return site


def test_transient_failures_leave_no_trace(undisturbed: Site, site: Site) -> None:
    with OpenAIServer(faults=twice(fake.status(500))) as server:
        ended = site.run(server, *SETTINGS)
        assert ended.code == 0, ended.err
        assert set(server.finished.values()) == {1}
        assert 0 <= server.finished.total() - site.summary()["lm_calls"] <= 4  # cut off at the end
        assert len(server.bodies) - server.finished.total() >= 10
    assert site.made() == undisturbed.made()


# Permanent faults


class Switched:
    """A fault of every call from the nth on, as long as it is on."""

    def __init__(self, fault: Fault, first: int) -> None:
        self.fault, self.first, self.on = fault, first, True

    def __call__(self, number: int, _: Body) -> Fault | None:
        return self.fault if self.on and number >= self.first else None


def test_a_server_that_fails_at_every_call_stops_the_run(undisturbed: Site, tmp_path: Path) -> None:
    """If failures were dropped, no dialog in progress would be left, and none that come after them."""
    site, storm = Site(tmp_path), Switched(fake.status(500), 12)
    with OpenAIServer(faults=storm) as server:
        stopped = site.run(server, *SETTINGS, "lm.retries=1")
        assert stopped.code == 2
        assert stopped.error.startswith("the model server fails at every call: ")
        assert stopped.error.endswith(CONTINUES)
        assert site.recorded() == server.finished.total() == 11
        assert all(drop in undisturbed.drops() for drop in site.drops())
        storm.on = False
        assert site.run(server, *SETTINGS).code == 0
        assert set(server.finished.values()) == {1}
        assert 0 <= server.finished.total() - site.summary()["lm_calls"] <= 4  # cut off at the end
    assert site.made() == undisturbed.made()


def test_a_server_that_fails_at_every_json_schema_stops_the_run(undisturbed: Site, tmp_path: Path) -> None:
    """Seen of a vLLM with a package missing: it lists its models and answers the trivial call."""
    site, broken = Site(tmp_path), [True]
    with OpenAIServer(
        faults=lambda _, body: fake.status(500) if broken[0] and "response_format" in body else None
    ) as server:
        stopped = site.run(server, *SETTINGS, "lm.retries=4")
        assert stopped.code == 2
        assert "JSON schemas" in stopped.error and "lm.structured_outputs=false" in stopped.error
        assert "HTTP 500" in stopped.error and not site.drops()
        broken[0] = False
        assert site.run(server, *SETTINGS).code == 0
    assert site.made() == undisturbed.made()


def test_a_server_that_refuses_a_keyword_of_our_schemas_stops_the_run(site: Site) -> None:
    """It takes other schemas, and its message need not name `response_format`."""
    with OpenAIServer(
        faults=lambda _, body: fake.status(400, "Invalid fields: {'maxLength'}") if "maxLength" in str(body) else None
    ) as server:
        stopped = site.run(server, *SETTINGS)
    assert stopped.code == 2 and not site.drops()
    assert "'maxLength'" in stopped.error and "lm.structured_outputs=false" in stopped.error


@pytest.mark.parametrize(
    ("fault", "setting"),
    [
        (fake.status(400, "response_format isn't supported"), "structured_outputs=false"),
        (fake.status(500), "structured_outputs=false"),
        (fake.status(404), "model,"),
    ],
)
def test_a_fault_of_the_users_model_names_its_own_settings(fault: Fault, setting: str, site: Site) -> None:
    with (
        OpenAIServer() as server,
        OpenAIServer(faults=lambda _, body: fault if body.get("response_format") else None) as users,
    ):
        stopped = site.run(server, *SETTINGS, *users.settings("user.lm"))
    assert stopped.code == 2 and f" user.lm.{setting}" in stopped.error


def test_a_run_whose_calls_are_all_refused_ends_with_the_servers_words(site: Site) -> None:
    with OpenAIServer(
        faults=lambda _, body: (
            fake.status(400, "Blocked by the content policy") if len(fake.prompt(body)) > 99 else None
        )
    ) as server:
        ended = site.run(server, *SETTINGS, "max_attempts=3")
    assert ended.code == 1 and "none of 3" in ended.error and "Blocked by the content policy" in ended.error


def test_a_call_that_always_fails_is_dropped_and_the_run_ends(site: Site) -> None:
    """Even if no other call is in flight that could show that the server works."""

    def dead(_: int, body: Body) -> Fault | None:
        if "response_format" not in body:  # the trivial call that checks the server
            return None
        # Enough of the judge's calls that some pair has no verdict.
        share = 0.4 if stage(body) == "judge" else 0.15
        return fake.status(500) if random.Random(fake.digest(body)).random() < share else None

    with OpenAIServer(faults=dead) as server:
        settings = (*SETTINGS, "lm.retries=1", "lm.concurrency=1", "dialogs=12", "max_attempts=12")
        ended = site.run(server, *settings)
        assert ended.code == 0, ended.err
        calls = len(server.bodies)
        assert site.run(server, *settings).code == 0
        assert len(server.bodies) == calls, "a failed call is not repeated"
    site.check_ledger()
    lost = [drop for drop in site.drops() if drop["stage"] == "model"]
    assert {drop["reason"] for drop in lost} == {"the server answers HTTP 500"}
    assert all("HTTP 500" in drop["text"] for drop in lost)
    assert site.summary()["attempted"] == 12
    assert site.summary()["unjudged_pairs"] > 0, "where the judge's call failed, the pair says so"


def test_a_server_that_is_not_running_yet(undisturbed: Site, site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        server = OpenAIServer(port=free.getsockname()[1])
    early = site.run(server, *SETTINGS)
    assert early.code == 2
    assert f"no model server at {server.url} (Connection refused)" in early.error
    assert not site.run_dir.exists()
    with server:
        assert site.run(server, *SETTINGS).code == 0
    assert site.made() == undisturbed.made()


# As in conf/lm/openai.yaml and vllm.yaml, with the seconds a fiftieth.
DEFAULTS = ("lm.retries=8", "lm.retry_wait_s=0.02")
MINUTE_S = 60 / 50


def vanishing(site: Site, count: int, seconds: float | None, *settings: str) -> tuple[Ended, Sequence[OpenAIServer]]:
    """Run with servers that all vanish at the 20th call, for so many seconds."""
    calls = count_from(1)

    def responder(body: Body) -> str:
        if next(calls) == 20:
            for server in servers:
                server.vanish(seconds)
        return fill(body)

    with ExitStack() as stack:
        servers = [stack.enter_context(OpenAIServer(responder)) for _ in range(count)]
        addresses = ",".join(server.url for server in servers)
        return site.run(servers[0], *SETTINGS, *settings, f"lm.api_base=[{addresses}]"), servers


@pytest.mark.parametrize("count", [1, 2])
def test_a_minute_without_any_server_is_waited_out(count: int, undisturbed: Site, tmp_path: Path) -> None:
    site, begun = Site(tmp_path), time.monotonic()
    ended, servers = vanishing(site, count, MINUTE_S, *DEFAULTS)
    assert ended.code == 0, ended.err
    assert time.monotonic() - begun > MINUTE_S
    assert all(server.bodies for server in servers)
    assert site.made() == undisturbed.made()


@pytest.mark.parametrize("count", [1, 2])
def test_servers_that_stay_away_stop_the_run(count: int, undisturbed: Site, site: Site) -> None:
    ended, servers = vanishing(site, count, None)
    assert ended.code == 2
    assert ended.error.startswith("the model server is gone: http://127.0.0.1:")
    assert ended.error.endswith(CONTINUES)
    kept = site.recorded()
    assert 0 < kept <= sum(server.finished.total() for server in servers)
    with OpenAIServer() as server:
        assert site.run(server, *SETTINGS).code == 0
        assert 0 <= server.finished.total() - (site.summary()["lm_calls"] - kept) <= 4  # cut off at the end
    assert site.made() == undisturbed.made()


@pytest.mark.parametrize("silent", [False, True])
def test_one_of_two_servers_is_gone_or_falls_silent(
    silent: bool, undisturbed: Site, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent one accepts calls and answers none."""
    for module in (client, connection):
        monkeypatch.setattr(module, "PROBE_S", 0.3)

    def responder(body: Body) -> str:
        if silent:
            two.silent = True
        else:
            two.vanish()
        return fill(body)

    with OpenAIServer() as one, OpenAIServer(responder) as two:
        both = (f"lm.api_base=[{one.url},{two.url}]", "lm.timeout_s=2")
        ended = site.run(one, *SETTINGS, *both)
        assert ended.code == 0, ended.err
        assert any(two.url in line and line.endswith("move to another one") for line in ended.err.splitlines())
        assert two.finished.total() < 6
    assert site.made() == undisturbed.made()


@pytest.mark.parametrize(("fault", "most"), [(fake.hang, 2), (fake.status(500), 3)])
def test_one_of_two_servers_answers_with_its_models_alone(
    fault: Fault, most: int, undisturbed: Site, site: Site
) -> None:
    with OpenAIServer() as one, OpenAIServer(faults=lambda number, _: fault if number > 3 else None) as two:
        both = (f"lm.api_base=[{one.url},{two.url}]", "lm.timeout_s=1", "lm.retries=6")
        ended = site.run(one, *SETTINGS, *both)
        assert ended.code == 0, ended.err
        assert any(two.url in line and line.endswith("move to another one") for line in ended.err.splitlines())
        calls = Counter(fake.digest(body) for body in two.bodies if "response_format" in body)
        assert max(calls.values()) <= most, "then the dialog moves"  # back, too, where the other one's answer is late
    assert site.made() == undisturbed.made()


# Replies that are wrong: data, not a fault. The model is shown the error once, then the reply is dropped and counted


FOREIGN = "Η βιβλιοθήκη ανοίγει στις εννέα. 図書館は九時に開きます。 المكتبة تفتح في التاسعة. 🙂"
REPLIES = {
    "nothing": lambda body: "",
    "no JSON": lambda body: "Of course! Here is what you asked for.",
    "another language": lambda body: json.dumps(json.loads(fill(body)) | {"answer": FOREIGN}, ensure_ascii=False),
}


@pytest.mark.parametrize("what", REPLIES)
def test_a_reply_is_kept_or_dropped_and_never_lost(what: str, tmp_path: Path) -> None:
    """The same replies make the same data, also if the run stopped in between."""

    def responder(body: Body) -> str:
        strange = stage(body) == "answer" and random.Random(fake.digest(body)).random() < 0.85
        return REPLIES[what](body) if strange else fill(body)

    sites, settings = [], (*SETTINGS, "dialogs=4", "judge.grounding=false")  # replies have nothing to do with documents
    for name, storm in (("whole", 10_000), ("stopped", 15)):
        site, fault = Site(tmp_path / name), Switched(fake.status(503), storm)
        with OpenAIServer(responder, fault) as server:
            code = site.run(server, *settings, "lm.retries=0").code
            assert code == (0 if storm > 15 else 2)
            fault.on = False
            assert site.run(server, *settings).code == 0
            assert set(server.finished.values()) == {1}
        sites.append(site)
    assert sites[0].made() == sites[1].made()
    if what == "another language":
        assert FOREIGN not in {row["messages"][-1]["content"] for row in sites[0].rows()}
        assert any(drop["stage"] == "language" and drop["scope"] == "dialog" for drop in sites[0].drops())
    else:
        reason = "empty reply" if what == "nothing" else "unusable reply"
        assert reason in {drop["reason"] for drop in sites[0].drops()}


def test_replies_that_are_cut_off_are_repaired_or_dropped_without_noise(tmp_path: Path) -> None:
    site, share = Site(tmp_path), {"ask": 0.4, "answer": 0.4, "judge": 0.6}

    def cut(_: int, body: Body) -> Fault | None:
        return fake.cut_off if random.Random(fake.digest(body)).random() < share[stage(body)] else None

    with OpenAIServer(faults=cut) as server:
        # In a process of its own, which catches DSPy's log too.
        ended = site.ended(site.start(server, "dialogs=8", "algorithm=single"))
    assert ended.code == 0
    site.check_ledger()
    summary = site.summary()
    assert summary["unjudged_pairs"] > 0
    assert {"ask", "answer"} & {stage for scope in ("dropped", "dropped_turns") for stage in summary[scope]}
    assert all("unusable reply" in drop["reason"] for drop in site.drops())
    assert "WARNING" not in ended.err and "Traceback" not in ended.err


@pytest.mark.parametrize("content", [None, '{"question": "How lo'])
def test_a_reply_that_a_content_filter_stops_names_the_filter(content: str | None, site: Site) -> None:
    reply = {"choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "content_filter"}]}
    with OpenAIServer(faults=lambda *_: fake.plain(json.dumps(reply))) as server:
        ended = site.run(server, "dialogs=1", "max_attempts=2")
    assert ended.code == 1 and "content filter" in ended.error
    assert all("content filter" in drop["reason"] and "max_tokens" not in drop["reason"] for drop in site.drops())


def test_a_reply_without_room_after_its_thoughts_names_the_setting(site: Site) -> None:
    message = {"role": "assistant", "content": None, "reasoning_content": "Okay, the user wants"}
    reply = {"choices": [{"message": message, "finish_reason": "length"}]}
    with OpenAIServer(faults=lambda *_: fake.plain(json.dumps(reply))) as server:
        ended = site.run(server, "dialogs=1", "max_attempts=2")
    assert ended.code == 1 and "lm.max_tokens" in ended.error
    assert all("lm.max_tokens" in drop["reason"] for drop in site.drops())
