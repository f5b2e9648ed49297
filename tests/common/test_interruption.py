"""The first signal asks a program to stop where it can be continued; the second ends it at once."""

import asyncio
import os
import signal
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
@pytest.mark.parametrize("writing", [False, True])
def test_a_second_signal_ends_blocked_work_as_the_first_one_ends_writing(writing: bool, number: signal.Signals) -> None:
    """A hanging disk blocks the event loop."""

    async def work(stop: asyncio.Event) -> None:
        ends_at_once() if writing else os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interruptible(work))


@pytest.mark.parametrize("fresh", ["false", "true"])
def test_a_command_interrupted_before_its_run_says_how_to_continue(
    fresh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("generator.run.Run", interrupted)
    ended = Site(tmp_path).run(OpenAIServer(), f"fresh={fresh}")
    assert ended.code == 130
    without = " without fresh=true" if fresh == "true" else ""
    assert ended.err == f"interrupted; the same command{without} continues\n"
