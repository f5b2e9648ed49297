"""Read the items that a model is evaluated on, and draw some of them."""

import random
from pathlib import Path

from generator.errors import CorpusError
from generator.schema import Context, Dialog, SkippedRecord
from generator.sets import note_skipped
from judges.benchmarks.base import Benchmark


def read_items(benchmark: Benchmark, source: Path) -> tuple[list[Dialog], list[SkippedRecord]]:
    """Return the items of a file or folder, and the records that can't be read.

    Raises:
        CorpusError: there are none, one isn't of this benchmark, or two have the same id.
    """
    items: list[Dialog] = []
    skipped: list[SkippedRecord] = []
    seen: set[tuple[str, Context | None]] = set()
    for record in benchmark.items(source):
        if isinstance(record, SkippedRecord):
            skipped.append(record)
            continue
        if (fault := benchmark.check(record)) is not None:
            raise CorpusError(f"{source}: dialog {record.id}: {fault}")
        if (record.id, record.context) in seen:
            raise CorpusError(f"{source}: two dialogs have the id {record.id!r}; remove one")
        seen.add((record.id, record.context))
        items.append(record)
    note_skipped(source, skipped, len(items))
    if len({item.context is None for item in items}) > 1:
        raise CorpusError(f"{source}: some dialogs are answered by a model and some are not; give a file of one kind")
    return items, skipped


def draw_items(items: list[Dialog], each: int | None, seed: int) -> list[Dialog]:
    """Return `each` items of every task, drawn by the seed and in their order; all with None."""
    if each is None:
        return items
    ids: dict[str, list[str]] = {}
    for item in items:
        ids.setdefault(item.task, []).append(item.id)
    kept: set[tuple[str, str]] = set()
    for task, names in ids.items():
        unique = list(dict.fromkeys(names))
        drawn = random.Random(f"{seed}/{task}").sample(unique, min(each, len(unique)))
        kept.update((task, name) for name in drawn)
    return [item for item in items if (item.task, item.id) in kept]
