"""The two kinds of judges: those that ask a model (`ModelJudge`), and those that compute (`ComputingJudge`)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import dspy
from pydantic import WithJsonSchema

from generator.dialogs.judging import JudgeSettings
from generator.errors import ConfigError, Rejected
from generator.prompts.calls import call
from generator.prompts.sections import Conversation, Documents
from generator.schema import Judge, Passage, Turn, Verdict

UNJUDGED = "unjudged"
SCORED = "scored"
# The highest score of judges that rate from 1 to 10.
BEST = 10
# Asked for as a whole number, which every server's schema can bound; a judge that rates by halves is understood.
Points = Annotated[float, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": BEST})]


def rubric(module: str, name: str = "") -> str:
    """Return the rubric beside a judge's module as one line: what a model is told to judge by.

    Args:
        module: `__file__` of the judge's module.
        name: of the text file without its suffix; the module's name if not given.
    """
    file = Path(module).with_name(f"{name or Path(module).stem}.txt")
    return file.read_text(encoding="utf-8").replace("\n", " ").strip()


class NamedJudge:
    """A judge with a name, under which it gives verdicts; `best` is the highest of its scores, None without any."""

    name: str
    model = ""
    decides: ClassVar[bool] = False
    asks_model: ClassVar[bool] = False
    best: ClassVar[float | None] = None

    def verdict(self, label: str, explanation: str, score: float | None = None) -> Verdict:
        """Return a verdict in this judge's name."""
        return Verdict(
            judge=self.name, label=label, explanation=explanation, model=self.model, score=score, decides=self.decides
        )

    def given(self, why: str) -> Verdict:
        """Return the verdict on a turn that isn't to be judged, which decides nothing."""
        return Verdict(judge=self.name, label="given", explanation=why, model="", decides=False)


class ModelJudge(NamedJudge, dspy.Module):
    """A judge that asks a model, once a turn: no verdict rather than a wrong one if the call fails.

    A subclass sets `name` and `signature`, whose inputs are any of `documents`, `dialog`, `query`, `response` and
    `reference`, and whose outputs are an `explanation` and a `label`, or a `score` where `best` is set.

    Args:
        model: name of the judging model, for the verdicts; the model itself comes with the call.
    """

    signature: ClassVar[Any]
    asks_model = True

    def __init__(self, model: str) -> None:
        super().__init__()
        self.predict = dspy.Predict(self.signature)
        self.model = model

    @property
    def signatures(self) -> list[Any]:
        """The signatures of all predictors."""
        return [predictor.signature for predictor in self.predictors()]

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Judge one turn; see `generator.schema.Judge`."""
        if (verdict := self.judge_without_model(passages, turn)) is not None:
            return verdict
        if "response" in self.signature.input_fields and not turn.answer.strip():
            return self.verdict(UNJUDGED, "empty response")  # a prompt shows none, and a model rates something else
        try:
            return await self.judge_with_model(passages, history, turn)
        except Rejected as failure:
            return self.unjudged(failure)

    def judge_without_model(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        """Return the verdict where none has to be asked for, else None."""
        return None

    async def judge_with_model(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Ask the model with the inputs that the signature has."""
        inputs = {
            "documents": Documents(passages=tuple(passages)),
            "dialog": Conversation(turns=tuple(history)),
            "query": turn.query,
            "response": turn.answer,
            "reference": _list_references(turn.other_answers),
        }
        if unknown := self.signature.input_fields.keys() - inputs.keys():
            there = ", ".join(inputs)
            raise ConfigError(f"judge={self.name}: no input is called {', '.join(sorted(unknown))}; there are {there}")
        wanted = {name: value for name, value in inputs.items() if name in self.signature.input_fields}
        return self.to_verdict(await call(self.predict, "judge", "sampled", turn.turn, **wanted))

    def to_verdict(self, prediction: dspy.Prediction) -> Verdict:
        """Turn a usable reply into a verdict."""
        if self.best is None:
            return self.verdict(prediction.label, prediction.explanation)
        return self.verdict(SCORED, prediction.explanation, prediction.score)

    def unjudged(self, failure: Rejected) -> Verdict:
        """Return the verdict where no reply could be used."""
        return self.verdict(UNJUDGED, f"{failure.reason}: {failure.text}".strip(": "))


def _list_references(answers: Sequence[str]) -> str:
    """Return the reference answer; of several, which may contradict each other, that each is good by itself."""
    listed = (f"{number}. {answer}" for number, answer in enumerate(answers, start=1))
    return "\n".join(["Several people's, each good by itself:", *listed] if len(answers) > 1 else answers)


class ModelJudgeSettings(JudgeSettings):
    """Settings of a judge that asks a model; a subclass sets `judge`, the class to build."""

    judge: ClassVar[type[ModelJudge]]

    def build(self, model: str) -> Judge:
        return self.judge(model)


class ComputingJudge(NamedJudge, ABC):
    """A judge that asks no model, and gives a score of at most 1."""

    best: ClassVar[float | None] = 1
    signatures: ClassVar[Sequence[Any]] = ()

    @abstractmethod
    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        """Judge one turn; see `generator.schema.Judge`."""


class ComputingJudgeSettings(JudgeSettings):
    """Settings of a judge that asks no model; a subclass sets `judge`, the class to build, or builds it itself."""

    asks_model = False
    judge: ClassVar[type[ComputingJudge]]

    def build(self, model: str) -> Judge:
        return self.judge()
