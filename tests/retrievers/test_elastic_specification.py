"""What our client sends and the test server answers, against Elasticsearch's own OpenAPI specification."""

import gzip
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.retrievers.test_elastic import MODES, alone, found, library, numbered, opened, server, the_index
from tests.support.elasticsearch_server import ElasticsearchServer, busy
from tests.support.openapi import Specification

__all__ = ["alone", "server"]

# All paths that the client uses; the specification calls `_mapping` and the like by these names.
PATHS = {
    "/{index}",
    "/{index}/_mapping",
    "/{index}/_settings",
    "/{index}/_refresh",
    "/{index}/_count",
    "/{index}/_mget",
    "/{index}/_bulk",
    "/_msearch",
    "/_inference/{inference_id}",
    "/_inference/{task_type}/{inference_id}",
}


def agreed(content: dict[str, Any]) -> dict[str, Any]:
    """Return the specification with what Elasticsearch itself says otherwise, each with its source."""
    schemas = content["components"]["schemas"]
    # `_meta` holds whatever an application wants, text too: the page "_meta field" of Elastic's reference has the
    # example "class": "MyApp::User". The specification's own `UserDefinedValue`, any JSON, was rendered as an object.
    # So are the parameters of a script, of which the page "Script score query" has a vector.
    schemas["_types.Metadata"]["additionalProperties"] = {}
    schemas["_types.Script"]["properties"]["params"]["additionalProperties"] = {}
    # Of the fields that results are sorted by, the specification's `AdditionalProperty<Field, FieldSort>` is lost.
    order = {"type": "object", "properties": {"order": {"$ref": "#/components/schemas/_types.SortOrder"}}}
    schemas["_types.SortOptions"]["additionalProperties"] = order
    # The strategy `none` takes no other setting: `NoneChunkingSettings.fromMap` of elastic/elasticsearch refuses every
    # key but `strategy`, so what is required here can't be sent.
    for schema in schemas.values():
        if {"strategy", "max_chunk_size"} <= schema.get("properties", {}).keys():
            schema["required"] = [name for name in schema.get("required", ()) if name != "max_chunk_size"]
    # Serverless has no shards to set; the full stack has these (the page "Index settings" of Elastic's reference).
    for name in ("number_of_shards", "number_of_replicas"):
        schemas["indices._types.IndexSettings"]["properties"][name] = {"type": "integer"}
    # A setting that is null returns to its default: the page "Update index settings" has "refresh_interval": null.
    refresh = schemas["indices._types.IndexSettings"]["properties"]["refresh_interval"]
    schemas["indices._types.IndexSettings"]["properties"]["refresh_interval"] = {"nullable": True, **refresh}
    return content


@pytest.fixture(scope="module")
def specification(data: Path) -> Specification:
    with gzip.open(data / "elasticsearch_spec" / "elasticsearch-serverless-openapi.json.gz") as file:
        return Specification(agreed(json.load(file)), PATHS)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_requests_and_replies_are_those_of_the_specification(
    mode: dict[str, Any], specification: Specification, server: ElasticsearchServer, tmp_path: Path
) -> None:
    lib = numbered(tmp_path / "numbered", 12)
    server.refusals["3"] = busy(1)  # a reply that has errors in it
    retriever = opened(lib, server, 0.3, chunk=5, **mode)
    assert found(retriever, "number3 harbour")
    assert found(retriever, "harbour", split="validation")
    index = the_index(server)
    del index.documents["3"]
    index.refresh()
    opened(lib, server, 0.3, **mode)  # looks for what is missing
    opened(library(tmp_path / "titles"), server, index="titles", **mode)
    assert {re.split("[/?]", url)[-1 - ("?" in url)] for _, url, *_ in server.exchanges} >= {
        "_bulk",
        "_mget",
        "_msearch",
        "_count",
    }
    for method, url, body, status, reply in server.exchanges:
        path, _, query = url.partition("?")
        specification.check_parameters(method, path, parse_qs(query))
        lines = [json.loads(line) for line in body.splitlines()]
        several = path.endswith(("_bulk", "_msearch"))
        specification.check_request(method, path, lines if several else lines[0] if lines else None)
        if status == 200:
            specification.check_reply(method, path, reply)
        else:
            specification.check("_types.ErrorResponseBase", reply)


def test_what_the_specification_does_not_name_is_refused(specification: Specification) -> None:
    specification.check_request("POST", "/_msearch", [{"index": "mine"}, {"query": {"match_all": {}}, "size": 3}])
    for body in ({"sise": 3}, {"query": {"bool": {"must": [], "filters": []}}}, {"size": "many"}):
        with pytest.raises(AssertionError):
            specification.check_request("POST", "/_msearch", [{"index": "mine"}, body])
    with pytest.raises(AssertionError, match="not in the specification"):
        specification.check_request("POST", "/mine/_mappings", {})
