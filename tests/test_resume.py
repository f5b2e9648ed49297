"""A run that was killed, interrupted, or ran out of disk: the same command continues it, and nothing is paid for twice.

A call is finished for a run once its reply stands in `run.db`, which is the first thing that happens to a reply. A
server counts it earlier, when it has sent the reply. A run that is killed between the two can't know that there was a
reply: it makes that call again, by any design. So these tests take the difference exactly: the calls that the server
finished before a kill, less those that `run.db` gained, were lost. They are at most as many as may be in flight, and
at the end as many calls were repeated as were lost, and no more. If nothing is in flight at the moment of the kill,
none is.
"""

import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from tests.support import openai_server as fake
from tests.support.openai_server import Body, Fault, OpenAIServer
from tests.support.runs import Site

IN_FLIGHT = 4
DIALOGS = 24
SETTINGS = (f"lm.concurrency={IN_FLIGHT}", f"dialogs={DIALOGS}")


def until(condition: Callable[[], bool], process: ForkServerProcess | None = None) -> None:
    """Wait for something that the run does; a minute at the longest."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen within a minute"
        assert process is None or process.is_alive(), "the run ended too early"
        time.sleep(0.001)


def kill(process: ForkServerProcess, server: OpenAIServer) -> None:
    """Kill a run, and wait until the server has noticed."""
    assert process.is_alive()
    process.kill()
    process.join()
    arrived = -1
    while arrived < len(server.bodies) or server.in_flight:  # a request may still lie unread in the server's socket
        arrived = len(server.bodies)
        time.sleep(0.1)


def site(folder: Path) -> Site:
    folder.mkdir()
    return Site(folder)


def same(resumed: Site, undisturbed: Site) -> bool:
    """Return whether a run has the data and the counts that it has without an interruption."""
    resumed.check_ledger()
    return (resumed.data(), resumed.counts()) == (undisturbed.data(), undisturbed.counts())


@pytest.mark.parametrize("algorithm", ["single", "multi"])
@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_random_moments(kills: int, algorithm: str, tmp_path: Path) -> None:
    """With a judge; most kills fall in the middle of calls, some before the first."""
    chance = random.Random(f"kill {algorithm}")
    settings = (f"lm.concurrency={IN_FLIGHT}", f"dialogs={DIALOGS if kills < 10 else 80}", f"algorithm={algorithm}")
    undisturbed, killed = site(tmp_path / "undisturbed"), site(tmp_path / "killed")
    with OpenAIServer() as server:
        assert undisturbed.run(server, *settings).code == 0
    with OpenAIServer(delay_s=lambda _: chance.uniform(0.005, 0.025)) as server:
        lost = finished = recorded = 0
        for _ in range(kills):
            process = killed.start(server, *settings)
            awaited = len(server.bodies) + chance.choice((0, 6, 8, 10, 12))
            until(lambda awaited=awaited: len(server.bodies) >= awaited, process)  # type: ignore[misc]
            time.sleep(chance.uniform(0, 0.02))
            kill(process, server)
            made, known = server.finished.total() - finished, killed.recorded() - recorded
            assert known >= 0, "a finished call was forgotten"
            assert 0 <= made - known <= IN_FLIGHT
            lost, finished, recorded = lost + made - known, finished + made, recorded + known
        assert 0 < recorded < undisturbed.summary()["lm_calls"], "the kills should fall in the middle of the work"
        assert killed.ended(killed.start(server, *settings)).code == 0
        repeated = server.finished.total() - len(server.finished)
        assert repeated == lost
        assert server.finished.total() - lost == killed.summary()["lm_calls"]
    assert same(killed, undisturbed)


def test_killed_while_nothing_is_in_flight(tmp_path: Path) -> None:
    """The server answers some calls and then none, so that the run has read every reply: then no call comes twice."""
    allowed = 0

    def allowance(number: int, body: Body) -> Fault | None:
        nonlocal allowed
        allowed -= 1
        return None if allowed >= 0 else fake.hang

    undisturbed, killed = site(tmp_path / "undisturbed"), site(tmp_path / "killed")
    with OpenAIServer(faults=allowance) as server:
        for more in (3, 17):
            before, allowed = server.finished.total(), more
            process = killed.start(server, *SETTINGS)
            until(lambda total=before + more: killed.recorded() == server.finished.total() == total, process)  # type: ignore[misc]
            kill(process, server)
        allowed = 10_000
        assert killed.run(server, *SETTINGS).code == 0
        assert set(server.finished.values()) == {1}
        assert server.finished.total() == killed.summary()["lm_calls"]
        assert undisturbed.run(server, *SETTINGS).code == 0
    assert same(killed, undisturbed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_complete_and_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    undisturbed, interrupted = site(tmp_path / "undisturbed"), site(tmp_path / "interrupted")
    with OpenAIServer() as server:
        assert undisturbed.run(server, *SETTINGS).code == 0
    with OpenAIServer(delay_s=0.01) as server:
        process = interrupted.start(server, *SETTINGS)
        until(lambda: len(server.bodies) > 50, process)
        assert process.pid is not None
        os.kill(process.pid, number)
        ended = interrupted.ended(process)

        assert ended.code == 130
        assert "Traceback" not in ended.err
        accepted = interrupted.summary()["accepted"]
        assert 0 < accepted < DIALOGS
        assert f"{accepted} of {DIALOGS}" in ended.err.splitlines()[-1]
        assert "same command continues" in ended.err.splitlines()[-1]
        interrupted.check_ledger()
        whole = undisturbed.data()["dialogs.jsonl"].splitlines(keepends=True)
        assert interrupted.data()["dialogs.jsonl"] == b"".join(whole[:accepted])
        assert not [path for path in interrupted.run_dir.rglob(".*") if path.name != ".lock"]

        again = interrupted.run(server, *SETTINGS)
        assert again.code == 0
        assert f"continuing: {accepted} of {DIALOGS}" in again.err
    assert same(interrupted, undisturbed)


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """Even if the disk hangs while the files are written: here one of them is a pipe that nobody reads."""
    place = Site(tmp_path)
    with OpenAIServer(delay_s=0.01) as server:
        process = place.start(server, *SETTINGS)
        assert process.pid is not None
        until(lambda: len(server.bodies) > 20, process)
        os.mkfifo(place.run_dir / ".dialogs.jsonl.unfinished")
        try:
            os.kill(process.pid, signal.SIGINT)
            process.join(1)
            assert process.is_alive(), "the disk was to hang"
            os.kill(process.pid, signal.SIGINT)
            process.join(60)
            assert process.exitcode == 130
        finally:
            process.kill()
        assert place.run(server, *SETTINGS).code == 0
    place.check_ledger()
    assert place.summary()["accepted"] == DIALOGS


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(tmp_path: Path) -> None:
    undisturbed, cramped = site(tmp_path / "undisturbed"), site(tmp_path / "cramped")
    with OpenAIServer() as server:
        assert undisturbed.run(server, *SETTINGS).code == 0
        assert cramped.run(server, "dialogs=1").code == 0  # documents and index are built while there is room
        full = cramped.ended(cramped.start(server, *SETTINGS, largest_file=150_000))
        assert full.code == 2
        assert str(cramped.run_dir) in full.error
        assert "same command" in full.error
        before = cramped.recorded()
        assert 6 < before < undisturbed.summary()["lm_calls"]
        calls = len(server.bodies)
        assert cramped.run(server, *SETTINGS).code == 0
        assert len(server.bodies) - calls == undisturbed.summary()["lm_calls"] - before
    assert same(cramped, undisturbed)


def test_more_dialogs_continue_a_run_and_fewer_change_nothing(tmp_path: Path) -> None:
    whole, stepwise = site(tmp_path / "whole"), site(tmp_path / "stepwise")
    with OpenAIServer() as server:
        assert whole.run(server, "dialogs=9").code == 0
    with OpenAIServer() as server:
        for step in ("dialogs=2", "dialogs=9", "dialogs=5"):
            assert stepwise.run(server, step, "lm.concurrency=3").code == 0
        assert set(server.finished.values()) == {1}
    assert same(stepwise, whole)


def test_settings_that_change_the_data_are_refused_by_name(tmp_path: Path) -> None:
    place = Site(tmp_path)
    with OpenAIServer() as server:
        assert place.run(server, "dialogs=2").code == 0
        before, calls = place.data(), len(server.bodies)
        refused = place.run(server, "dialogs=2", "seed=1", "algorithm=single", "lm.concurrency=3")
        assert refused.code == 2
        for words in (str(place.run_dir), "seed (was 0, is 1)", "algorithm", "fresh=true", "run_dir"):
            assert words in refused.error
        assert "concurrency" not in refused.error
        assert len(server.bodies) == calls
    assert place.data() == before


def test_operational_settings_may_change(tmp_path: Path) -> None:
    place = Site(tmp_path)
    with OpenAIServer() as server:
        assert place.run(server, "dialogs=2").code == 0
    with OpenAIServer() as elsewhere:  # another address
        changed = ("lm.concurrency=2", "lm.timeout_s=5", "lm.retries=1", "lm.retry_wait_s=0.02", "max_attempts=7")
        assert place.run(elsewhere, "dialogs=4", *changed).code == 0
    assert place.summary()["accepted"] == 4


def test_two_runs_in_one_folder_at_a_time(tmp_path: Path) -> None:
    place = Site(tmp_path)
    with OpenAIServer(delay_s=0.02) as server:
        first = place.start(server, *SETTINGS)
        until(lambda: len(server.bodies) > 10, first)
        second = place.run(server, *SETTINGS)
        assert second.code == 2
        assert "another run is writing here" in second.error
        assert place.ended(first).code == 0
        assert set(server.finished.values()) == {1}
    place.check_ledger()
