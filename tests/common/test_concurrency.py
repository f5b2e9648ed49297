"""Many pieces of work at once: where one fails, the others end with it, and ask for nothing more that is paid for."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import pytest

from generator.common.concurrency import together
from generator.dialogs.adapter import SharedPrefixAdapter
from generator.dialogs.generate import DialogGenerator, Judging
from generator.errors import ModelError
from generator.schema import Passage, Turn, Verdict
from judges.run import Member, judge_dialog
from tests.judges.test_judging import dialog

NOBODY = cast(Any, None)


class Falling:
    """A judge whose model is gone at some turns, once the other verdicts are under way; those never come.

    Args:
        under_way: verdicts that are, of this judge and others.
        others: how many are to be.
        gone: the turns.
    """

    name = "falling"
    decides, asks_model, best, signatures = False, True, None, ()

    def __init__(self, under_way: list[int], others: int, *gone: int) -> None:
        self.under_way, self.others, self.gone = under_way, others, gone

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        if turn.turn in self.gone:
            while len(self.under_way) < self.others:
                await asyncio.sleep(0)
            raise ModelError("gone")
        self.under_way.append(turn.turn)
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.under_way.remove(turn.turn)


def fails(work: Coroutine[Any, Any, object], under_way: list[int]) -> None:
    """The work fails as the piece does that failed, and then nothing is under way any more."""

    async def failing() -> None:
        with pytest.raises(ModelError, match=r"^gone$"):
            await work
        assert under_way == []

    asyncio.run(asyncio.wait_for(failing(), 30))


def test_results_come_in_the_order_of_the_work() -> None:
    async def piece(number: int) -> int:
        for _ in range(5 - number):
            await asyncio.sleep(0)
        return number

    assert asyncio.run(together(map(piece, range(5)))) == [0, 1, 2, 3, 4]
    assert asyncio.run(together([])) == []


def test_what_is_cancelled_cancels_its_pieces() -> None:
    under_way: list[int] = []

    async def cancelled() -> None:
        work = asyncio.create_task(together([Falling(under_way, 0).judge((), (), dialog("a").turns[0])]))
        while not under_way:
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert under_way == []

    asyncio.run(asyncio.wait_for(cancelled(), 30))


def test_a_dialog_whose_model_is_gone_asks_for_no_more_verdicts() -> None:
    under_way: list[int] = []
    maker = DialogGenerator(
        corpus="c",
        program=NOBODY,
        planner=NOBODY,
        clients=NOBODY,
        adapter=NOBODY,
        judging=Judging((Falling(under_way, 1, 1),), None, SharedPrefixAdapter()),
        keep="pairs",
        min_turns=1,
        prompt_version="p",
    )
    fails(maker.verdicts(dialog("a"), NOBODY, NOBODY), under_way)


@pytest.mark.parametrize("panel", [[(1,)], [(), (1, 2)]], ids=["one judge", "a panel"])
def test_nor_does_one_that_is_only_judged(panel: list[tuple[int, ...]]) -> None:
    under_way: list[int] = []
    others = sum(2 - len(gone) for gone in panel)
    members = [Member(Falling(under_way, others, *gone), None, SharedPrefixAdapter()) for gone in panel]
    fails(judge_dialog(dialog("a"), members, NOBODY), under_way)
