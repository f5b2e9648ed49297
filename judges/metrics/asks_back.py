"""Judge whether a response asks the user back, by rules: the right response to an underspecified question.

After the clarification judge of Rosenthal et al. 2026 (section 3.1, figure 6), which asks a model; the rules are
`generator.dialogs.checks.asks_back`, and how far they agree with people is in `docs/judges.md`.
"""

from collections.abc import Sequence

from generator.dialogs.checks.asks_back import find_request
from generator.schema import Passage, Turn, Verdict
from judges.base import ComputingJudge, ComputingJudgeSettings


class AsksBackJudge(ComputingJudge):
    """Labels a response `yes` or `no`; the explanation is the sentence that asks."""

    name = "asks_back"
    best = None

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Look for a question back in one response; see `generator.schema.Judge`."""
        request = find_request(turn.answer)
        return self.verdict("yes" if request else "no", request)


class AsksBackSettings(ComputingJudgeSettings):
    judge = AsksBackJudge
