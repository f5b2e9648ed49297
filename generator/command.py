"""One command: its configurations (several in a sweep), each a run, and the exit code for them all."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import hydra
import yaml
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from generator.advice import of_hydra
from generator.errors import ConfigError, GroundedDialogsError
from generator.untrusted import printable

PROGRAM = "python -m generator"
# Groups and settings whose value stands in a run folder's name anyway.
_NAMED = {"corpus", "taxonomy", "algorithm", "lm", "lm.model", "seed", "run_dir"}


def run_command(
    conf: Path,
    arguments: list[str],
    primary: str = "config",
    work: Callable[[DictConfig, list[str]], int] | None = None,
    program: str = PROGRAM,
) -> int:
    """Run what the arguments ask for. All runs of a sweep are tried; the worst exit code is returned.

    Args:
        primary: the file in `conf` that says which groups and settings there are.
        work: does it, given the configuration and the arguments, and returns the exit code; None: generates a run.
        program: what is typed before the arguments, for advice.
    """
    codes: list[int] = []

    @hydra.main(version_base="1.3", config_path=str(conf), config_name=primary)
    def job(cfg: DictConfig) -> None:
        try:
            codes.append((work or _run)(cfg, arguments))
        except GroundedDialogsError as error:
            codes.append(_fail(error, program))
        if codes[-1] == 130:
            sys.exit(130)

    try:
        sys.argv = [sys.argv[0], *_options_first(arguments)]
        job()
    except ConfigError as error:
        return _fail(error, program)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError) as error:
        return _fail(ConfigError(of_hydra(error)), program)
    except ValueError as error:
        if not str(error).startswith("Config group override"):
            raise
        return _fail(
            ConfigError("null is no choice of a group; `python -m generator --help` lists what there is"), program
        )
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    return max(codes, default=0)


def _options_first(arguments: list[str]) -> list[str]:
    """The arguments as Hydra's parser wants them; it takes no option between two settings, and no unknown one."""

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; `python -m generator --help` shows what can be given")

    parser = get_args_parser()
    parser.error = refuse  # its own prints the usage and exits
    known, others = parser.parse_known_intermixed_args(arguments)
    if known.config_path:
        _check_stored(Path(known.config_path, f"{known.config_name}.yaml"))
    if unknown := [argument for argument in others if argument.startswith("-")]:
        refuse(f"{unknown[0]}: there is no such option")
    settings = known.overrides
    for setting in settings:
        if found := re.match(r"[+~]*(hydra\.(?!(?:searchpath|run|sweep|output_subdir|mode)\b)[^=]*)", setting):
            raise ConfigError(f"{found[1]}: Hydra would make what it names, whatever that is; leave it out")
    return [*(argument for argument in arguments if argument not in settings), *settings]


def _check_stored(file: Path) -> None:
    """A configuration may come from somebody else: it holds settings, and nothing that Hydra itself goes by.

    Raises:
        ConfigError: it isn't so.
    """
    if not file.exists():  # Hydra says so
        return
    try:
        stored = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{file}: can't be read as YAML ({error})") from error
    if not isinstance(stored, dict):
        raise ConfigError(f"{file}: holds no settings; give the config.yaml of a run folder")
    if own := [name for name in ("hydra", "defaults") if name in stored]:
        raise ConfigError(f"{file}: holds {own[0]}, which no run stores and which could run anything; remove it")


def _run(cfg: DictConfig, arguments: list[str]) -> int:
    from generator.config import load
    from generator.instantiate import plain
    from generator.run import run

    settings = load(cfg)
    if settings.run_dir is None and (swept := swept_settings(arguments, _NAMED)):
        cfg.run_dir = f"{settings.folder}-{swept}"
        settings = load(cfg)
    return run(settings, plain(cfg), OmegaConf.to_yaml(cfg, resolve=True), shown_command())


def shown_command() -> str:
    """The command as a person types it, for the data card."""
    return " ".join([PROGRAM, *sys.argv[1:]])


def swept_settings(arguments: list[str], named: set[str]) -> str:
    """In a sweep, the settings that tell this run from its neighbours.

    Args:
        named: those whose value stands in a run folder's name anyway.
    """
    if HydraConfig.get().mode != RunMode.MULTIRUN:
        return ""
    overrides = [a for a in arguments if "=" in a and not a.startswith("-")]
    varied = {o.key_or_group for o in OverridesParser.create().parse_overrides(overrides) if o.is_sweep_override()}
    task = OverridesParser.create().parse_overrides(list(HydraConfig.get().overrides.task))
    shown = (f"{o.key_or_group}-{o.get_value_element_as_str()}" for o in task if o.key_or_group in varied - named)
    return re.sub(r"[^\w.,+-]+", "_", "-".join(shown))  # so that the folder can be named on a command line


def _fail(error: GroundedDialogsError, program: str) -> int:
    print(f"error: {printable(str(error)).replace(PROGRAM, program)}", file=sys.stderr)
    return error.exit_code
