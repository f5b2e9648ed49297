"""The MCP retriever with servers of the official SDK, over stdio and HTTP; what it shares is tested in `test_http`."""

import asyncio
import gc
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.command import run_command
from generator.config.choices import compose_choice
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.index import COMMAND
from generator.retrievers.mcp import McpSettings
from generator.retrievers.remote import Filter, RemoteRetriever, SearchRequest
from generator.schema import Split
from tests.support import mcp_server
from tests.support.mcp_server import HttpServer
from tests.support.openai_server import OpenAIServer
from tests.support.processes import processes_with
from tests.support.runs import Site, command, until

SETTINGS = compose_choice("retriever", "mcp")
SETTINGS.pop("_target_")
EXAMPLE = Path(__file__).parents[2] / "docs" / "mcp_server.py"


@pytest.fixture(scope="module")
def http() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server
        assert not server.faults


def opened(lib: Library, validation: float = 0, **changes: Any) -> RemoteRetriever:
    settings = McpSettings(**SETTINGS | {"retries": 2, "retry_wait_s": 0.01} | changes)
    return settings.open(lib, lib.validation(validation, 1))  # type: ignore[return-value]


def ids(retriever: RemoteRetriever, k: int = 3, split: Split = "train") -> list[str]:
    return [hit.passage.document_id for hit in asyncio.run(retriever.search("tram", k, split))]


def shell(*words: object) -> str:
    return shlex.join(map(str, (sys.executable, *words)))


def stdio(tmp_path: Path) -> str:
    return shell(mcp_server.__file__, tmp_path / "once")


def test_a_tool_is_called_over_http_and_its_passages_have_their_place(lib: Library, http: HttpServer) -> None:
    retriever = opened(lib, 0.2, url=http.url)
    http.calls.clear()
    held = {f"d{row}" for row in range(40) if lib.validation(0.2, 1)[row]}
    assert set(ids(retriever, 8, "validation")) == held
    assert [call["k"] for call in http.calls] == [8, 32, 100], "it has no filter, so it is asked for more"
    (first,) = asyncio.run(retriever.search("tram", 1, "train"))
    document = lib.get(first.passage.document_id)
    assert document is not None and document.text[first.passage.start : first.passage.end] == first.passage.text


async def _many(retriever: RemoteRetriever) -> list[int]:
    return [len(found) for found in await asyncio.gather(*(retriever.search("tram", k, "train") for k in range(1, 30)))]


def test_searches_run_at_the_same_time(lib: Library, http: HttpServer) -> None:
    assert asyncio.run(_many(opened(lib, url=http.url))) == list(range(1, 30))


def test_names_of_arguments_and_the_place_of_passages_are_settings(lib: Library, http: HttpServer) -> None:
    names = {"query_argument": "question", "k_argument": None, "filter_argument": "where"}
    more = {"arguments": {"store": "manuals"}, "passages": "result.hits"}
    retriever = opened(lib, url=http.url, tool="find", **names, **more)
    (found,) = asyncio.run(retriever.search("tram", 3, "train"))
    assert found.passage.text == "tram!"
    assert len(ids(opened(lib, url=http.url, tool="listed", passages="result"))) == 3
    assert len(ids(opened(lib, url=http.url, tool="written"))) == 3


CASES = {
    "another tool": ({"tool": "look"}, r"retriever\.tool=look: there is no such tool; the server has: search, find"),
    "another argument": ({"k_argument": "limit"}, r"no argument limit, but: query, k; set retriever"),
    "no JSON": ({"tool": "prose"}, "not a reply to a search .*docs/retrieval.md"),
    "another shape": ({"passages": "hits"}, r"\(no hits, as in retriever\.passages=hits\)"),
    "no list": ({"passages": ""}, r"not a reply to a search \(passages: "),
    "a tool that fails": ({"tool": "failing"}, "the tool failed .*no index here"),
    "slow": ({"tool": "slow", "timeout_s": 0.3, "retries": 0}, r"timed out after 0\.3 s .*retriever\.timeout_s"),
}


@pytest.mark.parametrize(("changes", "message"), CASES.values(), ids=CASES.keys())
def test_what_does_not_fit_is_one_line_at_the_start(
    changes: dict[str, Any], message: str, lib: Library, http: HttpServer
) -> None:
    with pytest.raises(RetrieverError, match=message) as raised:
        opened(lib, **{"url": http.url, "retries": 9, "retry_wait_s": 60} | changes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("status", "attempts"), [(503, 3), (429, 3), (400, 1)])
def test_statuses_are_retried_as_those_of_http(status: int, attempts: int, lib: Library, http: HttpServer) -> None:
    retriever = opened(lib, url=http.url)
    http.faults = [status] * (attempts + 1)  # the last is the trial
    with pytest.raises(RetrieverError, match=f"HTTP {status} ") as raised:
        ids(retriever)
    assert not http.faults and "\n" not in str(raised.value)
    http.faults = [status] * (attempts - 1)
    assert len(ids(retriever)) == 3


def test_the_key_is_sent_and_never_shown(lib: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpServer() as server:
        server.key = "hunter2hunter2"
        with pytest.raises(RetrieverError, match=r"HTTP 401 .*RETRIEVER_API_KEY is not set"):
            opened(lib, url=server.url)
        monkeypatch.setenv("RETRIEVER_API_KEY", "hunter2hunter2")
        retriever = opened(lib, url=server.url)
        assert len(ids(retriever)) == 3
        server.key += "x"
        with pytest.raises(RetrieverError, match="RETRIEVER_API_KEY was refused") as raised:
            ids(retriever)
    assert "hunter2" not in str(raised.value)


def test_a_server_that_was_restarted_is_asked_again(lib: Library) -> None:
    with HttpServer() as server:
        retriever, port = opened(lib, url=server.url), server.port
    with pytest.raises(RetrieverError, match=r"connection failed .* the same command continues$"):
        ids(retriever)
    with HttpServer(port) as server:
        assert len(ids(retriever)) == 3
        server.faults = [404]  # by which the SDK's version 1 says that it doesn't know the session any more
        assert len(ids(retriever)) == 3


def test_a_process_that_dies_is_started_again_and_ends_with_the_retriever(lib: Library, tmp_path: Path) -> None:
    retriever = opened(lib, command=stdio(tmp_path), tool="fragile", retries=0)
    with pytest.raises(RetrieverError, match=r"the server ended \(out of memory\); check retriever\.command"):
        asyncio.run(retriever.ask(SearchRequest(query="tram", k=3, filter=Filter(split="train", document_id=None))))
    assert len(ids(retriever)) == 3
    (child,) = processes_with(str(tmp_path / "once"))
    del retriever
    gc.collect()
    until(lambda: not Path(f"/proc/{child}").exists())


def test_a_command_that_speaks_no_mcp_is_one_line_at_once(lib: Library, tmp_path: Path) -> None:
    script = tmp_path / "server.sh"
    script.write_text("echo listening on port 8000 >&2\nwhile :; do sleep 1; done\n")
    with pytest.raises(RetrieverError, match=r"no answer .*\(listening on port 8000\).* stdin and stdout") as raised:
        opened(lib, command=f"sh {script}", timeout_s=1, retries=1, retry_wait_s=30)
    assert "\n" not in str(raised.value)
    assert not processes_with(str(script)), "it was ended"


def test_a_server_gets_only_the_variables_that_are_named(
    lib: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE", "A ferry.")
    script = tmp_path / "server.py"
    script.write_text(
        "import os\nfrom mcp.server.mcpserver import MCPServer\nserver = MCPServer('x')\n@server.tool()\n"
        "def search(query: str, k: int) -> dict:\n"
        "    return {'passages': [{'id': 'a', 'text': os.environ.get('STORE', 'none')}]}\nserver.run()\n"
    )
    for env, text in (((), "none"), (("STORE",), "A ferry.")):
        (found,) = asyncio.run(opened(lib, command=shell(script), env=env).search("x", 1, "train"))
        assert found.passage.text == text


def test_a_whole_run_with_the_example_server_and_passages_as_they_were_cut(
    openai_server: OpenAIServer, site: Site
) -> None:
    texts = site.cut()
    server = shell(EXAMPLE, site.documents)
    done = site.run(
        openai_server, "dialogs=4", "corpus.chunks=as_given", "retriever=mcp", f'retriever.command="{server}"'
    )
    assert done.code == 0, done.err
    site.check_ledger()
    site.check_evidence(texts)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((), "retriever.command"),
        (("retriever.command=/nowhere",), "can't be started (No such file or directory); check retriever.command"),
        (("retriever.command='\"'",), "must be a command as in a shell"),
        (("retriever.command=/bin/false",), "the server ended; check retriever.command"),
        (("retriever.url=http://127.0.0.1:9/mcp",), "connection failed"),
        ((f'retriever.command="{shell("-m", "nowhere")}"',), "No module named nowhere"),
    ],
)
def test_no_server_is_one_line(settings: tuple[str, ...], words: str, tmp_path: Path, site: Site) -> None:
    where = ("corpus=jsonl", f"corpus.path={site.documents}", f"cache_dir={tmp_path / 'cache'}", "retriever=mcp")
    refused = command(*where, *settings, program=lambda: run_command(COMMAND))
    assert refused.code == 2
    assert words in refused.error


def test_a_missing_package_is_one_line(lib: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(RetrieverError, match=r"the package mcp is missing .*uv sync --inexact --extra mcp"):
        opened(lib, url="http://127.0.0.1:9/mcp")
