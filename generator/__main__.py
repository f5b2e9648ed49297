"""`python -m generator`: dialogs from documents."""

import sys

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
        "Beside it, with the same settings: python -m generator.estimate, .index and .human; from an installed package",
        "`grounded-dialogs` is `python -m generator`, and `grounded-dialogs estimate` `python -m generator.estimate`.",
        "`--cfg job` shows all settings, `--hydra-help` Hydra's own options.",
    ),
    groups=GENERATOR_GROUPS,
)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
