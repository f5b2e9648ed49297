"""One run of a command: what its task is called with, the name of its folder, and how it fails."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from omegaconf import DictConfig, OmegaConf

from generator.errors import ConfigError

_LONGEST_NAME = 255  # in bytes, of a file or folder


class RunFailed(Exception):
    """A run that failed and has printed the reason.

    Args:
        code: the exit code of the command.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Job:
    """One run of a command: what a task is called with beside its configuration.

    Attributes:
        command: the command line, for the data card.
        varied: in a sweep, the settings that it varies, with this run's values.
        optimised: whether a sweeper looks for the best value, so that a run without a result must not end the sweep.
        stored: the configuration of a run folder that the settings are from, unless `run_dir` was given beside it.
    """

    command: str
    varied: dict[str, str]
    optimised: bool
    stored: Path | None = None

    def name_folder(self, folder: Path, named: set[str]) -> str | None:
        """Return the run folder's name with the settings that a sweep varies, but those `named` in it; None without."""
        # Characters that a command line takes as they are, and no folders in it.
        varied = re.sub(r"[^\w.,+-]+", "_", "-".join(f"{k}-{v}" for k, v in self.varied.items() if k not in named))
        return f"{folder}-{varied}" if varied else None


class _RunSettings(Protocol):
    @property
    def run_dir(self) -> Path | None: ...

    @property
    def folder(self) -> Path: ...


S = TypeVar("S", bound=_RunSettings)


def load_named(cfg: DictConfig, job: Job, load: Callable[[DictConfig], S], named: set[str]) -> tuple[S, str]:
    """Return the settings of a composed configuration, in a sweep with a run folder of its own, and both as YAML.

    A run that is continued by this YAML neither starts over nor reads its marks again. It is continued in the folder
    that holds the YAML, whatever that is called by now, unless other settings name another run.

    Args:
        load: makes settings of the configuration.
        named: settings that are part of the run folder's name.

    Raises:
        ConfigError: the run folder can't have its name.
    """
    settings = load(cfg)
    if settings.run_dir is None and (folder := job.name_folder(settings.folder, named)):
        cfg.run_dir = folder
        settings = load(cfg)
    elif job.stored and (job.stored.parent / "run.db").exists():
        own: Any = OmegaConf.load(job.stored)
        if load(own).folder == settings.folder:
            moved: Any = OmegaConf.merge(cfg, {"run_dir": str(job.stored.resolve().parent)})
            settings = load(moved)
    for name in settings.folder.parts:
        if "{" in name or len(os.fsencode(name)) > _LONGEST_NAME:
            raise ConfigError(
                f"run_dir: {name[:40]}… can't be a folder's name, which has at most {_LONGEST_NAME} bytes and no “{{”; "
                "the choice of a group such as taxonomy is ${hydra:runtime.choices.taxonomy}"
            )
    once = {"fresh": False} | ({"marks": None} if "marks" in cfg else {})
    return settings, OmegaConf.to_yaml(OmegaConf.merge(cfg, once), resolve=True)


Task = Callable[[DictConfig, Job], float | None]
