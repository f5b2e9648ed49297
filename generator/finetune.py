"""`python -m generator.finetune`: fine-tune a student on dialogs; see `docs/students.md`."""

import logging
import sys
from typing import TYPE_CHECKING

from generator.command import Command, run_command

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from generator.config.job import Job

COMMAND = Command(
    program="python -m generator.finetune",
    primary="finetune",
    task="generator.finetune:finetune",
    settings="generator.training.settings:FinetuneSettings",
    usage=(
        "python -m generator.finetune +student=NAME data=PATH [setting=value ...]",
        "",
        "Fine-tunes a chat model on context-response pairs: of runs, of human dialogs (quac:PATH), of dataset folders.",
        "The same command continues a training from its last checkpoint.",
        "Extra: train (uv sync --inexact --extra train).",
    ),
    groups=(("student", "students and how they are trained"),),
)


def finetune(cfg: "DictConfig", job: "Job") -> None:
    """Fine-tune the configured student, or continue.

    Raises:
        GroundedDialogsError: a setting is wrong, the data or the model can't be read, or a package is missing.
    """
    from generator.common.console import note
    from generator.config.job import load_named
    from generator.training.data import has_training, identify_training, load_finetuning, read_pairs

    settings, _ = load_named(cfg, job, load_finetuning, {"student", "data", "seed", "run_dir"})
    pairs, folder = read_pairs(settings), settings.folder
    trained = (folder / "result.json").exists() and (not settings.merged or (folder / "model").exists())
    if trained and has_training(folder, identify_training(settings, pairs), settings.fresh):
        note(f"run_dir={folder}: this student is trained; fresh=true starts over")  # before ten seconds of imports
        return
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it warns of a package that nothing here needs
    from generator.training.sft import train

    train(settings, pairs)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
