"""Load the settings of runs that judge, and work through their plans, many at a time, stored in order."""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from omegaconf import DictConfig, OmegaConf

from generator.common.atomic_files import atomic_write
from generator.common.concurrency import in_order
from generator.config.compose import Job
from generator.errors import ConfigError, GroundedDialogsError
from generator.execution.pipeline import Progress
from generator.execution.store import Outcome, Store
from generator.output.progress import Display
from generator.schema import Record


def stem(path: Path) -> str:
    """Return the name of a folder or file of dialogs, for the names of run folders and models."""
    return re.sub(r"(\.jsonl?)?(\.gz)?$", "", path.expanduser().absolute().name)


def check_apart(folder: Path, source: Path) -> None:
    """Raise ConfigError if a run folder is or contains what the run reads."""
    read = source.expanduser().absolute()
    if folder.expanduser().absolute() in (read, *read.parents):
        raise ConfigError(f"run_dir={folder}: is or contains the input; give another folder")


class _RunSettings(Protocol):
    @property
    def run_dir(self) -> Path | None: ...

    @property
    def folder(self) -> Path: ...


S = TypeVar("S", bound=_RunSettings)


def load_named(cfg: DictConfig, job: Job, load: Callable[[DictConfig], S], named: set[str]) -> tuple[S, str]:
    """Return the settings of a composed configuration, in a sweep with a run folder of its own, and both as YAML.

    A run that is continued by this YAML doesn't start over.

    Args:
        load: makes settings of the configuration.
        named: settings that are part of the run folder's name.
    """
    settings = load(cfg)
    if settings.run_dir is None and (folder := job.name_folder(settings.folder, named)):
        cfg.run_dir = folder
        settings = load(cfg)
    return settings, OmegaConf.to_yaml(OmegaConf.merge(cfg, {"fresh": False}), resolve=True)


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
    plans = in_order(lambda number: make(number) if number < total else None, done, at_once, stop)
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


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write records as JSON lines."""
    with atomic_write(path) as file:
        file.writelines(f"{record.model_dump_json()}\n" for record in records)
