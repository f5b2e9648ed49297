"""Rate a response in its dialog, without a reference answer (RL_MTB: Katsis et al. 2025, section 8 and appendix F.2).

The MT-Bench judge for any number of turns: it rates the last one, given the passages. The rubric is `mt_bench.txt`, in
our words. The paper finds that it favours text written by models, and agrees little with human annotators.
"""

import dspy

from generator.prompts.sections import Conversation, Documents
from judges.base import BEST, ModelJudge, ModelJudgeSettings, Points, rubric


class InItsDialog(dspy.Signature):
    __doc__ = rubric(__file__)

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The response to judge")
    explanation: str = dspy.OutputField(desc="what speaks for and against the response", max_length=600)
    score: Points = dspy.OutputField(desc="the rating", ge=1, le=BEST, strict=True)


class MtBenchJudge(ModelJudge):
    """Scores a response from 1 to 10."""

    name = "mt_bench"
    signature = InItsDialog
    best = BEST


class MtBenchSettings(ModelJudgeSettings):
    judge = MtBenchJudge
