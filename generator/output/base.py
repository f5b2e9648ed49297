"""The protocol of exporters, what they read from, and how they write."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, TextIO

from generator.common.console import count_noun, note
from generator.dialogs.filter import Filter, filter_pairs
from generator.errors import ExportError
from generator.schema import Dialog, Document, Passage


class ExportSource(NamedTuple):
    """Generated or human dialogs and the documents behind them, as streams that can be read more than once.

    Attributes:
        dialogs: reads the dialogs, in a stable order.
        documents: reads all documents of the corpus, each with its passages; without passages a document is searched
            as a whole. Raises CorpusError if they can't be read.
        filter: which pairs are kept; see `generator.dialogs.filter.filter_pairs`.
        rewritten: a turn's `retrieval_query` is a standalone form of its question.
    """

    corpus: str
    dialogs: Callable[[], Iterator[Dialog]]
    documents: Callable[[], Iterator[tuple[Document, Sequence[Passage]]]]
    filter: Filter
    rewritten: bool


def kept_items(source: ExportSource, export: str) -> Iterator[Dialog]:
    """Yield the dialogs of a benchmark's tasks of which every pair is kept; report how many are left out.

    Raises:
        ExportError: a dialog belongs to no task.
    """
    left_out = 0
    for dialog in source.dialogs():
        if not dialog.task:
            raise ExportError(
                f"export={export}: the dialog {dialog.id} belongs to no task; choose another export, or generate "
                f"dialogs of tasks (experiment={export})"
            )
        if filter_pairs(dialog, source.filter)[1]:
            left_out += 1
        else:
            yield dialog
    if left_out:
        note(
            f"export={export}: left out {count_noun(left_out, 'dialog')} with a pair that was not kept, see drops.jsonl"
        )


class Exporter(Protocol):
    """Writes dialogs in the format of other tools; `name` is its and of its folder in the run folder."""

    @property
    def name(self) -> str: ...

    def write(self, source: ExportSource, folder: Path) -> None:
        """Write the files into `folder`, which is empty and replaces the previous export afterwards.

        Raises:
            OSError: a file can't be written.
        """
        ...


def open_text(path: Path) -> TextIO:
    """Open a file to write, with the same bytes on every system."""
    return path.open("w", encoding="utf-8", newline="\n")


def to_json(value: object) -> str:
    """Return JSON on one line."""
    return json.dumps(value, ensure_ascii=False)
