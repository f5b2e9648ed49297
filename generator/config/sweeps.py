"""Sweeps: several runs by one command line. What Hydra must be told of them, and which settings vary in a run."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from shutil import which
from typing import Any

from hydra import compose
from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType

from generator.common.console import note
from generator.config.choices import COMPOSE_ERRORS, open_conf
from generator.config.conf_files import groups
from generator.config.shares import WEIGHTS
from generator.errors import ConfigError

# The environment variable by which each run is told what the command line sweeps over.
_SWEPT = "GROUNDED_DIALOGS_SWEPT"


def name_of(override: Override) -> str:
    """Return the setting or group that a part of the command line is about; `lm@user.lm=x` is about `user.lm`."""
    return str(override.package or override.key_or_group)


def check_launcher(overrides: Sequence[Override]) -> None:
    """Report where the runs of a sweep print, if not here.

    Raises:
        ConfigError: they are jobs of Slurm, and this machine submits none.
    """
    launcher = [str(override.value()) for override in overrides if name_of(override) == "hydra/launcher"][-1:]
    if launcher == ["submitit_slurm"] and which("srun") is None:
        raise ConfigError(f"hydra/launcher={launcher[0]}: no srun on this machine; run it on one that submits to Slurm")
    if launcher and launcher[0].startswith("submitit"):
        note("this command ends with its last job; what each prints is in outputs/.sweep/*/.submitit/*/*_log.err")


def force_swept(overrides: Sequence[Override]) -> list[Override]:
    """Return the settings, with those of a choice that is swept over as `++name=value`.

    Hydra composes a sweep with the default choice before it composes the runs, and the default may lack the setting.
    """
    swept = {name_of(override) for override in overrides if override.is_sweep_override()}
    parents = tuple(f"{name}." for name in ({*swept, *groups()} if "experiment" in swept else swept))
    lines = [str(override.input_line) for override in overrides]
    for place, override in enumerate(overrides):
        name = name_of(override)
        single = override.type == OverrideType.CHANGE and not override.is_sweep_override()
        if single and name.startswith(parents) and not re.fullmatch(WEIGHTS, name):  # see `normalise_shares`
            lines[place] = f"++{lines[place]}"
    return OverridesParser.create().parse_overrides(lines)


def settle_sweep(primary: str, overrides: list[Override]) -> list[str]:
    """Return the settings of Hydra's that a sweep needs beside those that were given.

    What the command line sweeps over takes the place of what an experiment does (`hydra.sweeper.params`), and each run
    is told which settings are varied (`list_varied`).

    Raises:
        ConfigError: the runs of a sweep would share a folder.
    """
    names = {name_of(override) for override in overrides}
    swept = sorted(name_of(override) for override in overrides if override.is_sweep_override())
    folder = {name_of(override): override for override in overrides}.get("run_dir")  # the last one counts
    if swept and folder is not None and folder.value() is not None and "${" not in str(folder.input_line):
        raise ConfigError(f"{folder.input_line}: all runs of this sweep would share it; leave run_dir out")
    extra = [f"++hydra.job.env_set.{_SWEPT}='{' '.join(swept)}'"] if swept else []
    if "experiment" in names:
        single = [str(o.input_line) for o in overrides if not o.is_sweep_override()]
        params: Any = {}
        # What can't be composed here, such as an experiment of the user's own folder, is left to Hydra.
        with suppress(*COMPOSE_ERRORS), open_conf():
            params = compose(primary, single, return_hydra_config=True).hydra.sweeper.get("params") or {}
        if names & params.keys():
            extra += ["hydra.sweeper.params=null", *(f"{k}={v}" for k, v in params.items() if k not in names)]
    return extra


def list_varied(config: HydraConf) -> dict[str, str]:
    """Return the settings that a sweep varies, with the values of the run that has this configuration."""
    swept = {name for name in os.environ.get(_SWEPT, "").split(" ") if name}
    swept |= {str(name) for name in config.sweeper.get("params") or {}}
    overrides = OverridesParser.create().parse_overrides(list(config.overrides.task))
    return {name: o.get_value_element_as_str() for o in overrides if (name := name_of(o)) in swept}
