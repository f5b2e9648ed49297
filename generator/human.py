"""`python -m generator.human`: the human dialogs of a corpus, written as a run's dialogs are."""

import re
import sys
from typing import TYPE_CHECKING

from generator.command import Command, generator_groups, run_command

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from generator.config.job import Job

# Of the settings of a run, which may all be given, those that human dialogs depend on.
_USED = {"corpus", "experiment", "export", "judge", "run_dir", "seed", "validation"}

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
    groups=generator_groups("corpus", "export"),
)


def write(cfg: "DictConfig", job: "Job") -> None:
    """Write the human dialogs of the configured corpus.

    Raises:
        ConfigError: it has none.
        CorpusError, RunError, ExportError: as `write_human`.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    from generator.common.console import note
    from generator.common.language import use_languages
    from generator.config.settings import load
    from generator.corpora.human import DialogCorpus
    from generator.errors import ConfigError
    from generator.human_results import human_folder, write_human
    from generator.sets import DialogSet

    settings = load(cfg)
    corpus = settings.corpus
    if not isinstance(corpus, DialogCorpus):
        raise ConfigError(f"corpus={corpus.name}: has no human dialogs; docs/corpora.md lists the corpora that have")
    if settings.run_dir is None and (folder := job.name_folder(human_folder(settings), {"corpus"})):
        cfg.run_dir = folder
        settings = load(cfg)
    given = [re.findall(r"\w+", override)[0] for override in HydraConfig.get().overrides.task]
    if unused := [name for name in dict.fromkeys(given) if name not in _USED]:
        note(f"{', '.join(unused)}: no effect on human dialogs, of which all are written")
    with use_languages(DialogSet(corpus.name, corpus.dialogs).languages(corpus.language, "corpus.language")):
        write_human(settings, corpus, OmegaConf.to_yaml(cfg, resolve=True), job.command)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
