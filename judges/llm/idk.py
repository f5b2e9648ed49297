"""Does a response say that it doesn't know? (Katsis et al. 2025, section 6.3.3 and appendix F.3; the words are ours.)

The rubric is `idk.txt`. Metrics are conditioned on this label, since none of them knows an honest refusal.
"""

from collections.abc import Sequence
from typing import Literal

import dspy

from generator.dialogs.prompt import Conversation
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge, rubric


class SaysUnknown(dspy.Signature):
    __doc__ = rubric("idk")

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
    """Labels a response `yes`, `partial` or `no`; it sees no passages.

    Where the user asked for nothing (`conversational`), nothing can be missing: `no`, without a call.

    Args:
        model: the name of the judging model, for the record.
    """

    name = "idk"

    def __init__(self, model: str) -> None:
        super().__init__(model, SaysUnknown)

    def known(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        if turn.answerability == "conversational":
            return self.verdict("no", "the User asks for nothing, so no answer is missing")
        return None

    def found(self, prediction: dspy.Prediction) -> Verdict:
        return self.verdict(prediction.label, prediction.explanation)
