"""The first signal asks a program to stop where it can be continued; the second ends it at once."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.common.interruption import ends_at_once, interruptible
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_the_work_to_stop(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    async def work(stop: asyncio.Event) -> str:
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.wait(), 30)
        return "what is finished"

    assert asyncio.run(interruptible(work)) == ("what is finished", True)
    assert capsys.readouterr().err.startswith("stopping: ")
    # In a sweep the next run is prepared then, and SIGTERM must end that too.
    assert {signal.getsignal(number) for number in SIGNALS} == {signal.default_int_handler}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_writing_at_once(number: signal.Signals) -> None:
    async def work(stop: asyncio.Event) -> None:
        ends_at_once()
        os.kill(os.getpid(), number)
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interruptible(work))


WORK = {
    "a disk that hangs": "threading.Timer(0.5, kill).start(); time.sleep(60)",
    "an object's destructor": "Dying()",
    "a task, among others": "await asyncio.gather(*(asyncio.create_task(signalled(n)) for n in range(3)))",
    "a thread that is waited for": "await asyncio.gather(asyncio.to_thread(time.sleep, 60), signalled(0))",
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("where", WORK)
def test_a_second_signal_ends_the_program_at_once_wherever_it_is(where: str, number: signal.Signals) -> None:
    script = f"""
import asyncio, os, signal, sys, threading, time
from generator.common.interruption import interruptible

def kill():
    os.kill(os.getpid(), {int(number)})

class Dying:
    def __del__(self):
        kill()
        time.sleep(0.1)

async def signalled(n):
    await asyncio.sleep(0.1)
    if n == 0:
        kill()
    await asyncio.sleep(60)

async def work(stop):
    kill()
    await stop.wait()
    {WORK[where]}
    await asyncio.sleep(60)

try:
    asyncio.run(interruptible(work))
except KeyboardInterrupt:
    sys.exit(130)  # as `run_command`
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr and "\ninterrupted; the same command continues\n" in ended.stderr


@pytest.mark.parametrize("fresh", ["false", "true"])
def test_a_command_interrupted_before_its_run_says_how_to_continue(
    fresh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("generator.run.Run", interrupted)
    with pytest.raises(KeyboardInterrupt) as ended:
        Site(tmp_path).run(OpenAIServer(), f"fresh={fresh}")
    without = " without fresh=true" if fresh == "true" else ""
    assert ended.value.args == (f"interrupted; the same command{without} continues\n",)
