"""Score the share of a response's claims that the passages support (RL_F: Katsis et al. 2025, section 6.3.2).

The faithfulness of RAGAS (Es et al. 2024): first the claims, then a finding on each. The rubrics are `rl_f_claims.txt`
and `rl_f_support.txt`, in our words.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any

import dspy
from pydantic import BeforeValidator, Field

from generator.prompts.calls import call
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import cut_to
from generator.schema import Passage, Record, Turn, Verdict
from judges.base import SCORED, ModelJudge, ModelJudgeSettings, rubric

NO_CLAIMS = "no claims"
# An answer in a conversation makes fewer claims, and a reply has no room for more.
_MOST_CLAIMS = 16
Claim = Annotated[str, Field(max_length=300)]


def _as_text(numbers: Any) -> Any:
    """Return sentence numbers, such as `[3, 4]`, as the text that was asked for."""
    each = numbers if isinstance(numbers, list) else [numbers]
    return ", ".join(map(str, each)) if all(isinstance(one, int | str) for one in each) else numbers


class Finding(Record, extra="ignore"):
    """The documents' support of one claim, and the reason."""

    reason: Annotated[str, cut_to(200), BeforeValidator(_as_text)] = Field(max_length=200)
    supported: bool


class Claims(dspy.Signature):
    __doc__ = rubric(__file__, "rl_f_claims")

    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    response: str = dspy.InputField(desc="The response to take apart")
    claims: list[Claim] = dspy.OutputField(desc="each claim as a sentence", max_length=_MOST_CLAIMS)


class Support(dspy.Signature):
    __doc__ = rubric(__file__, "rl_f_support")

    documents: Documents = dspy.InputField()
    claims: str = dspy.InputField(desc="The claims")
    findings: list[Finding] = dspy.OutputField(
        desc='each {"reason": numbers of the sentences that say it, or what is missing, "supported": true or false}',
        max_length=_MOST_CLAIMS,
    )


class FaithfulnessJudge(ModelJudge):
    """Scores a response by the share of its claims that are supported, 0 to 1, with two calls.

    A response without a claim, such as an "I don't know", has the label `no claims` and no score.
    """

    name = "rl_f"
    signature = Claims
    best = 1

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.support = dspy.Predict(Support)

    async def judge_with_model(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        dialog = Conversation(turns=tuple(history))
        inputs = {"dialog": dialog, "query": turn.query, "response": turn.answer}
        reply = await call(self.predict, "judge", "sampled", turn.turn, **inputs)
        claims = [" ".join(claim.split()) for claim in reply.claims if claim.strip()]
        if not claims:
            return self.verdict(NO_CLAIMS, "the response claims nothing that documents could support")
        if not passages:
            return self.verdict(SCORED, f"there are no passages to support its {len(claims)} claims", 0)
        listed = "\n".join(f"{number}. {claim}" for number, claim in enumerate(claims, start=1))
        shown = {"documents": Documents(passages=tuple(passages)), "claims": listed}
        signature = _support_of(self.support.signature, len(claims))
        found = await call(self.support, "judge", "sampled", turn.turn, signature=signature, **shown)
        pairs = zip(claims, found.findings, strict=True)
        missing = [f"“{claim}” ({finding.reason})" for claim, finding in pairs if not finding.supported]
        supported = len(claims) - len(missing)
        explanation = f"{supported} of {len(claims)} claims supported"
        if missing:
            explanation += f"; not supported: {'; '.join(missing)}"
        return self.verdict(SCORED, explanation, supported / len(claims))


class FaithfulnessSettings(ModelJudgeSettings):
    judge = FaithfulnessJudge


@lru_cache(maxsize=_MOST_CLAIMS)
def _support_of(signature: Any, count: int) -> Any:
    """Return the signature with exactly `count` findings."""
    exactly = Annotated[list[Finding], Field(min_length=count, max_length=count)]
    return signature.with_updated_fields("findings", type_=exactly)
