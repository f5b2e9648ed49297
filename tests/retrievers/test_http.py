"""The HTTP retriever: what becomes of a server's passages, how splits are kept, and its error messages."""

import asyncio
import json
import os
import re
import runpy
import signal
import sys
import time
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jsonschema
import pytest

from generator.command import run_command
from generator.common import concurrency
from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.dialogs import query
from generator.errors import Rejected, RetrieverError
from generator.index import COMMAND
from generator.retrievers.http import HttpSettings
from generator.retrievers.remote import RemoteRetriever, schema
from generator.schema import Passage, Split
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site, command, until
from tests.support.search_server import Json, Reply, SearchServer

SETTINGS = compose_choice("retriever", "http")
SETTINGS.pop("_target_")
SERVER = Path(__file__).parents[2] / "docs" / "search_server.py"


def opened(lib: Library, server: SearchServer, validation: float = 0, **changes: Any) -> RemoteRetriever:
    settings = HttpSettings(**SETTINGS | {"url": server.url, "retries": 2, "retry_wait_s": 0.01} | changes)
    return settings.open(lib, lib.validation(validation, 1))  # type: ignore[return-value]


def search(
    retriever: RemoteRetriever, k: int = 3, split: Split = "train", document: str | None = None
) -> list[Passage]:
    return [hit.passage for hit in asyncio.run(retriever.search("tram", k, split, document))]


def numbered(body: Json) -> list[Json]:
    """Find every document of the corpus, as a server that knows nothing of filters does."""
    return [{"id": f"p{n}", "document_id": f"d{n}", "text": f"The tram stops here {n}."} for n in range(body["k"])][:40]


def test_a_passage_has_its_place_in_the_document_if_the_corpus_has_both(lib: Library) -> None:
    mine = {"id": "p1", "document_id": "d1", "text": "The tram stops here 1.", "url": "http://x/1", "more": [1]}
    edited = {"id": "p2", "document_id": "d2", "text": "TRAM STOPS", "title": "Mine", "start": 9, "score": 7}
    strange = {"id": "p3", "text": "A ferry.", "title": None, "score": None}
    with SearchServer(lambda body: [mine, edited, strange, mine]) as server:
        first, second, third = asyncio.run(opened(lib, server).search("tram", 9, "train"))
    assert first.passage.text == lib.document(1).text[first.passage.start : first.passage.end]
    assert (first.passage.title, first.passage.url, first.score) == ("T1", "http://x/1", 1)
    assert (second.passage.title, second.passage.start, second.passage.end, second.score) == ("Mine", 0, 10, 7)
    assert (third.passage.document_id, third.passage.start, third.passage.end) == ("p3", 0, 8)
    assert third.score == pytest.approx(1 / 3)


def test_a_server_that_ignores_the_filter_is_asked_for_more(lib: Library) -> None:
    held = {f"d{row}" for row in range(40) if lib.validation(0.2, 1)[row]}
    with SearchServer(numbered) as server:
        retriever = opened(lib, server, 0.2)
        assert len(held) == 8
        for split in ("train", "validation"):
            found = {passage.document_id for passage in search(retriever, 5, split)}  # type: ignore[arg-type]
            assert len(found) == 5
            assert (found <= held) == (split == "validation")
        assert [p.document_id for p in search(retriever, 3, "train", "d39")] == ([] if "d39" in held else ["d39"])
        server.requests.clear()
        assert len(search(opened(lib, server, 0.2, max_k=7), 5, "validation")) < 5
        assert max(body["k"] for body in server.requests) == 7
    assert server.requests[-1]["filter"] == {"split": "validation", "document_id": None}


def test_no_more_than_max_k_are_asked_for(lib: Library) -> None:
    """Neither if a search wants more, nor to have `k` beside copies."""
    with SearchServer(lambda body: [{"id": f"p{n}", "text": f"Stop {n // 2}."} for n in range(body["k"])]) as server:
        retriever = opened(lib, server, max_k=7)
        assert len(search(retriever, 9)) == 7
        hits, _ = asyncio.run(query.search(retriever, "tram", 5, "train", ()))
        assert len(hits) == 4
    assert max(body["k"] for body in server.requests) == 7


@pytest.mark.parametrize("known", ["in one reply", "of an earlier turn"])
def test_one_id_for_two_texts_is_an_error(known: str, lib: Library) -> None:
    """Such as a document's id for each of its chunks, or a snippet for each query: citations would be ambiguous."""
    chunks = [{"id": "lines.md", "text": f"Tram {n} is green."} for n in range(2)]
    with SearchServer(lambda body: chunks if known == "in one reply" else chunks[:1]) as server:
        retriever = opened(lib, server)
        earlier = () if known == "in one reply" else search(retriever)
        chunks.reverse()
        with pytest.raises(RetrieverError, match=r"with different texts have the id lines\.md"):
            asyncio.run(query.search(retriever, "tram", 5, "train", earlier))


def test_copies_are_found_in_their_split_alone(lib_with_copies: Library) -> None:
    mask = lib_with_copies.validation(0.2, 1)
    everything = [{"id": f"p{n}", "document_id": f"d{n}", "text": f"The tram stops here {n}."} for n in range(60)]
    with SearchServer(lambda body: everything[: body["k"]]) as server:
        retriever = opened(lib_with_copies, server, 0.2)
        for split, side in (("validation", mask), ("train", ~mask)):
            passages = search(retriever, 60, split)  # type: ignore[arg-type]
            assert sorted(p.document_id for p in passages) == sorted(f"d{row}" for row in side.nonzero()[0])


def test_a_reply_may_have_half_a_character_or_a_byte_order_mark(lib: Library) -> None:
    with SearchServer(lambda body: []) as server:
        retriever = opened(lib, server)
        server.faults = [(200, "\ufeff" + json.dumps({"passages": [{"id": "a", "text": "Cut off \ud83d"}]}), {})]
        (passage,) = search(retriever)
    assert passage.text == "Cut off ?"


def test_a_blank_passage_is_left_out_and_named_once(lib: Library, capsys: pytest.CaptureFixture[str]) -> None:
    with SearchServer(lambda body: [{"id": "scan-7", "text": " "}, *numbered(body)]) as server:
        retriever = opened(lib, server)
        for _ in range(2):
            assert [passage.id for passage in search(retriever, 3)] == ["p0", "p1", "p2"]
    assert capsys.readouterr().err.count("passage scan-7 has no text") == 1


@pytest.mark.parametrize("holds", [True, False])
def test_a_search_that_does_not_find_the_corpuss_own_words_is_named_at_the_start(
    holds: bool, lib: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    with SearchServer(lambda body: numbered(body) if holds else []) as server:
        opened(lib, server)
    assert ("finds nothing" in capsys.readouterr().err) == (not holds)


def test_documents_that_the_corpus_lacks_are_of_one_split_each(lib: Library) -> None:
    strange = [{"id": f"s{n}", "text": f"Strange {n}."} for n in range(100)]
    with SearchServer(lambda body: strange[: body["k"]]) as server:
        retriever = opened(lib, server, 0.3)
        train, validation = ({p.id for p in search(retriever, 100, split)} for split in ("train", "validation"))  # type: ignore[arg-type]
    assert train and validation
    assert not train & validation
    assert len(train | validation) == 100


CASES: dict[str, tuple[Reply | None, int, str]] = {
    "hangs up": (None, 3, "connection failed while searching .* the same command continues$"),
    "overloaded": ((503, {"error": "busy"}, {}), 3, r"HTTP 503 .*\(busy\).*the same command continues$"),
    "asks to wait": ((429, "", {"Retry-After": "0.02"}), 3, "HTTP 429 .*the same command continues$"),
    "wants a key": ((401, "no hunter2hunter2", {}), 1, "RETRIEVER_API_KEY is not set"),
    "another address": ((404, {"detail": "Not Found"}, {}), 1, r"HTTP 404 .*Not Found.*check retriever\.url"),
    "has moved": ((301, "", {"Location": "/elsewhere"}), 1, r"redirects to http.*/elsewhere; set retriever\.url"),
    "refuses": ((422, {"detail": "k is too large"}, {}), 1, "HTTP 422 .*k is too large"),
    "a page": ((200, "<html>", {}), 1, "not a reply to a search .*docs/retrieval.md"),
    "another shape": ((200, {"hits": []}, {}), 1, r"\(passages: Field required\)"),
    "no text": ((200, {"passages": [{"id": "a"}]}, {}), 1, r"\(passages\.0\.text"),
    "endless brackets": ((200, "[" * 100_000, {}), 1, "not a reply to a search .*deeply nested"),
    "an id of two lines": ((200, {"passages": [{"id": "a\nb", "text": "x"}]}, {}), 1, r"passages\.0\.id.*control"),
}


@pytest.mark.parametrize(("fault", "attempts", "message"), CASES.values(), ids=CASES.keys())
def test_a_failure_is_one_line_that_says_what_to_do(
    fault: Reply | None, attempts: int, message: str, lib: Library
) -> None:
    with SearchServer(lambda body: []) as server:
        retriever = opened(lib, server)
        server.requests.clear()
        server.faults = [fault] * (attempts + 1)
        with pytest.raises(RetrieverError, match=message) as raised:
            search(retriever)
        assert len(server.requests) == attempts + 1, "the last is the trial"
        assert "\n" not in str(raised.value)
        server.faults = [fault] * (attempts - 1)
        assert search(retriever) == [], "it comes back in time"


@pytest.mark.parametrize("fault", [None, (500, "KeyError", {}), (422, "bad syntax", {}), (200, "<html>", {})])
def test_a_search_that_always_fails_alone_is_no_fault_of_the_server(fault: Reply | None, lib: Library) -> None:
    with SearchServer(lambda body: []) as server:
        retriever = opened(lib, server, retries=0)
        answered = (200, {"passages": []}, {})
        server.faults = [fault, answered, fault]
        with pytest.raises(Rejected, match="retrieve: the search fails") as raised:
            search(retriever)
        assert raised.value.text.startswith("tram\n")
        server.faults = [fault, answered]
        assert search(retriever) == [], "it was a fault of the moment"
        server.faults = [(503, "busy", {}), answered, (503, "busy", {})]
        with pytest.raises(RetrieverError, match="HTTP 503"):
            search(retriever)


def test_a_wait_that_a_user_notices_is_explained(
    lib: Library, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrency, "NOTICED_S", 0)
    with SearchServer(numbered) as server:
        server.faults = [(503, {"error": "busy"}, {})]
        opened(lib, server)
    (line,) = capsys.readouterr().err.splitlines()
    assert server.url in line and "HTTP 503" in line and "next attempt in 0 s" in line


def test_the_key_is_sent_and_never_shown(lib: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIEVER_API_KEY", "hunter2hunter2")
    with SearchServer(lambda body: []) as server:
        retriever = opened(lib, server)
        assert server.headers[-1]["Authorization"] == "Bearer hunter2hunter2"
        server.faults = [(403, "not hunter2hunter2", {})] * 2
        with pytest.raises(RetrieverError, match="RETRIEVER_API_KEY was refused") as raised:
            search(retriever)
    assert "hunter2" not in str(raised.value)


def test_a_proxy_of_the_environment_is_used(lib: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with SearchServer(numbered) as proxy:  # which answers itself
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/search"))
        assert search(opened(lib, proxy, url="http://search.test/search"))


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[Json]], str]]:
    """Start the server of docs/ over some passages and return its address."""
    servers = []

    def start(passages: list[Json]) -> str:
        file = tmp_path / "passages.jsonl"
        file.write_text("\n".join(map(json.dumps, passages)), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["search_server.py", str(file)])
        handler = runpy.run_path(str(SERVER))["Handler"]
        handler.log_message = lambda *arguments: None
        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        Thread(target=servers[-1].serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_whole_run_with_the_example_server(
    example: Callable[[list[Json]], str], openai_server: OpenAIServer, site: Site
) -> None:
    records = [json.loads(line) for line in site.documents.read_text(encoding="utf-8").splitlines()]
    # As a pipeline of one's own cuts them.
    passages = [
        {"id": f"{record['id']}#{n}", "document_id": record["id"], "text": text}
        for record in records
        for n, text in enumerate(re.findall(r"\S.{200,400}(?=\s)", record["text"]))
    ]
    url = example(passages)
    done = site.run(openai_server, "dialogs=4", "retriever=http", f"retriever.url={url}", "validation=0.4")
    assert done.code == 0, done.err
    site.check_ledger()
    texts = {passage["id"]: passage["text"] for passage in passages}
    sides: dict[str, set[str]] = {"train": set(), "validation": set()}
    for dialog in site.dialogs():
        assert dialog["passages"]
        sides[dialog["split"]] |= {passage["document_id"] for passage in dialog["passages"]}
        assert all(passage["text"] == texts[passage["id"]] for passage in dialog["passages"])
    assert sides["train"] and not sides["train"] & sides["validation"]


def test_requests_and_replies_are_of_the_schema(lib: Library) -> None:
    validators = {
        name: jsonschema.Draft202012Validator(schema() | {"$ref": f"#/$defs/{name}"})
        for name in ("SearchRequest", "SearchReply")
    }
    with SearchServer(numbered) as server:
        search(opened(lib, server), 3, "validation", "d1")
    for body in server.requests:
        validators["SearchRequest"].validate(body)
    validators["SearchReply"].validate({"passages": numbered({"k": 3})})
    assert not validators["SearchReply"].is_valid({"passages": [{"id": "a"}]})


def test_ctrl_c_ends_the_wait_for_the_first_search(openai_server: OpenAIServer, site: Site) -> None:
    with SearchServer(lambda body: []) as server:
        server.faults = [(503, "", {"Retry-After": "60"})] * 2
        process = site.start(openai_server, "retriever=http", f"retriever.url={server.url}")
        until(lambda: bool(server.requests), process)
        assert process.pid is not None
        time.sleep(0.2)  # its answer arrives
        os.kill(process.pid, signal.SIGINT)
        ended = site.ended(process)
    assert ended.code == 130 and "Traceback" not in ended.err
    assert len(server.requests) == 1


def test_no_server_is_one_line(tmp_path: Path, site: Site) -> None:
    where = ("corpus=jsonl", f"corpus.path={site.documents}", f"cache_dir={tmp_path / 'cache'}", "retriever=http")
    refused = command(*where, "retriever.url=http://127.0.0.1:9", program=lambda: run_command(COMMAND))
    assert refused.code == 2
    assert "connection failed" in refused.error
    with SearchServer(lambda body: []) as server:
        url = server.url.replace("http:", "https:")
        refused = command(*where, f"retriever.url={url}", program=lambda: run_command(COMMAND))
    assert "wrong version number" in refused.error
