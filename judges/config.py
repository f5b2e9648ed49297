"""The settings of `python -m judges`, and those of them that decide what its verdicts are."""

import re
from pathlib import Path
from typing import Annotated, Any, cast

from omegaconf import DictConfig
from pydantic import Field

from generator.config.judges import judge_settings
from generator.config.parts import part, plain, validated
from generator.config.settings import deciding, dotted, model_files
from generator.dialogs.judging import JudgeSettings, NoJudge
from generator.errors import ConfigError
from generator.models.client import Endpoint
from generator.schema import LocalPath, Operational, Record


class JudgingSettings(Record):
    """All settings of `python -m judges`, as in `conf/judges.yaml`."""

    input: LocalPath = Field(
        description="What to judge: a run folder, a file of dialogs, or a file of mtRAG's conversations, tasks, "
        "predictions or evaluations."
    )
    format: str | None = Field(description="Corpus whose format the input has, such as mtrag; null: detected.")
    predictions: bool = Field(
        description="Of mtRAG's tasks, judge the predictions of models if there are any; false: the target answers."
    )
    run_dir: Annotated[LocalPath | None, Operational] = Field(
        description="Folder for the verdicts; null: outputs/<input>-<judge>-<model>."
    )
    fresh: Annotated[bool, Operational] = Field(description="Empty run_dir first, instead of continuing the run in it.")
    lm: Endpoint
    judge: JudgeSettings

    @property
    def endpoints(self) -> dict[str, Endpoint]:
        """The judging models by the names of their settings; none for a judge that asks none."""
        if not self.judge.asks_model:
            return {}
        if self.judge.panel:
            return {f"judge.panel.{name}": endpoint for name, endpoint in self.judge.panel.items()}
        return {"judge.lm": self.judge.lm} if self.judge.lm else {"lm": self.lm}

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
        ConfigError: as `generator.config.settings.load`; or there is no judge, its models have no effect, or its panel
            has a model twice.
    """
    data = plain(cfg)
    data |= {"lm": part("lm", data.get("lm")), "judge": judge_settings(data.get("judge"))}
    settings = cast(JudgingSettings, validated(JudgingSettings, "", data))
    judge = settings.judge
    if isinstance(judge, NoJudge):
        raise ConfigError("judge=none: judges nothing; `python -m judges --help` lists the judges")
    if (judge.panel or judge.lm) and not judge.asks_model:
        setting = "judge.panel" if judge.panel else "judge.lm"
        raise ConfigError(f"{setting}: judge={judge.name} asks no model; leave it out")
    models = [endpoint.model for endpoint in judge.panel.values()]
    if twice := [model for model in models if models.count(model) > 1]:
        raise ConfigError(f"judge.panel: has the model {twice[0]} twice; give different models")
    return settings


def judging_identity(settings: JudgingSettings, data: dict[str, Any], fingerprint: str, prompts: str) -> dict[str, Any]:
    """Return what decides the verdicts, by dotted name; see `generator.config.settings.identity`.

    Args:
        fingerprint: of the input's dialogs, which stands for the input.
        prompts: the version of all prompts.

    Raises:
        ConfigError: a model's file can't be read.
    """
    nodes = data["judge"].get("panel") or {"lm": data["judge"].get("lm") or data["lm"]}
    models = {name: deciding("lm", nodes[name.rpartition(".")[2]]) for name in settings.endpoints}
    judge = {f"judge.{name}": value for name, value in data["judge"].items() if name not in ("filter", "lm", "panel")}
    decided = {name: value for name, value in dotted(judge | models) if not name.endswith("_target_")}
    contents = {"the input's dialogs": fingerprint[:16], "the prompts' version": prompts}
    return decided | contents | model_files(settings.endpoints)
