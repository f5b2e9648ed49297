"""Algorithm 1 of Lee et al. 2024 (section 2.4.1): a dialog whose every question and answer rests on one document."""

from dataclasses import replace

from generator.dialogs.dedup import Repetition
from generator.dialogs.live import tell
from generator.dialogs.program import USUAL, DialogProgram, Options, TurnTask
from generator.dialogs.steps import Answer, Asked, answering
from generator.schema import Passage, Turn


class SingleDocumentDialog(DialogProgram):
    """Input: the grounding document. Output: the dialog. Lines 1, 2 and 5 are `DialogProgram`'s."""

    algorithm = "single"

    def __init__(self, repetition: Repetition, options: Options = USUAL) -> None:
        super().__init__(repetition, options)
        self.answer = Answer(options.candidates, options.judges, options.reasoning)

    async def turn(self, task: TurnTask) -> tuple[Turn, tuple[Passage, ...]]:
        """Return the next turn, and the document; see `DialogProgram.turn`."""
        assert isinstance(task.plan.source, Passage)  # `algorithm.first_questions` is a setting of Algorithm 2
        question_type, passages = task.question_type, (task.plan.source,)
        question = await self.ask(replace(task, passages=passages))  # line 3
        typed = task.asker.type_out(question, task.number)
        tell("question", task.number, typed, question_type.name)
        answer = self.unanswered if question_type.reply else self.answer
        with answering(typed):
            turn = await answer.acall(passages, task.history, Asked(typed, question), question_type)  # line 4
        return turn, passages
