"""Judge if the documents support a response, by words and by how sure a model is (P(True), Kadavath et al. 2022).

A small model says Yes to nearly everything, but how probable Yes is orders responses well, where words don't tell:
`judge=grounding` sees a new number, P(True) a sentence of old words that is wrong. Their log odds are added
(`docs/judges.md`). The question is `p_true.txt`; one token is read of the reply.
"""

from collections.abc import Sequence
from math import exp, log

import dspy

from generator.common.refusals import drop_refusals
from generator.common.scripts import words
from generator.prompts.calls import call
from generator.prompts.sections import Documents
from generator.schema import Passage, Turn, Verdict
from judges.base import UNJUDGED, ModelJudge, ModelJudgeSettings, rubric
from judges.metrics.grounding import NO_CLAIM, GroundingJudge

# Words of a response, such as “Yes, it does.”, that say nothing without their question.
SHORT = 3
# Probabilities are held off 0 and 1, whose log odds are infinite.
_LEAST = 0.001
# The scores below and from which a response is incorrect and correct; between them it is unjudged.
INCORRECT, CORRECT = 0.3, 0.7


class Supported(dspy.Signature):
    __doc__ = rubric(__file__)

    documents: Documents = dspy.InputField()
    statement: str = dspy.InputField(desc="Statement")
    p_yes: float = dspy.OutputField()


class PTrueJudge(ModelJudge):
    """Labels a response `correct` if its documents support it, `incorrect`, or `unjudged` between two scores.

    The score, 0 to 1, is the probability by `judge=grounding` and the model together; where words tell nothing, as in
    languages without spaces, by the model alone.
    """

    name = "p_true"
    signature = Supported
    decides = True
    best = 1

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.grounding = GroundingJudge()

    async def judge_with_model(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        by_words = await self.grounding.judge(passages, history, turn)
        if by_words.explanation == NO_CLAIM:
            return self.verdict(by_words.label, NO_CLAIM, by_words.score)
        claim = drop_refusals(turn.answer)
        statement = claim if len(words(claim)) > SHORT else f"{turn.query} {turn.answer}"
        documents = Documents(passages=tuple(passages))
        reply = await call(self.predict, "judge", "sampled", turn.turn, documents=documents, statement=statement)
        odds = _log_odds(reply.p_yes)
        if by_words.score is not None:
            odds += _log_odds(by_words.score)
        score = 1 / (1 + exp(-odds))
        label = "correct" if score >= CORRECT else "incorrect" if score < INCORRECT else UNJUDGED
        lead = "model and words aren't sure" if label == UNJUDGED else "model and words together"
        why = f"{lead}: Yes is {reply.p_yes:.3f} probable; {by_words.explanation}"
        return self.verdict(label, why, round(score, 3))


def _log_odds(probability: float) -> float:
    probability = min(max(probability, _LEAST), 1 - _LEAST)
    return log(probability / (1 - probability))


class PTrueSettings(ModelJudgeSettings):
    judge = PTrueJudge

    @property
    def companions(self) -> tuple[str, ...]:
        return ("grounding",)
