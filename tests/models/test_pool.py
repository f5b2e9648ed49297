"""Several servers behind one setting: a dialog stays on one, load is shared, and a server that goes is made up for."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.models import pool as module
from generator.models.pool import Servers
from tests.models.test_client import asked, request
from tests.support.openai_server import Body, OpenAIServer, fill, prompt
from tests.support.runs import Site


class Named:
    """Of a client, what `Servers` looks at."""

    model = "m"

    def __init__(self, number: int) -> None:
        self.api_base = f"http://127.0.0.1:{number}/v1"


def documents(body: Body) -> str:
    """The part of a prompt that all calls of a dialog share, of Algorithm 1."""
    return prompt(body).partition("</documents>")[0]


def test_dialogs_on_a_document_share_a_server_within_bounds() -> None:
    servers: Any = Servers([Named(1), Named(2), Named(3)], retries=0, retry_wait_s=1)  # type: ignore[list-item]
    with ExitStack() as stack:
        first = servers.enter("a")
        assert servers.enter("a") is first
        servers.leave(first)
        servers.leave(first)
        for number in range(300):
            stack.enter_context(servers.for_dialog("one document" if number % 2 else f"document {number}"))
        assert max(servers._dialogs.values()) <= 1.25 * 100 + 2
    assert set(servers._dialogs.values()) == {0}


def test_a_server_that_was_gone_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    servers: Any = Servers([Named(1), Named(2)], retries=0, retry_wait_s=1)  # type: ignore[list-item]
    first = servers.enter("a")
    assert servers.lost(first)
    second = servers.enter("a")
    assert second is not first
    assert "go on elsewhere" in capsys.readouterr().err
    assert not servers.lost(second), "none is left"
    assert "no other is there" in capsys.readouterr().err
    now += 60
    assert servers.enter("a") is first


def test_a_run_uses_all_servers_and_a_dialog_one(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer() as one, OpenAIServer() as two:
        ended = site.run(
            one, "algorithm=single", "dialogs=8", "dialogs_per_document=1", f"lm.api_base=[{one.url},{two.url}]"
        )
        assert ended.code == 0, ended.err
        seen = [{documents(body) for body in server.bodies} for server in (one, two)]
        assert all(seen)
        assert not seen[0] & seen[1]
    site.check_ledger()


def test_servers_make_no_difference_to_the_data(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    site, other = Site(tmp_path / "one"), Site(tmp_path / "two")
    with OpenAIServer() as one, OpenAIServer() as two:
        assert site.run(one, "dialogs=6").code == 0
        assert other.run(one, "dialogs=6", f"lm.api_base=[{one.url},{two.url}]").code == 0
    assert site.data() == other.data()


def test_a_server_that_goes_in_mid_run_is_made_up_for(tmp_path: Path) -> None:
    site = Site(tmp_path)
    two = OpenAIServer().__enter__()
    gone: list[bool] = []

    def responder(body: Body) -> str:
        if len(one.bodies) == 10 and not gone:
            gone.append(True)
            two.__exit__()
        return fill(body)

    with OpenAIServer(responder) as one:
        ended = site.run(one, "dialogs=8", "max_attempts=8", "lm.concurrency=4", f"lm.api_base=[{one.url},{two.url}]")
        assert ended.code == 0, ended.err
        assert f"{two.url} is gone" in ended.err
        assert two.bodies
        finished = one.finished + two.finished
    assert Counter(finished.values()) == {1: len(finished)}
    with OpenAIServer() as alone:
        (tmp_path / "undisturbed").mkdir()
        undisturbed = Site(tmp_path / "undisturbed")
        undisturbed.run(alone, "dialogs=8", "max_attempts=8")
    assert site.summary()["attempted"] == 8
    assert site.data() == undisturbed.data()


def test_when_all_are_gone_the_run_stops_and_can_go_on(tmp_path: Path) -> None:
    site = Site(tmp_path)
    one, two = OpenAIServer().__enter__(), OpenAIServer().__enter__()
    arguments = ("dialogs=8", "lm.concurrency=2", "lm.retries=1")
    both = f"lm.api_base=[{one.url},{two.url}]"
    gone: list[bool] = []

    def responder(body: Body) -> str:
        if len(one.bodies) + len(two.bodies) >= 12 and not gone:
            gone.append(True)
            one._loop.call_soon_threadsafe(lambda: one._loop.create_task(one._runner.cleanup()))
            two._loop.call_soon_threadsafe(lambda: two._loop.create_task(two._runner.cleanup()))
        return fill(body)

    one.responder = two.responder = responder
    ended = site.run(one, *arguments, both)
    assert ended.code == 2, ended.err
    assert "the model server is gone" in ended.error
    with OpenAIServer() as three:
        assert site.run(three, *arguments, f"lm.api_base={three.url}").code == 0
    site.check_ledger()


def test_one_of_several_that_is_not_there_at_the_start_is_named(tmp_path: Path) -> None:
    with OpenAIServer() as one:
        ended = Site(tmp_path).run(one, f"lm.api_base=[{one.url},http://127.0.0.1:1/v1]")
    assert ended.code == 2
    assert "no model server at http://127.0.0.1:1/v1" in ended.error


def test_a_server_named_twice_is_refused(tmp_path: Path) -> None:
    with OpenAIServer() as one:
        ended = Site(tmp_path).run(one, f"lm.api_base=[{one.url},{one.url}/]")
    assert "names a server twice" in ended.error


@pytest.mark.parametrize("count", [1, 2])
def test_concurrency_is_that_of_all_servers(count: int) -> None:
    async def work(clients: Any) -> None:
        with ExitStack() as stack:
            bound = [stack.enter_context(clients.for_dialog(f"document {number}")) for number in range(60)]
            await asyncio.gather(*(client.chat(request(f"{number}")) for number, client in enumerate(bound)))

    with OpenAIServer(delay_s=0.05) as one, OpenAIServer(delay_s=0.05) as two:
        asked(one.endpoint(api_base=[one.url, two.url][:count], concurrency=8), work)
        assert [one.peak, two.peak] == ([8, 0] if count == 1 else [4, 4])
