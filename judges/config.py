"""Settings of `python -m judges`, and which of them decide what its verdicts are."""

import re
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig
from pydantic_core import to_jsonable_python

from generator.config.judges import judge_settings
from generator.config.parts import build_choice, identify, plain, validate
from generator.config.settings import hash_models
from generator.dialogs.judging import JudgeSettings
from generator.errors import ConfigError
from generator.models.client import Endpoint
from judges.settings import JudgingRunSettings


class JudgingSettings(JudgingRunSettings):
    """All settings of `python -m judges`, as in `conf/judges.yaml`, and its parts."""

    lm: Endpoint
    judge: JudgeSettings

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The models that are asked, by a name for each; none for a judge that asks none."""
        if not self.judge.asks_model:
            return {}
        return self.judge.panel or {"lm": self.judge.lm or self.lm}

    @property
    def folder(self) -> Path:
        """The run folder."""
        if self.run_dir is not None:
            return self.run_dir
        name = re.sub(r"(\.jsonl?)?(\.gz)?$", "", self.input.absolute().name)
        models = [endpoint.model.rstrip("/").rpartition("/")[2] for endpoint in self.endpoints.values()]
        return Path("outputs") / "-".join([name, self.judge.name, *filter(None, ["+".join(models)])])


def load_judging(cfg: DictConfig) -> JudgingSettings:
    """Return the settings of a composed configuration.

    Raises:
        ConfigError: a setting is missing or wrong, there is no judge, or its panel has a model twice.
    """
    data = plain(cfg)
    parts = {"lm": build_choice("lm", data.get("lm")), "judge": judge_settings(data.get("judge"))}
    settings = cast(JudgingSettings, validate(JudgingSettings, "", data | parts))
    judge = settings.judge
    if judge.build("") is None:
        raise ConfigError(f"judge={judge.name}: judges nothing; `python -m judges --help` lists the judges")
    if judge.panel and not judge.asks_model:
        raise ConfigError(f"judge.panel: {judge.name} asks no model; leave it out")
    models = [endpoint.model for endpoint in judge.panel.values()]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(f"judge.panel: has the model {twice[0]} twice; give each model once")
    return settings


def judging_identity(settings: JudgingSettings, fingerprint: str, prompts: str) -> dict[str, Any]:
    """Return what decides the verdicts, by name; the input counts by the fingerprint of its dialogs.

    Raises:
        ConfigError: a model's file can't be read.
    """
    prefix = "judge.panel." if settings.judge.panel else ""
    endpoints = {f"{prefix}{name}": endpoint for name, endpoint in settings.endpoints.items()}
    judge = settings.judge.model_copy(update={"lm": None, "panel": {}, "filter": "pairs"})
    decides = {
        name: value for part, record in {"judge": judge, **endpoints}.items() for name, value in identify(part, record)
    }
    contents = {"input (content)": fingerprint[:16], "prompt_version": prompts}
    return to_jsonable_python(decides) | contents | hash_models(endpoints)
