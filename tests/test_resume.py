"""A run that was killed, interrupted, or ran out of disk: the same command continues it, and nothing is paid for twice.

A call is finished for a run once its reply is in `run.db`. A server counts it earlier, when it has sent the reply, so a
run that is killed between the two has to repeat that call. The tests count exactly: the calls that the server finished
before a kill, less those that `run.db` gained, were lost; they are at most as many as may be in flight, and as many are
repeated. If nothing is in flight at the moment of the kill, none is.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support import openai_server as fake
from tests.support import scenarios, tasks
from tests.support.openai_server import Body, Fault, OpenAIServer
from tests.support.runs import Site, kill, until

IN_FLIGHT = 4
DIALOGS = 12
SETTINGS = (f"lm.concurrency={IN_FLIGHT}", f"dialogs={DIALOGS}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Return a run with `SETTINGS` that nothing interrupts."""
    site = Site(tmp_path_factory.mktemp("undisturbed"))
    with OpenAIServer() as server:
        assert site.run(server, *SETTINGS).code == 0
    return site


@pytest.mark.parametrize(
    ("kills", "algorithm"),
    [
        (2, "multi"),
        (2, "single"),
        pytest.param(10, "candidates", marks=pytest.mark.slow),
        pytest.param(10, "whole", marks=pytest.mark.slow),
        pytest.param(10, "progressive", marks=pytest.mark.slow),
        *(pytest.param(50, algorithm, marks=pytest.mark.slow) for algorithm in ("single", "multi")),
    ],
)
def test_killed_at_random_moments(kills: int, algorithm: str, site: Site, tmp_path: Path) -> None:
    chance = random.Random(f"kill {algorithm}")
    settings = [f"lm.concurrency={IN_FLIGHT}", f"dialogs={DIALOGS if kills < 10 else 80}"]
    settings += ["algorithm.candidates=3"] if algorithm == "candidates" else [f"algorithm={algorithm}"]
    if algorithm == "whole":
        settings += ["taxonomy=mt_bench_101", "judge=task", "lm.context=16384"]
    if algorithm == "progressive":
        settings = scenarios.settings(*settings)
    responder = {"whole": tasks.reply, "progressive": scenarios.reply}.get(algorithm)
    last = sys.maxsize  # on a busy machine, what is killed late would have ended
    server = OpenAIServer(
        responder, delay_s=lambda _: chance.uniform(0.005, 0.025), hold=lambda _: len(server.bodies) > last
    )
    with server:
        lost = finished = recorded = 0
        for _ in range(kills):
            awaited = len(server.bodies) + (chance.choice((0, 6, 8, 10, 12)) if recorded else 12)
            last = awaited + 2 * IN_FLIGHT
            process = site.start(server, *settings)
            until(lambda awaited=awaited: len(server.bodies) >= awaited, process)  # type: ignore[misc]
            time.sleep(chance.uniform(0, 0.02))
            kill(process, server)
            made, known = server.finished.total() - finished, site.recorded() - recorded
            assert known >= 0, "a finished call was forgotten"
            assert 0 <= made - known <= IN_FLIGHT
            lost, finished, recorded = lost + made - known, finished + made, recorded + known
        last = sys.maxsize
        assert site.run(server, *settings).code == 0
        assert 0 < recorded < site.summary()["lm_calls"], "the kills should fall in the middle of the work"
        assert server.finished.total() - len(server.finished) == lost, "calls that were made twice"
        site.check_calls(server.finished.total() - lost)
    whole = Site(tmp_path / "whole")
    with OpenAIServer(responder) as server:
        assert whole.run(server, *settings).code == 0
    assert site.made() == whole.made()


def test_killed_while_nothing_is_in_flight(site: Site, undisturbed: Site) -> None:
    """The server answers some calls and then none, so that the run has read every reply: then no call comes twice."""
    allowed = 0

    def allowance(number: int, body: Body) -> Fault | None:
        nonlocal allowed
        allowed -= 1
        return None if allowed >= 0 else fake.hang

    with OpenAIServer(faults=allowance) as server:
        for more in (3, 17):
            before, allowed = server.finished.total(), more
            process = site.start(server, *SETTINGS)
            until(lambda total=before + more: site.recorded() == server.finished.total() == total, process)  # type: ignore[misc]
            kill(process, server)
        allowed = 10_000
        assert site.run(server, *SETTINGS).code == 0
        assert set(server.finished.values()) == {1}
        site.check_calls(server.finished.total())
    assert site.made() == undisturbed.made()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_complete_and_goes_on(number: signal.Signals, site: Site, undisturbed: Site) -> None:
    last = 60  # on a busy machine, a run that is interrupted late would have ended
    server = OpenAIServer(delay_s=0.01, hold=lambda _: len(server.bodies) > last)
    with server:
        process = site.start(server, *SETTINGS)
        until(lambda: len(server.bodies) > 40, process)
        assert process.pid is not None
        os.kill(process.pid, number)
        ended = site.ended(process)
        last = sys.maxsize
        assert ended.code == 130
        assert "Traceback" not in ended.err
        accepted = site.summary()["accepted"]
        assert 0 < accepted < DIALOGS
        assert f"{accepted} of {DIALOGS}" in ended.err.splitlines()[-1]
        assert "same command continues" in ended.err.splitlines()[-1]
        site.check_ledger()
        whole = undisturbed.data()["dialogs.jsonl"].splitlines(keepends=True)
        assert site.data()["dialogs.jsonl"] == b"".join(whole[:accepted])
        assert not [path for path in site.run_dir.rglob(".*") if path.name != ".lock"]
        again = site.run(server, *SETTINGS)
        assert again.code == 0
        assert f"continuing: {accepted} of {DIALOGS}" in again.err
    assert site.made() == undisturbed.made()


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(site: Site, undisturbed: Site) -> None:
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=1").code == 0  # documents and index are built while there is room
        full = site.ended(site.start(server, *SETTINGS, largest_file=100_000))
        assert full.code == 2
        assert str(site.run_dir) in full.error and "same command" in full.error
        before, calls = site.recorded(), len(server.bodies)
        assert 6 < before < undisturbed.summary()["lm_calls"]
        assert site.run(server, *SETTINGS).code == 0
        site.check_calls(before + len(server.bodies) - calls)
    assert site.made() == undisturbed.made()


def test_more_dialogs_continue_a_run_and_fewer_change_nothing(site: Site, undisturbed: Site) -> None:
    with OpenAIServer() as server:
        for step in (2, DIALOGS, 5):
            assert site.run(server, f"dialogs={step}", "lm.concurrency=3").code == 0
        # A run that has enough leaves up to `lm.concurrency` calls, whose replies the server may have just written.
        assert server.finished.total() - len(server.finished) <= 2 * 3
    assert site.made() == undisturbed.made()


def test_settings_that_change_the_data_are_refused_by_name(site: Site) -> None:
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=2").code == 0
        before, calls = site.data(), len(server.bodies)
        refused = site.run(server, "dialogs=2", "seed=1", "algorithm=single", "lm.concurrency=3")
        assert refused.code == 2
        for words in (str(site.run_dir), "seed (was 0, is 1)", "algorithm", "fresh=true", "run_dir"):
            assert words in refused.error
        assert "concurrency" not in refused.error
        assert len(server.bodies) == calls
    assert site.data() == before


def test_two_runs_in_one_folder_at_a_time(site: Site) -> None:
    last = 20  # on a busy machine, a second run that begins late would find a finished one
    server = OpenAIServer(delay_s=0.02, hold=lambda _: len(server.bodies) > last)
    with server:
        first = site.start(server, *SETTINGS)
        until(lambda: len(server.bodies) > 10, first)
        second = site.run(server, *SETTINGS)
        assert second.code == 2
        assert "is writing here" in second.error
        last = sys.maxsize
        assert site.ended(first).code == 0
        assert set(server.finished.values()) == {1}
    site.check_ledger()
