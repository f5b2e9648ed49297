"""The publisher's forms of judgments and answers of RAD-Bench."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from generator.corpora.rad_bench import QUESTION_ID
from generator.corpora.rad_bench import AnswerLine as PublishedAnswer
from judges.base import BEST
from judges.benchmarks.base import AnswerLine
from judges.benchmarks.judgments import JudgmentLine
from judges.benchmarks.scores import Rated
from judges.llm.task import read_rating
from taxonomy.scenarios import QUESTIONS

# The score that the publisher stores, and averages, where a judgment has no rating.
FAILED = -1


def _check_score(value: float) -> float:
    if value != FAILED and not 1 <= value <= BEST:
        raise ValueError(f"must be 1 to {BEST}, or {FAILED} for none")
    return value


def _check_id(value: str) -> str:
    if not QUESTION_ID.fullmatch(value):
        raise ValueError("must name aspect and scenario, such as RS_news_00")
    return value


class Judgment(JudgmentLine):
    """A line of judgments: `{"question_id": "RS_news_00", "turn": 1, "score": 7, "model": "gpt-4o", "judgment": "…"}`.

    A score of -1 says that the judge's text has no rating.
    """

    form: ClassVar[str] = "question_id, turn, model and score"

    question_id: Annotated[str, AfterValidator(_check_id)]
    turn: int = Field(ge=1, le=QUESTIONS)
    score: Annotated[float, AfterValidator(_check_score)]
    judgment: str | None = None
    context: Literal["own"] = "own"

    def rated(self) -> Rated:
        named = QUESTION_ID.fullmatch(self.question_id)
        assert named is not None
        score, reason = (None, "no rating") if self.score == FAILED else (self.score, "")
        return Rated(task=named[2], item=self.question_id, turn=self.turn, score=score, reason=reason)

    @property
    def misread(self) -> bool:
        return self.judgment is not None and (read_rating(self.judgment) or FAILED) != self.score


class Answers(PublishedAnswer, AnswerLine):
    """A line of answers: `{"question_id": "RS_news_00", "choices": [{"turns": ["…", "…", "…"]}]}`."""

    def answers(self) -> tuple[str, dict[int, str]]:
        return self.question_id, dict(enumerate(self.choices[0].turns, start=1))
