"""A small HTTP server that behaves like one Elasticsearch node, as far as the retriever uses it.

    with ElasticsearchServer() as server:
        settings = {"hosts": server.url, ...}
        server.requests, server.indexes["name"].documents

It ranks as the real one does: BM25 with Lucene's formula, exact dot products, sums of products of token weights. It
doesn't check requests, which Elastic's specification does (`tests/retrievers/test_elastic_specification.py`). Things go
wrong on demand (`faults`, `refusals`).
"""

import asyncio
import base64
import json
import math
import re
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import Stemmer
from aiohttp import web

from tests.support.aiohttp_server import AiohttpServer
from tests.support.openai_server import hang_up

__all__ = ["hang_up"]

Json = dict[str, Any]
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]

K1, B = 1.2, 0.75
STOP_WORDS = frozenset(
    (
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with"
    ).split()
)
SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
_STEM = Stemmer.Stemmer("porter").stemWord


class Refused(Exception):
    """An error as Elasticsearch words it."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.error = status, {"type": kind, "reason": reason}

    @property
    def body(self) -> Json:
        return {"error": {"root_cause": [self.error], **self.error}, "status": self.status}


@dataclass
class Index:
    """One index: what was written, and what of it can be searched."""

    mappings: Json
    settings: Json
    documents: dict[str, Json] = field(default_factory=dict)
    visible: dict[str, Json] = field(default_factory=dict)

    def refresh(self) -> None:
        self.visible = dict(self.documents)


class ElasticsearchServer(AiohttpServer):
    """Listens on 127.0.0.1 in a thread of its own while the block lasts.

    Args:
        key: the API key that it requires, if any.
        user: (name, password) that it requires, if any.
        product: False for something that is not Elasticsearch.
        certificate: (certificate, key) files, for https.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        user: tuple[str, str] | None = None,
        product: bool = True,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        super().__init__()
        self.product = product
        self._credentials = f"ApiKey {key}" if key is not None else None
        if user is not None:
            self._credentials = "Basic " + base64.b64encode(":".join(user).encode()).decode()
        self._certificate = certificate
        self.indexes: dict[str, Index] = {}
        self.endpoints: dict[str, Json] = {}
        # Each request as (method, path, body), in order of arrival.
        self.requests: list[tuple[str, str, bytes]] = []
        # Those that were answered, with their parameters, status and answer.
        self.exchanges: list[tuple[str, str, bytes, int, Json]] = []
        # What goes wrong with requests whose path ends so, one fault a request.
        self.faults: dict[str, list[Fault]] = {}
        # What is refused in single items of _bulk (by _id) and answers of _msearch (by query), one each time.
        self.refusals: dict[str, list[Refused]] = {}

    @property
    def url(self) -> str:
        return f"http{'s' if self._certificate else ''}://127.0.0.1:{self.port}"

    def asked(self, suffix: str) -> list[list[Json]]:
        """Return the bodies of the requests whose path ends so, each as its lines of JSON."""
        return [
            [json.loads(line) for line in body.splitlines()] for _, path, body in self.requests if path.endswith(suffix)
        ]

    def written(self) -> Counter[str]:
        """Return how often each `_id` was sent to be indexed."""
        return Counter(
            line["index"]["_id"] for lines in self.asked("/_bulk") for line in lines if line.keys() == {"index"}
        )

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        context = None
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._certificate)
        await self._listen(app, ssl_context=context)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.path, body))
        for suffix, faults in self.faults.items():
            if request.path.endswith(suffix) and faults:
                return await faults.pop(0)(request)
        try:
            if self._credentials and request.headers.get("Authorization") != self._credentials:
                raise Refused(401, "security_exception", f"unable to authenticate for REST request [{request.path}]")
            status, answer = 200, self.answer(request, body)
        except Refused as refused:
            status, answer = refused.status, refused.body
        self.exchanges.append((request.method, request.path_qs, body, status, answer))
        return self.response(status, answer)

    def response(self, status: int, body: Json) -> web.Response:
        """Return a response with the headers of Elasticsearch's."""
        headers = {"X-Elastic-Product": "Elasticsearch"} if self.product else {}
        kind = "application/vnd.elasticsearch+json;compatible-with=9"
        return web.Response(status=status, body=json.dumps(body), headers={**headers, "Content-Type": kind})

    def answer(self, request: web.Request, body: bytes) -> Json:
        """Return the answer to a request when nothing goes wrong."""
        parts = [part for part in request.path.split("/") if part]
        action = next((part for part in parts if part.startswith("_")), "")
        index = parts[0] if parts and not parts[0].startswith("_") else None
        lines = [dict(json.loads(line)) for line in body.splitlines()]
        match request.method, action:
            case "PUT", "" if index:
                return self._create(index, lines[0])
            case "GET", "_mapping" if index:
                return {index: {"mappings": self._index(index).mappings}}
            case "PUT", "_mapping" if index:
                self._index(index).mappings |= lines[0]
                return {"acknowledged": True}
            case "PUT", "_settings" if index:
                self._index(index).settings |= lines[0]["index"]
                return {"acknowledged": True}
            case "POST" | "GET", "_refresh" if index:
                self._index(index).refresh()
                return {"_shards": SHARDS}
            case "POST" | "GET", "_count" if index:
                return {"count": len(self._index(index).visible), "_shards": SHARDS}
            case "POST" | "GET", "_mget" if index:
                documents = self._index(index).documents  # in real time: unlike a search, this needs no refresh
                ids = lines[0]["ids"]
                return {"docs": [{"_index": index, "_id": key, "found": key in documents} for key in ids]}
            case "POST" | "PUT", "_bulk" if index:
                return self._bulk(index, lines)
            case "POST" | "GET", "_msearch":
                return {"took": 1, "responses": [*map(self._msearch, lines[::2], lines[1::2])]}
            case (("GET" | "PUT"), "_inference"):
                return self._inference(request.method, parts[1:], lines)
        raise Refused(
            400,
            "illegal_argument_exception",
            f"no handler found for uri [{request.path}] and method [{request.method}]",
        )

    def _index(self, name: str) -> Index:
        if name not in self.indexes:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
        return self.indexes[name]

    # Indexes and documents

    def _create(self, name: str, body: Json) -> Json:
        if name in self.indexes:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}/u] already exists")
        if name != name.lower():
            raise Refused(400, "invalid_index_name_exception", f"Invalid index name [{name}], must be lowercase")
        self.indexes[name] = Index(body["mappings"], body["settings"])
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _bulk(self, name: str, lines: list[Json]) -> Json:
        index = self._index(name)
        items: list[Json] = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            key = action["index"]["_id"]
            try:
                if waiting := self.refusals.get(key):
                    raise waiting.pop(0)
                index.documents[key] = self._document(index, document)
                items.append({"index": {"_index": name, "_id": key, "status": 201, "result": "created"}})
            except Refused as refused:
                failed = {"_index": name, "_id": key, "status": refused.status, "error": refused.error}
                items.append({"index": failed})
        if index.settings.get("refresh_interval") != "-1":
            index.refresh()
        return {"took": 1, "errors": any("error" in item["index"] for item in items), "items": items}

    def _document(self, index: Index, source: Json) -> Json:
        properties = index.mappings["properties"]
        if unknown := sorted(source.keys() - properties.keys()):
            raise Refused(400, "strict_dynamic_mapping_exception", f"introduction of [{unknown[0]}] is not allowed")
        indexed = dict(source)
        for name, value in source.items():
            match properties[name]["type"]:
                case "text":
                    indexed[name] = analysed(value)
                case "nested":
                    for nested in value:
                        _check_vector(properties[name]["properties"]["vector"], nested["vector"])
                case "semantic_text":
                    assert properties[name]["inference_id"] in self.endpoints
                    words = value.split()
                    size = len(words) if properties[name]["chunking_settings"] == {"strategy": "none"} else 250
                    chunks = (" ".join(words[first : first + size]) for first in range(0, len(words), size))
                    indexed[name] = [weights(chunk) for chunk in chunks]
        return indexed

    # Searches

    def _msearch(self, header: Json, body: Json) -> Json:
        try:
            text = json.dumps(body, ensure_ascii=False)
            for word, waiting in self.refusals.items():
                if waiting and word in text:
                    raise waiting.pop(0)
            return self._search(header["index"], body) | {"status": 200}
        except Refused as refused:
            return refused.body

    def _search(self, name: str, body: Json) -> Json:
        index = self._index(name)
        if body["size"] > 10_000:
            raise Refused(400, "illegal_argument_exception", "Result window is too large")
        scores = self._scores(index, body["query"])
        assert body["sort"] == [{"_score": {"order": "desc"}}, {"row": {"order": "asc"}}], (
            "this server sorts in one way only"
        )
        best = sorted(scores.items(), key=lambda item: (-item[1], index.visible[item[0]]["row"]))
        hits = [{"_index": name, "_id": key, "_score": score} for key, score in best[: body["size"]]]
        return {"took": 1, "timed_out": False, "_shards": SHARDS, "hits": {"max_score": None, "hits": hits}}

    def _scores(self, index: Index, query: Json) -> dict[str, float]:
        ((kind, body),) = query.items()
        match kind:
            case "bool":
                several = [self._scores(index, clause) for clause in body["must"]]
                scores = {key: sum(of[key] for of in several) for key in set.intersection(*map(set, several))}
                for clause in body.get("filter", []):
                    scores = {key: scores[key] for key in scores.keys() & self._scores(index, clause).keys()}
                return scores
            case "range":
                ((name, bounds),) = body.items()
                low, high = bounds.get("gt", -math.inf), bounds.get("lte", math.inf)
                return {key: 1.0 for key, document in index.visible.items() if low < document[name] <= high}
            case "match":
                ((name, given),) = body.items()
                return _bm25(index, name, analysed(given["query"]))
            case "nested":
                return {key: score for key in index.visible if (score := _best(index, key, body)) is not None}
            case "sparse_vector":
                assert body["inference_id"] in self.endpoints
                tokens = weights(body["query"])
                scores = {
                    key: max(sum(weight * chunk.get(token, 0) for token, weight in tokens.items()) for chunk in chunks)
                    for key, chunks in ((key, document[body["field"]]) for key, document in index.visible.items())
                }
                return {key: score for key, score in scores.items() if score > 0}
        raise Refused(400, "parsing_exception", f"unknown query [{kind}]")

    # Inference

    def _inference(self, method: str, parts: list[str], lines: list[Json]) -> Json:
        name = parts[-1]
        if method == "GET":
            if name not in self.endpoints:
                raise Refused(404, "resource_not_found_exception", f"Inference endpoint not found [{name}]")
            return {"endpoints": [self.endpoints[name]]}
        (body,) = lines
        self.endpoints[name] = {"inference_id": name, "task_type": parts[0], **body}
        return self.endpoints[name]


def analysed(text: str) -> list[str]:
    """Return the terms that the analyzer `english` makes of a text."""
    words = (word.lower() for word in re.findall(r"\w+(?:['’]\w+)*", text))
    plain = (re.sub(r"['’]s$", "", word) for word in words)
    return [_STEM(word) for word in plain if word not in STOP_WORDS]


def weights(text: str) -> dict[str, float]:
    """Return a text's terms with weights, and for each a weaker one that other words share: this stands for ELSER."""
    tokens: dict[str, float] = {}
    for term, count in Counter(analysed(text)).items():
        tokens[term] = tokens.get(term, 0) + 1 + math.log(count)
        tokens[f"{term[:3]}~"] = tokens.get(f"{term[:3]}~", 0) + 0.25
    return tokens


def _bm25(index: Index, name: str, terms: list[str]) -> dict[str, float]:
    if index.mappings["properties"][name].get("index") is False:
        raise Refused(400, "query_shard_exception", f"Cannot search on field [{name}] since it is not indexed.")
    texts = {key: document[name] for key, document in index.visible.items() if document[name]}
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {key: Counter(text) for key, text in texts.items()}
    scores: dict[str, float] = {}
    for term, times in Counter(terms).items():
        holding = [key for key in texts if counts[key][term]]
        idf = math.log(1 + (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for key in holding:
            frequency = counts[key][term]
            norm = K1 * (1 - B + B * len(texts[key]) / mean)
            scores[key] = scores.get(key, 0) + times * idf * (K1 + 1) * frequency / (frequency + norm)
    return scores


def _best(index: Index, key: str, nested: Json) -> float | None:
    """Return the best score of the windows of a document that a nested query scores by a script, the only one known."""
    assert nested["score_mode"] == "max"
    scored = nested["query"]["script_score"]
    assert scored["script"]["source"] == "Math.max(0, 1 + dotProduct(params.vector, 'windows.vector')) / 4"
    vector, number = scored["script"]["params"]["vector"], scored["query"].get("term", {}).get("windows.number")
    _check_vector(index.mappings["properties"][nested["path"]]["properties"]["vector"], vector)
    scores = (
        max(0, 1 + sum(a * b for a, b in zip(window["vector"], vector, strict=True))) / 4
        for window in index.visible[key][nested["path"]]
        if number is None or number["value"] == window["number"]
    )
    return max(scores, default=None)


def _check_vector(definition: Json, vector: list[float]) -> None:
    if len(vector) != definition["dims"] or abs(sum(x * x for x in vector) - 1) > 1e-4:
        raise Refused(400, "document_parsing_exception", "a vector isn't of the mapping's dimensions, or of length 1")


# Faults


def status(code: int, kind: str = "es_rejected_execution_exception", reason: str = "the queue is full") -> Fault:
    """Refuse the whole request."""

    async def fault(request: web.Request) -> web.StreamResponse:
        refused = Refused(code, kind, reason)
        return web.json_response(refused.body, status=code, headers={"X-Elastic-Product": "Elasticsearch"})

    return fault


def plain(text: str, code: int = 200, kind: str = "text/html") -> Fault:
    """Answer what Elasticsearch wouldn't."""

    async def fault(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=code, content_type=kind)

    return fault


def slow(seconds: float) -> Fault:
    """Answer after so long, when nobody waits any more."""

    async def fault(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.Response(status=504)

    return fault


def busy(times: int, code: int = 429) -> list[Refused]:
    """Return so many refusals of one item, or one answer."""
    return [Refused(code, "es_rejected_execution_exception", "the queue is full") for _ in range(times)]
