"""Judge if the contexts of a turn hold what its reference says, which people check in Kuo et al. 2025 (appendix A.4).

The rubric is `sufficiency.txt`.
"""

from collections.abc import Sequence

import dspy

from generator.prompts.sections import Conversation, Documents
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge, ModelJudgeSettings, rubric


class Sufficient(dspy.Signature):
    __doc__ = rubric(__file__)

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The reference")
    explanation: str = dspy.OutputField(
        desc="each part of the reference with the numbers of the sentences that tell it, or what is missing",
        max_length=600,
    )
    suffices: bool = dspy.OutputField(desc="true if the documents suffice")


class SufficiencyJudge(ModelJudge):
    """Labels the reference of a turn `correct` if the passages that this turn's search found hold it, else `incorrect`.

    A turn without a reference has nothing to look for.
    """

    name = "sufficiency"
    signature = Sufficient
    decides = True

    def judge_without_model(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        if turn.answer:
            return None
        return self.given("it has no reference")

    async def judge_with_model(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        own = {hit.passage_id for hit in turn.hits}
        return await super().judge_with_model([p for p in passages if p.id in own or not own], history, turn)

    def to_verdict(self, prediction: dspy.Prediction) -> Verdict:
        return self.verdict("correct" if prediction.suffices else "incorrect", prediction.explanation)


class SufficiencySettings(ModelJudgeSettings):
    judge = SufficiencyJudge
