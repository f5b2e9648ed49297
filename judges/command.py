"""The task of `python -m judges`."""

import re

from omegaconf import DictConfig, OmegaConf

from generator.config.compose import Job, RunFailed
from judges.config import load_judging
from judges.run import run

# Settings that are part of a run folder's name.
_NAMED = {"judge", "input", "lm", "lm.model", "run_dir"}


def judge(cfg: DictConfig, job: Job) -> None:
    """Judge dialogs that exist, or continue.

    Raises:
        GroundedDialogsError: the run can't begin or go on.
        RunFailed: nothing was judged.
        KeyboardInterrupt: the run was interrupted; what is finished is written.
    """
    settings = load_judging(cfg)
    if settings.run_dir is None and (varied := [f"{k}-{v}" for k, v in job.varied.items() if k not in _NAMED]):
        cfg.run_dir = re.sub(r"[^\w.,+/-]+", "_", f"{settings.folder}-{'-'.join(varied)}")
        settings = load_judging(cfg)
    if code := run(settings, OmegaConf.to_yaml(cfg, resolve=True)):
        if code == 130:
            raise KeyboardInterrupt("reported")
        raise RunFailed(code)
