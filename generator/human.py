"""`python -m generator.human`: the human dialogs of a data set, to train on or to compare with generated ones."""

import sys

from omegaconf import DictConfig, OmegaConf

from generator.command import GENERATOR_GROUPS, Command, run_command
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


def write(cfg: DictConfig, job: Job) -> None:
    """Write the human dialogs of a corpus into `run_dir`, by default `outputs/<corpus>-human`."""
    from generator.config.settings import load
    from generator.results import write_human

    write_human(load(cfg), OmegaConf.to_yaml(cfg, resolve=True), job.command)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
