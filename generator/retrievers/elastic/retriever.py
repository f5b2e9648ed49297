"""Passages from an Elasticsearch server: by BM25, by ELSER, by dense vectors, or by a fusion of several of them."""

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from generator.common.concurrency import backoff, retrying
from generator.common.language import ENGLISH
from generator.corpora.library import Library
from generator.retrievers.base import Ranker, Ranking
from generator.retrievers.batching import Batcher
from generator.retrievers.elastic.index import Contents, Fields, Index, Part, split_filters
from generator.retrievers.elastic.server import Access, Refusal, Server, body, missing_shards
from generator.retrievers.encoder import Encoder, EncoderSettings
from generator.retrievers.hybrid import FusionSettings, fuse
from generator.schema import Operational, Split

# Queries in one request, and requests at a time.
QUERIES = 64
REQUESTS = 4
# Hits of a search, beyond which Elasticsearch refuses it; many copies of a passage have more looked at than `k`.
MOST = 10_000


class ElasticsearchSettings(FusionSettings, EncoderSettings, Access):
    """Settings of `Elasticsearch`; those of the connection are in `Access`."""

    mode: Literal["bm25", "elser", "dense", "hybrid"] = Field(
        description="How passages are found: `bm25`; `elser`, the paper's, which needs a trial or Enterprise licence; "
        "`dense`; `hybrid`, a fusion of `parts`."
    )
    parts: tuple[Part, ...] = Field(
        min_length=2, description="What `hybrid` fuses: two or three of bm25, dense, elser."
    )
    weights: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        description="Weights of `parts` in the fusion, in their order."
    )
    index: Annotated[str | None, Operational] = Field(
        min_length=1, description="Name of the index; null: derived from corpus, passages and mode."
    )
    chunk: Annotated[int, Operational] = Field(ge=1, le=1000, description="Passages to send in one request.")
    shards: int = Field(
        ge=1, description="Shards of the index. Word statistics are each shard's own, so scores depend on this."
    )
    elser_model: str = Field(
        min_length=1, description="Elasticsearch's name of the ELSER model; `.elser_model_2` runs on any processor."
    )
    ingest_endpoint: Annotated[str, Operational] = Field(
        min_length=1, description="Inference endpoint that reads passages; created unless it exists."
    )
    search_endpoint: Annotated[str, Operational] = Field(
        min_length=1, description="Inference endpoint that reads queries; created unless it exists."
    )

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if len(set(self.parts)) < len(self.parts):
            raise ValueError(f"parts: expected different ones, not {', '.join(self.parts)}")
        if len(self.weights) != len(self.parts):
            raise ValueError(f"weights: expected {len(self.parts)} numbers, one for each of {', '.join(self.parts)}")
        return self

    @property
    def searched(self) -> tuple[Part, ...]:
        """The parts that the mode searches."""
        return self.parts if self.mode == "hybrid" else (self.mode,)

    def contents(self, library: Library, encoder: Encoder | None) -> Contents:
        """Return what the index of `library` holds."""
        return Contents(
            corpus=library.corpus,
            fingerprint=library.fingerprint + ("" if library.language == ENGLISH else f"/{library.language.code}"),
            passage_tokens=library.size,
            overlap=library.overlap,
            parts=tuple(sorted(self.searched)),
            model=encoder.identity() if encoder else None,
            window=self.window if encoder else None,
            window_overlap=self.window_overlap if encoder else None,
            passage_prefix=encoder.passage_prefix if encoder else None,
            elser_model=self.elser_model if "elser" in self.searched else None,
            shards=self.shards,
        )

    def index_name(self, contents: Contents) -> str:
        """Return the name of the index with these contents."""
        if self.index is not None:
            return self.index
        content_hash = hashlib.sha256(contents.model_dump_json().encode()).hexdigest()[:12]
        corpus = re.sub(r"[^a-z0-9]+", "-", contents.corpus.lower()).strip("-")[:100]
        return f"grounded-dialogs-{corpus}-{contents.passage_tokens}-{'-'.join(contents.parts)}-{content_hash}"

    def place(self, library: Library) -> str:
        return f"index {self.index_name(self.contents(library, self._load_searched()))} at {self.where}"

    def _load_searched(self) -> Encoder | None:
        return self.load() if "dense" in self.searched else None

    def open(self, library: Library, validation: NDArray[np.bool_]) -> "Elasticsearch":
        server = Server(self)
        index = Index(self, server, library, self._load_searched())
        if "elser" in self.searched:
            _create_endpoint(server, self.ingest_endpoint, self.elser_model, threads=1)
            _create_endpoint(server, self.search_endpoint, self.elser_model, threads=2)
        index.build()
        retriever = Elasticsearch(index, validation)
        retriever.check()
        return retriever


class _Query(NamedTuple):
    text: str
    k: int
    split: Split
    within: range | None = None


class Elasticsearch(Ranker):
    """Searches titles and texts of passages. Queries that come at the same time are sent in one request.

    A score is Elasticsearch's own, or in the mode `hybrid` that of the fusion, which is computed here, so that any
    licence will do. Passages of the other split are never returned.
    """

    def __init__(self, index: Index, validation: NDArray[np.bool_]) -> None:
        super().__init__(index.library, validation)
        self._settings, self._server, self._index = index.settings, index.server, index
        self._encoding = threading.Lock()
        self._filters = split_filters(index.library, validation)
        self._batcher = Batcher(self._rank_batch, QUERIES, REQUESTS)
        self._wait_notes = self._server.wait_notes("searching", self._settings.timeout_s)

    async def rank(self, query: str, k: int, split: Split, within: range | None = None) -> Ranking:
        """Rank as `Ranker.rank`; with `bm25` alone, only passages that share a word with `query` are hits."""
        if not query.strip() or not self._allowed[split].any():
            return []
        settings = self._settings
        # The pauses are here and not in the batch's thread, so that an interrupted run needn't wait for them.
        wait = backoff(settings.retry_wait_s)
        attempts = retrying(settings.retries, wait, self._server.transient, self._wait_notes)
        try:
            ranking: Ranking = await attempts(self._batcher.submit, _Query(query, k, split, within))
        except Exception as error:
            raise self._server.explain("searching", error, settings.timeout_s) from error
        return ranking

    def check(self) -> None:
        """Search once, before a run relies on it."""

        def search(client: Any) -> None:
            (result,) = self._rank_batch([_Query(self._library.passage(0).text[:100], 1, "train")], client)
            if isinstance(result, Exception):
                raise result

        self._server.request("searching", search)

    def _rank_batch(self, queries: Sequence[_Query], client: Any = None) -> list[Ranking | Exception]:
        """Return the ranking of each query, or the error that the server returned for it; one request."""
        parts = self._settings.searched
        searches = [
            line
            for query, vector in zip(queries, self._encode(queries), strict=True)
            for part in parts
            for line in ({"index": self._index.name}, self._search(part, query, vector))
        ]
        responses = body((client or self._server.client).msearch(searches=searches))["responses"]
        return [
            self._ranking(responses[first : first + len(parts)], query.k)
            for query, first in zip(queries, range(0, len(responses), len(parts)), strict=True)
        ]

    def _encode(self, queries: Sequence[_Query]) -> list[list[float] | None]:
        encoder = self._index.encoder
        if encoder is None:
            return [None] * len(queries)
        with self._encoding:
            return [encoder.encode_query(query.text).tolist() for query in queries]

    def _search(self, part: Part, query: _Query, vector: list[float] | None) -> Fields:
        """Return the request that searches one part."""
        size = max(query.k, self._settings.depth) if self._settings.mode == "hybrid" else query.k
        allowed = [self._filters[query.split]] if self._filters[query.split] else []
        if query.within is not None:
            allowed.append({"range": {"row": {"gt": query.within.start - 1, "lte": query.within.stop - 1}}})
        search: Fields = {"size": min(size, MOST), "_source": False, "track_total_hits": False, "track_scores": True}
        search["sort"] = [{"_score": {"order": "desc"}}, {"row": {"order": "asc"}}]
        clauses: list[Fields] = [{"match": {"text": {"query": query.text}}}]
        if part == "dense":
            clauses = [
                _nearness({"term": {"windows.number": {"value": 0}}}, vector),
                _nearness({"match_all": {}}, vector),
            ]
        if part == "elser":
            # Newer servers prune tokens of low weight by default; the paper did not.
            endpoint = self._settings.search_endpoint
            sparse = {"field": "elser", "inference_id": endpoint, "query": query.text, "prune": False}
            clauses = [{"sparse_vector": sparse}]
        return search | {"query": {"bool": {"must": clauses} | ({"filter": allowed} if allowed else {})}}

    def _ranking(self, responses: Sequence[Fields], k: int) -> Ranking | Exception:
        """Return the ranking from a query's responses, one for each part."""
        rankings: list[Ranking] = []
        for response in responses:
            if "error" in response:
                return Refusal(response["status"], response["error"])
            if response["timed_out"] or response["_shards"]["failed"]:
                return missing_shards()
            rankings.append([(int(hit["_id"]), hit["_score"]) for hit in response["hits"]["hits"]])
        if self._settings.mode != "hybrid":
            return rankings[0][:k]
        return fuse(rankings, self._settings.weights, self._settings.rrf_k)[:k]


def _nearness(windows: Fields, vector: list[float] | None) -> Fields:
    """Return the clause that adds a quarter of 1 + the best cosine of some windows to a passage's score.

    With one clause for the first window and one for all, a score is that of `retriever=dense`, moved from -1 to 1 into
    0 to 1.
    """
    source = "Math.max(0, 1 + dotProduct(params.vector, 'windows.vector')) / 4"
    scored = {"query": windows, "script": {"source": source, "params": {"vector": vector}}}
    return {"nested": {"path": "windows", "score_mode": "max", "query": {"script_score": scored}}}


def _create_endpoint(server: Server, name: str, model: str, threads: int) -> None:
    """Create an inference endpoint unless it exists; Elasticsearch then downloads and starts the model."""
    service = {
        "service": "elasticsearch",
        "service_settings": {
            "model_id": model,
            "num_threads": threads,
            "adaptive_allocations": {"enabled": True, "min_number_of_allocations": 1},
        },
    }

    def create(client: Any) -> None:
        from elasticsearch import BadRequestError, NotFoundError

        try:
            client.inference.get(inference_id=name)
        except NotFoundError:
            try:
                client.inference.put(task_type="sparse_embedding", inference_id=name, inference_config=service)
            except BadRequestError as error:
                if error.error != "resource_already_exists_exception":  # created by another process meanwhile
                    raise

    server.request(f"creating the inference endpoint {name}", create)
