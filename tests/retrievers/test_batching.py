"""Questions that are asked one by one are answered together."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from generator.retrievers.batching import Batched


def test_what_comes_while_another_is_answered_goes_together() -> None:
    batches: list[list[int]] = []

    def answer(questions: Sequence[int]) -> list[int]:
        batches.append(list(questions))
        time.sleep(0.05)
        return [question * 10 for question in questions]

    async def main() -> list[int]:
        batched = Batched(answer, largest=4)
        first = asyncio.create_task(batched.ask(0))
        await asyncio.sleep(0.01)
        return [*await asyncio.gather(*map(batched.ask, range(1, 8))), await first]

    assert asyncio.run(main()) == [10, 20, 30, 40, 50, 60, 70, 0]
    assert batches == [[0], [1, 2, 3, 4], [5, 6, 7]]


def test_errors_reach_those_who_asked() -> None:
    def answer(questions: Sequence[str]) -> list[str | Exception]:
        if "all" in questions:
            raise OSError("the server is gone")
        return [ValueError(question) if question == "one" else question for question in questions]

    async def main() -> None:
        batched = Batched(answer, largest=10)
        one, other = await asyncio.gather(batched.ask("one"), batched.ask("other"), return_exceptions=True)
        assert isinstance(one, ValueError)
        assert other == "other"
        everyone = await asyncio.gather(batched.ask("all"), batched.ask("other"), return_exceptions=True)
        assert all(isinstance(answer, OSError) for answer in everyone)
        assert await batched.ask("afterwards") == "afterwards"

    asyncio.run(main())


def test_who_gave_up_is_left_out() -> None:
    asked: list[int] = []

    def answer(questions: Sequence[int]) -> Sequence[int]:
        asked.extend(questions)
        time.sleep(0.05)
        return questions

    async def main() -> None:
        batched = Batched(answer, largest=1)
        first, second, third = (asyncio.create_task(batched.ask(number)) for number in range(3))
        await asyncio.sleep(0.01)
        first.cancel()  # while it is being answered
        second.cancel()  # before
        assert await third == 2
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(main())
    assert asked == [0, 2]


def test_who_asks_again_at_once_is_answered() -> None:
    """The next question comes while the thread's task is about to end."""

    async def main() -> list[int]:
        batched = Batched(lambda questions: questions, largest=4)

        async def again(number: int) -> int:
            return await batched.ask(await batched.ask(number))

        return await asyncio.wait_for(asyncio.gather(*map(again, range(3))), timeout=20)

    assert asyncio.run(main()) == [0, 1, 2]
