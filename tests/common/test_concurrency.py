"""Concurrent work: results keep their order, and when one piece fails the others are cancelled."""

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
from tests.execution.test_store import dialog

UNUSED = cast(Any, None)
(TURN,) = dialog().turns
TWO_TURNS = dialog().model_copy(update={"turns": (TURN, TURN.model_copy(update={"turn": 2}))})


class FailingJudge:
    """A judge whose model is gone at some turns, once the other verdicts are in progress; those never arrive.

    Args:
        running: the verdicts in progress, of this judge and others.
        others: the number of verdicts to wait for.
        gone: the turns that fail.
    """

    name = "failing"
    decides, asks_model, best, signatures = False, True, None, ()

    def __init__(self, running: list[int], others: int, *gone: int) -> None:
        self.running, self.others, self.gone = running, others, gone

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        if turn.turn in self.gone:
            while len(self.running) < self.others:
                await asyncio.sleep(0)
            raise ModelError("gone")
        self.running.append(turn.turn)
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.running.remove(turn.turn)


def fails(work: Coroutine[Any, Any, object], running: list[int]) -> None:
    """Check that the work raises the error of the piece that failed, and leaves nothing running."""

    async def failing() -> None:
        with pytest.raises(ModelError, match=r"^gone$"):
            await work
        assert running == []

    asyncio.run(asyncio.wait_for(failing(), 30))


def test_results_come_in_the_order_of_the_work() -> None:
    async def piece(number: int) -> int:
        for _ in range(5 - number):
            await asyncio.sleep(0)
        return number

    assert asyncio.run(together(map(piece, range(5)))) == [0, 1, 2, 3, 4]
    assert asyncio.run(together([])) == []


def test_a_dialog_whose_model_is_gone_asks_for_no_more_verdicts() -> None:
    running: list[int] = []
    maker = DialogGenerator(
        corpus="c",
        program=UNUSED,
        planner=UNUSED,
        clients=UNUSED,
        adapter=UNUSED,
        judging=Judging((FailingJudge(running, 1, 1),), None, SharedPrefixAdapter()),
        keep="pairs",
        min_turns=1,
        prompt_version="p",
    )
    fails(maker.judge(TWO_TURNS, UNUSED, UNUSED), running)


def test_a_panel_whose_model_is_gone_asks_for_no_more_verdicts() -> None:
    running: list[int] = []
    members = [Member(FailingJudge(running, 2, *gone), None, SharedPrefixAdapter()) for gone in ((), (1, 2))]
    fails(judge_dialog(TWO_TURNS, members, UNUSED), running)
