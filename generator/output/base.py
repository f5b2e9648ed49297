"""The protocol of exporters, and what they read from."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from generator.dialogs.filter import Filter
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
