"""Reply to a request that can't be answered: decline, correct it, or say that it isn't known, as its kind tells."""

from collections.abc import Sequence

import dspy

from generator.dialogs.checks.answers import find_voice_fault
from generator.dialogs.checks.requests import find_reply_fault
from generator.dialogs.steps import Asked, call_until_sound
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import REJECTED, AboutQuestion, quote_unknown
from generator.schema import Passage, Turn
from taxonomy import QuestionType


class UnansweredReply(AboutQuestion):
    """Write the Agent's reply to a request that can't be answered as it stands. First note under “reasoning” what is \
wrong with it or missing. Then reply as told below, in one to three plain sentences; whatever you tell of the matter \
is in the documents. Speak as one who knows this by heart: no word about documents."""

    rejected: str = dspy.InputField(desc=REJECTED)
    manner: str = dspy.InputField(desc="How to reply")
    reasoning: str = dspy.OutputField(desc="why it can't be answered as it stands", max_length=400)
    answer: str = dspy.OutputField(desc="what the Agent says", max_length=600)
    evidence: list[int] = dspy.OutputField(desc="numbers of the sentences that the reply rests on", max_length=6)


class Unanswered(dspy.Module):
    """The agent's reply to a request of a kind that has a `reply` of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(UnansweredReply)

    async def aforward(
        self,
        passages: Sequence[Passage],
        history: Sequence[Turn],
        asked: Asked,
        question_type: QuestionType,
    ) -> Turn:
        """Return the finished turn, unanswerable until it is measured.

        Raises:
            Rejected: three replies in a row fail the checks of the kind.
        """
        assert question_type.reply
        manner = question_type.reply
        documents, number = Documents(passages=tuple(passages)), len(history) + 1

        def find(answer: str) -> str | None:
            return find_reply_fault(answer, passages, manner.checks) or find_voice_fault(answer, passages)

        _, prediction = await call_until_sound(
            self.predict,
            "answer",
            number,
            find,
            documents=documents,
            dialog=Conversation(turns=tuple(history)),
            question=asked.query,
            manner="\n".join(f"- {quote_unknown(step)}" for step in manner.steps),
        )
        return asked.make_turn(
            question_type,
            number,
            answerability="unanswerable",
            reasoning=prediction.reasoning,
            answer=prediction.answer.strip(),
            evidence=documents.evidence(prediction.evidence),
        )
