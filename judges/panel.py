"""The judges of a run, each with its model, and the median verdict of several (Katsis et al. 2025, appendix F.1)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, mode
from typing import Generic, TypeVar

from generator.dialogs.journal import Journal
from generator.errors import ConfigError
from generator.models.endpoints import Endpoint
from generator.models.lm import Clients, LanguageModel
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import use_model
from generator.schema import Judge, Verdict
from judges.base import SCORED, UNJUDGED

J = TypeVar("J", bound=Judge, covariant=True)


@dataclass(frozen=True)
class Member(Generic[J]):
    """A judge with one model, or with none."""

    judge: J
    clients: Clients | None
    adapter: SharedPrefixAdapter

    @contextmanager
    def asking(self, about: str, journal: Journal, seed: int) -> Iterator[None]:
        """Let the judge ask its model, if it has one.

        Args:
            about: what the calls are about; those about the same go to one server, which caches their prefix.
            journal: keeps the calls.
            seed: of decoding.
        """
        if self.clients is None:
            yield
            return
        with self.clients.for_dialog(about) as client, use_model(LanguageModel(client, journal, seed), self.adapter):
            yield


def judging_models(lm: Endpoint | None, panel: Mapping[str, Endpoint], tested: Endpoint) -> dict[str, Endpoint]:
    """Return the models that judge by the names of their settings: a panel, a judge's own model, or that of `lm`."""
    if panel:
        return {f"judge.panel.{name}": endpoint for name, endpoint in panel.items()}
    return {"judge.lm": lm} if lm else {"lm": tested}


def check_panel(lm: Endpoint | None, panel: Mapping[str, Endpoint]) -> None:
    """Raise ConfigError if a panel has a model twice, or a judge's own model has no effect beside it."""
    if lm and panel:
        raise ConfigError("judge.lm: a panel judges in its place; leave it out, or make it judge.panel.NAME")
    models = [endpoint.model for endpoint in panel.values()]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(f"judge.panel: has the model {twice[0]} twice; give different models")


def median_name(models: Sequence[str]) -> str:
    """Return the name that stands as the model of the median verdict."""
    return f"median of {', '.join(models)}"


def median_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict with the median of all scores; without any the most frequent label of those that judged.

    Its explanation says what each gave; if none could judge, for one and the same reason, it is that reason.
    """
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    labels = [verdict.label for verdict in verdicts if verdict.label != UNJUDGED]
    each = (f"{v.model} {v.label if v.score is None else format(v.score, 'g')}" for v in verdicts)
    reasons = {verdict.explanation for verdict in verdicts}
    return Verdict(
        judge=verdicts[0].judge,
        label=SCORED if scores else mode(labels or [UNJUDGED]),
        explanation=", ".join(each) if scores or labels or len(reasons) > 1 else reasons.pop(),
        model=median_name([verdict.model for verdict in verdicts]),
        score=median(scores) if scores else None,
        decides=False,
    )
