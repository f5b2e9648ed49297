"""Judge how much of a question the passages answer (Katsis et al. 2025, section 3.1).

The rubric is `answerability.txt`. The answer is not shown: a good one would give the label away, a bad one mislead.
"""

from collections.abc import Sequence
from typing import Literal

import dspy

from generator.prompts.sections import Conversation, Documents
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge, ModelJudgeSettings, rubric


class Answerable(dspy.Signature):
    __doc__ = rubric(__file__)

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    explanation: str = dspy.OutputField(
        desc="each thing that the User wants to know, with the numbers of the sentences that tell it, if any",
        max_length=600,
    )
    label: Literal["answerable", "partial", "unanswerable"] = dspy.OutputField(
        desc="how much of it the documents tell: all, a part, or nothing"
    )


class AnswerabilityJudge(ModelJudge):
    """Labels a question `answerable`, `partial` or `unanswerable` by the passages at hand.

    Three labels need no model: `conversational` and `underspecified` turns stay what they are, since the passages don't
    tell what is meant, and without passages a question is `unanswerable`.
    """

    name = "answerability"
    signature = Answerable

    def judge_without_model(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        if turn.answerability == "conversational":
            return self.verdict("conversational", "the User asks for nothing")
        if turn.answerability == "underspecified":
            return self.verdict("underspecified", "the question has several readings")
        return None if passages else self.verdict("unanswerable", "there are no passages")


class AnswerabilitySettings(ModelJudgeSettings):
    judge = AnswerabilityJudge
