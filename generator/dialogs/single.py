"""Algorithm 1 of Lee et al. 2024 (section 2.4.1): a dialog whose every question and answer rests on one document."""

from collections.abc import Sequence

from generator.dialogs.dedup import Repetition
from generator.dialogs.program import DialogProgram
from generator.dialogs.steps import Answer
from generator.schema import Judge, Passage, Split, Turn
from taxonomy import QuestionType


class SingleDocumentDialog(DialogProgram):
    """Input: the grounding document. Output: the dialog. Lines 1, 2 and 5 are `DialogProgram`'s."""

    algorithm = "single"

    def __init__(
        self,
        repetition: Repetition,
        planned: bool = False,
        replies: bool = False,
        candidates: int = 1,
        judges: Sequence[Judge] = (),
    ) -> None:
        super().__init__(repetition, planned, candidates, replies)
        self.answer = Answer(repetition, candidates, judges)

    async def turn(
        self,
        source: Passage | str,
        passages: tuple[Passage, ...],
        history: tuple[Turn, ...],
        question_type: QuestionType,
        focus: str,
        split: Split,
    ) -> tuple[Turn, tuple[Passage, ...]]:
        """Return the next turn, and the document; see `DialogProgram.turn`."""
        assert isinstance(source, Passage)  # `algorithm.first_questions` is a setting of Algorithm 2
        question = await self.ask((source,), history, question_type, focus)  # line 3
        answer = self.unanswered if question_type.reply else self.answer
        return await answer.acall((source,), history, question, question_type), (source,)  # line 4
