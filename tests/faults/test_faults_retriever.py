"""A run whose retriever fails, is slow, or finds nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import elasticsearch_server as fake
from tests.support.elasticsearch_server import ElasticsearchServer
from tests.support.openai_server import Body, OpenAIServer
from tests.support.runs import Ended, Site, replying, some

pytest.importorskip("elasticsearch", reason="the extra 'elasticsearch' isn't installed")

SETTINGS = ("dialogs=6", "lm.concurrency=4", "retriever=elasticsearch", "retriever.k=3", "retriever.retry_wait_s=0.01")
Change = Callable[[fake.Json], None]


def changed(server: ElasticsearchServer, first: int, change: Change | None, seconds: float = 0) -> fake.Fault:
    """From the nth request for searches on, the server's answer is slow, and changed; None: there is none."""
    asked = 0

    async def fault(request: Any) -> Any:
        nonlocal asked
        asked += 1
        server.faults["/_msearch"] = [fault]
        answer = server.answer(request, await request.read())
        if asked >= first:
            await asyncio.sleep(seconds)
            if change is None:
                return await fake.hang_up(request)
            for response in answer["responses"]:
                change(response)
        return server.response(200, answer)

    return fault


def run(
    site: Site, model: OpenAIServer, *more: str, first: int = 1, change: Change | None, seconds: float = 0
) -> Ended:
    with ElasticsearchServer() as server:
        server.faults["/_msearch"] = [changed(server, first, change, seconds)]
        return site.run(model, *SETTINGS, f"retriever.hosts={server.url}", *more)


def as_it_is(response: fake.Json) -> None:
    pass


def first_in_part() -> Change:
    """Return a change: what is found comes at first from some of the index's shards only, and lacks hits."""
    seen = set()

    def change(response: fake.Json) -> None:
        found = tuple(hit["_id"] for hit in response["hits"]["hits"])
        if found not in seen:
            seen.add(found)
            response["_shards"] = {"total": 2, "successful": 1, "failed": 1}
            del response["hits"]["hits"][1:]

    return change


def test_what_a_retriever_may_do_leaves_no_trace(tmp_path: Path) -> None:
    """It is slow, and some of its answers are partial."""
    data, mode = [], ("retriever.mode=hybrid", "retriever.parts=[bm25,elser]")
    for name, change, seconds in (("undisturbed", as_it_is, 0.0), ("slow", first_in_part(), 0.1)):
        site = Site(tmp_path / name)
        with OpenAIServer() as model:
            ended = run(site, model, *mode, first=2, change=change, seconds=seconds)
            assert ended.code == 0, ended.err
        data.append(site.made())
    assert data[0] == data[1]


def test_a_retriever_that_is_gone_stops_the_run_and_nothing_is_lost(tmp_path: Path) -> None:
    """The index is in another server when the run goes on."""
    sites = [Site(tmp_path / name) for name in ("undisturbed", "stopped")]
    with OpenAIServer() as model:
        assert run(sites[0], model, change=as_it_is).code == 0
    with OpenAIServer() as model:
        stopped = run(sites[1], model, "retriever.retries=1", first=6, change=None)
        assert stopped.code == 2
        assert "connection failed while searching" in stopped.error
        assert stopped.error.endswith("the same command continues")
        # Replies on the way at that moment are lost, as when a run is killed: tests/test_resume.py.
        lost = model.finished.total() - sites[1].recorded()
        assert 0 <= lost < 4 < sites[1].recorded()
        assert run(sites[1], model, change=as_it_is).code == 0
        assert model.finished.total() - len(model.finished) == lost
    sites[1].check_ledger()
    assert sites[1].data() == sites[0].data()


def test_searches_that_find_nothing_by_words_are_drops_and_no_more(site: Site) -> None:
    """BM25: a question that shares no word with any document. What was found before carries a later turn."""

    def ask(body: Body) -> dict[str, object]:
        return {"question": f"Zyzzyva qwrtz {body['seed']}?"} if some(body, 0.5) else {}

    with OpenAIServer(replying(ask=ask, rewrite=lambda body: {"query": "Zyzzyva qwrtz?"})) as model:
        ended = site.run(model, "dialogs=12", "lm.concurrency=4")
    assert ended.code == 0, ended.err
    site.check_ledger()
    assert site.summary()["dropped"]["retrieve"]["nothing found"] > 0
    assert any(not turn["hits"] for dialog in site.dialogs() for turn in dialog["turns"])
