"""A pool of servers: a dialog stays on one, load is shared, and dialogs of a server that goes down move."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from generator.models import pool as module
from generator.models.admission import Admission
from generator.models.pool import ServerPool
from generator.models.readiness import NoServer
from tests.support.clients import asked, request
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.runs import Site


class Named:
    """The attributes of a client that `ServerPool` uses."""

    model, billions, max_tokens, context, sampling, missing = "m", 0, 1, 1, None, None

    def __init__(self, number: int, most: int = 400) -> None:
        self.api_base = f"http://127.0.0.1:{number}/v1"
        self.admission = Admission(self.api_base, most)


def documents(body: Body) -> str:
    """The part of a prompt that all calls of a dialog share, of Algorithm 1."""
    return prompt(body).partition("</documents>")[0]


def test_dialogs_on_a_document_share_a_server_within_bounds() -> None:
    servers: Any = ServerPool([Named(number) for number in range(3)], retries=0, retry_wait_s=1)
    with ExitStack() as stack:
        for number in range(300):
            stack.enter_context(servers.for_dialog("one document" if number % 2 else f"document {number}"))
        assert max(server.admission.dialogs for server in servers.clients) <= 1.25 * 100 + 2
    assert all(server.admission.dialogs == 0 for server in servers.clients)
    with servers.for_dialog("a") as one, servers.for_dialog("a") as other:
        assert one.server is other.server


def test_a_dialog_goes_where_there_is_room_for_it() -> None:
    servers: Any = ServerPool([Named(number, most=2) for number in range(3)], retries=0, retry_wait_s=1)
    with ExitStack() as stack:
        dialogs = [stack.enter_context(servers.for_dialog("one document")) for _ in range(6)]
        assert all(dialog.place.may_call.is_set() for dialog in dialogs)


def test_a_server_that_was_gone_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    servers: Any = ServerPool([Named(1), Named(2)], retries=0, retry_wait_s=1)
    first, why = servers.choose("a"), NoServer("no model server")
    assert servers.mark_down(first, why)
    second = servers.choose("a")
    assert second is not first
    assert "move to another one" in capsys.readouterr().err
    assert not servers.mark_down(second, why), "none is left"
    assert "waiting for one" in capsys.readouterr().err
    now += 60
    assert servers.choose("a") is first


def test_a_run_uses_all_servers_and_a_dialog_one(tmp_path: Path) -> None:
    settings = ("algorithm=single", "dialogs=8", "dialogs_per_document=1")
    site, other = Site(tmp_path / "one"), Site(tmp_path / "two")
    with OpenAIServer() as one, OpenAIServer() as two:
        ended = site.run(one, *settings, f"lm.api_base=[{one.url},{two.url}]")
        assert ended.code == 0, ended.err
        seen = [{documents(body) for body in server.bodies} for server in (one, two)]
        assert all(seen)
        assert not seen[0] & seen[1]
        assert other.run(one, *settings).code == 0
    assert site.data() == other.data()


def test_servers_that_are_all_missing_and_one_listed_twice_are_named(tmp_path: Path) -> None:
    with OpenAIServer() as one:
        ended = Site(tmp_path).run(one, "lm.api_base=[http://127.0.0.1:1/v1,http://127.0.0.1:2/v1]")
        assert "no model server at http://127.0.0.1:1/v1" in ended.error
        ended = Site(tmp_path).run(one, f"lm.api_base=[{one.url},{one.url}/]")
        assert "lists a server twice" in ended.error


class Starting(OpenAIServer):
    """A server whose model isn't loaded yet."""

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "Loading model"}}, status=503)


@pytest.mark.parametrize(("first", "starting"), [(True, False), (False, True)])
def test_a_server_that_is_missing_at_the_start_is_down(first: bool, starting: bool, tmp_path: Path) -> None:
    site, other = Site(tmp_path / "one"), Site(tmp_path / "two")
    with OpenAIServer(parameters=8_000_000_000) as one, Starting() as two:
        missing = two.url if starting else "http://127.0.0.1:1/v1"
        servers = [missing, one.url] if first else [one.url, missing]
        ended = site.run(one, f"lm.api_base=[{','.join(servers)}]")
        assert ended.code == 0
        assert any(missing in line and line.endswith("move to another one") for line in ended.err.splitlines())
        assert "Loading model" in ended.err or not starting
        assert other.run(one).code == 0
    assert site.data() == other.data()


@pytest.mark.parametrize("count", [1, 2])
def test_concurrency_is_that_of_all_servers(count: int) -> None:
    async def work(clients: Any) -> None:
        async def dialog(number: int) -> None:
            with clients.for_dialog(f"document {number}") as client:
                await client.chat(request(f"{number}"))

        await asyncio.gather(*map(dialog, range(60)))

    with OpenAIServer() as one, OpenAIServer() as two:
        one.hold = two.hold = lambda _: one.peak + two.peak < 8
        asked(one.endpoint(api_base=[one.url, two.url][:count], concurrency=8), work)
        assert [one.peak, two.peak] == ([8, 0] if count == 1 else [4, 4])
