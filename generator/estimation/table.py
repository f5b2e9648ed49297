"""Show what a run will take: calls and tokens by stage, time, money, and how sure that is."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from generator.common.console import count_noun
from generator.config.settings import Settings
from generator.estimation.forecast import CONFIDENCE, Forecast, Range
from generator.estimation.settings import EstimateSettings
from generator.execution.history import History
from generator.models.endpoints import Endpoint
from generator.output.prices import PriceTable
from generator.output.tables import print_table
from generator.schema import Usage


def show(
    found: Forecast,
    done: History | None,
    measured: History | None,
    own: EstimateSettings,
    settings: Settings,
    prices: PriceTable,
) -> None:
    """Print the tables of a forecast.

    Args:
        done: what the run has taken so far; None: nothing.
        measured: the run that was measured; None: nothing was.
    """
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
    dialogs = f"{found.accepted:,} accepted of {_spell(attempts, '{:,.0f}'.format)} attempted"
    if found.accepted < settings.wanted:
        end = "the last of algorithm.first_questions or " if settings.algorithm.first_questions else ""
        dialogs += f"; {end}max_attempts stops the run before {settings.wanted:,}"
    rows = [
        ("dialogs", dialogs),
        ("time", _time(found, measured, own, settings.lm.concurrency)),
        ("money", "unknown: the server doesn't report tokens" if untold else _money(found, usages, settings, prices)),
    ]
    if done is not None:
        spent = done.total
        took = count_noun(spent.calls, "call")
        if spent.prompt:
            took += f", {spent.prompt:,} prompt and {spent.completion:,} completion tokens"
        rows.append(("of it so far", f"{done.accepted:,} of {count_noun(len(done.plans), 'dialog')} accepted, {took}"))
    print_table([*rows, ("how sure", _sureness(found, measured, own.earlier_run or settings.folder))])


def _sureness(found: Forecast, measured: History | None, folder: Path) -> str:
    if measured is None:
        return "a guess, since nothing is measured: preview=5 or earlier_run=RUN measures"
    text = (
        f"measured on {count_noun(len(measured.plans), 'dialog')}, {measured.accepted:,} of them accepted, in {folder}"
    )
    if found.spread:
        return (
            f"{text}\nwhat runs take lies in the intervals in {CONFIDENCE:.0%} of cases; a longer preview narrows them"
        )
    return f"{text}; nothing is left to do" if found.left == 0 else f"{text}: too few to tell more"


def _time(found: Forecast, measured: History | None, own: EstimateSettings, concurrency: int) -> str:
    """Return how long it takes at a given throughput, else at the measured one."""
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


def _money(found: Forecast, stages: Iterable[str], settings: Settings, prices: PriceTable) -> str:
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


def _spell(estimate: Range, write: Callable[[float], str]) -> str:
    """Return an estimate with its interval in brackets, if it has one."""
    if estimate.low is None or estimate.high is None:
        return write(estimate.value)
    return f"{write(estimate.value)} ({write(estimate.low)} to {write(estimate.high)})"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _models(settings: Settings, stage: str) -> list[Endpoint]:
    """Return the models that a stage asks in turn."""
    others, lm = settings.others, settings.lm
    scorers = [each for name, each in others.items() if ".scorers." in name]
    match stage:
        case "judge":
            return [settings.judge.lm or lm]
        case "ask" | "reword":
            return [settings.user.lm or lm]
        case "candidates":
            return [lm, *(each for name, each in others.items() if ".generators." in name)]
        case "score" if scorers:
            return scorers
    return [lm]
