"""Algorithm 1 of Lee et al. 2024 (section 2.4.1): a dialog whose every question and answer rests on one document."""

from collections.abc import Sequence

import dspy

from generator.dedup import Repetition
from generator.errors import Rejected
from generator.modules import Answer, AskFirst, AskNext, Draft
from generator.prompt import Documents
from generator.schema import Passage, Turn
from taxonomy import QuestionType


class SingleDocumentDialog(dspy.Module):
    """Input: the grounding document. Output: the dialog."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__()
        self.ask_first = AskFirst(repetition)
        self.ask_next = AskNext(repetition)
        self.answer = Answer()

    async def aforward(self, document: Passage, kinds: Sequence[QuestionType], focus: str) -> Draft:
        """A dialog of `len(kinds)` turns, or of those before the first that was not worth keeping."""
        passages = (document,)
        history: tuple[Turn, ...] = ()  # line 1
        try:
            for kind in kinds:  # line 2
                if not history:  # line 3
                    question = await self.ask_first.acall(Documents(passages=passages), kind, focus)
                else:
                    question = await self.ask_next.acall(Documents(passages=passages), history, kind)
                turn = await self.answer.acall(passages, history, question, kind)  # line 4
                history = (*history, turn)  # line 5
        except Rejected as end:
            return Draft(history, passages, end)
        return Draft(history, passages, None)  # lines 7 and 8
