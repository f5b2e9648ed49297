"""Single questions answered many at a time: dialogs ask one by one, encoders and servers are fastest with many."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class Batched(Generic[Asked, Answered]):
    """Questions that come while others are being answered wait, and then go together. One alone goes at once.

    Args:
        answer: answers each of many, in their order, in a thread; an exception among the answers is raised to whoever
            asked that question, one that `answer` raises to all.
        largest: questions that go together at most.
        at_once: threads that may answer at a time.
    """

    def __init__(
        self, answer: Callable[[Sequence[Asked]], Sequence[Answered | Exception]], largest: int, at_once: int = 1
    ) -> None:
        self._answer, self._largest, self._at_once = answer, largest, at_once
        self._waiting: deque[tuple[Asked, asyncio.Future[Answered]]] = deque()
        self._answering: set[asyncio.Task[None]] = set()

    async def ask(self, question: Asked) -> Answered:
        """The answer to one question."""
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if len(self._answering) < self._at_once:
            task = asyncio.create_task(self._go())
            self._answering.add(task)
        return await future

    async def _go(self) -> None:
        await asyncio.sleep(0)  # whoever else is about to ask, does
        try:
            while self._waiting:
                await self._some()
        finally:
            # In the same step as the last look, or who asks in between waits for a task that has ended.
            self._answering.discard(cast(asyncio.Task[None], asyncio.current_task()))

    async def _some(self) -> None:
        taken = [self._waiting.popleft() for _ in range(min(self._largest, len(self._waiting)))]
        asked = [(question, future) for question, future in taken if not future.done()]  # else cancelled
        if not asked:
            return
        answers: Sequence[Answered | Exception]
        try:
            answers = await asyncio.to_thread(self._answer, [question for question, _ in asked])
        except Exception as error:
            answers = [error] * len(asked)
        for (_, future), answer in zip(asked, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
