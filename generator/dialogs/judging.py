"""How a judge is configured: the base of the records that `_target_` names in `conf/judge/<name>.yaml`."""

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import Field

from generator.dialogs.filter import Filter
from generator.models.client import Endpoint
from generator.schema import Judge, Record


class JudgeSettings(Record, ABC):
    """The base of every judge's settings. A file in `conf/judge/` holds those that have an effect for its judge.

    Attributes:
        asks_model: whether the judge asks a model at all.
    """

    asks_model: ClassVar[bool] = True

    name: str = Field(description="The judge's name in verdicts.")
    filter: Filter = Field(
        default="pairs",
        description="What an incorrect answer removes: pairs (the pair alone, as in the paper), prefix (and the pairs "
        "after it) or dialog (all of its dialog).",
    )
    lm: Endpoint | None = Field(
        default=None,
        description="The judge's own model, as judge.lm=openai judge.lm.model=…; null: the one that writes the dialogs.",
    )
    panel: dict[str, Endpoint] = Field(
        default_factory=dict,
        description="Several models whose median score counts, by names: judge.panel.a=openai judge.panel.b=vllm …; "
        "of `python -m judges` alone.",
    )

    @abstractmethod
    def build(self, model: str) -> Judge | None:
        """Return the judge, asking `model`; None if nothing is to be judged."""


class NoJudge(JudgeSettings):
    """The choice `none`: every pair is kept."""

    asks_model: ClassVar[bool] = False

    def build(self, model: str) -> Judge | None:
        return None
