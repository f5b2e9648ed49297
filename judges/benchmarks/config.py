"""All settings of `python -m judges.evaluate` with its parts: the benchmark, the model under test, who rates."""

from pathlib import Path

from omegaconf import DictConfig
from pydantic import Field

from generator.config.parts import build_choice, plain, validate
from generator.errors import ConfigError
from generator.models.endpoints import Endpoint
from generator.schema import Context, Record
from generator.sets import stem
from judges.benchmarks.base import Benchmark, RatedBenchmark
from judges.benchmarks.settings import EvaluationSettings
from judges.panel import check_panel, judging_models


class Judges(Record):
    """The models that rate: one, or a panel whose median counts."""

    lm: Endpoint | None = Field(description="Model that rates; null: the model under test rates itself.")
    panel: dict[str, Endpoint] = Field(description="Several models that rate; the median of their scores counts.")


class Evaluation(EvaluationSettings):
    """All settings of `python -m judges.evaluate`, as in `conf/evaluate.yaml`, and its parts."""

    benchmark: Benchmark
    lm: Endpoint
    judge: Judges

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The rating models by the names of their settings; none where metrics score."""
        rated = isinstance(self.benchmark, RatedBenchmark)
        return judging_models(self.judge.lm, self.judge.panel, self.lm) if rated else {}

    @property
    def contexts(self) -> tuple[Context, ...]:
        """The earlier answers that the model under test is shown, one kind after the other."""
        if self.context is None:
            return self.benchmark.contexts[:1]
        return ("golden", "own") if self.context == "both" else (self.context,)

    @property
    def folder(self) -> Path:
        if self.run_dir is not None:
            return self.run_dir
        source = self.judgments[0] if self.judgments else self.input
        assert source is not None
        name = self.model.rstrip("/").removesuffix("/model")  # a student's folder of its whole model
        model = "judgments" if self.judgments else Path(name).name
        return Path("outputs") / f"{self.benchmark.name}-{stem(source)}-{model}"

    @property
    def model(self) -> str:
        """The model under test: `lm`, or whose answers are given."""
        return stem(self.answers) if self.answers else self.lm.model


def load_evaluation(cfg: DictConfig) -> Evaluation:
    """Return the settings of a composed configuration.

    Raises:
        ConfigError: as `generator.config.settings.load`; or there is neither `input` nor `judgments`, or both; or the
            panel has a model twice.
    """
    data = plain(cfg)
    data |= {group: build_choice(group, data.get(group)) for group in ("benchmark", "lm")}
    judge = data["judge"]
    panel = {name: build_choice("lm", node) for name, node in (judge.get("panel") or {}).items()}
    data["judge"] = {"lm": judge.get("lm") and build_choice("lm", judge["lm"]), "panel": panel}
    settings = validate(Evaluation, data)
    if bool(settings.input) == bool(settings.judgments):
        raise ConfigError("input: give input=PATH to evaluate a model, or judgments=PATH to aggregate what exists")
    if settings.answers and not settings.input:
        raise ConfigError("answers: give input=PATH with the questions, too")
    if lacking := set(settings.contexts) - set(settings.benchmark.contexts):
        raise ConfigError(
            f"context={lacking.pop()}: benchmark={settings.benchmark.name} has no answers that a model could have "
            "given; leave it out"
        )
    if not isinstance(settings.benchmark, RatedBenchmark):
        if given := next((name for name in ("answers", "judgments") if getattr(settings, name)), None):
            raise ConfigError(
                f"{given}: benchmark={settings.benchmark.name} scores the answers of lm by metrics; leave it out "
                "(answers that exist: python -m judges judge=token_f1 input=FILE; it compares refusals by their words, "
                "not by the publisher's marks)"
            )
        if judge.get("lm") or panel:
            raise ConfigError(f"judge.lm: benchmark={settings.benchmark.name} asks no judge; leave it out")
    if settings.answers and len(settings.contexts) > 1:
        raise ConfigError("context=both: the answers were given in one of the two; set context=golden or context=own")
    check_panel(settings.judge.lm, settings.judge.panel)
    return settings
