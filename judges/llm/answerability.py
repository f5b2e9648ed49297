"""How much of a question do the passages answer? (Katsis et al. 2025, section 3.1.)

The rubric is `answerability.txt`. The answer is never shown: a good one would give away what is to be found out, and a
bad one mislead.
"""

from collections.abc import Sequence
from typing import Literal

import dspy

from generator.dialogs.prompt import Conversation, Documents
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge, rubric


class Answerable(dspy.Signature):
    __doc__ = rubric("answerability")

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

    Two labels need no model: `conversational` stays what it is, since nothing is asked; and where there are no
    passages, the question is `unanswerable`.

    Args:
        model: the name of the judging model, for the record.
    """

    name = "answerability"

    def __init__(self, model: str) -> None:
        super().__init__(model, Answerable)

    def known(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        if turn.answerability == "conversational":
            return self.verdict("conversational", "the User asks for nothing")
        return None if passages else self.verdict("unanswerable", "there are no passages")

    def found(self, prediction: dspy.Prediction) -> Verdict:
        return self.verdict(prediction.label, prediction.explanation)
