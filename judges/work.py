"""Work through the plans of runs that judge, many at a time, stored in order."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from generator.common.concurrency import in_order
from generator.errors import ConfigError, GroundedDialogsError
from generator.execution.pipeline import Progress
from generator.execution.store import Outcome, Store
from generator.output.progress import Display


def check_apart(folder: Path, source: Path) -> None:
    """Raise ConfigError if a run folder is or contains what the run reads."""
    read = source.expanduser().absolute()
    if folder.expanduser().absolute() in (read, *read.parents):
        raise ConfigError(f"run_dir={folder}: is or contains the input; give another folder")


async def work_through(
    make: Callable[[int], Coroutine[Any, Any, Outcome]],
    name: Callable[[int], str],
    total: int,
    at_once: int,
    verb: str,
    store: Store,
    stop: asyncio.Event,
) -> None:
    """Make the plans that have no outcome yet, until all have one or `stop` is set.

    Args:
        make: makes a plan, by its number.
        name: of a plan, under which its finished calls are stored.
        at_once: the most plans in progress at a time.
        verb: for the display, such as `judged`.

    Raises:
        GroundedDialogsError: the run can't go on; finished work is kept.
    """
    done, last = store.attempted, time.monotonic()

    def completion() -> int:
        return sum(usage.completion for usage in store.usage().values())

    display = Display(done, done, total, completion(), verb=verb, drops=False)
    plans = in_order(make, range(done, total), at_once, stop)
    try:
        async with aclosing(plans) as outcomes:
            with display:
                async for number, outcome in outcomes:
                    now = time.monotonic()
                    store.add(number, name(number), outcome, now - last)
                    last = now
                    display.update(Progress(number + 1, number + 1, total, completion()))
    finally:
        with suppress(GroundedDialogsError):  # the first error says more
            store.add_seconds(time.monotonic() - last)
