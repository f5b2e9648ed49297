"""The command line of the judges: arguments in, verdicts out; see `docs/judging.md`."""

import sys
from pathlib import Path

from generator.__main__ import CONF, GROUPS, choices, defaults, is_file, spelt, started


def normalised(arguments: list[str]) -> list[str]:
    """The arguments in the one spelling that Hydra takes: groups without a plus, since all have a default here."""
    stored = [Path(argument).absolute() for argument in arguments if is_file(argument)]
    done = [spelt(argument) for argument in arguments if not is_file(argument)]
    done = [argument[1:] if argument.startswith(("+judge=", "+lm=")) else argument for argument in done]
    if stored:
        return ["--stored", str(stored[0]), *done]
    return done


def help_text() -> str:
    """What can be chosen, a line each."""
    lines = [
        "python -m judges +judge=NAME input=PATH [lm=NAME] [setting=value ...]",
        "python -m judges -m +judge=A,B,C input=PATH    a run for each",
        "python -m judges outputs/RUN/config.yaml [setting=value ...]    as that run",
        "",
        "Judges dialogs that exist: each turn gets a verdict. The same command again continues a run.",
        *choices("judge", "judges"),
        *choices("lm", GROUPS["lm"]),
        *defaults("judges"),
    ]
    return "\n".join(lines)


def main() -> int:
    """Run the command line; returns the exit code: 0, 1 nothing judged, 2 something to mend, 130 interrupted."""

    def run(arguments: list[str]) -> int:
        from judges.command import run_command

        return run_command(CONF, normalised(arguments))

    return started(help_text, run)


if __name__ == "__main__":
    sys.exit(main())
