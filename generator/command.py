"""The command line of every program here: Hydra's own, with short errors and one dialect, `setting=value`.

Arguments go to `hydra.main` as they were typed, but for a few spellings (`normalise`); sweeps, launchers, `--info`,
`--cfg` and shell completion are Hydra's. What a user can fix ends in one line and exit code 2.
"""

import io
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from generator.common.console import continues
from generator.config.installed import CONF, conf_folders
from generator.config.shares import OWN_MODEL, normalise_shares
from generator.schema import OneOrMore, Record

if TYPE_CHECKING:
    from omegaconf import DictConfig

S = TypeVar("S", bound=Record)

# Groups that may be chosen with or without a plus.
_PLAIN_GROUPS = "corpus|taxonomy|experiment|benchmark|judge|lm|student"
# Hydra's options that ask about the program; their arguments are no settings.
_ABOUT = {"--hydra-help", "--shell-completion", "-sc", "--version"}
# Those that take a value, as an argument of its own.
_WITH_VALUE = {
    *("-cn", "--config-name", "-cd", "--config-dir", "-cp", "--config-path", "-c", "--cfg", "-p", "--package"),
    *("-i", "--info", "--experimental-rerun"),
}
GENERATOR_GROUPS = (
    ("corpus", "corpora"),
    ("taxonomy", "taxonomies"),
    ("user", "users"),
    ("dialog", "languages of dialogs"),
    ("algorithm", "algorithms"),
    ("lm", "models"),
    ("retriever", "retrievers"),
    ("judge", "judges"),
    ("dedup", "removal of duplicates"),
    ("export", "files for other tools"),
    ("executor", "where dialogs are generated"),
    ("experiment", "experiments, which choose several of these"),
)


SETS_GROUPS = (("corpus", "corpora, some with human dialogs to read"),)


class SetsSettings(Record):
    """The settings of a command that reads sets of dialogs, as `generator.sets.dialog_set` does."""

    paths: Annotated[tuple[str, ...], OneOrMore, Field(min_length=1)] = Field(
        description="Run folders, files of dialogs, mtRAG's predictions or evaluations, or human dialogs as published."
    )
    corpus: dict[str, Any] | None = Field(description="Format of human dialogs, a choice of conf/corpus; null: none.")


def generator_groups(*names: str) -> tuple[tuple[str, str], ...]:
    """Return those of the generator's groups that another program has, too, with their titles."""
    return tuple(group for group in GENERATOR_GROUPS if group[0] in names)


@dataclass(frozen=True)
class Command:
    """A program with settings.

    Attributes:
        program: as it is typed, such as `python -m generator`.
        primary: the file in `conf/` that names its groups and settings.
        task: `module:function`, a `generator.config.job.Task`.
        settings: `module:class`, the record of the plain settings, which describes them.
        usage: lines for `--help`.
        groups: the groups that `--help` lists, with a title each.
        positional: the setting that arguments without a `=` are values of; None: there is none.
        many: whether that setting is a list.
    """

    program: str
    primary: str
    task: str
    settings: str
    usage: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    positional: str | None = None
    many: bool = False


def with_settings(model: type[S]) -> Callable[[Callable[[S], None]], Callable[["DictConfig", object], None]]:
    """Return a decorator that makes a task of a function of its settings, for a command that has only plain ones.

    The task raises ConfigError where one of them is wrong.
    """

    def decorate(work: Callable[[S], None]) -> Callable[["DictConfig", object], None]:
        @wraps(work)
        def task(cfg: "DictConfig", job: object) -> None:
            from generator.config.parts import plain, validate

            work(validate(model, plain(cfg)))

        return task

    return decorate


def run_command(command: Command | Mapping[str, Command]) -> int:
    """Run the arguments of this process.

    Args:
        command: several by name: the first argument chooses one.

    Returns:
        the exit code: 0, also when the reader of the output has gone (`| head`); 1, nothing was accepted; 2, something
        to fix; 130, interrupted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a Latin-1 terminal has no quotation marks
    arguments = sys.argv[1:]
    try:
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # see `generator`
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _run(command, arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:
        if not interrupt.args:  # else its files were written, and that was printed
            bar = "\n" * sys.stderr.isatty()  # below ^C and a progress bar
            print(f"{bar}interrupted; {continues('fresh=true' in arguments)}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Python flushes once more at its end, and would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(command: Command | Mapping[str, Command], arguments: list[str]) -> int:
    if not isinstance(command, Command):
        name = arguments[0] if arguments else ""
        if name in command:
            return _run(command[name], arguments[1:])
        if name in ("-h", "--help"):
            print("\n\n".join("\n".join(each.usage) for each in command.values()), flush=True)
            return 0
        program = next(iter(command.values())).program.rpartition(" ")[0]
        print(f"error: {program}: choose {' or '.join(command)}{f', not {name}' * bool(name)}", file=sys.stderr)
        return 2
    if {"-h", "--help"} & set(arguments):
        folders = re.findall(r"^(?:-cd|--config-dir)[\n=](.+)$", "\n".join(arguments), re.MULTILINE)
        print(help_text(command, [Path(folder) for folder in folders]), flush=True)
        return 0
    if command.positional and not arguments:
        print(f"error: {command.positional}: is missing; usage: {command.usage[0]}", file=sys.stderr)
        return 2
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or DSPy and LiteLLM try the network at import
    # Until dialogs are made (`generator.common.interruption`), SIGTERM does what Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from generator.config.hydra_main import run_hydra

    stored = [place for place in range(len(arguments)) if _is_stored(arguments, place, command)]
    if len(stored) > 1:
        print(f"error: {arguments[stored[1]]}: give one stored configuration, not several", file=sys.stderr)
        return 2
    others = normalise([argument for place, argument in enumerate(arguments) if place not in stored], command)
    configuration = Path(arguments[stored[0]]) if stored else None
    return run_hydra(command.primary, command.task, others, command.program, configuration)


def _is_stored(arguments: Sequence[str], place: int, command: Command) -> bool:
    """Return whether an argument is the configuration of a run folder, and no setting or its value."""
    argument, before = arguments[place], arguments[place - 1] if place else ""
    is_value = before.startswith("--") and before.removeprefix("--") in _names(command)
    return (
        argument.endswith(".yaml") and argument[0] not in "-+~" and not re.match(r"[\w@.]+=", argument) and not is_value
    )


def _names(command: Command) -> set[str]:
    """Return the settings that `--name value` sets: those of a command with a positional one."""
    return {*_defaults(command), *(group for group, _ in command.groups)} if command.positional else set()


def normalise(arguments: Sequence[str], command: Command) -> list[str]:
    """Return the arguments as Hydra takes them: options first, and settings in its grammar.

    - `+corpus=x` and `corpus=x` mean the same, likewise `taxonomy` and `experiment`.
    - `judge.lm=NAME` chooses the judge's own model from the group `lm`; so do the other settings of `OWN_MODEL`.
    - `name=~/x` has the home directory.
    - `judge.filter=` with conditions is quoted, and a setting of judges that have none of their own.
    - A value with letters such as ü is quoted, and one such as `marks-ada (1).json`.
    - Arguments without a `=` are values of the command's positional setting; of such a command, `--name value` is
      `name=value`, as in other programs that take files.
    """
    if _ABOUT & set(arguments):
        return list(arguments)
    options, settings, values = [], [], []
    names, given = _names(command), iter(arguments)
    for argument in given:
        name, equals, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in names:
            settings.append(_spell(f"{name}={value if equals else next(given, '')}"))
        elif re.match(r"[~+]{0,2}[\w@./-]*\w[\w@./-]*=|~\w", argument) and not argument.startswith("-"):
            settings.append(_spell(argument))
        elif argument.startswith("-") or not command.positional:
            options.append(argument)
            if argument in _WITH_VALUE:
                options.extend(islice(given, 1))
        else:
            values.append(argument)
    if values:
        quoted = ['"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values]
        settings.append(f"{command.positional}={'[' + ','.join(quoted) + ']' if command.many else quoted[-1]}")
    return [*options, *normalise_shares(settings)]


def _spell(argument: str) -> str:
    argument = re.sub(r"(?<==)~(?=/)", str(Path.home()), argument, count=1)  # which not every shell does after `=`
    argument = re.sub(rf"^\+({_PLAIN_GROUPS})=", r"\1=", argument)
    argument = re.sub(r"^\+*(judge\.filter)=([^\"',]*[<>=][^\"',]*)$", r'++\1="\2"', argument)
    own_model = rf"^\+*(?:lm@)?({OWN_MODEL})=(?!null$)(?=[\w,.-]+$)"
    argument = re.sub(own_model, r"+lm@\1=", argument)
    name, equals, value = argument.partition("=")
    if not re.search(r"[\"'{}\\]|\w\(", value):  # Hydra's grammar has letters such as ü, and (1), in quotes alone
        value = re.sub(r"(?=[^\[\],]*([^\x00-\x7f]| \())[^\[\],\s][^\[\],]*", r'"\g<0>"', value)
    return f"{name}{equals}{value}"


def help_text(command: Command, folders: Sequence[Path] = ()) -> str:
    """Return what `--help` prints: the choices of each group, from the first line of their files, and the settings.

    Args:
        folders: of the user's own, laid out like `conf/`.
    """
    lines = list(command.usage)
    for group, title in command.groups:
        lines += ["", f"{title} ({group}=)"]
        places = reversed([*conf_folders(), *folders])
        files = {file.stem: file for conf in places for file in (conf / group).glob("[!_]*.yaml")}
        for _, file in sorted(files.items()):
            text = file.read_text(encoding="utf-8").removeprefix("# @package _global_\n")
            lines.append(f"  {file.stem:<28}{text.partition(chr(10))[0].removeprefix('#').strip()}")
    module, _, name = command.settings.partition(":")
    fields = getattr(import_module(module), name).model_fields
    defaults = _defaults(command)
    lines += ["", "settings, with their defaults (docs/settings.md has those of every choice)"]
    shown = (
        f"  {f'{field}: {defaults[field]}':<27} {fields[field].description}" for field in fields if field in defaults
    )
    return "\n".join([*lines, *shown])


def _defaults(command: Command) -> dict[str, str]:
    """Return the plain settings of a command with their defaults, as its file in `conf/` has them."""
    text = (CONF / f"{command.primary}.yaml").read_text(encoding="utf-8")
    found = re.findall(r"^(\w+): (\S.*(?:\n +.*)*)", text, re.MULTILINE)
    return {name: "required" if value == "???" else " ".join(value.split()) for name, value in found}
