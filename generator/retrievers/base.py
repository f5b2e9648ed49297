"""What every retriever can be told, what its settings must do, and what those that rank rows of passages share."""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from generator.common.concurrency import Spread
from generator.corpora.library import Library
from generator.errors import ConfigError
from generator.schema import QueryForm, Record, Retriever, Scored, Split


class RetrieverSettings(Record, ABC):
    """The base of every retriever's settings; their values stand in `conf/retriever/<name>.yaml`.

    Attributes:
        k: passages for each user turn (Lee et al. 2024, section 2.4.2).
        query: what is searched for; see `generator.dialogs.query`.
        passage_tokens, overlap: of passages, in tokens; see `generator.common.passages.windows`.
    """

    k: int = Field(ge=1)
    query: QueryForm
    passage_tokens: int = Field(ge=1)
    overlap: int = Field(ge=0)

    @model_validator(mode="after")
    def _passages_can_be_cut(self) -> Self:
        if self.overlap >= self.passage_tokens:
            raise ValueError(f"overlap ({self.overlap}) must be less than passage_tokens ({self.passage_tokens})")
        return self

    def build(self, library: Library, spread: Spread) -> None:
        """Build the index if it isn't there yet, where the work can be divided; `open` builds it otherwise.

        Raises:
            RetrieverError: it can't be built.
        """

    @abstractmethod
    def open(self, library: Library, validation: NDArray[np.bool_]) -> Retriever:
        """The retriever over the passages of `library`, with its index built if it isn't there yet.

        Args:
            validation: which documents belong to the split `validation`; shape (documents,).

        Raises:
            RetrieverError: the index can't be built or read.
        """

    def place(self, library: Library) -> str:
        """Where the index of `library` is, for a person."""
        return str(library.folder)


class Ranker(ABC):
    """A retriever that ranks rows of a library's passages.

    Args:
        library: whose passages it searches.
        validation: which documents belong to the split `validation`; shape (documents,).
    """

    def __init__(self, library: Library, validation: NDArray[np.bool_]) -> None:
        self._library = library
        in_validation = validation[library.document_rows]
        self._allowed: dict[Split, NDArray[np.bool_]] = {"train": ~in_validation, "validation": in_validation}

    @abstractmethod
    async def ranked(self, query: str, k: int, split: Split) -> list[tuple[int, float]]:
        """The rows of the best `k` passages of `split` with their scores, best first; `k` is 1 or more.

        Raises:
            RetrieverError: the index can't be asked.
        """

    async def search(self, query: str, k: int, split: Split) -> list[Scored]:
        """The best `k` passages of `split`, best first; see `ranked`.

        Raises:
            ConfigError: `k` is less than 1.
            RetrieverError: the index can't be asked.
        """
        if k < 1:
            raise ConfigError(f"retriever.k must be 1 or more, not {k}")
        return [
            Scored(passage=self._library.passage(row), score=score) for row, score in await self.ranked(query, k, split)
        ]
