"""What judges that ask a model have in common: one call a turn, and no verdict rather than a wrong one if it fails."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, ClassVar

import dspy

from generator.dialogs.calls import call
from generator.dialogs.prompt import Conversation, Documents
from generator.errors import Rejected
from generator.schema import Passage, Turn, Verdict

UNJUDGED = "unjudged"
SCORED = "scored"
# Of judges that rate from 1 to 10.
BEST = 10


def rubric(name: str) -> str:
    """The text `judges/<name>.txt` on one line: what a model is told to judge by."""
    return files("judges.llm").joinpath(f"{name}.txt").read_text(encoding="utf-8").replace("\n", " ").strip()


class ModelJudge(dspy.Module):
    """A judge with one signature, whose inputs are any of `documents`, `dialog`, `query`, `response`, `reference`.

    Args:
        model: the name of the judging model, for the record; the model itself comes with the call.
        signature: what it is asked.

    Attributes:
        name: of the judge, for its verdicts.
        decides: whether its label says if a pair is fit to be kept, as in `Verdict`.
        asks_model: whether there has to be one.
        best: the highest score that it gives, None if it gives none; divided by this, scores of all judges compare.
    """

    name: ClassVar[str]
    decides: ClassVar[bool] = False
    asks_model: ClassVar[bool] = True
    best: ClassVar[float | None] = None

    def __init__(self, model: str, signature: Any) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.model = model

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Judge one turn; see `generator.schema.Judge`.

        Raises:
            ModelError, RunError: as `generator.dialogs.calls.call`.
        """
        if (known := self.known(passages, turn)) is not None:
            return known
        try:
            return await self.asked(passages, history, turn)
        except Rejected as failure:
            return self.verdict(UNJUDGED, f"{failure.reason}: {failure.text}".strip(": "))

    async def asked(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """The verdict of the model, which is asked with those inputs that the signature has.

        Raises:
            Rejected, ModelError, RunError: as `generator.dialogs.calls.call`.
        """
        seen = _inputs(passages, history, turn)
        wanted = {name: value for name, value in seen.items() if name in self.predict.signature.input_fields}
        return self.found(await self.ask(self.predict, turn, **wanted))

    async def ask(self, predict: dspy.Predict, turn: Turn, **inputs: object) -> dspy.Prediction:
        """One call for a turn.

        Raises:
            Rejected, ModelError, RunError: as `generator.dialogs.calls.call`.
        """
        return await call(predict, "judge", "sampled", turn.turn, **inputs)

    def known(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        """The verdict where there is nothing to ask a model; None: ask."""
        return None

    def found(self, prediction: dspy.Prediction) -> Verdict:
        """The verdict that a usable reply means."""
        raise NotImplementedError

    def verdict(self, label: str, explanation: str, score: float | None = None) -> Verdict:
        """A verdict in this judge's name."""
        return Verdict(
            judge=self.name,
            label=label,
            explanation=explanation,
            model=self.model,
            score=score,
            decides=self.decides,
        )


def _inputs(passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> dict[str, object]:
    """All that a judge may see of a turn: what its user sees, the passages, and the reference answers."""
    return {
        "documents": Documents(passages=tuple(passages)),
        "dialog": Conversation(turns=tuple(history)),
        "query": turn.query,
        "response": turn.answer,
        "reference": "\n".join(turn.other_answers),
    }
