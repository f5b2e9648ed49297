"""The settings of `python -m judges`, and those of them that decide what its verdicts are."""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from pydantic_core import to_jsonable_python

from generator.config.parts import build_choice, identify, plain, validate
from generator.config.settings import hash_files, hash_models
from generator.dialogs.filter import parse_filter
from generator.dialogs.judging import JudgeSettings, NoJudge
from generator.errors import ConfigError
from generator.models.endpoints import Endpoint
from generator.sets import stem
from judges.panel import check_panel, judging_models
from judges.settings import JudgingRunSettings


class JudgingSettings(JudgingRunSettings):
    """All settings of `python -m judges`, as in `conf/judges.yaml`, and its parts."""

    lm: Endpoint
    judge: JudgeSettings

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The judging models by the names of their settings; none for a judge that asks none."""
        return judging_models(self.judge.lm, self.judge.panel, self.lm) if self.judge.asks_model else {}

    @property
    def folder(self) -> Path:
        if self.run_dir is not None:
            return self.run_dir
        models = [Path(endpoint.model).name for endpoint in self.endpoints.values()]
        return Path("outputs") / "-".join([stem(self.input), self.judge.name, *filter(None, ["+".join(models)])])


def load_judging(cfg: DictConfig) -> JudgingSettings:
    """Return the settings of a composed configuration.

    Raises:
        ConfigError: as `generator.config.settings.load`; or there is no judge, its models have no effect, or its panel
            has a model twice.
    """
    data = plain(cfg)
    data |= {group: build_choice(group, data.get(group)) for group in ("lm", "judge")}
    settings = validate(JudgingSettings, data)
    judge = settings.judge
    if isinstance(judge, NoJudge):
        raise ConfigError("judge=none: judges nothing; `python -m judges --help` lists the judges")
    if (judge.panel or judge.lm) and not judge.asks_model:
        setting = "judge.panel" if judge.panel else "judge.lm"
        raise ConfigError(f"{setting}: judge={judge.name} asks no model; leave it out")
    if parse_filter(judge.filter)[1]:
        raise ConfigError("judge.filter: removes no pair here; give its conditions to `python -m generator`")
    check_panel(judge.lm, judge.panel)
    return settings


def judging_identity(settings: JudgingSettings, fingerprint: str, prompts: str) -> dict[str, Any]:
    """Return what decides the verdicts, by name; see `generator.config.settings.identity`."""
    judge = settings.judge.model_copy(update={"lm": None, "panel": {}, "filter": "pairs"})
    decided = [pair for name, part in {"judge": judge, **settings.endpoints}.items() for pair in identify(name, part)]
    contents = {"input (content)": fingerprint[:16], "prompt_version": prompts}
    if judge_program := settings.dspy_program:
        contents["dspy_program (content)"] = hash_files("dspy_program", [judge_program])
    return to_jsonable_python(dict(decided)) | contents | hash_models(settings.endpoints)
