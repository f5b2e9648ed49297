"""The command line: arguments in, run out.

Hydra accepts `+corpus=x` only while `corpus` has no default, and `corpus=x` only while it has one. Both are natural to
type, so the arguments are brought to the first form here, and the defaults added, before Hydra sees them. Likewise for
a judge's own model, for new shares of question types, and for the configuration that a run folder keeps.
"""

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from generator.common.console import begins_anew, note
from generator.common.terminal import run_quietly

CONF = Path(__file__).parent.parent / "conf"
DEFAULTS = {"corpus": "sample", "taxonomy": "mixed"}
PACKAGE = "# @package _global_\n"
PLUS = {*DEFAULTS, "experiment"}
GROUPS = {
    "corpus": "corpora",
    "taxonomy": "taxonomies",
    "algorithm": "algorithms",
    "lm": "models",
    "retriever": "retrievers",
    "judge": "judges",
    "dedup": "removal of duplicates",
    "export": "files for other tools",
    "executor": "where dialogs are made",
    "experiment": "experiments, which choose several of these",
}


def normalised(arguments: list[str]) -> list[str]:
    """The arguments in the one spelling that Hydra takes, with the defaults of `corpus` and `taxonomy`."""
    stored = [Path(argument).absolute() for argument in arguments if is_file(argument)]
    done = [spelt(argument) for argument in arguments if not is_file(argument)]
    if stored:
        return ["--stored", str(stored[0]), *done]
    chosen = {argument.partition("=")[0] for argument in done}
    provided = {group for argument in done if argument.startswith("+experiment=") for group in _chooses(argument)}
    # What an experiment chooses is there already, and is only changed.
    done = [argument[1:] if argument[1:].partition("=")[0] in provided else argument for argument in done]
    missing = DEFAULTS.keys() - provided - {name.removeprefix("+") for name in chosen}
    return [*(f"+{group}={DEFAULTS[group]}" for group in sorted(missing)), *done]


def _chooses(argument: str) -> set[str]:
    """Which of `corpus` and `taxonomy` the experiments of `+experiment=a` or `+experiment=[a,b]` choose."""
    found: set[str] = set()
    names = re.findall(r"[\w-]+", argument.partition("=")[2])
    while names:
        file = CONF / "experiment" / f"{names.pop()}.yaml"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        found |= set(re.findall(rf"^  - /({'|'.join(DEFAULTS)}):", text, re.MULTILINE))
        names += re.findall(r"^  - (?!_self_)([\w-]+)$", text, re.MULTILINE)
    return found


def is_file(argument: str) -> bool:
    """Whether an argument is a configuration that a run folder keeps."""
    name, equals, _ = argument.partition("=")
    return argument.endswith(".yaml") and argument[0] not in "-~+" and (not equals or "/" in name)


def spelt(argument: str) -> str:
    """An argument in the spelling that Hydra takes."""
    argument = re.sub(r"(?<==)~(?=/)", str(Path.home()), argument, count=1)  # which not every shell does after `=`
    argument = re.sub(rf"^\+?({'|'.join(PLUS)})=", r"+\1=", argument)
    own = r"^\+*(?:lm@)?judge\.(lm|panel\.[\w-]+)=(?!null$)(?=[\w,.-]+$)"
    argument = re.sub(own, r"+lm@judge.\1=", argument)
    return re.sub(r"^\+*(taxonomy\.(?:first|later|multi_turn|answerability)\.)", r"++\1", argument)


def help_text() -> str:
    """What can be chosen, a line each: the first comment of every file in conf/."""
    lines = [
        "python -m generator [+corpus=NAME] [+taxonomy=NAME] [setting=value ...]",
        "python -m generator -m +corpus=NAME +taxonomy=A,B,C    a run for each",
        "python -m generator +experiment=NAME [setting=value ...]    what a paper did",
        "python -m generator outputs/RUN/config.yaml [setting=value ...]    as that run",
        "",
        "Turns documents into multi-turn, document-grounded dialogs. The same command again continues a run.",
    ]
    for group, title in GROUPS.items():
        lines += choices(group, title)
    return "\n".join([*lines, *defaults("config")])


def choices(group: str, title: str) -> list[str]:
    """What `--help` says of a group of choices."""
    lines = ["", f"{title} ({'+' if group in PLUS else ''}{group}=)"]
    for file in sorted((CONF / group).glob("[!_]*.yaml")):
        first = file.read_text(encoding="utf-8").removeprefix(PACKAGE).partition("\n")[0]
        lines.append(f"  {file.stem:<28}{first.removeprefix('#').strip()}")
    return lines


def defaults(primary: str) -> list[str]:
    """What `--help` says of the settings in a primary configuration."""
    shown = (CONF / f"{primary}.yaml").read_text(encoding="utf-8").split("  - _self_\n")[1]
    return ["", "settings, with their defaults", *(f"  {line}" for line in shown.strip().splitlines() if line)]


def started(help_text: Callable[[], str], run: Callable[[list[str]], int]) -> int:
    """The exit code of a program of ours: its help, or what `run` makes of the arguments."""

    def command() -> int:
        arguments = sys.argv[1:]
        if {"-h", "--help"} & set(arguments):
            print(help_text(), flush=True)
            return 0
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or DSPy and LiteLLM try the network at import
        # Until dialogs are made (`generator.common.interruption`), SIGTERM is what Ctrl-C is.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            return run(arguments)
        except KeyboardInterrupt:
            anew = begins_anew(arguments)
            note(f"interrupted; the same command {'begins anew, since it says fresh=true' if anew else 'continues'}")
            return 130

    return run_quietly(command)


def main() -> int:
    """Run the command line; returns the exit code: 0, 1 nothing accepted, 2 something to mend, 130 interrupted."""

    def run(arguments: list[str]) -> int:
        from generator.command import run_command

        return run_command(CONF, normalised(arguments))

    return started(help_text, run)


if __name__ == "__main__":
    sys.exit(main())
