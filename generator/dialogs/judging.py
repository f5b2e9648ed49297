"""Settings of a judge. Each judge module has a subclass of `JudgeSettings`, which `_target_` in `conf/judge/` names."""

from abc import ABC, abstractmethod
from typing import Annotated, ClassVar

from pydantic import Field

from generator.dialogs.filter import Filter
from generator.models.endpoints import Endpoint
from generator.schema import Judge, Operational, Record


class JudgeSettings(Record, ABC):
    """The base of every judge's settings. A file in `conf/judge/` holds those that have an effect for its judge."""

    asks_model: ClassVar[bool] = True  # the judge sends prompts to a model

    name: str = Field(description="Name of the judge, in its verdicts and in the name of the run folder.")
    filter: Annotated[Filter, Operational] = Field(
        default="pairs",
        description="What an incorrect answer removes from the dataset: `pairs` its context-response pair (as in the "
        "paper), `prefix` also the pairs after it, `dialog` the whole dialog; `verified` the whole dialog, for an "
        "answer that the judge failed on, too. Conditions may follow, or stand alone, on columns of a pair and scores "
        "or labels of judges: `judge.filter='pairs and overlap<0.6 and difficulty!=easy'` (docs/dataset.md).",
    )
    lm: Endpoint | None = Field(
        default=None,
        description="Model that judges, such as `judge.lm=openai judge.lm.model=…`; null: the model of `lm`.",
    )
    panel: dict[str, Endpoint] = Field(
        default_factory=dict,
        description="Several models that judge in place of `judge.lm`, each under a name of your choice: "
        "`judge.panel.a=openai judge.panel.a.model=…`. The median of their scores is one more verdict. "
        "Of `python -m judges` alone.",
    )

    @property
    def companions(self) -> tuple[str, ...]:
        """The names of judges that ask no model and decide beside it when dialogs are generated."""
        return ()

    @abstractmethod
    def build(self, model: str) -> Judge | None:
        """Return the judge, None if there is to be none; `model` is the judging model's name, for the verdicts."""


class NoJudge(JudgeSettings):
    """Settings of `judge=none`: every pair is kept."""

    asks_model: ClassVar[bool] = False

    def build(self, model: str) -> None:
        return None
