"""`python -m generator.human`: the human dialogs of a corpus, written as a run's dialogs are."""

import sys
from typing import TYPE_CHECKING

from generator.command import GENERATOR_GROUPS, Command, run_command

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from generator.config.compose import Job

COMMAND = Command(
    program="python -m generator.human",
    primary="config",
    task="generator.human:write",
    settings="generator.config.run_settings:RunSettings",
    usage=(
        "python -m generator.human corpus=NAME [setting=value ...]",
        "",
        "Writes the human dialogs of a corpus as a run's dialogs are written, with a dataset. No model is called.",
    ),
    groups=tuple((group, title) for group, title in GENERATOR_GROUPS if group in ("corpus", "export")),
)


def write(cfg: "DictConfig", job: "Job") -> None:
    """Write the human dialogs of the configured corpus."""
    from omegaconf import OmegaConf

    from generator.config.settings import load
    from generator.results import write_human

    write_human(load(cfg), OmegaConf.to_yaml(cfg, resolve=True), job.command)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
