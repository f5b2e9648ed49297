"""Rate a response beside a reference answer, from 1 to 10 (RB_llm: Katsis et al. 2025, section 6.3.1, appendix F.1).

The rubric is `rb_llm.txt`, in our words. The paper takes the median of four models: `judge.panel`.
"""

from collections.abc import Sequence

import dspy

from generator.prompts.sections import Conversation, Documents
from generator.schema import Passage, Turn, Verdict
from judges.base import BEST, UNJUDGED, ModelJudge, ModelJudgeSettings, Points, rubric


class BesideReference(dspy.Signature):
    __doc__ = rubric(__file__)

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    reference: str = dspy.InputField(desc="The reference answer")
    response: str = dspy.InputField(desc="The response to judge")
    explanation: str = dspy.OutputField(
        desc="the comparison with the reference, then what speaks for and against the response as faithful, "
        "appropriate and complete",
        max_length=900,
    )
    score: Points = dspy.OutputField(desc="the rating", ge=1, le=BEST, strict=True)


class ReferenceJudge(ModelJudge):
    """Scores a response from 1 to 10; without a reference answer (`Turn.other_answers`), the turn is `unjudged`."""

    name = "rb_llm"
    signature = BesideReference
    best = BEST

    def judge_without_model(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        return None if turn.other_answers else self.verdict(UNJUDGED, "no reference answer")


class ReferenceSettings(ModelJudgeSettings):
    judge = ReferenceJudge
