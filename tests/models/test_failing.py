"""Calls that fail again and again, though the server may answer others."""

import asyncio

import pytest
from dspy import lm15

from generator.models import failing
from generator.models.client import HttpClient
from tests.support import openai_server as fake
from tests.support.clients import asked, chat, request
from tests.support.openai_server import OpenAIServer


def attempts(server: OpenAIServer, prompt: str = "dead") -> int:
    return [fake.prompt(body) for body in server.bodies].count(prompt)


@pytest.mark.parametrize(
    ("fault", "busy"),
    [
        *((fault, True) for fault in (fake.status(500), fake.status(503), fake.hang_up, fake.malformed)),
        *((fault, False) for fault in (fake.status(500), fake.status(503), fake.hang)),
    ],
)
def test_a_dead_call_is_given_up_while_the_server_answers_others(fault: fake.Fault, busy: bool) -> None:
    """Where no other call is made, a trial with a prompt that was answered before shows that the server works."""

    async def work(client: HttpClient) -> None:
        await client.chat(request("alive"))
        call = asyncio.create_task(client.chat(request("dead")))
        while busy and not call.done():
            await client.chat(request("alive"))
            await asyncio.sleep(0.01)
        with pytest.raises(lm15.TimeoutError if fault is fake.hang else lm15.ServerError):
            await call

    with OpenAIServer(faults=fake.dead(fault)) as server:
        asked(server.endpoint(retries=30, retry_wait_s=0.02, timeout_s=0.8 if fault is fake.hang else 30), work)
        assert attempts(server) == 5 or (fault is fake.hang and attempts(server) < 10)
        assert attempts(server, "Say hello.") == 0


def test_a_prompt_that_is_refused_for_its_words_is_no_refused_key() -> None:
    with OpenAIServer(faults=fake.dead(fake.status(403, "your input was flagged"))) as server:
        with pytest.raises(lm15.InvalidRequestError, match="flagged"):
            chat(server.endpoint(), request("dead"))
        assert attempts(server) == 2
    with OpenAIServer(faults=lambda number, body: fake.status(403)) as server:
        with pytest.raises(lm15.AuthError):
            chat(server.endpoint(), request("dead"))
        assert len(server.bodies) == 2, "the second is a trial"


def test_a_dead_call_that_fails_slowly_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing, "_WITHIN_S", 0.01)
    with OpenAIServer(faults=fake.dead(fake.status(500))) as server:
        with pytest.raises(lm15.ServerError):
            chat(server.endpoint(retries=8), request("dead"))
        assert attempts(server) == 3


@pytest.mark.parametrize(
    ("fault", "others"),
    [
        (fake.status(429), None),
        (fake.status(500, headers={"Retry-After": "0.001"}), None),
        (fake.status(500), fake.status(500)),
        (fake.hang_up, fake.hang),
    ],
)
def test_a_busy_server_and_one_that_answers_nobody_are_waited_for(fault: fake.Fault, others: fake.Fault | None) -> None:
    """The server recovers before the attempts are used up."""

    def faults(_: int, body: fake.Body) -> fake.Fault | None:
        return fake.dead(fault, others)(0, body) if attempts(server) <= 7 else None

    with OpenAIServer(faults=faults) as server:
        endpoint = server.endpoint(retries=8, retry_wait_s=0.001, timeout_s=1 if others is fake.hang else 30)
        assert chat(endpoint, request("dead")).text
