"""Concurrent work: results keep their order, waiting ones are bounded, and a failure cancels the others."""

import asyncio

import pytest

from generator.common.concurrency import LOOKAHEAD, in_order, run_async, together
from generator.errors import ConfigError, ModelError


def test_results_come_in_the_order_of_the_work() -> None:
    async def piece(number: int) -> int:
        for _ in range(5 - number):
            await asyncio.sleep(0)
        return number

    async def main() -> list[int]:
        return [result async for _, result in in_order(piece, range(5), 3, asyncio.Event())]

    assert asyncio.run(together(map(piece, range(5)))) == [0, 1, 2, 3, 4]
    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


def test_a_failure_cancels_the_other_pieces() -> None:
    running: list[int] = []

    async def endless(number: int) -> None:
        running.append(number)
        try:
            await asyncio.Event().wait()
        finally:
            running.remove(number)

    async def failing() -> None:
        while len(running) < 3:
            await asyncio.sleep(0)
        raise ModelError("gone")

    with pytest.raises(ModelError, match=r"^gone$"):
        asyncio.run(asyncio.wait_for(together([*map(endless, range(3)), failing()]), 30))
    assert running == []


def test_results_that_wait_for_an_earlier_one_are_bounded() -> None:
    """While one dialog hangs, the run goes on with others, but not without end: they would fill the memory."""
    started: list[int] = []

    async def piece(number: int) -> int:
        started.append(number)
        if number == 0:
            await asyncio.sleep(0.1)  # the others take no time
        return number

    async def main() -> None:
        async for number, _ in in_order(piece, range(100), 3, asyncio.Event()):
            if number == 0:
                assert 3 < len(started) <= 3 * LOOKAHEAD
            if number == 50:
                return

    asyncio.run(main())


def test_in_a_notebook_where_a_loop_runs_already_an_error_says_what_to_write() -> None:
    async def cell() -> None:
        run_async(asyncio.sleep(0))

    run_async(asyncio.sleep(0))
    with pytest.raises(ConfigError, match="notebook"):
        asyncio.run(cell())
