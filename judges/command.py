"""The command of `python -m judges`: its configuration, checked and run."""

from collections.abc import Mapping
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from generator import command
from generator.config.parts import plain
from judges.config import load_judging
from judges.run import run

# Groups and settings whose value stands in a run folder's name anyway.
_NAMED = {"judge", "input", "lm", "lm.model", "run_dir"}


def run_command(conf: Path, arguments: list[str]) -> int:
    """Run what the arguments ask for; see `generator.command.run_command`."""
    return command.run_command(conf, arguments, "judges", _judge, "python -m judges")


def _judge(cfg: DictConfig, varied: Mapping[str, str]) -> int:
    settings = load_judging(cfg)
    if settings.run_dir is None and (swept := command.swept_settings(varied, _NAMED)):
        cfg.run_dir = f"{settings.folder}-{swept}"
        settings = load_judging(cfg)
    return run(settings, plain(cfg), OmegaConf.to_yaml(cfg, resolve=True))
