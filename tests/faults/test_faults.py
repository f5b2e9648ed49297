"""What a run makes of model servers that fail; docs/reliability.md has the table of all faults.

What passes leaves no trace. What stays stops the run in one line, with all that was finished kept, and the same command
continues it to the data that it would have made without. Only what is wrong with single calls is dropped, and counted.
"""

import json
import random
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from itertools import count as count_from
from pathlib import Path

import pytest

from generator.models import client as lm
from tests.support import openai_server as fake
from tests.support.openai_server import Body, Fault, OpenAIServer, fill
from tests.support.runs import Ended, Site, stage

ROOT = Path(__file__).parents[2]
ALGORITHMS = ("single", "multi")
SETTINGS = ("dialogs=6", "lm.concurrency=4", "lm.retries=2", "lm.retry_wait_s=0.01")
CONTINUES = "; when it is well, the same command continues"
PASSING = {
    "busy": fake.status(429),
    "busy, with a pause asked for": fake.status(429, headers={"Retry-After": "0.01"}),
    "out of order": fake.status(500),
    "overloaded": fake.status(503),
    "hangs up": fake.hang_up,
    "hangs up in its reply": fake.half_reply,
    "never answers": fake.hang,
    "breaks off its JSON": fake.malformed,
    "answers nothing": fake.no_choices,
}


def twice(fault: Fault) -> Callable[[int, Body], Fault | None]:
    """A fault at the first two attempts of some calls."""
    attempts: Counter[str] = Counter()

    def faults(_: int, body: Body) -> Fault | None:
        call = fake.digest(body)
        attempts[call] += 1
        return fault if attempts[call] <= 2 and random.Random(call).random() < 0.2 else None

    return faults


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Site]:
    """What the run of an algorithm comes to without faults."""

    @cache
    def made(algorithm: str) -> Site:
        site = Site(tmp_path_factory.mktemp(algorithm))
        with OpenAIServer() as server:
            assert site.run(server, f"algorithm={algorithm}", *SETTINGS).code == 0
        return site

    return made


Undisturbed = Callable[[str], Site]


def same(site: Site, undisturbed: Site) -> bool:
    """Whether a run has come to what it would have been undisturbed."""
    site.check_ledger()
    return (site.data(), site.counts()) == (undisturbed.data(), undisturbed.counts())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_what_passes_leaves_no_trace(fault: Fault, algorithm: str, undisturbed: Undisturbed, tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer(faults=twice(fault)) as server:
        # Only who never answers is to be given up soon: a busy machine can be slow.
        patience = f"lm.timeout_s={3 if fault is fake.hang else 60}"
        ended = site.run(server, f"algorithm={algorithm}", patience, *SETTINGS)
        assert ended.code == 0, ended.err
        assert set(server.finished.values()) == {1}
        assert site.summary()["lm_calls"] == server.finished.total()
        assert len(server.bodies) - server.finished.total() > 5
    assert same(site, undisturbed(algorithm))


# What stays


class Switched:
    """A fault of every call from the nth on, as long as it is on."""

    def __init__(self, fault: Fault, first: int) -> None:
        self.fault, self.first, self.on = fault, first, True

    def __call__(self, number: int, _: Body) -> Fault | None:
        return self.fault if self.on and number >= self.first else None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_server_that_fails_at_every_call_stops_the_run(
    fault: Fault, algorithm: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """Would it drop what fails, none of the dialogs under way would be left, and none that come after them."""
    site, storm = Site(tmp_path), Switched(fault, 12)
    settings = (f"algorithm={algorithm}", *SETTINGS)
    with OpenAIServer(faults=storm) as server:
        impatient = ("lm.retries=1", f"lm.timeout_s={3 if fault is fake.hang else 60}")  # a busy machine can be slow
        stopped = site.run(server, *settings, *impatient)
        assert stopped.code == 2
        assert stopped.error.startswith("the model server fails at every call: ")
        assert stopped.error.endswith(CONTINUES)
        assert site.recorded() == server.finished.total() == 11
        assert site.drops() == []
        storm.on = False
        assert site.run(server, *settings).code == 0
        assert set(server.finished.values()) == {1}
        assert server.finished.total() == site.summary()["lm_calls"]
    assert same(site, undisturbed(algorithm))


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_call_that_always_fails_is_dropped_and_the_run_ends(at_once: int, tmp_path: Path) -> None:
    """Also where no other call is under way that could show the server to be well."""

    def dead(_: int, body: Body) -> Fault | None:
        if "response_format" not in body:  # what is asked to see whether the server is well
            return None
        # Of the judge's calls so many that whatever the prompts are some pair is left without a verdict.
        share = 0.4 if stage(body) == "judge" else 0.15
        return fake.status(500) if random.Random(fake.digest(body)).random() < share else None

    site = Site(tmp_path)
    with OpenAIServer(faults=dead) as server:
        settings = (*SETTINGS, "lm.retries=1", f"lm.concurrency={at_once}", "dialogs=12", "max_attempts=12")
        ended = site.run(server, *settings)
        assert ended.code == 0, ended.err
        calls = len(server.bodies)
        assert site.run(server, *settings).code == 0
        assert len(server.bodies) == calls, "what failed for good isn't tried once more"
    site.check_ledger()
    lost = [drop for drop in site.drops() if drop["stage"] == "model"]
    assert {drop["reason"] for drop in lost} == {"ServerError"}
    assert all("HTTP 500" in drop["text"] for drop in lost)
    assert site.summary()["attempted"] == 12
    assert site.summary()["unjudged_pairs"] > 0, "where the judge's call failed, the pair says so"


def nowhere() -> OpenAIServer:
    """A server that isn't there yet, with its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return OpenAIServer(port=free.getsockname()[1])


def test_a_server_that_is_not_there_yet(undisturbed: Undisturbed, tmp_path: Path) -> None:
    site, server = Site(tmp_path), nowhere()
    early = site.run(server, *SETTINGS)
    assert early.code == 2
    assert early.error.startswith(f"no model server at {server.url} (Connection refused): start it")
    assert not site.run_dir.exists()
    with server:
        assert site.run(server, *SETTINGS).code == 0
    assert same(site, undisturbed("multi"))


def test_a_server_that_says_nothing_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lm, "_PROBE_S", 0.3)
    site = Site(tmp_path)
    with OpenAIServer() as server:
        server.silent = True
        ended = site.run(server, *SETTINGS)
    assert ended.code == 2
    assert ended.error.startswith(f"no model server at {server.url} (nothing within 0.3 s)")
    assert not site.run_dir.exists()


# As in conf/lm/openai.yaml and vllm.yaml, with the seconds a fiftieth.
DEFAULTS = ("lm.retries=8", "lm.retry_wait_s=0.02")
MINUTE_S = 60 / 50


def vanishing(site: Site, count: int, seconds: float | None, *settings: str) -> tuple[Ended, Sequence[OpenAIServer]]:
    """A run whose servers are all gone at its 20th call, for so long."""
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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [1, 2])
def test_a_minute_without_any_server_is_waited_out(
    count: int, algorithm: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    site, begun = Site(tmp_path), time.monotonic()
    ended, servers = vanishing(site, count, MINUTE_S, f"algorithm={algorithm}", *DEFAULTS)
    assert ended.code == 0, ended.err
    assert time.monotonic() - begun > MINUTE_S
    assert all(server.bodies for server in servers)
    assert same(site, undisturbed(algorithm))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [1, 2])
def test_servers_that_stay_away_stop_the_run(
    count: int, algorithm: str, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    site, settings = Site(tmp_path), f"algorithm={algorithm}"
    ended, servers = vanishing(site, count, None, settings)
    assert ended.code == 2
    assert ended.error.startswith("the model server is gone: http://127.0.0.1:")
    assert ended.error.endswith(CONTINUES)
    kept = site.recorded()
    assert 0 < kept <= sum(server.finished.total() for server in servers)
    with OpenAIServer() as server:
        assert site.run(server, *SETTINGS, settings).code == 0
        assert server.finished.total() == site.summary()["lm_calls"] - kept
    assert same(site, undisturbed(algorithm))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_of_two_servers_falls_silent(
    algorithm: str, undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts calls and answers none; tests/models/test_pool.py has one that is gone."""
    monkeypatch.setattr(lm, "_PROBE_S", 0.3)

    def responder(body: Body) -> str:
        two.silent = True
        return fill(body)

    site = Site(tmp_path)
    with OpenAIServer() as one, OpenAIServer(responder) as two:
        both = (f"lm.api_base=[{one.url},{two.url}]", "lm.timeout_s=2")
        ended = site.run(one, f"algorithm={algorithm}", *SETTINGS, *both)
        assert ended.code == 0, ended.err
        assert f"{two.url} is gone; its dialogs go on elsewhere" in ended.err
        assert two.finished.total() < 6
    assert same(site, undisturbed(algorithm))


# What the model says: data, not a fault. It is shown to the model once with what is wrong, then dropped and counted


FOREIGN = "Η βιβλιοθήκη ανοίγει στις εννέα. 図書館は九時に開きます。 المكتبة تفتح في التاسعة. 🙂"
SAID = {
    "nothing": lambda body: "",
    "no JSON": lambda body: "Of course! Here is what you asked for.",
    "JSON of another form": lambda body: '{"response": ["yes"]}',
    "half of its JSON": lambda body: fill(body)[:-5],
    "another language": lambda body: json.dumps(json.loads(fill(body)) | {"answer": FOREIGN}, ensure_ascii=False),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("what", SAID)
def test_what_the_model_says_is_kept_or_dropped_and_never_lost(what: str, algorithm: str, tmp_path: Path) -> None:
    """The same replies make the same data, also where the run stopped in their midst."""

    def responder(body: Body) -> str:
        strange = stage(body) == "answer" and random.Random(fake.digest(body)).random() < 0.75
        return SAID[what](body) if strange else fill(body)

    sites, settings = [], (f"algorithm={algorithm}", *SETTINGS, "dialogs=4")
    for name, storm in (("whole", 10_000), ("stopped", 15)):
        (tmp_path / name).mkdir()
        site, fault = Site(tmp_path / name), Switched(fake.status(503), storm)
        with OpenAIServer(responder, fault) as server:
            code = site.run(server, *settings, "lm.retries=0").code
            assert code == (0 if storm > 15 else 2)
            fault.on = False
            assert site.run(server, *settings).code == 0
            assert set(server.finished.values()) == {1}
        sites.append(site)
    assert same(*sites)
    if what == "another language":
        assert FOREIGN in {row["messages"][-1]["content"] for row in sites[0].rows()}
    else:
        assert {drop["reason"] for drop in sites[0].drops()} >= {"unusable reply"}


def test_replies_that_are_cut_off_are_repaired_or_dropped_without_noise(tmp_path: Path) -> None:
    site, share = Site(tmp_path), {"ask": 0.4, "answer": 0.4, "judge": 0.6}

    def cut(_: int, body: Body) -> Fault | None:
        return fake.cut_off if random.Random(fake.digest(body)).random() < share[stage(body)] else None

    with OpenAIServer(faults=cut) as server:
        # A process of its own, as a person starts it: DSPy's log goes where it pleases.
        command = [sys.executable, "-m", "generator", *site.arguments(server, "dialogs=8", "algorithm=single")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0
    site.check_ledger()
    summary = site.summary()
    assert summary["unjudged_pairs"] > 0
    assert {"ask", "answer"} & {stage for scope in ("dropped", "dropped_turns") for stage in summary[scope]}
    assert all("unusable reply" in drop["reason"] for drop in site.drops())
    assert "WARNING" not in ended.stderr and "Traceback" not in ended.stderr


# The clock


def test_a_clock_that_jumps_leaves_no_trace(
    undisturbed: Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours to and fro at every look; and a server whose clock is hours off says when to ask again."""
    chance, right = random.Random(5), time.time
    monkeypatch.setattr(time, "time", lambda: right() + chance.uniform(-36_000, 36_000))
    hours_off = datetime.now(UTC) + timedelta(hours=5)
    dates = {"Date": format_datetime(hours_off, usegmt=True), "Retry-After": format_datetime(hours_off, usegmt=True)}
    site = Site(tmp_path)
    with OpenAIServer(faults=twice(fake.status(429, headers=dates))) as server:
        begun = time.monotonic()
        ended = site.run(server, *SETTINGS)
        took = time.monotonic() - begun
        assert ended.code == 0, ended.err
        assert len(server.bodies) > server.finished.total(), "nobody was told to wait"
    assert 0 < site.summary()["seconds"] <= took
    assert same(site, undisturbed("multi"))


def test_nobody_asks_what_time_it_is() -> None:
    """What is measured, and what is waited for, goes by the monotonic clock."""
    asks = re.compile(r"\btime\.time\b|from time import .*\btime\b|\b(?:now|today|utcnow|localtime|gmtime)\(|st_mtime")
    sources = [file for name in ("generator", "judges", "taxonomy") for file in (ROOT / name).rglob("*.py")]
    assert [file for file in sources if asks.search(file.read_text(encoding="utf-8"))] == []
