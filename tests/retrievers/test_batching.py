"""Single items become batches; results and errors reach the caller they belong to."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from generator.retrievers.batching import Batcher


def test_items_that_arrive_during_a_batch_form_the_next() -> None:
    batches: list[list[int]] = []
    submitted = threading.Event()

    def answer(questions: Sequence[int]) -> list[int]:
        batches.append(list(questions))
        assert submitted.wait(30)
        return [question * 10 for question in questions]

    async def main() -> list[int]:
        batcher = Batcher(answer, max_size=4)
        first = asyncio.create_task(batcher.submit(0))
        while not batches:
            await asyncio.sleep(0)
        others = asyncio.gather(*map(batcher.submit, range(1, 8)))
        await asyncio.sleep(0)  # in which each submits
        submitted.set()
        return [*await others, await first]

    assert asyncio.run(main()) == [10, 20, 30, 40, 50, 60, 70, 0]
    assert batches == [[0], [1, 2, 3, 4], [5, 6, 7]]


def test_an_error_reaches_the_callers_it_belongs_to() -> None:
    def answer(questions: Sequence[str]) -> list[str | Exception]:
        if "all" in questions:
            raise OSError("the server is gone")
        return [ValueError(question) if question == "one" else question for question in questions]

    async def main() -> None:
        batcher = Batcher(answer, max_size=10)
        one, other = await asyncio.gather(batcher.submit("one"), batcher.submit("other"), return_exceptions=True)
        assert isinstance(one, ValueError)
        assert other == "other"
        everyone = await asyncio.gather(batcher.submit("all"), batcher.submit("other"), return_exceptions=True)
        assert all(isinstance(answer, OSError) for answer in everyone)
        assert await batcher.submit("afterwards") == "afterwards"

    asyncio.run(main())


def test_a_cancelled_item_is_left_out() -> None:
    asked: list[int] = []
    cancelled = threading.Event()

    def answer(questions: Sequence[int]) -> Sequence[int]:
        asked.extend(questions)
        assert cancelled.wait(30)
        return questions

    async def main() -> None:
        batcher = Batcher(answer, max_size=1)
        first, second, third = (asyncio.create_task(batcher.submit(number)) for number in range(3))
        while not asked:
            await asyncio.sleep(0)
        first.cancel()  # while it is being answered
        second.cancel()  # before
        cancelled.set()
        assert await third == 2
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(main())
    assert asked == [0, 2]


def test_an_item_that_arrives_as_the_worker_ends_is_processed() -> None:
    async def main() -> list[int]:
        batcher = Batcher(lambda questions: questions, max_size=4)

        async def again(number: int) -> int:
            return await batcher.submit(await batcher.submit(number))

        return await asyncio.wait_for(asyncio.gather(*map(again, range(3))), timeout=20)

    assert asyncio.run(main()) == [0, 1, 2]
