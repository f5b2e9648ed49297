"""The settings of every retriever and of connections, and the base of those that rank the passages of a library."""

from abc import ABC, abstractmethod
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from generator.common.concurrency import Spread
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.schema import Operational, QueryForm, Record, Retriever, Scored, Split, VariableName

# Rows of passages with their scores, best first.
Ranking = list[tuple[int, float]]


class RetrieverSettings(Record, ABC):
    """The base of every retriever's settings; the defaults are in `conf/retriever/`."""

    k: int = Field(ge=1, description="Passages to retrieve for each user turn.")
    query: QueryForm = Field(
        description="What to search for: `last_turn`, the question as asked; `rewrite`, the question rewritten to "
        "stand alone; `user_turns`, all questions so far; `full`, all questions and answers so far."
    )
    passage_tokens: int = Field(
        ge=1, description="Length of a passage in tokens, which are words and punctuation marks (Lee et al. 2024: 512)."
    )
    overlap: int = Field(ge=0, description="Tokens that neighbouring passages share, at least (Lee et al. 2024: 100).")

    @model_validator(mode="after")
    def _check_overlap(self) -> Self:
        if self.overlap >= self.passage_tokens:
            raise ValueError(f"overlap ({self.overlap}) must be less than passage_tokens ({self.passage_tokens})")
        return self

    def build(self, library: Library, spread: Spread) -> None:
        """Build the index unless it exists, if the work can be divided; otherwise `open` builds it.

        Raises:
            RetrieverError: the index can't be built.
        """

    @abstractmethod
    def open(self, library: Library, validation: NDArray[np.bool_]) -> Retriever:
        """Return the retriever over the passages of `library`, building its index unless it exists.

        Args:
            validation: the documents of the split `validation`, from `Library.validation`; shape (documents,).

        Raises:
            RetrieverError: the index can't be built or read.
        """

    def place(self, library: Library) -> str:
        """Return where the index of `library` is, to show to the user."""
        return str(library.folder)


class Connection(Record):
    """The settings of a connection with a server. The key itself is no setting, so that it is never stored."""

    timeout_s: Annotated[float, Operational] = Field(gt=0, description="Time-out of a search, in seconds.")
    retries: Annotated[int, Operational] = Field(ge=0, description="Further attempts after a request that failed.")
    retry_wait_s: Annotated[float, Operational] = Field(
        gt=0, description="Pause before the first retry, in seconds; it doubles with each one, up to a minute."
    )
    api_key_env: Annotated[VariableName, Operational] = Field(
        description="Environment variable that holds an API key. The key is sent if the variable is set."
    )


class Ranker(ABC):
    """A retriever that ranks the passages of a library by row; for the arguments see `RetrieverSettings.open`."""

    def __init__(self, library: Library, validation: NDArray[np.bool_]) -> None:
        self._library = library
        in_validation = validation[library.document_rows]
        self._allowed: dict[Split, NDArray[np.bool_]] = {"train": ~in_validation, "validation": in_validation}

    @abstractmethod
    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        """Return the rows and scores of the best `k` passages of `split`; equal scores in the order of the corpus.

        Args:
            within: only these rows; None: all.

        Raises:
            RetrieverError: the index can't be searched.
        """

    async def search(self, query: str, k: int, split: Split, document: str | None = None) -> list[Scored]:
        """Return the best `k` passages of `split`, or of one document of it, best first; errors as of `rank`."""
        within = None if document is None else self._library.passage_rows(self._library.find(document))
        ranking = await self.rank(query, k, split, within)
        rows, allowed = [row for row, _ in ranking], self._allowed[split]
        fit = all(0 <= row < len(allowed) and allowed[row] and (within is None or row in within) for row in rows)
        if not fit or len(set(rows)) < len(rows):  # such as the -1 that FAISS fills up with
            name, own = type(self).__name__, "self._searched(split, within)"
            raise RetrieverError(
                f"{name}.rank: returned a row twice, or one that wasn't to be searched; {own} has those"
            )
        return [Scored(passage=self._library.passage(row), score=score) for row, score in ranking]

    def _searched(self, split: Split, within: range | None) -> NDArray[np.bool_]:
        """Return the mask of the passages that a query may find; shape (passages,)."""
        allowed = self._allowed[split]
        if within is None:
            return allowed
        mask = np.zeros_like(allowed)
        mask[within.start : within.stop] = allowed[within.start : within.stop]
        return mask


def divide(total: int, size: int) -> list[range]:
    """Return the numbers below `total` in ranges of `size`, the last of which may be shorter."""
    return [range(start, min(start + size, total)) for start in range(0, total, size)]
