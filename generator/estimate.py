"""`python -m generator.estimate`: what a run will take in calls, tokens, hours and money; see `docs/estimate.md`."""

import sys

from generator.command import GENERATOR_GROUPS, Command, run_command

COMMAND = Command(
    program="python -m generator.estimate",
    primary="estimate",
    task="generator.estimation.run:estimate",
    settings="generator.estimation.settings:EstimateSettings",
    usage=(
        "python -m generator.estimate [setting=value ...] [preview=5]",
        "python -m generator.estimate [setting=value ...] earlier_run=outputs/RUN",
        "",
        "Says what `python -m generator` with the same settings will take: calls and tokens by stage, hours, money,",
        "and how sure that is. preview=5 generates the first five dialogs, which the run then continues; without it,",
        "dialogs in the run folder count, or those of earlier_run, or else guesses (docs/estimate.md).",
    ),
    groups=GENERATOR_GROUPS,
)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
