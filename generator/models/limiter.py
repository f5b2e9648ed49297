"""Adapt the number of calls in flight to the server: more while it keeps up, half as many when it is overloaded.

Additive increase and multiplicative decrease (Chiu and Jain 1989), as in TCP: the limit doubles until the first
refusal, then grows by a tenth of a call for every served call.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count

_START = 256
# Until the first refusal, the limit doubles when calls have waited this long for a slot; a refusal comes sooner.
_DOUBLING_S = 0.25
_GROWTH = 0.1
_DECREASE = 0.5


class Limiter:
    """The permissions for calls: those of older dialogs first, and of equally old ones first come, first served.

    Attributes:
        limit: the slots that may be in use at a time, 1 to the ceiling.
        round: the number of times that the limit was lowered.
    """

    def __init__(self, ceiling: int) -> None:
        self.limit = float(min(ceiling, _START))
        self.round = 0
        self._ceiling = ceiling
        self._in_use = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._doubling: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def slot(self, age: int = 0) -> AsyncIterator[int]:
        """Wait for a slot, hold it as long as the block lasts, and yield the round in which its call begins.

        Args:
            age: of the call's dialog; the lower, the older.
        """
        await self._enter(age)
        try:
            yield self.round
        finally:
            self._in_use -= 1
            self._admit()

    def grow(self) -> None:
        """Raise the limit after a served call, if it is reached: otherwise the server's capacity is unknown."""
        if self._waiting or self._in_use >= int(self.limit):
            self.limit = min(self._ceiling, self.limit + (_GROWTH if self.round else 1))
            self._admit()

    def shrink(self, begun: int) -> None:
        """Halve the limit after an overload, unless the call began before the limit was last lowered."""
        if begun < self.round:
            return
        self.limit = max(1.0, min(self.limit, self._in_use) * _DECREASE)
        self.round += 1

    async def _enter(self, age: int) -> None:
        if self._in_use < int(self.limit) and not self._waiting:
            self._in_use += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (age, next(self._numbers), turn))
        self._double_later()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot had just been granted
                self._in_use -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._in_use < int(self.limit):
            *_, turn = heappop(self._waiting)
            if not turn.done():
                self._in_use += 1
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
