"""`python -m generator.estimate`: what a run will take in calls, tokens, hours and money; see `docs/estimate.md`."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from generator.command import GENERATOR_GROUPS, Command, run_command
from generator.schema import LocalPath, Operational, Record

if TYPE_CHECKING:
    from pathlib import Path

    from omegaconf import DictConfig

    from generator.config.job import Job
    from generator.config.settings import Settings
    from generator.estimation.forecast import Forecast, Range, Sizes
    from generator.execution.history import History
    from generator.models.endpoints import Endpoint
    from generator.output.prices import PriceTable

COMMAND = Command(
    program="python -m generator.estimate",
    primary="estimate",
    task="generator.estimate:estimate",
    settings="generator.estimate:EstimateSettings",
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


class EstimateSettings(Record):
    """Settings of `python -m generator.estimate` beside those of the run: measurement, throughput and prices."""

    preview: Annotated[int | None, Operational] = Field(
        ge=5,
        description="Attempt so many dialogs first and reckon with what they took; they stay in the run folder, and "
        "the run continues them. null: none.",
    )
    earlier_run: Annotated[LocalPath | None, Operational] = Field(
        description="Folder of a run with the same algorithm, `algorithm.reasoning` and judge, whose costs are "
        "reckoned with; null: those of this run, if it has begun."
    )
    tokens_per_s: Annotated[float | None, Operational] = Field(
        gt=0,
        description="Completion tokens a second that the server gives to all calls together; null: as measured.",
    )
    calls_per_min: Annotated[float | None, Operational] = Field(
        gt=0, description="Calls a minute, such as a provider's limit; null: no such limit."
    )
    prices: Annotated[LocalPath | None, Operational] = Field(
        description="JSON file with prices by model, in the form of LiteLLM's table, which has the other models' (from "
        "its package); null: that table's alone."
    )


def estimate(cfg: "DictConfig", job: "Job") -> None:
    """Print what a run with the configured settings will take; with `preview`, generate its first dialogs before.

    Raises:
        GroundedDialogsError: a setting is wrong, the run can't begin, or a file can't be read.
        KeyboardInterrupt: the preview was interrupted; what is finished is written.
    """
    import dspy
    from omegaconf import OmegaConf

    from generator.common.language import use_languages
    from generator.config.parts import plain, validate
    from generator.errors import ConfigError
    from generator.estimation.forecast import Sizes, forecast
    from generator.execution.history import encode, read_history
    from generator.execution.session import run_session
    from generator.run import Preview, load_run

    names = set(EstimateSettings.model_fields)
    own: EstimateSettings = validate(EstimateSettings, "", {k: v for k, v in plain(cfg).items() if k in names})
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
                done = history if history.spent and history.identity == encode(run.identity) else None
            sizes = Sizes(run.components)
            measured, measured_sizes = done if done and done.plans else None, sizes
            if own.earlier_run:
                measured, measured_sizes = read_history(own.earlier_run), _sizes_of(own.earlier_run, sizes)
                if not measured.plans:
                    raise ConfigError(f"earlier_run={own.earlier_run}: no dialog of it is finished; give another run")
                _check_earlier(own.earlier_run, measured.identity, encode(run.identity))
            found = forecast(sizes, done, measured, measured_sizes, settings.wanted, most)
            _show(found, done, measured, own, settings, prices)


def _check_earlier(folder: "Path", earlier: Mapping[str, str], identity: Mapping[str, str]) -> None:
    """Check that an earlier run took the calls of this one, and say where its models are others.

    Raises:
        ConfigError: it was made by another algorithm or judged by another judge, so that it took other calls.
    """
    from generator.common.console import note
    from generator.errors import ConfigError

    def differing(*names: str) -> str:
        pairs = ((name, *(run.get(name, "null").strip('"') for run in (earlier, identity))) for name in names)
        said = (f"{name}={a} (this run: {b})" for name, a, b in pairs if a != b)
        return ", ".join(said)

    if other := differing("algorithm.name", "algorithm.reasoning", "judge.name"):
        raise ConfigError(f"earlier_run={folder}: took other calls, with {other}; give a run with this run's choices")
    if other := differing("lm.model", "judge.lm.model", "user.lm.model"):
        note(f"earlier_run={folder}: the figures are those of other models, with {other}")


def _sizes_of(folder: "Path", otherwise: "Sizes") -> "Sizes":
    """Return the sizes of an earlier run's plans; of this run's, if that one's documents can't be read any more."""
    from omegaconf import DictConfig, OmegaConf

    from generator.common.console import note
    from generator.config.settings import load
    from generator.errors import ConfigError, GroundedDialogsError, describe
    from generator.estimation.forecast import Sizes
    from generator.run import Run

    try:
        try:
            cfg = OmegaConf.load(folder / "config.yaml")
        except Exception as error:  # what OmegaConf and PyYAML raise, from OSError to AttributeError
            raise ConfigError(f"config.yaml can't be read ({describe(error)})") from error
        settings = load(cfg) if isinstance(cfg, DictConfig) else None
        if settings is None:
            raise ConfigError("config.yaml holds no settings")
        with settings.executor.open() as executor:
            return Sizes(Run(settings, "", "", executor).components)
    except GroundedDialogsError as error:
        note(f"earlier_run={folder}: its plans can't be made again ({error}); those of this run stand for them")
        return otherwise


def _models(settings: "Settings", stage: str) -> "list[Endpoint]":
    """Return the models that a stage asks in turn."""
    others, lm = settings.others, settings.lm
    scorers = [each for name, each in others.items() if ".scorers." in name]
    match stage:
        case "judge":
            return [settings.judge.lm or lm]
        case "ask" | "reword" | "refer":
            return [settings.user.lm or lm]
        case "candidates":
            return [lm, *(each for name, each in others.items() if ".generators." in name)]
        case "score" if scorers:
            return scorers
    return [lm]


def _open_prices(settings: "Settings", file: "Path | None") -> "PriceTable":
    """Return the prices of models.

    Raises:
        ConfigError: `file` can't be read, or a model of the run has no price in spite of it, or no usable one.
    """
    from generator.errors import ConfigError
    from generator.output.prices import PriceTable

    table = PriceTable(file)
    endpoints = [settings.lm, *settings.others.values(), *([settings.judge.lm] if settings.judge.lm else [])]
    missing = [endpoint.model for endpoint in endpoints if table.find(endpoint) is None]
    if missing and file:
        names = ", ".join(dict.fromkeys(missing))
        raise ConfigError(f"{table.source}: has no price of {names}, nor has LiteLLM's table; add one")
    return table


def _show(
    found: "Forecast",
    done: "History | None",
    measured: "History | None",
    own: EstimateSettings,
    settings: "Settings",
    prices: "PriceTable",
) -> None:
    from generator.output.tables import print_table
    from generator.schema import Usage

    usages = {stage: usage for stage in found.stages if (usage := found.usage(stage)).calls}
    calls, prompt, cached, completion = found.draws.sum(axis=2).T
    head = ("stage", "calls", "prompt, computed", "prompt, cached", "completion")
    table = [
        (stage, *(f"{count:,}" for count in (each.calls, each.prompt - each.cached, each.cached, each.completion)))
        for stage, each in (*usages.items(), ("all", sum(usages.values(), Usage())))
    ]
    if found.spread:
        ranges = [found.range(draws) for draws in (calls, prompt - cached, cached, completion)]
        table.append(("between", *(f"{low:,.0f} and {high:,.0f}" for _, low, high in ranges)))
    untold = measured is not None and 0 == measured.total.prompt < measured.total.calls
    if untold:
        table = [(stage, number, *["–"] * 3) for stage, number, *_ in table]
        own = own.model_copy(update={"tokens_per_s": None})
    print_table(table, head, head[1:])
    print()
    attempts = found.range(found.attempts)
    if attempts.low is not None and attempts.high is not None:  # which has bounds of its own
        low, high = max(attempts.low, found.accepted), min(attempts.high, float(found.attempts.max()))
        attempts = attempts._replace(low=low, high=high)
    rows = [
        ("dialogs", f"{found.accepted} accepted of {_spell(attempts, '{:,.0f}'.format)} attempted"),
        ("time", _time(found, measured, own, settings.lm.concurrency)),
        ("money", "unknown: the server doesn't report tokens" if untold else _money(found, usages, settings, prices)),
    ]
    if done is not None:
        spent = done.total
        took = f"{spent.calls:,} calls"
        if spent.prompt:
            took += f", {spent.prompt:,} prompt and {spent.completion:,} completion tokens"
        rows.append(("of it so far", f"{done.accepted} of {len(done.plans)} dialogs accepted, {took}"))
    print_table([*rows, ("how sure", _sureness(found, measured, own.earlier_run or settings.folder))])


def _sureness(found: "Forecast", measured: "History | None", folder: "Path") -> str:
    from generator.estimation.forecast import CONFIDENCE

    if measured is None:
        return "a guess, since nothing is measured: preview=5 or earlier_run=RUN measures"
    text = f"measured on {len(measured.plans)} dialogs, {measured.accepted} of them accepted, in {folder}"
    if found.spread:
        return (
            f"{text}\nwhat runs take lies in the intervals in {CONFIDENCE:.0%} of cases; a longer preview narrows them"
        )
    return f"{text}; nothing is left to do" if found.left == 0 else f"{text}: too few to tell more"


def _time(found: "Forecast", measured: "History | None", own: EstimateSettings, concurrency: int) -> str:
    """Return how long it takes at a given throughput, else at the measured one."""
    import numpy as np

    calls, _, _, completion = found.draws.sum(axis=2).T
    rates = []
    if own.calls_per_min:
        rates.append((calls * 60 / own.calls_per_min, f"{own.calls_per_min:g} calls a minute"))
    if own.tokens_per_s:
        rates.append((completion / own.tokens_per_s, f"{own.tokens_per_s:g} completion tokens a second"))
    if not rates and measured and measured.seconds and measured.total.completion:
        rate = measured.total.completion / measured.seconds
        few = len(measured.plans) < concurrency  # then not all calls that may be in flight were
        how = f"; they were {len(measured.plans)} dialogs at a time, and lm.concurrency={concurrency}" if few else ""
        rates = [(completion / rate, f"{rate:.0f} completion tokens a second, as measured{how}")]
    if not rates:
        return "unknown: give tokens_per_s=… or calls_per_min=…"
    seconds = np.max([each for each, _ in rates], axis=0)
    return f"{_spell(found.range(seconds), _duration)} at {' and '.join(text for _, text in rates)}"


def _money(found: "Forecast", stages: Iterable[str], settings: "Settings", prices: "PriceTable") -> str:
    """Return what the models cost that have a price, and which have none."""
    total: Any = 0.0
    used, missing = dict[str, None](), dict[str, None]()  # in this order, each once
    for stage in stages:
        models = _models(settings, stage)
        _, prompt, cached, completion = found.draws[:, :, found.stages.index(stage)].T
        for model in models:
            if (price := prices.find(model)) is None:
                missing[model.model] = None
                continue
            used[str(price)] = None
            cost = (prompt - cached) * price.prompt + cached * price.cached + completion * price.completion
            total = total + cost / len(models)
    names = ", ".join(missing)
    if not used:
        return f"unknown: {prices.source} has no price of {names}; prices=FILE gives one"
    money = _spell(found.range(total), lambda value: f"${value:,.2f}")
    without = f", without {names}, which has no price: prices=FILE gives one" if missing else ""
    return "\n".join([f"{money}{without}", *used])


def _spell(estimate: "Range", write: Callable[[float], str]) -> str:
    """Return an estimate with its interval in brackets, if it has one."""
    if estimate.low is None or estimate.high is None:
        return write(estimate.value)
    return f"{write(estimate.value)} ({write(estimate.low)} to {write(estimate.high)})"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
