"""Settings of `python -m judges`, and which of them decide what its verdicts are."""

import re
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig

from generator.config.judges import JudgeSettings, judge_settings
from generator.config.parts import part, plain, validated
from generator.config.settings import deciding, dotted, model_files
from generator.errors import ConfigError
from generator.models.client import Endpoint
from generator.schema import LocalPath, Record


class JudgingSettings(Record):
    """All settings of `python -m judges`, as in `conf/judges.yaml`, and its parts."""

    input: LocalPath
    format: str | None
    predictions: bool
    run_dir: LocalPath | None
    fresh: bool
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
    """The settings of a composed configuration.

    Raises:
        ConfigError: as `generator.config.settings.load`; or there is no judge, or its panel has a model twice.
    """
    data = plain(cfg)
    settings = validated(
        JudgingSettings, "", data | {"lm": part("lm", data.get("lm")), "judge": judge_settings(data.get("judge"))}
    )
    judge = cast(JudgeSettings, settings.judge)
    if judge.target is None:
        raise ConfigError(f"judge={judge.name}: judges nothing; `python -m judges --help` lists the judges")
    if judge.panel and not judge.asks_model:
        raise ConfigError(f"judge.panel: {judge.name} asks no model; leave it out")
    models = [endpoint.model for endpoint in judge.panel.values()]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(f"judge.panel: has the model {twice[0]} twice; one voice each")
    return cast(JudgingSettings, settings)


def judging_identity(settings: JudgingSettings, data: dict[str, Any], fingerprint: str, prompts: str) -> dict[str, Any]:
    """What decides the verdicts, by dotted name: `generator.config.settings.identity`. The input stands for itself by the
    fingerprint of its dialogs.

    Raises:
        ConfigError: a model's file can't be read.
    """
    judge = {name: value for name, value in data["judge"].items() if name not in ("filter", "lm", "panel")}
    asked = data["judge"].get("panel") or {"lm": data["judge"].get("lm") or data["lm"]}
    models = {name: deciding("lm", asked[name]) for name in settings.endpoints}
    kept = {"judge": {**judge, "panel": models}} if settings.judge.panel else {"judge": judge, **models}
    told = {"the input's dialogs": fingerprint[:16], "the prompts' version": prompts}
    where = "judge.panel." if settings.judge.panel else ""
    files = model_files({f"{where}{name}": endpoint for name, endpoint in settings.endpoints.items()})
    return dict(dotted(kept)) | told | files
