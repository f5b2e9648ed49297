"""What every retriever can be told, and what its settings class must do."""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from generator.library import Library
from generator.schema import QueryForm, Record, Retriever


class RetrieverSettings(Record, ABC):
    """The base of every retriever's settings; their values stand in `conf/retriever/<name>.yaml`.

    Attributes:
        k: passages for each user turn (Lee et al. 2024, section 2.4.2).
        query: what is searched for; see `generator.retrievers.query`.
        passage_tokens, overlap: of passages, in tokens; see `generator.passages.windows`.
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
