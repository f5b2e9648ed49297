"""How good is a response in its dialog, without a reference? (RL_MTB: Katsis et al. 2025, section 8 and F.2.)

The MT-Bench judge for any number of turns: it rates the last one, by the passages. The rubric is `mt_bench.txt`; the
words are ours. The paper finds that it favours what models write, and hardly agrees with people.
"""

import dspy

from generator.dialogs.prompt import Conversation, Documents
from generator.schema import Verdict
from judges.base import BEST, SCORED, ModelJudge, rubric


class InItsDialog(dspy.Signature):
    __doc__ = rubric("mt_bench")

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The response to judge")
    explanation: str = dspy.OutputField(desc="what speaks for and against the response", max_length=600)
    score: int = dspy.OutputField(desc="the rating", ge=1, le=BEST, strict=True)


class MtBenchJudge(ModelJudge):
    """Scores a response from 1 to 10.

    Args:
        model: the name of the judging model, for the record.
    """

    name = "mt_bench"
    best = BEST

    def __init__(self, model: str) -> None:
        super().__init__(model, InItsDialog)

    def found(self, prediction: dspy.Prediction) -> Verdict:
        return self.verdict(SCORED, prediction.explanation, prediction.score)
