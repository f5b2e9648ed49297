"""`grounded-dialogs`: the commands of this project under one name, as an installed package has it.

`grounded-dialogs [setting=value ...]` is `python -m generator`, `grounded-dialogs report RUN` is
`python -m generator.report RUN`, and `grounded-dialogs judges.review …` is `python -m judges.review …`.
"""

import sys
from importlib import import_module

from generator.command import run_command

_COMMANDS = ("estimate", "finetune", "human", "index", "optimize", "push", "report", "statistics")
_OF_JUDGES = ("agreement", "correlation", "evaluate", "human", "retrieval", "review", "students")


def main() -> int:
    """Run the command line and return the exit code of the command that it names."""
    modules = {name: f"generator.{name}" for name in _COMMANDS} | {"judges": "judges.__main__"}
    modules |= {f"judges.{name}": f"judges.{name}" for name in _OF_JUDGES}
    named = sys.argv[1:2] and sys.argv[1] in modules
    module = modules[sys.argv.pop(1)] if named else "generator.__main__"
    return run_command(import_module(module).COMMAND)
