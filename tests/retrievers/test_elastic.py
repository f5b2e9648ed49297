"""The Elasticsearch retriever: its rankings, how its index is built and continued, and its error messages."""

import asyncio
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from numpy.typing import NDArray
from pydantic import ValidationError

from generator.command import run_command
from generator.common import concurrency
from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.index import COMMAND
from generator.retrievers.dense import DenseSettings
from generator.retrievers.elastic.retriever import Elasticsearch, ElasticsearchSettings
from generator.retrievers.elastic.server import Refusal
from generator.retrievers.hybrid import fuse
from generator.schema import Document, Split
from tests.retrievers.test_bm25 import DOCUMENTS
from tests.support import elasticsearch_server as fake
from tests.support.elasticsearch_server import ElasticsearchServer, busy
from tests.support.encoders import WordModel
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Ended, Site, command

CLIENT = pytest.importorskip("elasticsearch", reason="the extra 'elasticsearch' isn't installed")

SETTINGS = compose_choice("retriever", "elasticsearch")
SETTINGS.pop("_target_")
MODES: dict[str, dict[str, Any]] = {
    "bm25": {"mode": "bm25"},
    "elser": {"mode": "elser"},
    "dense": {"mode": "dense"},
    "bm25 and dense": {"mode": "hybrid"},
    "bm25 and elser": {"mode": "hybrid", "parts": ["bm25", "elser"], "weights": [1, 2]},
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, word_model: WordModel) -> None:
    """Take the place of every encoder, and hide the user's keys."""
    for variable in ("ELASTICSEARCH_API_KEY", "ELASTIC_PASSWORD"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def server() -> Iterator[ElasticsearchServer]:
    with ElasticsearchServer() as server:
        yield server


def settings(server: ElasticsearchServer, **changes: Any) -> ElasticsearchSettings:
    return ElasticsearchSettings(**SETTINGS | {"hosts": server.url, "retries": 3, "retry_wait_s": 0.01} | changes)


def library(folder: Path, documents: Sequence[Document] = DOCUMENTS, size: int = 512, overlap: int = 100) -> Library:
    return Library.open("Some Corpus", "f" * 64, lambda: documents, folder, size, overlap)


def numbered(folder: Path, count: int) -> Library:
    return library(folder, [Document(id=f"d{n}", text=f"harbour number{n}") for n in range(count)])


def opened(lib: Library, server: ElasticsearchServer, validation: float = 0, **changes: Any) -> Elasticsearch:
    return settings(server, **changes).open(lib, lib.validation(validation, 1))


def search(retriever: Elasticsearch, query: str, k: int = 5, split: Split = "train") -> list[tuple[str, float]]:
    return [(hit.passage.document_id, hit.score) for hit in asyncio.run(retriever.search(query, k, split))]


def found(retriever: Elasticsearch, query: str, k: int = 5, split: Split = "train") -> list[str]:
    return [name for name, _ in search(retriever, query, k, split)]


def the_index(server: ElasticsearchServer) -> fake.Index:
    (index,) = server.indexes.values()
    return index


# Searching


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_best_first_and_equal_ones_in_the_order_of_the_corpus(
    mode: dict[str, Any], server: ElasticsearchServer, tmp_path: Path
) -> None:
    retriever = opened(library(tmp_path), server, **mode)
    assert found(retriever, "When does a tram run?", k=3)[:2] == ["tram", "twin"]
    assert found(retriever, "tram minutes", k=1) == ["tram"]
    assert found(retriever, "ferries that cross by night", k=1) == ["ferry"]
    scores = [score for _, score in search(retriever, "river")]
    assert scores == sorted(scores, reverse=True)
    assert found(retriever, " \n") == found(retriever, "river", split="validation") == []


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_only_the_documents_of_the_split_are_found(
    mode: dict[str, Any], server: ElasticsearchServer, tmp_path: Path
) -> None:
    lib = numbered(tmp_path, 50)
    mask = lib.validation(0.2, 1)
    retriever = opened(lib, server, 0.2, **mode)
    for split, rows in (("validation", np.flatnonzero(mask)), ("train", np.flatnonzero(~mask))):
        names = [f"d{row}" for row in rows]
        assert sorted(found(retriever, "harbour", k=50, split=split)) == sorted(names)  # type: ignore[arg-type]


def test_copies_are_found_in_their_split_alone(server: ElasticsearchServer, lib_with_copies: Library) -> None:
    mask = lib_with_copies.validation(0.2, 1)
    retriever = opened(lib_with_copies, server, 0.2)
    for split, rows in (("validation", np.flatnonzero(mask)), ("train", np.flatnonzero(~mask))):
        assert len(rows)
        assert sorted(found(retriever, "harbour", 60, split)) == sorted(f"d{row}" for row in rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_a_search_in_one_document_finds_its_passages_alone(
    mode: dict[str, Any], server: ElasticsearchServer, tmp_path: Path
) -> None:
    retriever = opened(numbered(tmp_path, 20), server, 0.2, **mode)
    name = found(retriever, "harbour", k=1)[0]
    inside = asyncio.run(retriever.search("harbour", 20, "train", name))
    assert [scored.passage.document_id for scored in inside] == [name]


def test_hybrid_fuses_the_rankings_of_its_parts(server: ElasticsearchServer, tmp_path: Path) -> None:
    lib = library(tmp_path)
    rows = {document.id: row for row, document in enumerate(DOCUMENTS)}
    query = "crossing the river by tram"
    rankings = [
        [(rows[name], score) for name, score in search(opened(lib, server, mode=mode), query)]
        for mode in ("bm25", "dense")
    ]
    weighted = {"mode": "hybrid", "weights": [1, 3], "rrf_k": 10}
    expected = [(DOCUMENTS[row].id, score) for row, score in fuse(rankings, [1, 3], 10)]
    before = len(server.asked("/_msearch"))
    retriever = opened(lib, server, **weighted)
    assert search(retriever, query) == expected
    (last,) = server.asked("/_msearch")[before + 1 :]
    assert len(last) == 4, "both parts go in one request"
    assert last[1]["size"] == last[3]["size"] == 50


def test_no_more_is_asked_for_than_a_server_returns(server: ElasticsearchServer, tmp_path: Path) -> None:
    """As for a passage with thousands of copies, when as many different ones are wanted."""
    assert len(search(opened(numbered(tmp_path, 3), server), "harbour", k=20_480)) == 3


def test_vectors_see_all_of_a_passage_and_score_as_dense_does(
    server: ElasticsearchServer, tmp_path: Path, word_model: WordModel
) -> None:
    """Each document is one passage of up to twelve windows; the word that is asked for stands in a later one."""
    documents = [Document(id=f"d{n}", title="T", text="harbour " * 20 * n + f"number{n}. " * 3) for n in range(1, 6)]
    lib = library(tmp_path, documents)
    windows: dict[str, Any] = {"window": 10, "passage_prefix": "passage: ", "query_prefix": "q: "}
    dense = {name: value for name, value in compose_choice("retriever", "dense").items() if name != "_target_"}
    ours = DenseSettings(**dense | windows)
    ranked = asyncio.run(ours.open(lib, lib.validation(0, 1)).rank("number4", 5, "train"))
    theirs = search(opened(lib, server, mode="dense", **windows), "number4")
    assert theirs[0][0] == "d4"
    assert theirs == [(f"d{row + 1}", pytest.approx((1 + score) / 2, abs=1e-6)) for row, score in ranked]
    assert {"passage: T\nharbour", "q: number4"} <= {text[:18].strip() for text in word_model.encoded}


def test_text_that_the_model_does_not_read_is_reported_when_the_index_is_built(
    server: ElasticsearchServer, tmp_path: Path, word_model: WordModel, capsys: pytest.CaptureFixture[str]
) -> None:
    word_model.max_seq_length = 20
    lib = library(tmp_path, [Document(id="a", text="word " * 100)])
    for told in (True, False):
        opened(lib, server, mode="dense")
        assert ("retriever.window=192" in capsys.readouterr().err) == told


def test_several_bulk_requests_are_under_way_at_a_time(server: ElasticsearchServer, tmp_path: Path) -> None:
    arrived, at_once = threading.Barrier(4, timeout=30), []

    async def wait(request: Any) -> Any:
        at_once.append(await asyncio.to_thread(arrived.wait))
        return server.response(200, server.answer(request, await request.read()))

    server.faults["/_bulk"] = [wait] * 4
    retriever = opened(numbered(tmp_path, 20), server, chunk=4, retries=0)
    assert len(at_once) == 4
    assert server.written() == {str(row): 1 for row in range(20)}
    assert found(retriever, "number19") == ["d19"]


def test_the_mapping_and_the_endpoints(server: ElasticsearchServer, tmp_path: Path) -> None:
    parts = ["bm25", "dense", "elser"]
    lib = library(tmp_path, [Document(id="long", text="harbour " * 800)])
    opened(lib, server, mode="hybrid", parts=parts, weights=[1, 1, 1])
    index = the_index(server)
    assert [len(document["elser"]) for document in index.documents.values()] == [1, 1], "a passage was split again"
    threads = {name: made["service_settings"]["num_threads"] for name, made in server.endpoints.items()}
    assert threads == {"grounded-dialogs-elser-ingest": 1, "grounded-dialogs-elser-search": 2}
    sparse = [line["query"]["bool"]["must"][0] for line in server.asked("/_msearch")[-1] if "query" in line][2]
    assert sparse["sparse_vector"]["inference_id"] == "grounded-dialogs-elser-search"
    assert sparse["sparse_vector"]["prune"] is False


def test_a_score_is_the_same_whatever_other_queries_there_are(
    server: ElasticsearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word_model: WordModel
) -> None:
    """The last bits of a vector depend on the texts that are encoded with it; a run's data must not."""
    encode = word_model.encode

    def together_with(texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        vectors = encode(texts) + np.float32(len(texts) / 1000)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    monkeypatch.setattr(word_model, "encode", together_with)
    retriever = opened(library(tmp_path), server, mode="dense")
    queries = ("river", "ferries at night", "two euros", "a tram")

    async def together() -> list[list[float]]:
        answers = await asyncio.gather(*(retriever.search(query, 3, "train") for query in queries))
        return [[hit.score for hit in hits] for hits in answers]

    assert asyncio.run(together()) == [[score for _, score in search(retriever, query, 3)] for query in queries]


# Building


def test_an_interrupted_build_sends_only_what_is_missing(
    server: ElasticsearchServer, tmp_path: Path, word_model: WordModel
) -> None:
    lib = numbered(tmp_path, 40)

    def interrupt(after: int) -> None:
        """Build until `after` passages were encoded, and the text that shows how long vectors are."""
        end, encode = len(word_model.encoded) + 1 + after, word_model.encode

        def interrupted(texts: Sequence[str], **_: object) -> NDArray[np.float32]:
            if len(word_model.encoded) >= end:
                raise KeyboardInterrupt
            return encode(texts)

        with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(word_model, "encode", interrupted)
            opened(lib, server, mode="dense", chunk=5)

    interrupt(15)
    assert len(server.written()) == 15
    del the_index(server).documents["7"]
    interrupt(5)
    retriever = opened(lib, server, mode="dense", chunk=5)
    assert server.written() == {str(row): 2 if row == 7 else 1 for row in range(40)}
    assert found(retriever, "number33", k=1) == ["d33"]


def test_an_index_that_lost_documents_gets_them_back(server: ElasticsearchServer, tmp_path: Path) -> None:
    lib = numbered(tmp_path, 10)
    opened(lib, server)
    index = the_index(server)
    del index.documents["3"]
    index.refresh()
    assert found(opened(lib, server), "number3") == ["d3"]
    assert server.written()["3"] == 2 and server.written().total() == 11


def test_items_that_are_rejected_temporarily_are_sent_again(server: ElasticsearchServer, tmp_path: Path) -> None:
    server.refusals.update({"3": busy(2), "17": busy(1, 503)})
    retriever = opened(numbered(tmp_path, 20), server)
    assert server.written() == {str(row): {3: 3, 17: 2}.get(row, 1) for row in range(20)}
    assert found(retriever, "number17") == ["d17"]


PASSING = {
    "busy": fake.status(429),
    "overloaded": fake.status(503),
    "a gateway gives up": fake.plain("<html>Bad gateway</html>", 502),
    "hangs up": fake.hang_up,
    "too slow": fake.slow(5),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_temporary_faults_leave_no_trace(fault: fake.Fault, server: ElasticsearchServer, tmp_path: Path) -> None:
    server.faults |= {"/_bulk": [fault], "/_count": [fault]}
    # A short time-out only where nothing answers, since a busy machine can be slow.
    times = {"timeout_s": 1, "build_timeout_s": 1} if fault is PASSING["too slow"] else {}
    retriever = opened(library(tmp_path), server, **times)
    server.faults["/_msearch"] = [fault]
    assert found(retriever, "crossing", k=1) == ["ferry"]
    assert not any(server.faults.values()), "the fault did not happen"


def test_a_search_that_is_rejected_temporarily_is_sent_again(server: ElasticsearchServer, tmp_path: Path) -> None:
    retriever = opened(numbered(tmp_path, 30), server)
    server.refusals["number7"] = busy(2)

    async def ask() -> list[str]:
        hits = await asyncio.gather(*(retriever.search(f"number{n}", 1, "train") for n in range(30)))
        return [hit.passage.document_id for (hit,) in hits]

    assert asyncio.run(ask()) == [f"d{n}" for n in range(30)]
    sizes = [len(lines) // 2 for lines in server.asked("/_msearch")]
    assert sizes[1:] == [30, 1, 1], "only the one that was rejected is sent again"


def test_a_wait_that_a_user_notices_is_explained(
    server: ElasticsearchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency, "NOTICED_S", 0)
    server.faults["/_bulk"] = [fake.status(503)]
    retriever = opened(numbered(tmp_path, 30), server)
    built = [line for line in capsys.readouterr().err.splitlines() if "next attempt in" in line]
    server.faults["/_msearch"] = [fake.status(503)] * 2
    assert found(retriever, "number7", k=1)
    (searched,) = capsys.readouterr().err.splitlines()
    for (line,), doing in ((built, "loading passages"), ([searched], "searching")):
        assert f"{server.url}: 503" in line and doing in line and line.endswith("next attempt in 0 s")


# Errors


@dataclass(frozen=True)
class Case:
    """A server, settings, variables and faults, and words of the error message."""

    words: tuple[str, ...]
    server: dict[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    faults: tuple[tuple[str, fake.Fault], ...] = ()


NOT_OURS = ("not an Elasticsearch server", "retriever.hosts")
ELSER = ("retriever.mode=elser",)
KEY = (("ELASTICSEARCH_API_KEY", "hunter2"),)
CASES = {
    "nobody listens": Case(
        ("Connection refused", "retriever.hosts"), arguments=("retriever.hosts=http://127.0.0.1:9",)
    ),
    "no host": Case(("retriever.hosts=http://", "must include"), arguments=("retriever.hosts=http://",)),
    "another product": Case(NOT_OURS, {"product": False}),
    "a web page": Case(NOT_OURS, faults=(("/_mapping", fake.plain("<html>Hi")),)),
    "another JSON API": Case(NOT_OURS, faults=(("/mine", fake.plain("{}", 404, "application/json")),)),
    "no key": Case(("401", "no credentials", "ELASTICSEARCH_API_KEY"), {"key": "k"}),
    "a wrong key": Case(("401", "the API key in ELASTICSEARCH_API_KEY"), {"key": "k"}, environment=KEY),
    "an invalid key": Case(
        ("ELASTICSEARCH_API_KEY", "not a valid API key"), environment=(("ELASTICSEARCH_API_KEY", "hunter2\x07"),)
    ),
    "a wrong password": Case(
        ("401", "the user elastic and the password in ELASTIC_PASSWORD"),
        {"user": ("elastic", "right")},
        ("retriever.user=elastic",),
        (("ELASTIC_PASSWORD", "hunter2"),),
    ),
    "no password": Case(("retriever.user=elastic", "ELASTIC_PASSWORD"), arguments=("retriever.user=elastic",)),
    "a privilege is missing": Case(
        ("403 security_exception", "permission denied", "privileges"),
        environment=KEY,
        faults=(("/mine", fake.status(403, "security_exception", "action [indices:admin/create] is unauthorized")),),
    ),
    "no certificate": Case(("retriever.ca_certs=nowhere.crt",), arguments=("retriever.ca_certs=nowhere.crt",)),
    "https where there is none": Case(("write http://",), arguments=("retriever.hosts=https",)),
    "an invalid name": Case(("lowercase", "as retriever.index"), arguments=("retriever.index=Mine",)),
    "a licence": Case(
        ("licence does not include ELSER", "start_trial"),
        arguments=ELSER,
        faults=(("-ingest", fake.status(403, "security_exception", "license is non-compliant for [inference]")),),
    ),
    "a model that isn't deployed": Case(
        ("409 status_exception", "not deployed"),
        arguments=ELSER,
        faults=(("/_bulk", fake.status(409, "status_exception", "Trained model [elser] is not deployed")),),
    ),
    "a server too old for ELSER on whole passages": Case(
        ("8.19, 9.1 or newer",),
        faults=(("/mine", fake.status(400, "mapper_parsing_exception", "unknown key [chunking_settings]")),),
    ),
    "a server too old for the client": Case(
        (f"version {CLIENT.__version__[0]}", "install the client"),
        faults=(("/_mapping", fake.status(400, "media_type_header_exception", "Accept version must be 8")),),
    ),
    "a full disk": Case(
        ("cluster_block_exception", "disk space"),
        faults=(
            ("/_bulk", fake.status(403, "cluster_block_exception", "index [mine] blocked by: disk usage exceeded")),
        ),
    ),
    "too much at once": Case(("413 while loading passages: send",), faults=(("/_bulk", fake.plain("", 413)),)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_failure_is_one_line_that_says_what_to_do(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in case.environment:
        monkeypatch.setenv(variable, value)
    with ElasticsearchServer(**case.server) as server:
        server.faults.update({path: [fault] for path, fault in case.faults})
        arguments = [a.replace("=https", f"=https{server.url[4:]}") for a in case.arguments]
        done = indexed(tmp_path, server, "retriever.index=mine", *arguments)
    assert done.code == 2
    for words in case.words:
        assert words in done.error
    assert "hunter2" not in done.err
    assert not done.out


def test_what_a_script_failed_at_is_told() -> None:
    cause = {"type": "illegal_argument_exception", "reason": "The query vector has 384 dimensions, not 768."}
    script = {"type": "script_exception", "reason": "runtime error"}
    shards = [{"shard": n, "reason": {**script, "caused_by": cause}} for n in (0, 1)]
    error = {"type": "search_phase_execution_exception", "reason": "all shards failed"}
    told = "all shards failed: script_exception: runtime error: The query vector has 384 dimensions, not 768."
    assert Refusal(400, error | {"root_cause": [script], "failed_shards": shards}).reason == told


@pytest.mark.parametrize("fault", [fake.status(503), fake.hang_up], ids=["503", "hangs up"])
def test_an_error_that_stays_is_reported_after_the_last_retry(
    fault: fake.Fault, server: ElasticsearchServer, tmp_path: Path
) -> None:
    server.faults["/_bulk"] = [fault] * 4
    with pytest.raises(RetrieverError, match=r"the same command continues$"):
        opened(library(tmp_path), server)
    assert len(server.asked("/_bulk")) == 4
    opened(library(tmp_path), server)


def test_a_connection_that_breaks_after_the_first_answer_is_tried_again(
    server: ElasticsearchServer, tmp_path: Path
) -> None:
    server.faults["/_mapping"] = [fake.hang_up]
    assert found(opened(library(tmp_path), server, mode="elser"), "crossing", k=1) == ["ferry"]


def test_a_shard_that_is_away_is_no_incomplete_index(server: ElasticsearchServer, tmp_path: Path) -> None:
    opened(library(tmp_path), server)

    async def in_part(request: web.Request) -> web.StreamResponse:
        return server.response(200, {"count": 1, "_shards": {"total": 2, "successful": 1, "skipped": 0, "failed": 1}})

    server.faults["/_count"] = [in_part, in_part]
    assert found(opened(library(tmp_path), server), "crossing", k=1) == ["ferry"]
    assert not server.asked("/_mget")
    server.faults["/_count"] = [in_part] * 4
    with pytest.raises(RetrieverError, match=r"some shards .* did not answer.*the same command continues$"):
        opened(library(tmp_path), server)


def test_one_of_several_servers_may_be_gone_at_the_start(server: ElasticsearchServer, tmp_path: Path) -> None:
    for hosts in ([server.url, "http://127.0.0.1:1"], ["http://127.0.0.1:1", server.url]) * 3:  # in any order
        assert found(opened(library(tmp_path), server, hosts=hosts), "crossing", k=1) == ["ferry"]
    with pytest.raises(RetrieverError, match="connection failed while looking for the index"):
        opened(library(tmp_path), server, hosts=["http://127.0.0.1:1", "http://127.0.0.1:2"], retry_wait_s=0.01)


def test_an_item_that_cannot_be_indexed_is_reported_with_its_reason(
    server: ElasticsearchServer, tmp_path: Path
) -> None:
    server.refusals.update({"1": busy(1), "2": [fake.Refused(400, "document_parsing_exception", "failed to parse it")]})
    with pytest.raises(RetrieverError, match=r"400 document_parsing_exception .*failed to parse it"):
        opened(library(tmp_path), server)


@pytest.mark.parametrize(
    ("name", "size", "mode"), [("retriever.passage_tokens", 256, "bm25"), ("retriever.mode", 512, "dense")]
)
def test_an_index_of_something_else_is_refused(
    name: str, size: int, mode: str, server: ElasticsearchServer, tmp_path: Path
) -> None:
    opened(library(tmp_path), server, index="mine")
    before, other = server.written(), library(tmp_path, size=size)
    with pytest.raises(RetrieverError, match=rf"another .*{name}.*retriever\.index"):
        opened(other, server, index="mine", mode=mode)
    assert server.written() == before
    opened(other, server, mode=mode)
    assert len(server.indexes) == 2, "without a name each has one of its own"
    server.indexes["theirs"] = fake.Index({"properties": {}}, {})
    with pytest.raises(RetrieverError, match=r"retriever=http") as raised:
        opened(library(tmp_path), server, index="theirs")
    assert "delete" not in str(raised.value)


def test_vectors_of_another_encoder_or_prefix_are_not_searched(
    server: ElasticsearchServer, tmp_path: Path, word_model: WordModel
) -> None:
    """The encoder is a folder whose content changes, or its own configuration gets a prompt for passages."""
    lib, encoder = library(tmp_path), tmp_path / "encoder"
    encoder.mkdir()
    dense = {"mode": "dense", "model": str(encoder)}
    opened(lib, server, **dense)
    (encoder / "weights").write_text("trained further")
    opened(lib, server, **dense)
    word_model.prompts = {"document": "passage: "}
    opened(lib, server, **dense)
    opened(lib, server, **dense)
    assert len(server.indexes) == 3


def test_an_index_has_the_shards_of_its_settings(server: ElasticsearchServer, tmp_path: Path) -> None:
    for shards in (1, 4, 1):
        opened(library(tmp_path), server, shards=shards)
    assert [index.settings["number_of_shards"] for index in server.indexes.values()] == [1, 4]
    opened(library(tmp_path), server, index="mine")
    with pytest.raises(RetrieverError, match=r"another retriever\.shards"):
        opened(library(tmp_path), server, index="mine", shards=4)


def test_too_many_passages_are_reported(server: ElasticsearchServer, tmp_path: Path) -> None:
    lib = library(tmp_path)
    opened(lib, server)
    index = the_index(server)
    index.documents["99"] = index.documents["1"]
    index.refresh()
    with pytest.raises(RetrieverError, match="holds 5 passages after loading, not 4"):
        opened(lib, server)


@pytest.mark.parametrize("change", [{"weights": [1]}, {"parts": ["bm25", "bm25"]}], ids=str)
def test_bad_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=next(iter(change))):
        ElasticsearchSettings(**SETTINGS | change)


def test_without_the_package_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "elasticsearch", None)
    done = command("retriever=elasticsearch", f"cache_dir={tmp_path}", program=index)
    assert done.code == 2
    assert "install the extra 'elasticsearch'" in done.error


def test_a_certificate_of_ones_own(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificate, isn't installed")
    made = (tmp_path / "ca.crt", tmp_path / "ca.key")
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(made[0]), "-keyout", str(made[1])]
    subprocess.run([openssl, *request, *names], check=True, capture_output=True)
    (tmp_path / "spoilt.crt").write_text("no certificate")
    with ElasticsearchServer(certificate=made) as server:
        assert "set retriever.ca_certs" in indexed(tmp_path, server).error
        assert "PEM" in indexed(tmp_path, server, f"retriever.ca_certs={tmp_path / 'spoilt.crt'}").error
        done = indexed(tmp_path, server, f"retriever.ca_certs={made[0]}")
        assert done.code == 0, done.err


# The command


def elastic(server: ElasticsearchServer, *more: str) -> list[str]:
    few = ("retriever.retries=1", "retriever.retry_wait_s=0.01")
    return ["retriever=elasticsearch", f"retriever.hosts={server.url}", *few, *more]


def index() -> int:
    return run_command(COMMAND)


def indexed(folder: Path, server: ElasticsearchServer, *more: str) -> Ended:
    """Run the command that only builds the index."""
    site = Site(folder)
    where = ("corpus=jsonl", f"corpus.path={site.documents}", f"cache_dir={folder / 'cache'}")
    return command(*where, *elastic(server, *more), program=index)


def test_the_index_command_builds_the_index(server: ElasticsearchServer, tmp_path: Path) -> None:
    done = indexed(tmp_path, server, "corpus.language=en")
    assert done.code == 0, done.err
    (name,) = server.indexes
    assert done.out == f"indexed: 8 passages of 8 documents, index {name} at {server.url}\n"
    again = indexed(tmp_path, server, "corpus.language=en")
    assert (again.code, again.out, again.err) == (0, done.out, "")
    assert server.written().total() == 8


def test_a_whole_run(server: ElasticsearchServer, openai_server: OpenAIServer, site: Site) -> None:
    chosen = ("retriever.mode=hybrid", "retriever.parts=[bm25,elser]", "retriever.weights=[1,2]")
    done = site.run(openai_server, "dialogs=6", "retriever.k=2", "validation=0.4", *elastic(server, *chosen))
    assert done.code == 0, done.err
    site.check_ledger()
    sides: dict[str, set[str]] = {"train": set(), "validation": set()}
    for dialog in site.dialogs():
        assert dialog["turns"][0]["hits"]  # of later turns, made-up questions may find nothing
        sides[dialog["split"]] |= {passage["document_id"] for passage in dialog["passages"]}
    assert sides["train"] and sides["validation"]
    assert not sides["train"] & sides["validation"]


def test_another_server_may_continue_a_run(openai_server: OpenAIServer, site: Site) -> None:
    for dialogs, name in ((1, "one"), (2, "other")):
        with ElasticsearchServer() as server:
            arguments = elastic(server, f"retriever.index={name}", f"retriever.chunk={dialogs}")
            done = site.run(openai_server, f"dialogs={dialogs}", *arguments)
        assert done.code == 0, done.err
    with ElasticsearchServer() as server:
        refused = site.run(openai_server, "dialogs=3", *elastic(server, "retriever.mode=dense"))
    assert refused.code == 2
    assert "retriever.mode" in refused.error


@pytest.mark.parametrize("sign_in", ["key", "password"])
def test_secrets_are_nowhere(
    sign_in: str, openai_server: OpenAIServer, tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = []
    if sign_in == "key":
        monkeypatch.setenv("ELASTICSEARCH_API_KEY", "hunter2hunter2==\n")
        server = ElasticsearchServer(key="hunter2hunter2==")
    else:
        monkeypatch.setenv("MY_PASSWORD", "hunter2 ö")
        server = ElasticsearchServer(user=("elastic", "hunter2 ö"))
        more = ["retriever.user=elastic", "retriever.password_env=MY_PASSWORD"]
    with server:
        done = site.run(openai_server, "dialogs=2", *elastic(server, *more))
    assert done.code == 0, done.err
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"config.yaml", "run.db"} <= {file.name for file in files}
    assert not [file for file in files if b"hunter2" in file.read_bytes()]
    assert "hunter2" not in done.out + done.err
    assert not [path for _, path, body in server.requests if b"hunter2" in body or "hunter2" in path]


def test_a_server_that_repeats_the_request_gives_no_secret_away(
    server: ElasticsearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTICSEARCH_API_KEY", "aHVudGVyMjpodW50ZXIy")
    retriever = opened(library(tmp_path), server)
    sent = []

    async def repeats(request: Any) -> Any:
        sent.append(request.headers["Authorization"].partition(" ")[2])
        reason = f"request had header Authorization: {request.headers['Authorization']}"
        return await fake.status(400, f"bad_header_exception {sent[0]}", reason)(request)

    server.faults["/_msearch"] = [repeats]
    with pytest.raises(RetrieverError) as raised:
        found(retriever, "river")
    assert "400 bad_header_exception" in str(raised.value)
    assert not [at for at in range(len(sent[0]) - 6) if sent[0][at : at + 7] in str(raised.value)]
