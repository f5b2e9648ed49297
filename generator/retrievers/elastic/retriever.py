"""Passages found by an Elasticsearch server: by words, by ELSER, by dense vectors, or by several of them joined."""

import asyncio
import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

from generator.common.concurrency import backoff
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.retrievers.base import Ranker, RetrieverSettings
from generator.retrievers.batching import Batched
from generator.retrievers.elastic.answers import Answer, Refusal, Searches, Unreadable, read
from generator.retrievers.elastic.index import Contents, Fields, Index, Part, split_filters
from generator.retrievers.elastic.server import Access, Server
from generator.retrievers.encoder import Encoder
from generator.retrievers.fusion import fused
from generator.schema import Passage, Split

# Rows of passages with their scores, best first.
Found = list[tuple[int, float]]

# Queries in one request, and requests at a time.
TOGETHER = 64
REQUESTS = 4
# The most that a kNN search may bring from a shard; a flat index looks at everything anyway.
_CANDIDATES = 10_000


class ElasticsearchSettings(RetrieverSettings, Access):
    """Settings of `Elasticsearch`; those of the connection are in `Access`.

    Attributes:
        mode: how passages are found: `bm25`, `elser`, `dense`, or `hybrid`, which joins `parts`.
        parts, weights: what `hybrid` joins, and what each counts.
        constant, depth: of the fusion (`generator.retrievers.fusion`), and the passages that each part brings.
        index: its name; None for one made of all that decides what it holds.
        chunk: passages sent at a time.
        shards: of a new index.
        model: the encoder of dense vectors; see `generator.retrievers.encoder`.
        elser_model, ingest_endpoint, search_endpoint, search_threads: of ELSER, which runs in the server: one inference
            endpoint reads passages, another one queries, with `search_threads` a copy of the model.
    """

    mode: Literal["bm25", "elser", "dense", "hybrid"]
    parts: tuple[Part, ...] = Field(min_length=2)
    weights: tuple[float, ...]
    constant: float = Field(ge=0)
    depth: int = Field(ge=1, le=_CANDIDATES)
    index: str | None
    chunk: int = Field(ge=1, le=1000)
    shards: int = Field(ge=1, le=1024)
    model: str = Field(min_length=1)
    elser_model: str = Field(min_length=1)
    ingest_endpoint: str = Field(min_length=1)
    search_endpoint: str = Field(min_length=1)
    search_threads: int = Field(ge=1)

    @field_validator("index")
    @classmethod
    def _index_name(cls, value: str | None) -> str | None:
        if value is None or (
            re.fullmatch(r"[^\W_][^\s\\/*?\"<>|,#:]*", value) and value == value.lower() and len(value.encode()) <= 255
        ):
            return value
        raise ValueError(
            'is no name for an index: lower case, a letter or digit first, none of \\ / * ? " < > | , # : and no space'
        )

    @model_validator(mode="after")
    def _parts_can_be_joined(self) -> Self:
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("parts: each can be there once")
        if len(self.weights) != len(self.parts) or min(self.weights) <= 0:
            raise ValueError(f"weights: give a number above 0 for each of {', '.join(self.parts)}")
        return self

    @property
    def searched(self) -> tuple[Part, ...]:
        """The ways of searching that the mode takes."""
        return self.parts if self.mode == "hybrid" else (self.mode,)

    def contents(self, library: Library) -> Contents:
        """What the index of `library` holds."""
        return Contents(
            corpus=library.corpus,
            fingerprint=library.fingerprint,
            passage_tokens=library.size,
            overlap=library.overlap,
            parts=tuple(sorted(self.searched)),
            model=self.model if "dense" in self.searched else None,
            elser_model=self.elser_model if "elser" in self.searched else None,
        )

    def index_name(self, library: Library) -> str:
        """The name of the index of `library`."""
        if self.index is not None:
            return self.index
        contents = self.contents(library)
        known = hashlib.sha256(contents.model_dump_json().encode()).hexdigest()[:12]
        corpus = re.sub(r"[^a-z0-9]+", "-", library.corpus.lower()).strip("-")[:100]
        return f"grounded-dialogs-{corpus}-{library.size}-{'-'.join(contents.parts)}-{known}"

    def place(self, library: Library) -> str:
        return f"index {self.index_name(library)} at {self.where}"

    def open(self, library: Library, validation: NDArray[np.bool_]) -> "Elasticsearch":
        server = Server(self)
        encoder = Encoder(self.model) if "dense" in self.searched else None
        fields = _FieldMaker(self, encoder)
        index = Index(
            server,
            self.index_name(library),
            self.contents(library),
            library,
            fields.properties(),
            fields,
            self.chunk,
            self.shards,
        )
        if "elser" in self.searched:
            _make_endpoint(server, self.ingest_endpoint, self.elser_model, threads=1)
            _make_endpoint(server, self.search_endpoint, self.elser_model, self.search_threads)
        index.build()
        retriever = Elasticsearch(self, server, index.name, library, validation, encoder)
        retriever.check(*index.sample())
        return retriever


@dataclass(frozen=True)
class _Question:
    query: str
    k: int
    split: Split | None


class Elasticsearch(Ranker):
    """Searches titles and texts of passages. What many dialogs ask at the same time goes in one request.

    A score is Elasticsearch's own, in the mode `hybrid` that of the fusion, which is computed here, where no licence
    stands in its way. Equal scores come in the order of rows. Passages of the other split are never returned.
    """

    def __init__(
        self,
        settings: ElasticsearchSettings,
        server: Server,
        index: str,
        library: Library,
        validation: NDArray[np.bool_],
        encoder: Encoder | None,
    ) -> None:
        super().__init__(library, validation)
        self._settings, self._server, self._index = settings, server, index
        self._encoder, self._encoding = encoder, threading.Lock()
        self._splits = split_filters(library, validation)
        self._batched = Batched(self._answers, TOGETHER, REQUESTS)

    async def ranked(self, query: str, k: int, split: Split) -> list[tuple[int, float]]:
        """The rows of the best `k` passages of `split`; with `bm25` alone, only those that share a word with `query`.

        Raises:
            RetrieverError: the server doesn't answer, or refuses; the run can be continued.
        """
        if not query.strip() or not self._allowed[split].any():
            return []
        settings = self._settings
        # The pauses are here and not in the thread that asks, so that an interrupted run needn't wait for them.
        attempts = AsyncRetrying(
            retry=retry_if_exception(self._server.transient),
            stop=stop_after_attempt(settings.retries + 1),
            wait=backoff(settings.retry_wait_s),
            sleep=asyncio.sleep,
            reraise=True,
        )
        try:
            found: Found = await attempts(self._batched.ask, _Question(query, k, split))
        except Exception as error:
            raise self._server.explained("searching", error, settings.timeout_s) from error
        allowed = self._allowed[split]
        return [(row, score) for row, score in found if allowed[row]]

    def check(self, text: str, finds: bool) -> None:
        """Search once, before a run relies on it.

        Args:
            finds: whether something must be found.

        Raises:
            RetrieverError: the server refuses, or finds nothing.
        """

        def once(client: Any) -> Found:
            (found,) = self._answers([_Question(text, 1, None)], client)
            if isinstance(found, Exception):
                raise found
            return found

        if not self._server.ask("searching", once) and finds:
            raise RetrieverError(
                f"index {self._index} at {self._server.access.where}: finds nothing for {text!r}, which stands in it; "
                "delete that index, and the same command builds it anew"
            )

    def _answers(self, questions: Sequence[_Question], client: Any = None) -> list[Found | Exception]:
        """(row, score) for each question, or what went wrong with it; one request."""
        parts = self._settings.searched
        vectors = self._vectors(questions)
        searches = [
            line
            for question, vector in zip(questions, vectors, strict=True)
            for part in parts
            for line in ({"index": self._index}, self._body(part, question, vector))
        ]
        responses = read(Searches, (client or self._server.client).msearch(searches=searches)).responses
        if len(responses) != len(questions) * len(parts):
            raise Unreadable(f"{len(responses)} answers to {len(questions) * len(parts)} searches")
        return [
            self._joined(responses[first : first + len(parts)], question.k)
            for question, first in zip(questions, range(0, len(responses), len(parts)), strict=True)
        ]

    def _vectors(self, questions: Sequence[_Question]) -> list[list[float] | None]:
        if self._encoder is None:
            return [None] * len(questions)
        with self._encoding:
            # One by one, since the last bits of a vector depend on what it is encoded with.
            return [self._encoder.encode([question.query])[0].tolist() for question in questions]

    def _body(self, part: Part, question: _Question, vector: list[float] | None) -> Fields:
        size = max(question.k, self._settings.depth) if self._settings.mode == "hybrid" else question.k
        clause = self._splits[question.split] if question.split else None
        body: Fields = {"size": size, "_source": False, "track_total_hits": False, "track_scores": True}
        body["sort"] = [{"_score": "desc"}, {"row": "asc"}]
        if part == "dense":
            # More than wanted, so that of equal scores at the end the first rows are there to be sorted out.
            wide = min(2 * size, _CANDIDATES)
            knn = {"field": "vector", "query_vector": vector, "k": wide, "num_candidates": wide}
            return body | {"knn": knn | ({"filter": clause} if clause else {})}
        query: Fields = {"match": {"text": {"query": question.query}}}
        if part == "elser":
            # Elasticsearch leaves out tokens that say little, unless told not to; the paper did not.
            query = {
                "sparse_vector": {
                    "field": "elser",
                    "inference_id": self._settings.search_endpoint,
                    "query": question.query,
                    "prune": False,
                }
            }
        return body | {"query": {"bool": {"must": [query]} | ({"filter": [clause]} if clause else {})}}

    def _joined(self, answers: Sequence[Answer], k: int) -> Found | Exception:
        rankings: list[Found] = []
        for answer in answers:
            ranking = answer.ranking
            if isinstance(ranking, Refusal):
                return ranking
            if any(row >= self._library.passage_count for row, _ in ranking):
                return Unreadable("a passage that isn't in the index")
            rankings.append(ranking)
        settings = self._settings
        if settings.mode != "hybrid":
            return sorted(rankings[0], key=lambda found: (-found[1], found[0]))[:k]
        return fused([[row for row, _ in ranking] for ranking in rankings], settings.weights, settings.constant)[:k]


class _FieldMaker:
    """What the documents of an index hold for the ways of searching it."""

    def __init__(self, settings: ElasticsearchSettings, encoder: Encoder | None) -> None:
        self._settings, self._encoder = settings, encoder

    def properties(self) -> Fields:
        """For the mapping; the text is kept in any case, for people who look."""
        settings = self._settings
        analysed = {"analyzer": "english"} if "bm25" in settings.searched else {"index": False}
        properties: Fields = {"text": {"type": "text"} | analysed}
        if self._encoder is not None:
            # Flat: vectors as they are, all looked at. The default rounds them and looks at some.
            properties["vector"] = {
                "type": "dense_vector",
                "element_type": "float",
                "dims": self._encoder.dimensions,
                "index": True,
                "similarity": "dot_product",
                "index_options": {"type": "flat"},
            }
        if "elser" in settings.searched:
            properties["elser"] = {
                "type": "semantic_text",
                "inference_id": settings.ingest_endpoint,
                "search_inference_id": settings.search_endpoint,
                "chunking_settings": {"strategy": "none"},  # passages are cut already
            }
        return properties

    def __call__(self, passages: Sequence[Passage]) -> list[Fields]:
        """The fields of each passage."""
        texts = [f"{passage.title}\n{passage.text}".strip() for passage in passages]
        made: list[Fields] = [{"text": text} for text in texts]
        if "elser" in self._settings.searched:
            for fields, text in zip(made, texts, strict=True):
                fields["elser"] = text
        if self._encoder is not None:
            for fields, vector in zip(made, self._encoder.encode(texts).tolist(), strict=True):
                fields["vector"] = vector
        return made


def _make_endpoint(server: Server, name: str, model: str, threads: int) -> None:
    """An inference endpoint, unless there is one of that name; Elasticsearch then fetches and starts the model."""
    service = {
        "service": "elasticsearch",
        "service_settings": {
            "model_id": model,
            "num_threads": threads,
            "adaptive_allocations": {"enabled": True, "min_number_of_allocations": 1},
        },
    }

    def make(client: Any) -> None:
        from elasticsearch import BadRequestError, NotFoundError

        try:
            client.inference.get(inference_id=name)
        except NotFoundError:
            try:
                client.inference.put(task_type="sparse_embedding", inference_id=name, inference_config=service)
            except BadRequestError as error:
                if error.error != "resource_already_exists_exception":  # somebody else was as quick
                    raise

    server.ask(f"making the inference endpoint {name}", make, at_once=True)
