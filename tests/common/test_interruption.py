"""Asked to stop, a program stops where it can be continued; asked again, or where it only writes, it ends at once."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from generator.common.interruption import ends_at_once, interruptible

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
    assert capsys.readouterr().err == "stopping: what is finished is being written; Ctrl-C again ends at once\n"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_one_ends_work_that_waits_for_nothing(number: signal.Signals) -> None:
    """As a disk that hangs: the loop doesn't come to hear of either."""

    async def work(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interruptible(work))


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_one_ends_what_is_to_end_at_once(number: signal.Signals) -> None:
    async def work(stop: asyncio.Event) -> None:
        ends_at_once()
        os.kill(os.getpid(), number)
        time.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interruptible(work))


def test_afterwards_a_signal_is_what_ctrl_c_is() -> None:
    """In a sweep the next run is made ready, which SIGTERM ends as it ends the first one's."""

    async def work(stop: asyncio.Event) -> None:
        pass

    asyncio.run(interruptible(work))
    assert {signal.getsignal(number) for number in SIGNALS} == {signal.default_int_handler}
