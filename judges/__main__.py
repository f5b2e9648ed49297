"""`python -m judges`: verdicts on dialogs that exist; see `docs/judging.md`."""

import sys

from generator.command import Command, generator_groups, run_command

COMMAND = Command(
    program="python -m judges",
    primary="judges",
    task="judges.run:judge",
    settings="judges.settings:JudgingRunSettings",
    usage=(
        "python -m judges judge=NAME input=PATH [lm=NAME] [setting=value ...]",
        "python -m judges -m judge=A,B,C input=PATH    a run for each; Hydra's launchers and sweepers work",
        "python -m judges outputs/RUN/config.yaml [setting=value ...]    as that run",
        "",
        "Judges dialogs that exist: each turn gets a verdict. The same command again continues a run.",
        "`--cfg job` shows all settings, `--hydra-help` Hydra's own options.",
    ),
    groups=generator_groups("judge", "lm"),
)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
