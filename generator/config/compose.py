"""What a command line asks for: a configuration, or each of a sweep, composed of the files in `conf/` and of one's own.

Hydra only composes. It would also make whatever the `hydra` section of a configuration names (handlers of a log,
callbacks, launchers), and any file can put something there, by its header, its keys or its defaults. So that section
is left out of what is composed, but for the sweep that an experiment stands for (`hydra.mode`, `hydra.sweeper.params`),
which is settings like those of the command line.
"""

import re
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path, PurePath

from hydra import compose, initialize, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from generator.common.terminal import Parser
from generator.config.messages import choices, groups, of_hydra
from generator.errors import ConfigError

_VERSION = "1.3"
_SEARCHPATH = "hydra.searchpath"
_STORED = "stored"


@dataclass(frozen=True)
class Configuration:
    """One configuration that was asked for.

    Attributes:
        varied: the settings that tell it from its neighbours in a sweep, by name, with its values.
    """

    settings: DictConfig
    varied: dict[str, str]


def understood(arguments: list[str]) -> Namespace:
    """The options and, as `overrides`, the settings of a command line, in whatever order they are given.

    Raises:
        ConfigError: there is no such option, or it doesn't go with another.
    """
    parser = Parser(prog="python -m generator", add_help=False, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--cfg", "-c", choices=["job"])
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--config-dir", "-cd")
    parser.add_argument("--stored", type=Path)
    given, others = parser.parse_known_intermixed_args(arguments)
    if others:
        parser.error(f"{others[0]}: there is no such option")
    if given.resolve and not given.cfg:
        parser.error("--resolve: belongs to --cfg job")
    if given.cfg and given.multirun:
        parser.error("--cfg: shows one configuration; leave -m out")
    return given


def composed(conf: Path, primary: str, given: Namespace) -> list[Configuration]:
    """All configurations that are asked for.

    Args:
        primary: the file in `conf` that says which groups and settings there are.
        given: as `understood` has it.

    Raises:
        ConfigError: one can't be composed, or asks for more than composing.
    """
    try:
        if given.stored is not None:
            _store(given.stored)
            with initialize(None, version_base=_VERSION):
                return _configurations(_STORED, given)
        with initialize_config_dir(str(conf), version_base=_VERSION):
            return _configurations(primary, given)
    except (HydraException, OmegaConfBaseException, YAMLError, OSError, ValueError) as error:
        raise ConfigError(of_hydra(error)) from error
    except KeyError as error:  # Hydra looks for these itself, before the section is left out
        raise ConfigError(f"hydra.job.env_copy: there is no environment variable {error}; leave it out") from error


def _configurations(name: str, given: Namespace) -> list[Configuration]:
    """All that are made of the configuration `name`, which Hydra finds."""
    parser = OverridesParser.create(GlobalHydra.instance().config_loader())
    settings = parser.parse_overrides(given.overrides)
    folders = [override for override in settings if override.key_or_group == _SEARCHPATH]
    searched = _searched(given.config_dir, folders)
    settings = [override for override in settings if override not in folders]

    def made(run: list[Override], **wanted: bool) -> DictConfig:
        for override in run:
            _check(override, given.stored is None)
        return compose(name, [*searched, *(str(override.input_line) for override in run)], **wanted)

    hydra = made(_each(parser, settings)[0], return_hydra_config=True).hydra
    if given.multirun or hydra.mode == RunMode.MULTIRUN:
        settings = [*parser.parse_overrides(_experiment(hydra, settings)), *settings]
        runs = _each(parser, settings)
    else:
        runs = [settings]
    swept = {override.key_or_group for override in settings if override.is_sweep_override()}
    return [
        Configuration(made(run), {o.key_or_group: o.get_value_element_as_str() for o in run if o.key_or_group in swept})
        for run in runs
    ]


def _store(file: Path) -> None:
    """Let Hydra find, by the name `_STORED`, what a file holds: settings, as data, for it may come from anybody.

    Raises:
        ConfigError: it can't be read, or holds what Hydra would compose more of.
    """
    try:
        stored = OmegaConf.load(file)
    except FileNotFoundError as error:
        raise ConfigError(f"{file}: there is no such configuration file") from error
    except (OSError, ValueError, RecursionError, YAMLError, OmegaConfBaseException) as error:
        raise ConfigError(f"{file}: can't be read as YAML ({error})") from error
    if not isinstance(stored, DictConfig):
        raise ConfigError(f"{file}: holds no settings; give the config.yaml of a run folder")
    if own := [name for name in ("hydra", "defaults") if name in stored]:
        raise ConfigError(f"{file}: holds {own[0]}, which no run stores and which could run anything; remove it")
    ConfigStore.instance().store(_STORED, stored)


def _searched(config_dir: str | None, own: list[Override]) -> list[str]:
    """The folders of one's own, laid out like `conf/`, as the one setting that Hydra takes them by."""
    folders = [config_dir] if config_dir else []
    for override in own:
        value = override.value()
        if not (isinstance(value, list) and all(isinstance(folder, str) for folder in value)):
            raise ConfigError(f"{_SEARCHPATH}: must be a list of folders, such as [file:///srv/conf]")
        folders += [str(folder).removeprefix("file://") for folder in value]
    for folder in folders:
        if not Path(folder).is_dir():
            raise ConfigError(f"{folder}: there is no such folder of configurations")
    quoted = (QuotedString(f"file://{Path(folder).absolute()}", Quote.double).with_quotes() for folder in folders)
    return [f"{_SEARCHPATH}=[{','.join(quoted)}]"] if folders else []


def _each(parser: OverridesParser, settings: list[Override]) -> list[list[Override]]:
    """The settings of each run of a sweep."""
    (batch,) = BasicSweeper.split_arguments(settings, None)
    return [parser.parse_overrides(run) for run in batch]


def _experiment(hydra: DictConfig, given: list[Override]) -> list[str]:
    """The settings that an experiment sweeps over, but for those that are given."""
    named = {override.key_or_group for override in given}
    return [f"{name}={value}" for name, value in (hydra.sweeper.params or {}).items() if name not in named]


def _check(override: Override, has_groups: bool) -> None:
    group, name = override.key_or_group, override.package or override.key_or_group
    if any(re.match(r"hydra\b", part) for part in (group, name)):
        raise ConfigError(f"{name}: is Hydra's own, of which nothing is used here; leave it out")
    if not (has_groups and group in groups()) or override.is_delete() or override.is_sweep_override():
        return
    value = override.value()
    named = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) and one[:1] != "/" and ".." not in PurePath(one).parts for one in named):
        short = value is None or isinstance(value, str | int | float)
        setting = f"{name}={override.get_value_element_as_str()}" if short else name
        raise ConfigError(f"{setting}: is no choice; choose from: {', '.join(choices(group))}")
