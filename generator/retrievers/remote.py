"""Search passages that another program keeps, such as one's retrieval in production, as `http` and `mcp` do.

The program has an index of its own: its passages may be of the corpus or not, cut as it likes.
"""

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.json_schema import models_json_schema

from generator.common.concurrency import WaitNotes, backoff, retrying
from generator.common.console import note
from generator.common.sanitize import read_key
from generator.corpora.library import Library, split_key
from generator.errors import Rejected, RetrieverError
from generator.models.http_errors import error_text, retry_after
from generator.retrievers.base import Connection, RetrieverSettings
from generator.schema import Id, Operational, Passage, Record, Scored, Split, Text

_WIDER = 4
# Statuses below 500 that may pass; those above do.
_TRANSIENT = frozenset({408, 425, 429})
# Statuses that are no fault of the search.
_BUSY = frozenset({429, 502, 503, 504})
_SHAPE = "docs/retrieval.md has the shape of requests and replies"


class Filter(Record):
    """The limits of a search. A server that can't filter may leave it out: other passages are dropped here."""

    split: Split = Field(description="The split of the dialog; a document belongs to one by its id.")
    document_id: str | None = Field(description="The only document to search; null: all.")


class SearchRequest(Record):
    """The body of a request."""

    query: str = Field(description="The text to search for.")
    k: int = Field(ge=1, description="The number of passages wanted.")
    filter: Filter


class FoundPassage(BaseModel):
    """A passage of a reply; further keys are ignored."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    id: Id = Field(description="Unique in your index, and the same in every reply.")
    text: Text = Field(description="The passage, as it is shown to the model and cited; a blank one is left out.")
    document_id: Id | None = Field(None, description="The document it belongs to; null: the passage is one of its own.")
    title: Text | None = Field(None, description="The document's title.")
    url: Text | None = Field(None, description="The document's address.")
    start: int | None = Field(None, ge=0, description="Its offset in the document's text, in characters, if known.")
    score: float | None = Field(None, description="Higher is better; null: 1 / rank.")


class SearchReply(BaseModel):
    """The body of a reply; further keys are ignored."""

    model_config = ConfigDict(frozen=True)

    passages: tuple[FoundPassage, ...] = Field(description="At most k passages, best first; more are dropped.")

    @classmethod
    def parse(cls, content: bytes | str) -> Self:
        """Return the reply in a JSON text.

        Raises:
            ValueError: it is of another shape; one line that says where.
        """
        try:
            # JSON escapes can hold lone surrogates, as of a passage that JavaScript has cut in an emoji.
            whole = json.dumps(json.loads(content), ensure_ascii=False).encode(errors="replace")
            return cls.model_validate_json(whole)
        except RecursionError as error:
            raise ValueError("the reply: too deeply nested") from error
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, problem["loc"])) or "the reply"
            raise ValueError(f"{place}: {problem['msg'].removeprefix('Value error, ')}") from None


def schema() -> dict[str, Any]:
    """Return the JSON schema of requests and replies (`$defs/SearchRequest`, `$defs/SearchReply`)."""
    _, definitions = models_json_schema([(SearchRequest, "validation"), (SearchReply, "validation")])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "retriever=http", **definitions}


class RemoteSettings(Connection, RetrieverSettings):
    """The base of the settings of every retriever that asks another program."""

    max_k: int = Field(
        ge=1,
        description="Passages to ask for at most. A server that ignores the filter is asked for more than `k` until "
        "enough of them are of the dialog's split.",
    )
    concurrency: Annotated[int, Operational] = Field(ge=1, description="Searches in flight at a time.")

    @model_validator(mode="after")
    def _check_max_k(self) -> Self:
        if self.max_k < self.k:
            raise ValueError(f"max_k ({self.max_k}) must be k ({self.k}) or more")
        return self

    @property
    @abstractmethod
    def where(self) -> str:
        """Name what is asked, for messages."""

    def headers(self) -> dict[str, str]:
        """Return the HTTP header that holds the API key, if there is one; errors as of `read_key`."""
        key = read_key(self.api_key_env)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def place(self, library: Library) -> str:
        return f"searched at {self.where}"


class SearchFailed(Exception):
    """A search failed; the message is for the user.

    Args:
        transient: the same search may succeed later.
        at_once: a first search that fails like this isn't tried again, such as one without a connection.
        retry_after: how many seconds the server asks to wait.
        busy: the server says that it has no time.
    """

    def __init__(
        self, message: str, transient: bool = False, at_once: bool = False, retry_after: float = 0, busy: bool = False
    ) -> None:
        super().__init__(message)
        self.transient, self.at_once, self.retry_after, self.busy = transient, at_once, retry_after, busy


class RemoteRetriever(ABC):
    """A retriever whose passages another program finds; for the arguments see `RetrieverSettings.open`.

    A passage is one of the corpus if the corpus has its document and the document its text; its offsets are then those
    in the document. The others are kept too, with offsets in themselves. Every document id belongs to one split, as in
    `Library.validation`, also one that the corpus lacks, so dialogs of different splits share no document.
    """

    def __init__(self, settings: RemoteSettings, library: Library, validation: NDArray[np.bool_]) -> None:
        self._remote, self._library, self._validation = settings, library, validation
        held = library.split_keys()[validation]
        self._bound = int(held.max()) if len(held) else -1
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._found_blank = False
        self._backoff = backoff(settings.retry_wait_s)
        # Without the advice for when it has given up.
        self._wait_notes = WaitNotes(lambda error: f"{settings.where}: {str(error).partition('; ')[0]}")

    @abstractmethod
    async def send(self, request: SearchRequest) -> bytes | str:
        """Return the reply to a request, as the JSON text of a `SearchReply`.

        Raises:
            SearchFailed: there is none.
            ValueError: it can't be one.
        """

    async def ask(self, request: SearchRequest, fail_fast: bool = False) -> Sequence[FoundPassage]:
        """Return what the program found, best first.

        Args:
            fail_fast: for the first request of all: without retries of what is `SearchFailed.at_once`.

        Raises:
            RetrieverError: it can't be asked; one line.
        """

        def transient(error: BaseException) -> bool:
            return isinstance(error, SearchFailed) and error.transient and not (fail_fast and error.at_once)

        attempts = retrying(self._remote.retries, self._backoff, transient, self._wait_notes)
        try:
            return SearchReply.parse(await attempts(self._send, request)).passages
        except SearchFailed as error:
            raise RetrieverError(f"{self._remote.where}: {error}") from error
        except ValueError as error:
            raise RetrieverError(f"{self._remote.where}: not a reply to a search ({error}); {_SHAPE}") from error

    async def _ask_again(self, request: SearchRequest, error: RetrieverError) -> Sequence[FoundPassage]:
        """Make a search that failed once more, if the program answers the one for the corpus's first words.

        Raises:
            RetrieverError: it doesn't: the error of before.
            Rejected: it does, so that every other search may succeed.
        """
        for each in (request.model_copy(update={"query": self._first_words()}), request):
            try:
                found = SearchReply.parse(await self._send(each)).passages
            except (SearchFailed, ValueError):
                if each is not request or getattr(error.__cause__, "busy", False):
                    raise error from error.__cause__
                raise Rejected("retrieve", "the search fails at this query", f"{request.query}\n{error}") from error
        return found

    async def _send(self, request: SearchRequest) -> bytes | str:
        async with self._slots:
            return await self.send(request)

    def refused(self, status: int, content: bytes, headers: Mapping[str, str]) -> SearchFailed:
        """Return the failure that an HTTP status of 400 or more is."""
        key = self._remote.api_key_env
        what = f"HTTP {status} while searching ({error_text(content, key)})"
        match status:
            case 401 | 403:
                held = "was refused" if os.environ.get(key) else "is not set"
                return SearchFailed(f"{what}; the API key in the environment variable {key} {held}")
            case _ if status in _TRANSIENT or status >= 500:
                why = "the server is overloaded or failing; later the same command continues"
                return SearchFailed(f"{what}: {why}", True, False, retry_after(headers) or 0, status in _BUSY)
            case _:
                return SearchFailed(f"{what}; check retriever.url: {_SHAPE}")

    def timed_out(self) -> SearchFailed:
        """Return the failure that a time-out is."""
        why = f"timed out after {self._remote.timeout_s:g} s while searching"
        return SearchFailed(f"{why}; the same command continues, with a longer retriever.timeout_s", True)

    def broken(self, cause: str, unreached: bool) -> SearchFailed:
        """Return the failure that a broken connection is; `unreached`: there was none."""
        advice = "start the server there or set retriever.url; the same command continues"
        return SearchFailed(f"connection failed while searching ({cause}); {advice}", True, unreached)

    async def search(self, query: str, k: int, split: Split, document: str | None = None) -> list[Scored]:
        """Return the best `k` passages of `split`, or of one document of it, best first.

        Raises:
            RetrieverError: the program can't be asked; one line.
            Rejected: this search always fails, and others don't.
        """
        wanted = min(k, self._remote.max_k)
        while query.strip():
            request = SearchRequest(query=query, k=wanted, filter=Filter(split=split, document_id=document))
            try:
                found = await self.ask(request)
            except RetrieverError as error:
                found = await self._ask_again(request, error)
            kept = self._kept(found[:wanted], split, document)
            if len(kept) >= k or len(found) < wanted or wanted >= self._remote.max_k:
                return kept[:k]
            wanted = min(_WIDER * wanted, self._remote.max_k)
        return []

    def check(self) -> None:
        """Search once, before a run relies on it.

        Raises:
            RetrieverError: as of `ask`.
        """
        request = SearchRequest(query=self._first_words(), k=1, filter=Filter(split="train", document_id=None))
        asking = self.ask(request, fail_fast=True)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            found = asyncio.run(asking)  # which Ctrl-C ends
        else:
            with ThreadPoolExecutor(1) as thread:  # in a worker of Ray
                found = thread.submit(asyncio.run, asking).result()
        if not found:
            note(
                f"{self._remote.where}: finds nothing for the first words of the corpus; check that the index holds "
                "its documents, since a dialog without passages is dropped"
            )

    def _first_words(self) -> str:
        return self._library.passage(0).text[:100]

    def _kept(self, found: Sequence[FoundPassage], split: Split, document: str | None) -> list[Scored]:
        """Return those of a reply that belong to the split and the document, without copies."""
        kept: dict[tuple[str, str], Scored] = {}
        for rank, each in enumerate(found, 1):
            if not each.text.strip():
                self._note_blank(each)
                continue
            name = each.document_id or each.id
            if self._split(name) == split and document in (None, name):
                score = 1 / rank if each.score is None else each.score
                kept.setdefault((each.id, each.text), Scored(passage=self._passage(each, name), score=score))
        return list(kept.values())

    def _split(self, document_id: str) -> Split:
        row = self._library.row(document_id)
        held = split_key(document_id) <= self._bound if row is None else self._validation[row]
        return "validation" if held else "train"

    def _note_blank(self, found: FoundPassage) -> None:
        if not self._found_blank:
            note(f"{self._remote.where}: passage {found.id} has no text; such passages are left out")
        self._found_blank = True

    def _passage(self, found: FoundPassage, name: str) -> Passage:
        start = 0
        document = self._library.get(name)
        if document is not None:
            place = found.start if found.start is not None and document.text.startswith(found.text, found.start) else -1
            start = place if place >= 0 else max(0, document.text.find(found.text))
        return Passage(
            id=found.id,
            document_id=name,
            title=found.title or (document.title if document else ""),
            text=found.text,
            url=found.url or (document.url if document else None),
            start=start,
            end=start + len(found.text),
        )


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2))
