"""The forms of judgments and answers of MT-Bench-101 that exist. None were published, so they are ours."""

from typing import ClassVar

from pydantic import Field

from generator.schema import Context
from judges.benchmarks.base import AnswerLine
from judges.benchmarks.judgments import JudgmentLine
from judges.benchmarks.scores import Rated


class Judgment(JudgmentLine):
    """A line of judgments: `{"task": "CM", "id": 1, "turn": 2, "score": 8}`; a score of null failed."""

    form: ClassVar[str] = "task, id, turn and score"

    task: str
    id: int | str
    score: float | None = Field(ge=1, le=10)
    model: str = "model"
    context: Context = "golden"

    def rated(self) -> Rated:
        reason = "" if self.score is not None else "not judged"
        return Rated(task=self.task, item=str(self.id), turn=self.turn, score=self.score, reason=reason)


class Answer(AnswerLine):
    """A line of answers: `{"id": 1, "turn": 2, "answer": "…"}`."""

    id: int | str
    turn: int = Field(ge=1)
    answer: str

    def answers(self) -> tuple[str, dict[int, str]]:
        return str(self.id), {self.turn: self.answer}
