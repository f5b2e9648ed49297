"""How much of what a response claims do the passages support? (RL_F: Katsis et al. 2025, section 6.3.2.)

The faithfulness of RAGAS (Es et al. 2024): claims first, then a finding on each; the score is the share of those
supported. The rubrics are `rl_f_claims.txt` and `rl_f_support.txt`; the words are ours.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import dspy
from pydantic import Field

from generator.dialogs.prompt import Conversation, Documents
from generator.schema import Passage, Record, Turn, Verdict
from judges.base import SCORED, ModelJudge, rubric

NO_CLAIMS = "no claims"
# More than a reply has room for, and than an answer in a conversation makes.
_MOST_CLAIMS = 16
Claim = Annotated[str, Field(max_length=300)]


class Finding(Record):
    """What the documents say to one claim."""

    reason: str = Field(max_length=200)
    supported: bool


class Claims(dspy.Signature):
    __doc__ = rubric("rl_f_claims")

    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The response to take apart")
    claims: list[Claim] = dspy.OutputField(desc="each claim as a sentence", max_length=_MOST_CLAIMS)


class Support(dspy.Signature):
    __doc__ = rubric("rl_f_support")

    documents: Documents = dspy.InputField()
    claims: str = dspy.InputField(desc="The claims")
    findings: list[Finding] = dspy.OutputField(
        desc='each {"reason": numbers of the sentences that say it, or what is missing, "supported": true or false}',
        max_length=_MOST_CLAIMS,
    )


class FaithfulnessJudge(ModelJudge):
    """Scores a response by the share of its claims that are supported, 0 to 1, with two calls.

    A response without a claim, as an I-don't-know is, has the label `no claims` and no score.

    Args:
        model: the name of the judging model, for the record.
    """

    name = "rl_f"
    best = 1

    def __init__(self, model: str) -> None:
        super().__init__(model, Claims)
        self.support = dspy.Predict(Support)

    async def asked(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        said = {"dialog": Conversation(turns=tuple(history)), "query": turn.query, "response": turn.answer}
        taken_apart = await self.ask(self.predict, turn, **said)
        claims = [" ".join(claim.split()) for claim in taken_apart.claims if claim.strip()]
        if not claims:
            return self.verdict(NO_CLAIMS, "the response claims nothing that documents could support")
        if not passages:
            return self.verdict(SCORED, f"there are no passages to support its {len(claims)} claims", 0)
        listed = "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, start=1))
        asked = {"documents": Documents(passages=tuple(passages)), "claims": listed}
        findings = (await self.ask(self.support, turn, signature=_one_each(len(claims)), **asked)).findings
        missing = [
            f"“{claim}” ({finding.reason})"
            for claim, finding in zip(claims, findings, strict=True)
            if not finding.supported
        ]
        supported = len(claims) - len(missing)
        explanation = f"{supported} of {len(claims)} claims supported"
        if missing:
            explanation += f"; not supported: {'; '.join(missing)}"
        return self.verdict(SCORED, explanation, supported / len(claims))


@lru_cache(maxsize=_MOST_CLAIMS)
def _one_each(count: int) -> Any:
    """The signature of `Support` with as many findings as there are claims."""
    exactly = Annotated[list[Finding], Field(min_length=count, max_length=count)]
    return Support.with_updated_fields("findings", type_=exactly)
