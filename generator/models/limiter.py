"""How many calls may be in flight: more while the server keeps up, half as many when it says that it doesn't.

Additive increase and multiplicative decrease (Chiu and Jain 1989), as TCP does it: quick doubling until the server
first complains, then a tenth of a call more for every call that went well.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_START = 256
# Until the first complaint, calls that wait this long for a slot have the limit doubled. A complaint takes no longer.
_DOUBLING_S = 0.25
_GROWTH = 0.1
_DECREASE = 0.5


class Slot:
    """The leave to make one call; tell it how the call went."""

    def __init__(self, limiter: "Limiter") -> None:
        self._limiter, self._round = limiter, limiter.round

    def served(self) -> None:
        """The server answered."""
        self._limiter.grow()

    def refused(self) -> None:
        """The server had too much to do. Calls that were begun before the limit was last lowered say nothing new."""
        if self._round == self._limiter.round:
            self._limiter.shrink()


class Limiter:
    """Hands out slots, first come, first served.

    Attributes:
        limit: slots that may be out at a time, 1 to the ceiling.
        round: how often the limit was lowered.
    """

    def __init__(self, ceiling: int) -> None:
        self.limit = float(min(ceiling, _START))
        self.round = 0
        self._ceiling = ceiling
        self._out = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._doubling: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """One slot, as long as the block lasts; waits until there is one."""
        await self._enter()
        try:
            yield Slot(self)
        finally:
            self._out -= 1
            self._admit()

    def grow(self) -> None:
        """After a call that went well; a limit that isn't reached says nothing about the server."""
        if self._waiting or self._out >= int(self.limit):
            self.limit = min(self._ceiling, self.limit + (_GROWTH if self.round else 1))
            self._admit()

    def shrink(self) -> None:
        """After a complaint."""
        self.limit = max(1.0, min(self.limit, self._out) * _DECREASE)
        self.round += 1

    async def _enter(self) -> None:
        if self._out < int(self.limit) and not self._waiting:
            self._out += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._double_later()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it had just been handed out
                self._out -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._out < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._out += 1
                turn.set_result(None)

    def _double_later(self) -> None:
        if self._doubling is None and not self.round and self.limit < self._ceiling:
            self._doubling = asyncio.get_running_loop().call_later(_DOUBLING_S, self._double)

    def _double(self) -> None:
        self._doubling = None
        if self._waiting and not self.round:
            self.limit = min(self._ceiling, self.limit * 2)
            self._admit()
            self._double_later()
