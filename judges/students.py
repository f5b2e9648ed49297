"""`python -m judges.students`: students of several training sets side by side, table 4 of Lee et al. 2024."""

import sys

from generator.command import Command, run_command

COMMAND = Command(
    program="python -m judges.students",
    primary="students",
    task="judges.benchmarks.students:compare",
    settings="judges.benchmarks.settings:StudentsSettings",
    usage=(
        "python -m judges.students human=quac:PATH synthetic=RUN input=PATH [setting=value ...]",
        "",
        "Trains a student on each set and with each seed (python -m generator.finetune), has it answer human dialogs",
        "(python -m judges.evaluate), and prints the metrics side by side. The same command again goes on.",
    ),
    groups=(),
)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
