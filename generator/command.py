"""One command: its configurations (several in a sweep), each a run, and the exit code for them all."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from generator.common.console import begins_anew, continues
from generator.common.sanitize import printable
from generator.config.compose import Configuration, composed, understood
from generator.config.parts import plain, shown
from generator.errors import ConfigError, GroundedDialogsError

PROGRAM = "python -m generator"
# Groups and settings whose value stands in a run folder's name anyway.
_NAMED = {"corpus", "taxonomy", "algorithm", "lm", "lm.model", "seed", "run_dir"}


def run_command(
    conf: Path,
    arguments: list[str],
    primary: str = "config",
    work: Callable[[DictConfig, Mapping[str, str]], int] | None = None,
    program: str = PROGRAM,
) -> int:
    """Run what the arguments ask for. All runs of a sweep are tried; the worst exit code is returned.

    Args:
        primary: the file in `conf` that says which groups and settings there are.
        work: does it, given the configuration and what a sweep varies in it, and returns the exit code; None:
            generates a run.
        program: what is typed before the arguments, for advice.
    """

    def generate(cfg: DictConfig, varied: Mapping[str, str]) -> int:
        return _run(cfg, varied, " ".join([PROGRAM, *arguments]))

    codes: list[int] = []
    fail = partial(_fail, program=program, fresh=begins_anew(arguments))
    try:
        given = understood(arguments)
        configurations = composed(conf, primary, given)
        _check_folders(configurations)
        if given.cfg:
            sys.stdout.write(shown(configurations[0].settings, given.resolve))
            return 0
    except GroundedDialogsError as error:
        return fail(error)
    for configuration in configurations:
        try:
            codes.append((work or generate)(configuration.settings, configuration.varied))
        except GroundedDialogsError as error:
            codes.append(fail(error))
        if codes[-1] == 130:
            break
    return max(codes, default=0)


def _check_folders(configurations: list[Configuration]) -> None:
    """Refuse a sweep whose runs would share a folder, before the first of them is paid for.

    Raises:
        ConfigError: they would.
    """
    given = (cast(dict[str, Any], OmegaConf.to_container(one.settings)).get("run_dir") for one in configurations)
    # What another setting is put into may differ from run to run.
    folders = Counter(str(folder) for folder in given if folder is not None and "${" not in str(folder))
    for folder, runs in folders.items():
        if runs > 1:
            raise ConfigError(
                f"run_dir={folder}: {runs} runs of this sweep would share it; leave it out, and each gets its own"
            )


def _run(cfg: DictConfig, varied: Mapping[str, str], command: str) -> int:
    from generator.config.settings import load
    from generator.run import run

    settings = load(cfg)
    if settings.run_dir is None and (swept := swept_settings(varied, _NAMED)):
        cfg.run_dir = f"{settings.folder}-{swept}"
        settings = load(cfg)
    return run(settings, plain(cfg), OmegaConf.to_yaml(cfg, resolve=True), command)


def swept_settings(varied: Mapping[str, str], named: set[str]) -> str:
    """In a sweep, the settings that tell this run from its neighbours, as a part of its folder's name.

    Args:
        varied: they and their values; none of a run that is no sweep's.
        named: those whose value stands in a run folder's name anyway.
    """
    told = "-".join(f"{name}-{value}" for name, value in varied.items() if name not in named)
    return re.sub(r"[^\w.,+-]+", "_", told)  # so that the folder can be named on a command line


def _fail(error: GroundedDialogsError, program: str, fresh: bool) -> int:
    text = printable(str(error)).replace(PROGRAM, program).replace(continues(False), continues(fresh))
    print(f"error: {text}", file=sys.stderr)
    return error.exit_code
