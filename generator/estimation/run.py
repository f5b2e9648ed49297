"""Estimate a run: preview its first dialogs, or read what an earlier one took, and show the forecast."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import dspy
from omegaconf import DictConfig, OmegaConf

from generator.common.console import note
from generator.common.language import use_languages
from generator.config.job import Job
from generator.config.parts import plain, validate
from generator.config.settings import Settings, load
from generator.errors import ConfigError, describe
from generator.estimation.forecast import Sizes, forecast
from generator.estimation.settings import EstimateSettings
from generator.estimation.table import show
from generator.execution.history import read_history
from generator.execution.identity import encode, list_changes
from generator.execution.session import run_session
from generator.output.prices import PriceTable
from generator.run import Preview, Run, load_run


def estimate(cfg: DictConfig, job: Job) -> None:
    """Print what a run with the configured settings will take; with `preview`, generate its first dialogs before.

    Raises:
        GroundedDialogsError: a setting is wrong, the run can't begin, or a file can't be read.
        KeyboardInterrupt: the preview was interrupted; what is finished is written.
    """
    names = set(EstimateSettings.model_fields)
    own = validate(EstimateSettings, {k: v for k, v in plain(cfg).items() if k in names})
    if own.preview and own.earlier_run:
        raise ConfigError("earlier_run: preview measures already; leave one of them out")
    cfg = OmegaConf.masked_copy(cfg, [str(name) for name in cfg if name not in names])
    settings, configuration = load_run(cfg, job)
    prices = _open_prices(settings, own.prices)  # before a preview is paid for
    dspy.disable_logging()
    with settings.executor.open() as executor:
        run = Preview(settings, configuration, job.command, executor)
        with use_languages(run.components.languages):
            most = run.max_attempts
            if own.preview:
                run.max_attempts = min(own.preview, most)
                run_session(run, lambda summary: None)
            done = None
            if (settings.folder / "run.db").exists() and (own.preview or not settings.fresh):
                history = read_history(settings.folder)
                same = not list_changes(history.identity, encode(run.identity))
                done = history if history.spent and same else None
            sizes = Sizes(run.components)
            measured, measured_sizes = done if done and done.plans else None, sizes
            if own.earlier_run:
                measured, measured_sizes = read_history(own.earlier_run), _sizes_of(own.earlier_run, sizes)
                if not measured.plans:
                    raise ConfigError(f"earlier_run={own.earlier_run}: no dialog of it is finished; give another run")
                _check_earlier(own.earlier_run, measured.identity, encode(run.identity))
            found = forecast(sizes, done, measured, measured_sizes, settings.wanted, most)
            show(found, done, measured, own, settings, prices)


def _check_earlier(folder: Path, earlier: Mapping[str, str], identity: Mapping[str, str]) -> None:
    """Check that an earlier run took the calls of this one, and say where its models are others.

    Raises:
        ConfigError: it was made by another algorithm or judged by another judge, so that it took other calls.
    """

    def differing(*names: str) -> str:
        pairs = ((name, *(run.get(name, "null").strip('"') for run in (earlier, identity))) for name in names)
        said = (f"{name}={a} (this run: {b})" for name, a, b in pairs if a != b)
        return ", ".join(said)

    if other := differing("algorithm.name", "algorithm.reasoning", "judge.name"):
        raise ConfigError(f"earlier_run={folder}: took other calls, with {other}; give a run with this run's choices")
    if other := differing("lm.model", "judge.lm.model", "user.lm.model"):
        note(f"earlier_run={folder}: the figures are those of other models, with {other}")


def _sizes_of(folder: Path, otherwise: Sizes) -> Sizes:
    """Return the sizes of an earlier run's plans; of this run's, if that one's documents can't be read any more."""
    try:
        settings = load(cast(DictConfig, OmegaConf.load(folder / "config.yaml")))
        with settings.executor.open() as executor:
            return Sizes(Run(settings, "", "", executor).components)
    except Exception as error:  # also what OmegaConf and PyYAML raise of such a file
        why = f"its plans can't be made again ({describe(error)})"
        note(f"earlier_run={folder}: {why}; those of this run stand for them")
        return otherwise


def _open_prices(settings: Settings, file: Path | None) -> PriceTable:
    """Return the prices of models.

    Raises:
        ConfigError: `file` can't be read, or a model of the run has no price in spite of it, or no usable one.
    """
    table = PriceTable(file)
    endpoints = [settings.lm, *settings.others.values(), *([settings.judge.lm] if settings.judge.lm else [])]
    missing = [endpoint.model for endpoint in endpoints if table.find(endpoint) is None]
    if missing and file:
        names = ", ".join(dict.fromkeys(missing))
        raise ConfigError(f"{table.source}: has no price of {names}, nor has LiteLLM's table; add one")
    return table
