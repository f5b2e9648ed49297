"""A command line run by Hydra: its composition, sweepers, launchers and options, with errors of one line.

Hydra writes no folders of its own (`conf/_hydra.yaml`). The configuration that a run folder keeps can come from
anybody: it is read as data, without defaults, interpolations or a `hydra` section.
"""

import os
import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, QuotedString
from hydra.main import get_args_parser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from generator.common.sanitize import printable
from generator.config.choices import COMPOSE_ERRORS, VERSION
from generator.config.conf_files import choices, groups
from generator.config.installed import CONF
from generator.config.job import Job, RunFailed, Task
from generator.config.messages import describe_choice, describe_hydra_error
from generator.config.sweeps import check_launcher, force_swept, list_varied, name_of, settle_sweep
from generator.errors import ConfigError, GroundedDialogsError, RunError, describe

_STORED = "stored"
# Groups of which a stored configuration takes another choice.
_CHOSEN_AGAIN = {"executor", "export"}


@dataclass(frozen=True)
class _Runner:
    """The function that Hydra calls for each run, in this process or in one that a launcher starts.

    Args:
        task: `module:function`, a `Task`.
        command: the command line.
        stored: as `Job` has it.

    Attributes:
        process: the id of this process.
        codes: the exit codes of the runs in it.
    """

    task: str
    command: str
    stored: Path | None
    process: int = field(default_factory=os.getpid)
    codes: list[int] = field(default_factory=list)

    def __call__(self, cfg: DictConfig) -> float | None:
        module, _, name = self.task.partition(":")
        job, result, code = None, None, 0
        try:
            job = self._job()
            task: Task = getattr(import_module(module), name)
            result = task(cfg, job)
        except RunFailed as failed:
            code = failed.code
        except (GroundedDialogsError, PermissionError, *COMPOSE_ERRORS) as error:
            varied = job.varied if job else {}
            code = _report(error, where=" ".join(f"{name}={value}" for name, value in varied.items()))
        self.codes.append(code)
        if code and HydraConfig.get().mode != RunMode.MULTIRUN:
            raise SystemExit(code)
        if code and (not job or job.optimised or os.getpid() != self.process):
            raise RunFailed(code)  # else the other runs go on, and these are counted
        return result

    def _job(self) -> Job:
        config = HydraConfig.get()
        optimised = "basic_sweeper" not in str(config.sweeper.get("_target_"))
        return Job(self.command, list_varied(config), optimised, self.stored)


def run_hydra(primary: str, task: str, arguments: Sequence[str], program: str, stored: Path | None) -> int:
    """Compose what the arguments ask for and run the task on each configuration; return the exit code.

    Args:
        primary: the file in `conf/` that names the groups and settings there are.
        task: `module:function`, a `Task`.
        arguments: options first, then settings; see `generator.command.normalise`.
        program: what is typed before the arguments.
        stored: the configuration of a run folder, in place of `primary`.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come here, where they become one line
    command, overrides = primary, list[Override]()
    try:
        options, overrides = _parse(arguments, program)
        if stored is not None:
            chosen = {name_of(o): o for o in overrides if name_of(o) in _CHOSEN_AGAIN}
            overrides = [override for override in overrides if name_of(override) not in chosen]
            _store(stored, {group: str(override.value()) for group, override in chosen.items()}, primary)
            if again := [o.input_line for o in overrides if name_of(o) in groups() and not o.is_add()]:
                raise ConfigError(
                    f"{again[0]}: {stored} has made this choice; change single settings of it, or leave the file out "
                    "and give all settings"
                )
            primary = _STORED
        check_launcher(overrides)
        overrides = force_swept(overrides)
        extra = settle_sweep(primary, overrides)
        typed = f"{program} {shlex.join([*([str(stored)] if stored else []), *arguments])}".strip()
        runner = _Runner(task, typed, None if "run_dir" in map(name_of, overrides) else stored)
        with _command_line([*options, *(str(override.input_line) for override in overrides), *extra]):
            hydra.main(str(CONF), primary, VERSION)(runner)()
        if failed := [code for code in runner.codes if code]:
            print(f"{len(failed)} of {len(runner.codes)} runs failed", file=sys.stderr)
            return failed[0]
    except RunFailed as failed:
        return failed.code
    except (GroundedDialogsError, *COMPOSE_ERRORS) as error:
        return _report(error, command, overrides)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _parse(arguments: Sequence[str], program: str) -> tuple[list[str], list[Override]]:
    """Return the options and the settings of a command line.

    Raises:
        ConfigError: an option is unknown or lacks its value.
    """

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            settings = f"a setting is name=value, without dashes: `{program} --help` lists them"
            raise ConfigError(f"{message}; {settings}, `--hydra-help` Hydra's options")

    parser = get_args_parser()
    parser.__class__ = Parser
    given = parser.parse_args(list(arguments))
    if given.shell_completion or given.hydra_help:
        return list(arguments), []
    if given.run + given.multirun + (given.cfg is not None) + (given.info is not None) > 1:
        parser.error("only one of --run, --multirun, --cfg and --info can be given")
    if given.resolve and given.cfg is None:
        parser.error("--resolve belongs to --cfg job")
    settings = OverridesParser.create().parse_overrides(given.overrides)
    for override in settings:
        if not override.key_or_group:
            raise ConfigError(f"{override.input_line}: not a setting; write it as name=value")
        if override.key_or_group in groups() or "/" in override.key_or_group:
            _check_choice(override)
    return list(arguments[: len(arguments) - len(settings)]), settings


def _check_choice(override: Override) -> None:
    """Raise ConfigError if what is given for a group can't be the name of a choice; Hydra looks for the names."""
    group, value, shown = override.key_or_group, override.value(), str(override.input_line).partition("=")[2]
    if override.is_delete():
        raise ConfigError(f"~{group}: can't be left out; choose from: {', '.join(choices(group))}")
    if isinstance(value, list) and group != "experiment":
        each = f"{group}={shown.strip('[]')}"
        raise ConfigError(f"{group}={shown}: takes one choice; for one run with each: -m {each}")
    named = value.list if isinstance(value, ChoiceSweep) else [value]
    if not all(isinstance(name, str | list | QuotedString | Glob) for name in named):
        raise ConfigError(describe_choice(group, shown, choices(group)))


@contextmanager
def _command_line(arguments: list[str]) -> Iterator[None]:
    given = sys.argv
    sys.argv = [given[0], *arguments]
    try:
        yield
    finally:
        sys.argv = given


def _report(error: Exception, command: str = "config", overrides: Sequence[Override] = (), where: str = "") -> int:
    """Print an error, and `where` before it unless it begins so; return the exit code."""
    if isinstance(error, PermissionError):
        error = RunError(f"{error.filename}: {describe(error)}; make it readable and writable, or give another")
    if not isinstance(error, GroundedDialogsError):
        text = describe_hydra_error(error, command)
        typed = {name_of(override): override for override in overrides}
        for name, override in typed.items():  # lm@user.lm=x is user.lm=x
            if override.package and text.startswith(f"{override.key_or_group}={override.value()}: "):
                text = f"{name}{text.removeprefix(override.key_or_group)}"
        setting = text.partition(": unknown here")[0]
        if "experiment" in typed and setting not in typed and (choice := typed.get(setting.partition(".")[0])):
            text += f"; experiment={typed['experiment'].value()} sets it: leave out {choice.input_line}"
        error = ConfigError(text)
    text = str(error)
    shown = f"{where}: {text}" if where and not text.startswith(f"{where}: ") else text
    print(f"error: {printable(shown)}", file=sys.stderr)
    return 2


def _store(file: Path, chosen: dict[str, str], primary: str) -> None:
    """Let Hydra find the settings of a run folder's `config.yaml` under the name `_STORED`.

    Args:
        chosen: choices that take the place of the stored ones, by group.
        primary: the command's own file in `conf/`; where it adds settings to those of a run, they keep their defaults.

    Raises:
        ConfigError: it can't be read, or holds more than plain settings.
    """
    try:
        text = file.read_text(encoding="utf-8")
        settings: Any = OmegaConf.create(text)
    except FileNotFoundError as error:
        raise ConfigError(f"{file}: no such configuration file; give the config.yaml of a run folder") from error
    except (OSError, ValueError, RecursionError, *COMPOSE_ERRORS) as error:
        raise ConfigError(f"{file}: is not valid YAML: {error}") from error
    if not isinstance(settings, DictConfig):
        raise ConfigError(f"{file}: holds no settings; give the config.yaml of a run folder")
    if own := [name for name in ("hydra", "defaults") if name in settings]:
        raise ConfigError(f"{file}: a stored configuration can't have the key {own[0]}; remove it")
    if "${" in text:
        raise ConfigError(f"{file}: a stored configuration can't have interpolations (${{…}}); replace them by values")
    file_of_command: Any = OmegaConf.to_container(OmegaConf.load(CONF / f"{primary}.yaml"))
    added = file_of_command if "config" in file_of_command.pop("defaults") else {}
    plain = added | {key: value for key, value in settings.items_ex(resolve=False) if key not in chosen}
    defaults = ["_hydra", *({f"/{group}": name} for group, name in chosen.items()), "_self_"]
    ConfigStore.instance().store(_STORED, {"defaults": defaults, **plain})
