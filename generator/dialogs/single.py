"""Algorithm 1 of Lee et al. 2024 (section 2.4.1): a dialog whose every question and answer rests on one document."""

from collections.abc import Sequence

from generator.dialogs.dedup import Repetition
from generator.dialogs.steps import Answer, Conversing, Draft, Passed, moved_on
from generator.errors import Rejected
from generator.schema import Passage, Turn
from taxonomy import QuestionType


class SingleDocumentDialog(Conversing):
    """Input: the grounding document. Output: the dialog."""

    def __init__(self, repetition: Repetition, planned: bool = False) -> None:
        super().__init__(repetition, planned)
        self.answer = Answer()

    async def aforward(self, document: Passage, kinds: Sequence[QuestionType], focus: str) -> Draft:
        """A dialog of `len(kinds)` turns, without those that weren't worth keeping."""
        passages = (document,)
        history: tuple[Turn, ...] = ()  # line 1
        passed: Passed = ()
        try:
            for kind in kinds:  # line 2
                try:
                    if history and kind.is_conversational:
                        turn = await self.chat.acall(history, kind)
                    else:
                        question = await self.question(passages, history, kind, "" if history else focus)  # line 3
                        turn = await self.answer.acall(passages, history, question, kind)  # line 4
                    history = (*history, turn)  # line 5
                except Rejected as refused:
                    passed = moved_on(passed, history, refused)
        except Rejected as end:
            return Draft(history, passages, passed, end)
        return Draft(history, passages, passed, None)  # lines 7 and 8
