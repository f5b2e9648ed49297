"""Judge if a response says "I don't know" (IDK; Katsis et al. 2025, section 6.3.3 and appendix F.3).

The rubric is `idk.txt`, in our words. Metrics are conditioned on this label: none of them recognises an honest refusal.
"""

from collections.abc import Sequence
from typing import Literal

import dspy

from generator.prompts.sections import Conversation
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge, ModelJudgeSettings, rubric


class SaysUnknown(dspy.Signature):
    __doc__ = rubric(__file__)

    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The response to judge")
    explanation: str = dspy.OutputField(
        desc="what the User wants to know, what of it the response tells, and the words, if any, that say what isn't "
        "known",
        max_length=400,
    )
    label: Literal["yes", "partial", "no"] = dspy.OutputField(desc="does it say that something isn't known?")


class IdkJudge(ModelJudge):
    """Labels a response `yes`, `partial` or `no`, without seeing the passages.

    A `conversational` turn asks for nothing, so no answer can be missing: `no`, without a call.
    """

    name = "idk"
    signature = SaysUnknown

    def judge_without_model(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        if turn.answerability == "conversational":
            return self.verdict("no", "the User asks for nothing, so no answer is missing")
        return None


class IdkSettings(ModelJudgeSettings):
    judge = IdkJudge
