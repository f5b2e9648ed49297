"""The server that stands in for Elasticsearch in the tests refuses what the real one refuses, and ranks as it does."""

import http.client
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

elasticsearch = pytest.importorskip("elasticsearch", reason="the extra 'elasticsearch' isn't installed")

from tests.support.elasticsearch_server import ElasticsearchServer, analysed, busy, plain, stored_length, weights  # noqa: E402

PROPERTIES = {
    "row": {"type": "integer"},
    "split_key": {"type": "long"},
    "text": {"type": "text", "analyzer": "english"},
    "vector": {"type": "dense_vector", "dims": 2, "similarity": "dot_product", "index_options": {"type": "flat"}},
}
SORT = [{"_score": "desc"}, {"row": "asc"}]


@pytest.fixture
def server() -> Iterator[ElasticsearchServer]:
    with ElasticsearchServer() as server:
        yield server


@pytest.fixture
def client(server: ElasticsearchServer) -> Any:
    client = elasticsearch.Elasticsearch(server.url, max_retries=0)
    client.indices.create(index="i", mappings={"dynamic": "strict", "properties": PROPERTIES})
    return client


def fill(client: Any, *documents: dict[str, Any]) -> list[dict[str, Any]]:
    operations = [
        line for row, doc in enumerate(documents) for line in ({"index": {"_id": str(row)}}, {"row": row} | doc)
    ]
    return [item["index"] for item in client.bulk(index="i", operations=operations)["items"]]


def hits(client: Any, **search: Any) -> list[tuple[str, float]]:
    found = client.search(index="i", sort=SORT, source=False, **search)["hits"]["hits"]
    return [(hit["_id"], hit["_score"]) for hit in found]


def test_the_client_takes_it_for_elasticsearch_by_its_header_alone() -> None:
    with ElasticsearchServer(product=False) as server:
        client = elasticsearch.Elasticsearch(server.url, max_retries=0)
        with pytest.raises(elasticsearch.UnsupportedProductError):
            client.info()
    with ElasticsearchServer() as server:
        assert elasticsearch.Elasticsearch(server.url).info()["tagline"]


def test_a_client_of_a_later_version_is_refused() -> None:
    with ElasticsearchServer(version=f"{elasticsearch.__version__[0] - 1}.19.0") as server:
        client = elasticsearch.Elasticsearch(server.url)
        with pytest.raises(elasticsearch.BadRequestError, match="media_type_header_exception"):
            client.info()
    with ElasticsearchServer(version=f"{elasticsearch.__version__[0] + 1}.0.0") as server:
        assert elasticsearch.Elasticsearch(server.url).info()


@pytest.mark.parametrize(
    ("path", "kind", "body", "status"),
    [
        ("/i/_bulk", "application/x-ndjson", '{"index": {"_id": "1"}}\n{"row": 1}\n', 200),
        ("/i/_bulk", "application/x-ndjson", '{"index": {"_id": "1"}}\n{"row": 1}', 400),
        ("/i/_bulk", "application/x-ndjson", '{"index": {"_id": "1"}}\n\n{"row": 1}\n', 400),
        ("/i/_bulk", "application/x-ndjson", '{"index": {"_id": "1", "color": 1}}\n{"row": 1}\n', 400),
        ("/i/_bulk", "application/x-ndjson", '{"upsert": {"_id": "1"}}\n{"row": 1}\n', 400),
        ("/i/_bulk", "text/plain", '{"index": {"_id": "1"}}\n{"row": 1}\n', 406),
        ("/i/_msearch", "application/x-ndjson", '{}\n{"query": {"match_all": {}}}\n', 200),
        ("/i/_msearch", "application/x-ndjson", '{}\n{"query": {"match_all": {}}}', 400),
        ("/i/_msearch", "application/x-ndjson", '{"size": 1}\n{"query": {"match_all": {}}}\n', 400),
        ("/i/_search", "application/json", '{"query": {"match_all": {}}}', 200),
        ("/i/_search", "application/x-ndjson", '{"query": {"match_all": {}}}', 406),
        ("/i/_search", "application/json", '{"query": {"match_all": {}}', 400),
        ("/i/_nowhere", "application/json", "{}", 400),
    ],
)
def test_what_is_sent_must_be_well_formed(
    server: ElasticsearchServer, client: Any, path: str, kind: str, body: str, status: int
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", path, body, {"Content-Type": kind})
    response = connection.getresponse()
    assert response.status == status, response.read()
    assert response.headers["X-Elastic-Product"] == "Elasticsearch"
    connection.close()


@pytest.mark.parametrize(
    ("search", "kind"),
    [
        ({"query": {"matches": {"text": "x"}}}, "parsing_exception"),
        ({"query": {"match": {"text": {"query": "x", "fuzz": 1}}}}, "parsing_exception"),
        ({"query": {"bool": {"filters": []}}}, "parsing_exception"),
        ({"query": {"range": {"row": {"above": 1}}}}, "parsing_exception"),
        ({"body": {"rows": 3, "query": {"match_all": {}}}}, "parsing_exception"),
        ({"query": {"match_all": {}}, "size": 10_001}, "illegal_argument_exception"),
        (
            {"knn": {"field": "vector", "query_vector": [1, 0], "k": 5, "num_candidates": 4}},
            "illegal_argument_exception",
        ),
        ({"knn": {"field": "vector", "query_vector": [1, 0, 0], "k": 5, "num_candidates": 9}}, "document_parsing"),
        ({"knn": {"field": "text", "query_vector": [1, 0], "k": 5, "num_candidates": 9}}, "query_shard_exception"),
    ],
)
def test_a_search_must_be_one_that_there_is(client: Any, search: dict[str, Any], kind: str) -> None:
    with pytest.raises(elasticsearch.BadRequestError, match=kind):
        client.search(index="i", **search)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"mappings": {"properties": {"x": {"type": "string"}}}}, "mapper_parsing_exception"),
        ({"mappings": {"properties": {"x": {"type": "text", "analyser": "english"}}}}, "mapper_parsing_exception"),
        ({"mappings": {"fields": {}}}, "mapper_parsing_exception"),
        ({"settings": {"refresh": 1}}, "illegal_argument_exception"),
        ({"index": "Upper"}, "invalid_index_name_exception"),
        ({"index": "i"}, "resource_already_exists_exception"),
    ],
)
def test_an_index_must_be_one_that_there_can_be(client: Any, changes: dict[str, Any], kind: str) -> None:
    with pytest.raises(elasticsearch.BadRequestError, match=kind):
        client.indices.create(**{"index": "other"} | changes)


def test_what_is_wrong_with_an_item_is_said_in_a_200(client: Any, server: ElasticsearchServer) -> None:
    server.refusals["5"] = busy(1)
    right = {"text": "a", "vector": [0.6, 0.8], "split_key": 2**63 - 1}
    wrong = [{"color": 1}, {"vector": [1.0]}, {"vector": [1.0, 1.0]}, {"split_key": 2**63}]
    statuses = [item["status"] for item in fill(client, right, *wrong, right, right)]
    assert statuses == [201, 400, 400, 400, 400, 429, 201]
    assert client.count(index="i")["count"] == 2


def test_nothing_is_found_before_the_refresh_and_all_of_it_is_there(client: Any) -> None:
    client.indices.put_settings(index="i", settings={"index": {"refresh_interval": "-1"}})
    fill(client, {"text": "a tram"})
    assert client.count(index="i")["count"] == 0
    found = client.mget(index="i", ids=["0", "1"], source=False)["docs"]
    assert [document["found"] for document in found] == [True, False]
    client.indices.refresh(index="i")
    assert client.count(index="i")["count"] == 1


def test_words_score_by_lucenes_formula(client: Any) -> None:
    assert analysed("The trams' driver's running, isn't it? Trams!") == ["tram", "driver", "run", "isn't", "tram"]
    fill(client, {"text": "A tram and a tram."}, {"text": "The ferry crosses a river."}, {"text": "A bus, a tram"})
    mean = (2 + 3 + 2) / 3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    norm = 1.2 * (0.25 + 0.75 * 2 / mean)
    expected = [("0", 2.2 * idf * 2 / (2 + norm)), ("2", 2.2 * idf / (1 + norm))]
    assert hits(client, query={"match": {"text": {"query": "trams"}}}) == [
        (name, pytest.approx(score)) for name, score in expected
    ]


def test_lengths_are_rounded_as_lucene_keeps_them() -> None:
    assert [stored_length(n) for n in (0, 7, 24, 39, 40, 41, 43, 57, 100, 512)] == [
        0,
        7,
        24,
        39,
        40,
        40,
        42,
        56,
        96,
        504,
    ]


def test_vectors_score_by_dot_product_and_filters_hold(client: Any) -> None:
    fill(client, *({"vector": vector} for vector in ([1.0, 0.0], [0.6, 0.8], [-1.0, 0.0], [1.0, 0.0])))
    knn = {"field": "vector", "query_vector": [1.0, 0.0], "k": 3, "num_candidates": 3}
    assert hits(client, knn=knn) == [("0", 1), ("3", 1), ("1", pytest.approx(0.8))]
    assert hits(client, knn=knn | {"filter": {"range": {"row": {"gt": 0, "lte": 2}}}}) == [
        ("1", pytest.approx(0.8)),
        ("2", 0),
    ]
    outside = {"bool": {"must_not": [{"terms": {"row": [0, 3]}}]}}
    assert [name for name, _ in hits(client, knn=knn | {"filter": outside})] == ["1", "2"]


ELSER = {
    "service": "elasticsearch",
    "service_settings": {"model_id": ".elser_model_2_linux-x86_64", "num_threads": 1},
}


def semantic(client: Any, chunking: dict[str, Any]) -> None:
    client.inference.put(task_type="sparse_embedding", inference_id="elser", inference_config=ELSER)
    field = {"type": "semantic_text", "inference_id": "elser"} | chunking
    client.indices.create(index="s", mappings={"properties": {"elser": field, "row": {"type": "integer"}}})


def sparse(client: Any, text: str, **more: Any) -> list[tuple[str, float]]:
    query = {"field": "elser", "inference_id": "elser", "query": text} | more
    found = client.search(index="s", query={"sparse_vector": query}, sort=SORT)["hits"]["hits"]
    return [(hit["_id"], hit["_score"]) for hit in found]


def test_token_weights_score_and_are_pruned_unless_told_not_to(client: Any) -> None:
    semantic(client, {"chunking_settings": {"strategy": "none"}})
    client.bulk(index="s", operations=[{"index": {"_id": "0"}}, {"row": 0, "elser": "ferries"}])
    assert weights("ferry ferries") == {"ferri": pytest.approx(1 + math.log(2)), "fer~": 0.25}
    assert sparse(client, "ferry", prune=False) == [("0", pytest.approx(1 + 0.25 * 0.25))]
    assert sparse(client, "ferry") == [("0", 1)]
    assert sparse(client, "ferment", prune=False) == [("0", pytest.approx(0.0625))]
    assert sparse(client, "ferment") == []


def test_long_texts_are_split_unless_told_not_to(client: Any, server: ElasticsearchServer) -> None:
    semantic(client, {})
    client.bulk(index="s", operations=[{"index": {"_id": "0"}}, {"row": 0, "elser": "river " * 512}])
    assert len(server.indexes["s"].documents["0"]["elser"]) == 3


def test_what_stands_in_the_way_of_inference(client: Any, server: ElasticsearchServer) -> None:
    semantic(client, {})

    def written() -> tuple[int, str]:
        item = client.bulk(index="s", operations=[{"index": {"_id": "0"}}, {"elser": "x"}])["items"][0]["index"]
        return item["status"], item["error"]["reason"]

    server.deployed = False
    assert written()[0] == 409
    server.endpoints.clear()
    assert written() == (404, "Inference endpoint not found [elser]")
    server.licence = "basic"
    assert written() == (403, "current license is non-compliant for [inference]")
    with pytest.raises(elasticsearch.AuthorizationException):
        client.inference.put(task_type="sparse_embedding", inference_id="other", inference_config=ELSER)


def test_one_search_of_many_can_fail_alone(client: Any, server: ElasticsearchServer) -> None:
    fill(client, {"text": "tram"}, {"text": "ferry"})
    server.refusals["ferry"] = busy(1, 503)
    searches = [line for word in ("tram", "ferry") for line in ({}, {"query": {"match": {"text": {"query": word}}}})]
    first, second = client.msearch(index="i", searches=searches)["responses"]
    assert [hit["_id"] for hit in first["hits"]["hits"]] == ["0"]
    assert (second["status"], second["error"]["type"]) == (503, "es_rejected_execution_exception")
    assert all("error" not in answer for answer in client.msearch(index="i", searches=searches)["responses"])


@pytest.mark.parametrize(
    ("credentials", "taken"),
    [
        ({"api_key": "secret"}, True),
        ({"api_key": "other"}, False),
        ({"basic_auth": ("me", "hunter2")}, True),
        ({"basic_auth": ("me", "hunter3")}, False),
        ({}, False),
    ],
)
def test_who_asks_must_be_known(credentials: dict[str, Any], taken: bool) -> None:
    with ElasticsearchServer(key="secret", user=("me", "hunter2")) as server:
        client = elasticsearch.Elasticsearch(server.url, **credentials)
        if taken:
            assert client.info()
        else:
            with pytest.raises(elasticsearch.AuthenticationException):
                client.info()


def test_faults_happen_once_each(client: Any, server: ElasticsearchServer) -> None:
    server.faults["/_count"] = [plain(json.dumps({"count": "many"}), kind="application/json")]
    assert client.count(index="i")["count"] == "many"
    assert client.count(index="i")["count"] == 0
