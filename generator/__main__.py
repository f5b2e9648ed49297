"""`python -m generator`: dialogs from documents.

The installed package has the command `grounded-dialogs`, all commands of this project under one name:
`grounded-dialogs [setting=value ...]` is `python -m generator`, `grounded-dialogs report RUN` is
`python -m generator.report RUN`, and `grounded-dialogs judges.review …` is `python -m judges.review …`.
"""

import sys
from importlib import import_module

from generator.command import GENERATOR_GROUPS, Command, run_command

COMMAND = Command(
    program="python -m generator",
    primary="config",
    task="generator.run:generate",
    settings="generator.config.run_settings:RunSettings",
    usage=(
        "python -m generator [corpus=NAME] [taxonomy=NAME] [setting=value ...]",
        "python -m generator -m corpus=NAME taxonomy=A,B,C    a run for each; Hydra's launchers and sweepers work",
        "python -m generator +experiment=NAME [setting=value ...]    what a paper did",
        "python -m generator outputs/RUN/config.yaml [setting=value ...]    as that run",
        "",
        "Turns documents into multi-turn, document-grounded dialogs. The same command again continues a run.",
        "Beside it, with the same settings: python -m generator.estimate, .index and .human. For what they write:",
        ".report, .statistics, .push, .finetune and .optimize, and python -m judges. From an installed package",
        "`grounded-dialogs` is `python -m generator`, and `grounded-dialogs report` is `python -m generator.report`.",
        "`--cfg job` shows all settings, `--hydra-help` Hydra's own options.",
    ),
    groups=GENERATOR_GROUPS,
)
_COMMANDS = ("estimate", "finetune", "human", "index", "optimize", "push", "report", "statistics")
_OF_JUDGES = ("agreement", "correlation", "evaluate", "human", "retrieval", "review", "students")


def main() -> int:
    """Run the command line of `grounded-dialogs`, and return the exit code of the command that it names."""
    modules = {name: f"generator.{name}" for name in _COMMANDS} | {"judges": "judges.__main__"}
    modules |= {f"judges.{name}": f"judges.{name}" for name in _OF_JUDGES}
    named = sys.argv[1:2] and sys.argv[1] in modules
    return run_command(import_module(modules[sys.argv.pop(1)]).COMMAND if named else COMMAND)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
