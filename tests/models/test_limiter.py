"""The limit of calls in flight follows what the server can do."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from generator.models.limiter import Limiter
from tests.support.clients import asked, request
from tests.support.openai_server import Body, Fault, OpenAIServer, status


def test_a_complaint_halves_the_limit_once_a_round() -> None:
    async def main() -> None:
        limiter = Limiter(100)
        gate = asyncio.Event()

        async def refused() -> None:
            async with limiter.slot() as number:
                await gate.wait()
                limiter.shrink(number)

        calls = [asyncio.create_task(refused()) for _ in range(80)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)
        assert limiter.limit == 40  # half of what was in flight
        assert limiter.round == 1
        async with limiter.slot() as number:
            limiter.shrink(number)
        assert limiter.limit == 1  # half of one call is no call

    asyncio.run(main())


def test_the_limit_grows_back_while_it_is_reached() -> None:
    async def main() -> None:
        limiter = Limiter(10)
        async with limiter.slot() as number:
            limiter.shrink(number)
        assert limiter.limit == 1

        async def served() -> None:
            async with limiter.slot():
                await asyncio.sleep(0)
                limiter.grow()

        await asyncio.gather(*(served() for _ in range(9)))
        assert 1 < limiter.limit < 2
        await asyncio.gather(*(served() for _ in range(200)))
        assert limiter.limit == 10
        limiter = Limiter(1000)
        for _ in range(50):  # one at a time: the limit is never reached
            await served()
        assert limiter.limit == 256

    asyncio.run(main())


@pytest.mark.parametrize("handed_out", [False, True])
def test_who_gives_up_waiting_takes_no_slot_along(handed_out: bool) -> None:
    async def main() -> None:
        limiter = Limiter(1)

        async def enter() -> None:
            async with limiter.slot():
                await asyncio.sleep(0)

        async with limiter.slot():
            waiting = asyncio.create_task(enter())
            await asyncio.sleep(0)
            if not handed_out:
                waiting.cancel()
        waiting.cancel()  # its turn has come, and it hasn't run since
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(30):
            await enter()

    asyncio.run(main())


def test_calls_of_older_dialogs_go_first() -> None:
    async def main() -> list[str]:
        limiter, order = Limiter(1), list[str]()

        async def made(name: str, age: int) -> None:
            async with limiter.slot(age):
                order.append(name)
                await asyncio.sleep(0)

        calls = (("first", 3), ("young", 9), ("old", 1), ("young, later", 9), ("older", 0))
        await asyncio.gather(*(made(*call) for call in calls))
        return order

    assert asyncio.run(main()) == ["first", "older", "old", "young", "young, later"]


def test_a_busy_server_gets_fewer_calls_at_a_time() -> None:
    def faults(number: int, body: Body) -> Fault | None:
        return status(429) if server.in_flight > 20 else None

    async def work(client: Any) -> None:
        def calls(name: str, count: int) -> list[Coroutine[Any, Any, Any]]:
            return [client.chat(request(f"{name} {number}")) for number in range(count)]

        await asyncio.gather(*calls("first", 400))
        refused = len(server.bodies) - 400
        await asyncio.gather(*calls("second", 400))
        # The first round brings many refusals; once the limit is found, few.
        assert len(server.bodies) - 800 - refused < min(refused, 200)
        assert sum(server.finished.values()) == 800

    with OpenAIServer(faults=faults, delay_s=0.01) as server:
        asked(server.endpoint(concurrency=200, retries=30), work)


def test_1024_calls_are_in_flight() -> None:
    async def work(client: Any) -> None:
        await asyncio.gather(*(client.chat(request(f"Question {i}")) for i in range(1100)))

    with OpenAIServer(hold=lambda _: server.peak < 1024) as server:
        asked(server.endpoint(concurrency=1024), work)
        assert server.peak == 1024
        assert len(server.bodies) == 1100
