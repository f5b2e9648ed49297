"""`python -m generator.optimize`: instructions of a judge or a step, optimised on labels; see `docs/optimize.md`."""

import os
import sys
from typing import TYPE_CHECKING

from generator.command import Command, run_command

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from generator.config.job import Job

COMMAND = Command(
    program="python -m generator.optimize",
    primary="optimize",
    task="generator.optimize:optimize",
    settings="generator.optimization.settings:OptimizeSettings",
    usage=(
        "python -m generator.optimize target=judge.correctness data=q2_wow:FOLDER [setting=value ...]",
        "python -m generator.optimize target=answer|ask_first|ask_next|rewrite data=PATH [setting=value ...]",
        "",
        "Rewrites the instructions of a judge or of a step with GEPA. Writes program.json, which dspy_program=FILE",
        "loads, and a card with its scores before and after, on examples that the optimiser never saw.",
        "The same command continues; no call is made twice. reflection.lm=NAME is the model that rewrites.",
    ),
    groups=(("lm", "models"),),
)


def optimize(cfg: "DictConfig", job: "Job") -> None:
    """Optimise the configured target, or continue.

    Raises:
        GroundedDialogsError: a setting is wrong, the data can't be read or has too few labels, or a model is gone.
        KeyboardInterrupt: it was interrupted; finished calls are kept.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")  # read when DSPy is imported, whose progress bars would mix
    from generator.config.job import load_named
    from generator.optimization.run import load_optimization, run_optimization

    run_optimization(*load_named(cfg, job, load_optimization, {"target", "lm.model", "seed", "run_dir"}))


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
