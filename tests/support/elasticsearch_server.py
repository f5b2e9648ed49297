"""A small HTTP server that behaves like one Elasticsearch node, as far as the retriever goes, and is as strict.

    with ElasticsearchServer() as server:
        settings = {"hosts": server.url, ...}
        server.requests, server.indexes["name"].documents

It ranks as the real one does: BM25 with Lucene's formula and its rounded lengths, exact dot products, sums of products
of token weights. What the real one refuses in a request, it refuses with the same status and type:
`tests/retrievers/test_elastic_server.py` holds it to that. Things go wrong on demand (`faults`, `refusals`, `deployed`, …).
"""

import asyncio
import base64
import json
import math
import re
import ssl
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import Stemmer
from aiohttp import web

Json = dict[str, Any]
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]

K1, B = 1.2, 0.75
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with",
    )
)
_STEM = Stemmer.Stemmer("porter").stemWord
_MEDIA = re.compile(r"application/(?:vnd\.elasticsearch\+)?(json|x-ndjson)(?:\s*;\s*compatible-with=(\d+))?(?:\s*;.*)?")
_FIELD_PARAMETERS = {
    "integer": {"index"},
    "long": {"index"},
    "keyword": {"index", "ignore_above"},
    "text": {"analyzer", "index"},
    "dense_vector": {"element_type", "dims", "index", "similarity", "index_options"},
    "semantic_text": {"inference_id", "search_inference_id", "chunking_settings"},
}
_SEARCH_KEYS = {"size", "query", "knn", "sort", "_source", "track_total_hits", "track_scores"}


class Refused(Exception):
    """An error as Elasticsearch words it."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason = status, kind, reason

    @property
    def body(self) -> Json:
        cause = {"type": self.kind, "reason": self.reason}
        return {"error": {"root_cause": [cause], **cause}, "status": self.status}


@dataclass
class Index:
    """One index: what was written, and what of it can be searched."""

    mappings: Json
    settings: Json
    documents: dict[str, Json] = field(default_factory=dict)
    visible: dict[str, Json] = field(default_factory=dict)

    def refresh(self) -> None:
        self.visible = dict(self.documents)


class ElasticsearchServer:
    """Listens on 127.0.0.1 in a thread of its own while the block lasts.

    Args:
        version: of Elasticsearch; its major one must be that of the client, or the one after.
        key: the API key that it wants, if it wants one.
        user: (name, password) that it takes, if it wants one.
        licence: `basic` forbids inference.
        deployed: False: an inference endpoint is there and its model isn't.
        product: False for something that is not Elasticsearch.
        certificate: (certificate, key) files, for https.
    """

    def __init__(
        self,
        *,
        version: str = "9.1.0",
        key: str | None = None,
        user: tuple[str, str] | None = None,
        licence: str = "trial",
        deployed: bool = True,
        product: bool = True,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self.version, self.key, self.user, self.licence = version, key, user, licence
        self.deployed, self.product, self.certificate = deployed, product, certificate
        self.port = 0
        self.indexes: dict[str, Index] = {}
        self.endpoints: dict[str, Json] = {}
        # Each request as (method, path, body), in order of arrival.
        self.requests: list[tuple[str, str, bytes]] = []
        # What goes wrong with requests whose path ends so, one fault a request.
        self.faults: dict[str, list[Fault]] = {}
        # What is refused in single items of _bulk (by _id) and answers of _msearch (by query), one each time.
        self.refusals: dict[str, list[Refused]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Be gone; the port stays closed."""
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()

    def asked(self, suffix: str) -> list[list[Json]]:
        """The bodies of the requests whose path ends so, each as its lines of JSON."""
        return [
            [json.loads(line) for line in body.splitlines()] for _, path, body in self.requests if path.endswith(suffix)
        ]

    def written(self) -> Counter[str]:
        """How often each `_id` was sent to be indexed."""
        return Counter(
            line["index"]["_id"] for lines in self.asked("/_bulk") for line in lines if line.keys() == {"index"}
        )

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        context = None
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=context).start()
        self.port = self._runner.addresses[0][1]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.requests.append((request.method, request.path, body))
        for suffix, faults in self.faults.items():
            if request.path.endswith(suffix) and faults:
                return await faults.pop(0)(request)
        try:
            self._check_credentials(request)
            answer = self.answer(request, body)
            return self.response(200, answer)
        except Refused as refused:
            return self.response(refused.status, refused.body)

    def response(self, status: int, body: Json) -> web.Response:
        """An answer with what every one of Elasticsearch's has."""
        headers = {"X-Elastic-Product": "Elasticsearch"} if self.product else {}
        kind = f"application/vnd.elasticsearch+json;compatible-with={self._major}"
        return web.Response(status=status, body=json.dumps(body), headers={**headers, "Content-Type": kind})

    @property
    def _major(self) -> int:
        return int(self.version.partition(".")[0])

    def _check_credentials(self, request: web.Request) -> None:
        wanted = []
        if self.key is not None:
            wanted.append(f"ApiKey {self.key}")
        if self.user is not None:
            wanted.append("Basic " + base64.b64encode(":".join(self.user).encode()).decode())
        if wanted and request.headers.get("Authorization") not in wanted:
            reason = "missing authentication credentials for REST request"
            if "Authorization" in request.headers:
                reason = "unable to authenticate with provided credentials"
            raise Refused(401, "security_exception", f"{reason} [{request.path}]")

    def _check_media(self, request: web.Request, body: bytes, lines: bool) -> None:
        accepted = _MEDIA.fullmatch(request.headers.get("Accept", ""))
        if accepted and accepted[2] and int(accepted[2]) not in (self._major, self._major - 1):
            raise Refused(
                400,
                "media_type_header_exception",
                f"Invalid media-type value on headers [Accept]: Accept version must be either version {self._major} or "
                f"{self._major - 1}, but found {accepted[2]}.",
            )
        if not body:
            return
        given = request.headers.get("Content-Type", "")
        found = _MEDIA.fullmatch(given)
        if found is None or (found[1] == "x-ndjson" and not lines):
            raise Refused(406, "media_type_header_exception", f"Content-Type header [{given}] is not supported")

    def answer(self, request: web.Request, body: bytes) -> Json:
        """What a request gives, as it should."""
        parts = [part for part in request.path.split("/") if part]
        action = next((part for part in parts if part.startswith("_")), "")
        index = parts[0] if parts and not parts[0].startswith("_") else None
        self._check_media(request, body, lines=action in ("_bulk", "_msearch"))
        match request.method, action:
            case "GET", "" if index is None:
                return {"name": "n", "cluster_name": "c", "version": {"number": self.version}, "tagline": "You Know"}
            case "PUT", "" if index:
                return self._create(index, _parsed(body))
            case "GET", "_mapping" if index:
                return {index: {"mappings": self._index(index).mappings}}
            case "PUT", "_mapping" if index:
                return self._put_mapping(index, _parsed(body))
            case "PUT", "_settings" if index:
                return self._put_settings(index, _parsed(body))
            case "POST" | "GET", "_refresh" if index:
                self._index(index).refresh()
                return {"_shards": {"total": 1, "successful": 1, "failed": 0}}
            case "POST" | "GET", "_count" if index:
                return {"count": len(self._index(index).visible), "_shards": {"total": 1, "failed": 0}}
            case "POST" | "GET", "_mget" if index:
                return self._mget(index, _parsed(body), request.query)
            case "POST" | "PUT", "_bulk":
                return self._bulk(index, _ndjson(body, "bulk"))
            case "POST" | "GET", "_msearch":
                return self._msearch(index, _ndjson(body, "msearch"))
            case "POST" | "GET", "_search" if index:
                return self._search(index, _parsed(body))
            case (("GET" | "PUT"), "_inference"):
                return self._inference(request.method, parts[1:], _parsed(body) if body else {})
        raise Refused(
            400,
            "illegal_argument_exception",
            f"no handler found for uri [{request.path}] and method [{request.method}]",
        )

    def _index(self, name: str) -> Index:
        if name not in self.indexes:
            raise Refused(404, "index_not_found_exception", f"no such index [{name}]")
        return self.indexes[name]

    # Indexes

    def _create(self, name: str, body: Json) -> Json:
        if name in self.indexes:
            raise Refused(400, "resource_already_exists_exception", f"index [{name}/u] already exists")
        if name != name.lower() or name[0] in "-_+" or re.search(r'[\\/*?"<>| ,#:]', name) or len(name.encode()) > 255:
            raise Refused(400, "invalid_index_name_exception", f"Invalid index name [{name}]")
        _only(body, {"mappings", "settings", "aliases"}, "unknown key [{}] for create index", "parse_exception")
        settings = {f"index.{key.removeprefix('index.')}": value for key, value in body.get("settings", {}).items()}
        known = {"index.number_of_shards", "index.number_of_replicas", "index.refresh_interval"}
        _only(settings, known, "unknown setting [{}]", "illegal_argument_exception")
        mappings = body.get("mappings", {})
        _only(
            mappings,
            {"dynamic", "_meta", "properties"},
            "Root mapping definition has unsupported parameters: [{}]",
            "mapper_parsing_exception",
        )
        for field_name, definition in mappings.get("properties", {}).items():
            self._check_field(field_name, definition)
        self.indexes[name] = Index(mappings, settings)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _check_field(self, name: str, definition: Json) -> None:
        kind = definition.get("type")
        if kind not in _FIELD_PARAMETERS:
            raise Refused(
                400, "mapper_parsing_exception", f"The mapper type [{kind}] declared on field [{name}] does not exist"
            )
        known = _FIELD_PARAMETERS[kind] | {"type"}
        if self.version < "8.19" or "9.0" <= self.version < "9.1":
            known = known - {"chunking_settings"}
        _only(
            definition,
            known,
            f"unknown parameter [{{}}] on mapper [{name}] of type [{kind}]",
            "mapper_parsing_exception",
        )
        if kind == "dense_vector":
            if not 1 <= definition.get("dims", 1) <= 4096:
                raise Refused(400, "mapper_parsing_exception", f"The number of dimensions for field [{name}]")
            options = definition.get("index_options", {})
            if options.get("type") not in (None, "flat", "hnsw", "int8_hnsw", "int8_flat", "bbq_flat"):
                raise Refused(400, "mapper_parsing_exception", f"Unknown vector index options type for field [{name}]")

    def _put_mapping(self, name: str, body: Json) -> Json:
        index = self._index(name)
        _only(body, {"_meta", "properties"}, "unsupported parameters: [{}]", "mapper_parsing_exception")
        index.mappings = index.mappings | body
        return {"acknowledged": True}

    def _put_settings(self, name: str, body: Json) -> Json:
        index = self._index(name)
        changed = body.get("index", {}) if "index" in body else body
        dynamic = {"number_of_replicas", "refresh_interval"}
        _only(changed, dynamic, "unknown or static setting [index.{}]", "illegal_argument_exception")
        index.settings = index.settings | {f"index.{key}": value for key, value in changed.items()}
        return {"acknowledged": True}

    # Documents

    def _bulk(self, index: str | None, lines: list[Json]) -> Json:
        items: list[Json] = []
        remaining = iter(enumerate(lines, start=1))
        for number, line in remaining:
            (action, meta), *more = line.items()
            if more or action not in ("index", "create"):
                raise Refused(
                    400,
                    "illegal_argument_exception",
                    f"Malformed action/metadata line [{number}], expected one of [create, delete, index, update] but "
                    f"found [{action}]",
                )
            _only(
                meta,
                {"_index", "_id", "routing", "pipeline"},
                f"Action/metadata line [{number}] contains an unknown parameter [{{}}]",
                "illegal_argument_exception",
            )
            _, source = next(remaining, (0, None))
            if source is None:
                raise Refused(400, "illegal_argument_exception", "The bulk request must have a source for each action")
            name, key = meta.get("_index", index), meta["_id"]
            result = {"_index": name, "_id": key}
            try:
                if len(key.encode()) > 512:
                    raise Refused(400, "illegal_argument_exception", "id is too long, must be no longer than 512 bytes")
                if waiting := self.refusals.get(key):
                    raise waiting.pop(0)
                held = self._index(name)
                held.documents[key] = self._document(held, source)
                if held.settings.get("index.refresh_interval") != "-1":
                    held.refresh()
                items.append({action: {**result, "status": 201, "result": "created"}})
            except Refused as refused:
                error = {"type": refused.kind, "reason": refused.reason}
                items.append({action: {**result, "status": refused.status, "error": error}})
        return {"took": 1, "errors": any("error" in next(iter(item.values())) for item in items), "items": items}

    def _document(self, index: Index, source: Json) -> Json:
        properties = index.mappings.get("properties", {})
        held = dict(source)
        for name, value in source.items():
            if name not in properties:
                raise Refused(
                    400,
                    "strict_dynamic_mapping_exception",
                    f"mapping set to strict, dynamic introduction of [{name}] within [_doc] is not allowed",
                )
            kind = properties[name]["type"]
            bits = {"integer": 31, "long": 63}.get(kind)
            if bits and not (isinstance(value, int) and -(2**bits) <= value < 2**bits):
                raise Refused(400, "document_parsing_exception", f"failed to parse field [{name}] of type [{kind}]")
            if kind == "text":
                held[name] = analysed(value)
            if kind == "dense_vector":
                _check_vector(name, properties[name], value)
            if kind == "semantic_text":
                self._check_inference(properties[name]["inference_id"])
                chunking = properties[name].get("chunking_settings", {"strategy": "sentence", "max_chunk_size": 250})
                held[name] = [weights(chunk) for chunk in _chunks(value, chunking)]
        return held

    def _mget(self, name: str, body: Json, query: Any) -> Json:
        _only(body, {"ids", "docs"}, "unexpected token [{}]", "parsing_exception")
        documents = self._index(name).documents  # in real time: unlike a search, this needs no refresh
        assert query.get("_source") == "false", "whole documents are not needed"
        return {"docs": [{"_index": name, "_id": key, "found": key in documents} for key in body["ids"]]}

    # Searches

    def _msearch(self, index: str | None, lines: list[Json]) -> Json:
        if len(lines) % 2:
            raise Refused(400, "illegal_argument_exception", "a search of an msearch has no body")
        responses: list[Json] = []
        for header, body in zip(lines[::2], lines[1::2], strict=True):
            _only(
                header,
                {"index", "search_type", "preference", "routing", "request_cache", "ignore_unavailable"},
                "key [{}] is not supported in the metadata section",
                "illegal_argument_exception",
            )
            try:
                said = json.dumps(body, ensure_ascii=False)
                for text, waiting in self.refusals.items():
                    if waiting and text in said:
                        raise waiting.pop(0)
                responses.append(self._search(header.get("index", index), body) | {"status": 200})
            except Refused as refused:
                responses.append(refused.body)
        return {"took": 1, "responses": responses}

    def _search(self, name: str, body: Json) -> Json:
        index = self._index(name)
        _only(body, _SEARCH_KEYS, "unknown key [{}] in the search request", "parsing_exception")
        size = body.get("size", 10)
        if size > 10_000:
            raise Refused(400, "illegal_argument_exception", f"Result window is too large, but was [{size}]")
        scores = self._nearest(index, body["knn"]) if "knn" in body else self._scores(index, body["query"])
        wanted = [{"_score": "desc"}, {"row": "asc"}]
        if body.get("sort", wanted) != wanted:
            raise Refused(400, "illegal_argument_exception", "this server sorts in one way only")
        if "sort" in body:
            found = sorted(scores.items(), key=lambda item: (-item[1], index.visible[item[0]]["row"]))
        else:  # the real one then goes by where documents came to lie
            found = sorted(scores.items(), key=lambda item: (-item[1], item[0][::-1]))
        hits = [{"_index": name, "_id": key, "_score": score} for key, score in found[:size]]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"max_score": None, "hits": hits}}

    def _nearest(self, index: Index, knn: Json) -> dict[str, float]:
        known = {"field", "query_vector", "k", "num_candidates", "filter"}
        _only(knn, known, "[knn] unknown field [{}]", "x_content_parse_exception")
        if not 1 <= knn["k"] <= knn["num_candidates"] <= 10_000:
            raise Refused(400, "illegal_argument_exception", "[num_candidates] cannot be less than [k] or exceed 10000")
        definition = index.mappings["properties"].get(knn["field"], {})
        if definition.get("type") != "dense_vector":
            raise Refused(
                400, "query_shard_exception", f"failed to create query: field [{knn['field']}] does not exist"
            )
        _check_vector(knn["field"], definition, knn["query_vector"])
        kept = self._kept(index, knn.get("filter"))
        scores = {
            key: (1 + sum(a * b for a, b in zip(index.visible[key][knn["field"]], knn["query_vector"], strict=True)))
            / 2
            for key in kept
        }
        nearest = sorted(scores, key=scores.__getitem__, reverse=True)[: knn["k"]]
        return {key: scores[key] for key in nearest}

    def _kept(self, index: Index, clause: Json | None) -> set[str]:
        """The documents that a filter lets pass."""
        return set(index.visible) if clause is None else set(self._scores(index, clause))

    def _scores(self, index: Index, query: Json) -> dict[str, float]:
        (kind, body), *more = query.items()
        if more:
            raise Refused(400, "parsing_exception", f"[{kind}] malformed query, expected [END_OBJECT]")
        match kind:
            case "match_all":
                return dict.fromkeys(index.visible, 1.0)
            case "bool":
                return self._bool(index, body)
            case "range":
                ((name, bounds),) = body.items()
                _only(bounds, {"gt", "gte", "lt", "lte"}, "[range] query does not support [{}]", "parsing_exception")
                kept = (key for key, doc in index.visible.items() if name in doc and _within(doc[name], bounds))
                return dict.fromkeys(kept, 1.0)
            case "terms":
                ((name, values),) = body.items()
                if len(values) > 65_536:
                    raise Refused(400, "illegal_argument_exception", "The number of terms exceeds [65536]")
                terms = set(values)
                return dict.fromkeys((key for key, doc in index.visible.items() if doc.get(name) in terms), 1.0)
            case "match":
                ((name, given),) = body.items()
                _only(given, {"query", "operator"}, "[match] query does not support [{}]", "parsing_exception")
                return _bm25(index, name, analysed(given["query"]))
            case "sparse_vector":
                known = {"field", "inference_id", "query", "prune"}
                _only(body, known, "[sparse_vector] unknown field [{}]", "x_content_parse_exception")
                self._check_inference(body["inference_id"])
                asked = weights(body["query"])
                if body.get("prune", self.version >= "9.1"):
                    asked = {token: weight for token, weight in asked.items() if weight >= 0.5}
                scores = {
                    key: max(sum(weight * chunk.get(token, 0) for token, weight in asked.items()) for chunk in chunks)
                    for key, chunks in ((key, doc.get(body["field"], [])) for key, doc in index.visible.items())
                    if chunks
                }
                return {key: score for key, score in scores.items() if score > 0}
        raise Refused(400, "parsing_exception", f"unknown query [{kind}]")

    def _bool(self, index: Index, body: Json) -> dict[str, float]:
        _only(body, {"must", "filter", "must_not"}, "[bool] query does not support [{}]", "parsing_exception")
        clauses = {name: value if isinstance(value, list) else [value] for name, value in body.items()}
        kept = set(index.visible)
        scores = dict.fromkeys(kept, 0.0)
        for clause in clauses.get("filter", []):
            kept &= self._kept(index, clause)
        for clause in clauses.get("must_not", []):
            kept -= self._kept(index, clause)
        for clause in clauses.get("must", []):
            found = self._scores(index, clause)
            kept &= found.keys()
            scores = {key: scores[key] + found[key] for key in kept}
        return {key: scores[key] for key in kept}

    # Inference

    def _inference(self, method: str, parts: list[str], body: Json) -> Json:
        if self.licence == "basic":
            raise Refused(403, "security_exception", "current license is non-compliant for [inference]")
        name = parts[-1]
        if method == "GET":
            if name not in self.endpoints:
                raise Refused(404, "resource_not_found_exception", f"Inference endpoint not found [{name}]")
            return {"endpoints": [self.endpoints[name]]}
        _only(body, {"service", "service_settings", "task_settings", "chunking_settings"}, "[{}]", "status_exception")
        settings = body["service_settings"]
        known = {"model_id", "num_threads", "num_allocations", "adaptive_allocations"}
        reason = "Model configuration contains settings [{}] unknown to the [elasticsearch] service"
        _only(settings, known, reason, "status_exception")
        threads = settings["num_threads"]
        if threads < 1 or threads & (threads - 1):
            raise Refused(400, "illegal_argument_exception", "[threads_per_allocation] must be a power of 2")
        if not str(settings["model_id"]).startswith(".elser_model_2"):
            raise Refused(404, "resource_not_found_exception", f"No known trained model with model_id [{settings}]")
        if name in self.endpoints:
            raise Refused(400, "resource_already_exists_exception", f"Inference endpoint [{name}] already exists")
        self.endpoints[name] = {"inference_id": name, "task_type": parts[0], **body}
        return self.endpoints[name]

    def _check_inference(self, endpoint: str) -> None:
        if self.licence == "basic":
            raise Refused(403, "security_exception", "current license is non-compliant for [inference]")
        if endpoint not in self.endpoints:
            raise Refused(404, "resource_not_found_exception", f"Inference endpoint not found [{endpoint}]")
        if not self.deployed:
            model = self.endpoints[endpoint]["service_settings"]["model_id"]
            raise Refused(409, "status_exception", f"Trained model [{model}] is not deployed")


def analysed(text: str) -> list[str]:
    """The terms that the analyzer `english` makes of a text."""
    words = (word.lower() for word in re.findall(r"\w+(?:['’]\w+)*", text))
    plain = (re.sub(r"['’]s$", "", word) for word in words)
    return [_STEM(word) for word in plain if word not in STOP_WORDS]


def weights(text: str) -> dict[str, float]:
    """A text's terms with weights, and for each a weaker one that other words share: what stands in for ELSER here."""
    made: dict[str, float] = {}
    for term, count in Counter(analysed(text)).items():
        made[term] = made.get(term, 0) + 1 + math.log(count)
        made[f"{term[:3]}~"] = made.get(f"{term[:3]}~", 0) + 0.25
    return made


def stored_length(length: int) -> int:
    """A field's length as Lucene keeps it, in one byte: exact up to 40."""
    if length < 24:
        return length
    rest = length - 24
    shift = max(rest.bit_length() - 4, 0)
    return 24 + (rest >> shift << shift)


def _bm25(index: Index, name: str, terms: list[str]) -> dict[str, float]:
    if index.mappings["properties"].get(name, {}).get("index") is False:
        raise Refused(400, "query_shard_exception", f"Cannot search on field [{name}] since it is not indexed.")
    texts = {key: doc[name] for key, doc in index.visible.items() if doc.get(name)}
    mean = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {key: Counter(text) for key, text in texts.items()}
    scores: dict[str, float] = {}
    for term, times in Counter(terms).items():
        holding = [key for key in texts if counts[key][term]]
        idf = math.log(1 + (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for key in holding:
            frequency = counts[key][term]
            norm = K1 * (1 - B + B * stored_length(len(texts[key])) / mean)
            scores[key] = scores.get(key, 0) + times * idf * (K1 + 1) * frequency / (frequency + norm)
    return scores


def _chunks(text: str, settings: Json) -> list[str]:
    if settings["strategy"] == "none":
        return [text]
    words = text.split()
    return [" ".join(words[first : first + 250]) for first in range(0, len(words), 250)]


def _check_vector(name: str, definition: Json, vector: list[float]) -> None:
    if len(vector) != definition["dims"]:
        raise Refused(
            400,
            "document_parsing_exception",
            f"The [dense_vector] field [{name}] has a different number of dimensions [{len(vector)}] than defined in "
            f"the mapping [{definition['dims']}]",
        )
    if definition.get("similarity") == "dot_product" and abs(sum(x * x for x in vector) - 1) > 1e-4:
        raise Refused(
            400, "document_parsing_exception", "The [dot_product] similarity can only be used with unit-length vectors."
        )


def _within(value: int, bounds: Json) -> bool:
    tests: dict[str, Callable[[int], bool]] = {
        "gt": value.__gt__,
        "gte": value.__ge__,
        "lt": value.__lt__,
        "lte": value.__le__,
    }
    return all(tests[name](bound) for name, bound in bounds.items())


def _only(given: Json, known: set[str], reason: str, kind: str) -> None:
    if unknown := sorted(given.keys() - known):
        raise Refused(400, kind, reason.format(unknown[0]))


def _parsed(body: bytes) -> Json:
    try:
        return dict(json.loads(body or "{}"))
    except ValueError as error:
        raise Refused(400, "x_content_parse_exception", f"[1:1] {error}") from None


def _ndjson(body: bytes, what: str) -> list[Json]:
    if not body.endswith(b"\n"):
        raise Refused(400, "illegal_argument_exception", f"The {what} request must be terminated by a newline [\\n]")
    return [_parsed(line or b" ") for line in body[:-1].split(b"\n")]


# Faults


def status(code: int, kind: str = "es_rejected_execution_exception", reason: str = "the queue is full") -> Fault:
    """A refusal of the whole request."""

    async def fault(request: web.Request) -> web.StreamResponse:
        refused = Refused(code, kind, reason)
        return web.json_response(refused.body, status=code, headers={"X-Elastic-Product": "Elasticsearch"})

    return fault


def plain(text: str, code: int = 200, kind: str = "text/html") -> Fault:
    """Something that Elasticsearch wouldn't say."""

    async def fault(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=code, content_type=kind)

    return fault


async def hang_up(request: web.Request) -> web.StreamResponse:
    """Close the connection without a word."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def slow(seconds: float) -> Fault:
    """No answer for so long; then a refusal that nobody waits for."""

    async def fault(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.Response(status=504)

    return fault


def busy(times: int, code: int = 429) -> list[Refused]:
    """So many refusals of one item, or one answer."""
    return [Refused(code, "es_rejected_execution_exception", "the queue is full") for _ in range(times)]
