"""One command: its configurations (several in a sweep), each a run, and the exit code for them all."""

import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from generator.errors import ConfigError, GroundedDialogsError

# Groups and settings whose value stands in a run folder's name anyway.
_NAMED = {"corpus", "taxonomy", "algorithm", "lm", "lm.model", "seed", "run_dir"}


def run_command(conf: Path, arguments: list[str]) -> int:
    """Run what the arguments ask for. All runs of a sweep are tried; the worst exit code is returned."""
    codes: list[int] = []

    @hydra.main(version_base="1.3", config_path=str(conf), config_name="config")
    def job(cfg: DictConfig) -> None:
        codes.append(_reported(cfg, arguments))
        if codes[-1] == 130:
            sys.exit(130)

    sys.argv = [sys.argv[0], *arguments]
    try:
        job()
    except (HydraException, OmegaConfBaseException) as error:
        return _fail(ConfigError(_one_line(error)))
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    return max(codes, default=0)


def _reported(cfg: DictConfig, arguments: list[str]) -> int:
    from generator.config import load, plain
    from generator.run import run

    try:
        settings = load(cfg)
        if settings.run_dir is None and (swept := _swept(arguments)):
            settings = settings.model_copy(update={"run_dir": Path(f"{settings.folder}-{swept}")})
        return run(settings, plain(cfg), OmegaConf.to_yaml(cfg, resolve=True), shown_command())
    except GroundedDialogsError as error:
        return _fail(error)


def shown_command() -> str:
    """The command as a person types it, for the data card."""
    return " ".join(["python -m generator", *sys.argv[1:]])


def _swept(arguments: list[str]) -> str:
    """In a sweep, the settings that tell this run from its neighbours, as far as its folder's name doesn't."""
    if HydraConfig.get().mode != RunMode.MULTIRUN:
        return ""
    overrides = [a for a in arguments if "=" in a and not a.startswith("-")]
    varied = {o.key_or_group for o in OverridesParser.create().parse_overrides(overrides) if o.is_sweep_override()}
    task = OverridesParser.create().parse_overrides(list(HydraConfig.get().overrides.task))
    return "-".join(
        f"{o.key_or_group}={o.get_value_element_as_str()}".replace("/", "_")
        for o in task
        if o.key_or_group in varied - _NAMED
    )


def _fail(error: GroundedDialogsError) -> int:
    print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def _one_line(error: Exception) -> str:
    """Hydra's message, without its advice on Hydra's syntax and its list of search paths."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [
        line
        for line in lines
        if not line.startswith(("To append", "Set the environment", "object_type", "Search path"))
    ]
    return " ".join(kept[:3]) + "; `python -m generator --help` lists what there is"
