"""A run that was killed, interrupted, or ran out of disk: the same command continues it, and nothing is paid for twice.

What "finished" means. A call is finished for a run once its reply stands in `run.db`, which is the first thing that
happens to a reply. A server counts it earlier, when it has sent the reply. Between the two lie the network and a
socket's buffer, and whoever is killed right then can't know that there was a reply: that call is made again, by any
design. So these tests take the difference exactly: after each kill, the calls that the server finished in that sitting,
less those that `run.db` gained, were lost on the way. They are at most as many as may be in flight, and at the end the
calls that were repeated are as many as were lost so, and no more. Where nothing is on the way at the moment of the
kill, none is.
"""

import asyncio
import fcntl
import multiprocessing
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Self

import pytest

from generator.__main__ import main
from generator.config.settings import Settings
from tests.support import openai_server as fake
from tests.support.openai_server import Body, Fault, OpenAIServer
from tests.support.runs import Ended, Site, run_logged

ALGORITHMS = ("single", "multi")
IN_FLIGHT = 4
DIALOGS = 24
SETTINGS = (f"lm.concurrency={IN_FLIGHT}", f"dialogs={DIALOGS}")


class Warm:
    """A run whose settings, documents and index are ready, in a process that forks another for each sitting of it.

    What is left of a sitting is `Run.go`: the files are opened, the server is looked at, dialogs are made.
    """

    def __init__(self, site: Site, server: OpenAIServer, *settings: str) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        arguments = (site.arguments(server, *settings), site.folder / "log", theirs)
        self._process = multiprocessing.get_context("forkserver").Process(target=_sittings, args=arguments, daemon=True)
        self._process.start()
        assert self._ours.poll(60), "the run was not ready within a minute"
        assert self._ours.recv() == "ready"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.join()

    def start(self) -> Self:
        """Begin a sitting."""
        self._ours.send("start")
        self._pid = int(self._ours.recv())
        return self

    def is_alive(self) -> bool:
        """Whether the sitting goes on."""
        return not self._ours.poll()

    def kill(self) -> None:
        """End it at once."""
        os.kill(self._pid, signal.SIGKILL)

    def join(self) -> int:
        """Wait for its end; its exit code, or the negative number of the signal that killed it."""
        assert self._ours.poll(60), "the sitting did not end within a minute"
        return int(self._ours.recv())


def _sittings(arguments: list[str], log: Path, pipe: Connection) -> None:
    from generator import run

    def sit(settings: Settings, data: dict[str, Any], configuration: str, command: str) -> int:
        with settings.executor.open() as executor:
            ready = run.Run(settings, data, configuration, command, executor)
            pipe.send("ready")
            while pipe.recv() == "start":
                if not (pid := os.fork()):
                    os._exit(0 if asyncio.run(ready.go(asyncio.Event())).complete else 1)
                pipe.send(pid)
                pipe.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return 0

    run.run = sit  # type: ignore[assignment]
    run_logged(main, arguments, log, None)


def until(condition: Callable[[], bool], process: ForkServerProcess | Warm | None = None) -> None:
    """Wait for something that the run does; 30 s at the longest."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        assert process is None or process.is_alive(), "the run ended too early"
        time.sleep(0.001)


def killed(process: ForkServerProcess | Warm, server: OpenAIServer) -> None:
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


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_killed_at_fifty_random_moments(algorithm: str, tmp_path: Path) -> None:
    """100 kills over both algorithms, with a judge; some before the first call, most in the middle of calls.

    Four are of a command from its start on, the others of sittings that begin where it has read its documents.
    """
    chance = random.Random(f"kill {algorithm}")
    settings = (f"lm.concurrency={IN_FLIGHT}", "dialogs=64", f"algorithm={algorithm}")
    with OpenAIServer(delay_s=lambda _: chance.uniform(0.005, 0.025)) as server:
        undisturbed, mauled = site(tmp_path / "undisturbed"), site(tmp_path / "mauled")
        assert undisturbed.run(server, *settings).code == 0

    with OpenAIServer(delay_s=lambda _: chance.uniform(0.005, 0.025)) as server:
        lost = finished = recorded = 0

        def maul(process: ForkServerProcess | Warm) -> None:
            nonlocal lost, finished, recorded
            arrivals, later = chance.choice((0, 4, 6, 8, 10, 12)), chance.uniform(0, 0.02)
            if arrivals:
                awaited = len(server.bodies) + arrivals
                until(lambda: len(server.bodies) >= awaited, process)
            else:
                later *= 10 if isinstance(process, ForkServerProcess) else 3
            time.sleep(later)
            killed(process, server)
            made, known = server.finished.total() - finished, mauled.recorded() - recorded
            assert known >= 0, "a finished call was forgotten"
            assert 0 <= made - known <= IN_FLIGHT
            lost, finished, recorded = lost + made - known, finished + made, recorded + known

        for _ in range(4):
            maul(mauled.start(server, *settings))
        with Warm(mauled, server, *settings) as warm:
            for _ in range(46):
                maul(warm.start())
        assert recorded > 100, "the kills should fall into the midst of the work"
        assert recorded < undisturbed.summary()["lm_calls"] - 20, "and not behind it"
        assert mauled.ended(mauled.start(server, *settings)).code == 0
        repeated = server.finished.total() - len(server.finished)

    assert mauled.data() == undisturbed.data()
    assert mauled.counts() == undisturbed.counts()
    assert repeated == lost
    assert server.finished.total() - lost == mauled.summary()["lm_calls"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_killed_while_nothing_is_on_the_way(algorithm: str, tmp_path: Path) -> None:
    """The server answers some calls and then none, so that the run has read all there is: then no call comes twice."""
    chance = random.Random(f"quiet {algorithm}")
    settings = (*SETTINGS, f"algorithm={algorithm}")
    allowed = 0

    def allowance(number: int, body: Body) -> Fault | None:
        nonlocal allowed
        allowed -= 1
        return None if allowed >= 0 else fake.hang

    undisturbed, mauled = site(tmp_path / "undisturbed"), site(tmp_path / "mauled")
    with OpenAIServer(faults=allowance) as server:
        for _ in range(5):
            before, allowed = server.finished.total(), (more := chance.randint(1, 20))
            process = mauled.start(server, *settings)
            until(lambda total=before + more: mauled.recorded() == server.finished.total() == total, process)  # type: ignore[misc]
            killed(process, server)
        allowed = 10_000
        assert mauled.ended(mauled.start(server, *settings)).code == 0
        assert set(server.finished.values()) == {1}
        assert server.finished.total() == mauled.summary()["lm_calls"]
        assert undisturbed.run(server, *settings).code == 0
    assert mauled.data() == undisturbed.data()
    assert mauled.counts() == undisturbed.counts()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_whole_and_goes_on(number: signal.Signals, tmp_path: Path) -> None:
    undisturbed, broken_off = site(tmp_path / "undisturbed"), site(tmp_path / "broken off")
    with OpenAIServer(delay_s=0.01) as server:
        assert undisturbed.run(server, *SETTINGS).code == 0
    with OpenAIServer(delay_s=0.01) as server:
        process = broken_off.start(server, *SETTINGS)
        until(lambda: len(server.bodies) > 50, process)
        assert process.pid is not None
        os.kill(process.pid, number)
        ended = broken_off.ended(process)

        assert ended.code == 130
        assert "Traceback" not in ended.err
        assert "stopping: what is finished is being written" in ended.err
        said = ended.err.splitlines()[-1]
        accepted = broken_off.summary()["accepted"]
        assert 0 < accepted < DIALOGS
        assert f"{accepted} of {DIALOGS}" in said
        assert "same command continues" in said
        broken_off.check_ledger()
        assert broken_off.data()["dialogs.jsonl"] == b"".join(
            undisturbed.data()["dialogs.jsonl"].splitlines(keepends=True)[:accepted]
        )
        assert not [path for path in broken_off.run_dir.rglob(".*") if path.name != ".lock"]

        again = broken_off.ended(broken_off.start(server, *SETTINGS))
        assert again.code == 0
        assert f"continuing: {accepted} of {DIALOGS}" in again.err
    assert broken_off.data() == undisturbed.data()
    assert broken_off.counts() == undisturbed.counts()


def test_ctrl_c_in_a_terminal_like_process(tmp_path: Path) -> None:
    """The entry point itself, as a person starts it."""
    place = Site(tmp_path)
    with OpenAIServer(delay_s=0.02) as server:
        command = [sys.executable, "-m", "generator", *place.arguments(server, *SETTINGS)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: len(server.bodies) > 20)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "same command continues" in err
    place.check_ledger()


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """Even if the disk hangs while the files are written: here one of them leads nowhere."""
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
            process.join(5)
            assert process.exitcode == 130
        finally:
            process.kill()
        said = place.ended(process).err.splitlines()[-1]
        assert "same command continues" in said

        assert place.ended(place.start(server, *SETTINGS)).code == 0
    place.check_ledger()
    assert place.summary()["accepted"] == DIALOGS


def broken_off_in_writing(place: Site, process: ForkServerProcess, number: signal.Signals) -> Ended:
    """How a run ends that gets one signal while it writes its dialogs: into a pipe, which is soon full."""
    path = place.run_dir / ".dialogs.jsonl.unfinished"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def written() -> bool:
        return bool(select.select([pipe], [], [], 0)[0])

    def over() -> bool:
        # What the file object still holds is written when it is closed, so there has to be room again.
        while written() and os.read(pipe, 65536):
            pass
        return not process.is_alive()

    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
        until(written, process)
        assert process.pid is not None
        os.kill(process.pid, number)
        until(over)
    finally:
        os.close(pipe)
        process.kill()
    return place.ended(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_files_are_written_ends_at_once(number: signal.Signals, tmp_path: Path) -> None:
    """All dialogs are finished: there is nothing to stop but the writing."""
    undisturbed, broken_off = site(tmp_path / "undisturbed"), site(tmp_path / "broken off")
    with OpenAIServer() as server:
        assert undisturbed.run(server, *SETTINGS).code == 0
    with OpenAIServer(delay_s=0.01) as server:
        process = broken_off.start(server, *SETTINGS)
        until(lambda: len(server.bodies) > 20, process)
        ended = broken_off_in_writing(broken_off, process, number)
        assert ended.code == 130
        assert "Traceback" not in ended.err
        assert ended.err.splitlines()[-1] == "interrupted; the same command continues"

        calls = len(server.bodies)
        assert broken_off.run(server, *SETTINGS).code == 0
        assert len(server.bodies) == calls
    broken_off.check_ledger()
    assert broken_off.data() == undisturbed.data()


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
    cramped.check_ledger()
    assert cramped.data() == undisturbed.data()


def test_more_dialogs_continue_a_run(tmp_path: Path) -> None:
    whole, stepwise = site(tmp_path / "whole"), site(tmp_path / "stepwise")
    with OpenAIServer() as server:
        assert whole.run(server, "dialogs=9").code == 0
    with OpenAIServer() as server:
        for step in ("dialogs=2", "dialogs=5", "dialogs=9", "dialogs=9"):
            assert stepwise.run(server, step, "lm.concurrency=3").code == 0
        assert set(server.finished.values()) == {1}
    assert stepwise.data() == whole.data()
    assert stepwise.counts() == whole.counts()


def test_fewer_dialogs_than_there_are_change_nothing(tmp_path: Path) -> None:
    place = Site(tmp_path)
    with OpenAIServer() as server:
        assert place.run(server, "dialogs=4").code == 0
        before, calls = place.data(), len(server.bodies)
        assert place.run(server, "dialogs=2").code == 0
        assert len(server.bodies) == calls
    assert place.data() == before


def test_settings_that_make_other_data_are_refused_by_name(tmp_path: Path) -> None:
    place = Site(tmp_path)
    with OpenAIServer() as server:
        assert place.run(server, "dialogs=2").code == 0
        before, calls = place.data(), len(server.bodies)
        refused = place.run(server, "dialogs=2", "seed=1", "algorithm=single")
        assert refused.code == 2
        for word in (
            str(place.run_dir),
            "seed (0 there, 1 now)",
            'algorithm.name ("multi" there, "single" now)',
            "fresh=true",
        ):
            assert word in refused.error
        assert len(server.bodies) == calls
    assert place.data() == before


def test_settings_of_how_a_run_is_made_may_change(tmp_path: Path) -> None:
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
