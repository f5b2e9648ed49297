"""What an exporter is given, and what it is."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from generator.dialogs.filter import Filter
from generator.schema import Dialog, Document, Passage


class ExportSource(NamedTuple):
    """The dialogs of a run or of people, and the documents behind them; both can be read again and again, as streams.

    Attributes:
        corpus: its name.
        dialogs: in a stable order.
        documents: all documents of the corpus, each with the passages that were searched; none where documents weren't
            cut: then each is searched as a whole. Raises CorpusError where they can't be read.
        filter: which pairs are kept; see `generator.dialogs.filter.filter_pairs`.
        rewritten: whether a turn's `retrieval_query` is its question in a form that stands alone.
    """

    corpus: str
    dialogs: Callable[[], Iterator[Dialog]]
    documents: Callable[[], Iterator[tuple[Document, Sequence[Passage]]]]
    filter: Filter
    rewritten: bool


class Exporter(Protocol):
    """Writes dialogs in the form of somebody else's tools."""

    @property
    def name(self) -> str:
        """Of the format; the folder in the run folder is called so."""
        ...

    def write(self, material: ExportSource, folder: Path) -> None:
        """Fill `folder`, which is there and empty, and takes the place of the old one afterwards.

        Raises:
            OSError: the disk refuses.
        """
        ...
