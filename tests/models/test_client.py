"""Requests to a model server, its failures, and that no finished call is repeated."""

import asyncio
import json
import resource
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web
from dspy import lm15
from dspy.utils import exceptions as lm_errors

from generator.common import concurrency
from generator.errors import ConfigError, ModelError
from generator.models import failing
from generator.models.client import HttpClient, ServerGone
from generator.models.endpoints import Endpoint
from generator.models.http_errors import status_error
from generator.models.lm import ChatReply, ChatRequest, LanguageModel, Message, Sampling
from generator.schema import Usage
from tests.support import openai_server as fake
from tests.support.openai_server import OpenAIServer

T = TypeVar("T")

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 40}},
    "required": ["answer"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA}}


class Memory:
    """A journal in memory."""

    def __init__(self) -> None:
        self.replies: dict[str, ChatReply] = {}

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        return self.replies.get(key)

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        assert key not in self.replies
        self.replies[key] = reply


def request(prompt: str = "Say something: “né”.", **fields: Any) -> ChatRequest:
    usual = {"model": "test-model", "sampling": Sampling(temperature=0), "seed": 7, "max_tokens": 64}
    return ChatRequest(messages=(Message(role="user", content=prompt),), **{**usual, **fields})


def asked(endpoint: Endpoint, work: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Return the result of `work` with an open client."""

    async def main() -> T:
        async with endpoint.open(Path()) as client:
            return await work(client)

    return asyncio.run(main())


def chat(endpoint: Endpoint, what: ChatRequest | None = None) -> ChatReply:
    return asked(endpoint, lambda client: client.chat(what or request()))


async def replies(lm: LanguageModel, *prompts: str, profile: str = "greedy", turn: int = 1) -> list[str]:
    """The replies to calls of one turn of a dialog, in this order."""
    metadata = {"profile": profile, "stage": "ask", "turn": str(turn)}
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    return [(await lm.acall(messages=c, metadata=metadata, response_format=FORMAT))[0]["text"] for c in chats]


def opening_error(endpoint: Endpoint) -> str:
    with pytest.raises((ModelError, ConfigError)) as caught:
        chat(endpoint)
    message = str(caught.value)
    assert "\n" not in message
    return message


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


# The wire


@pytest.mark.parametrize(
    ("profile", "sampling"), [("greedy", {"temperature": 0.0}), ("sampled", {"temperature": 1.0, "top_k": 50})]
)
def test_the_request_carries_profile_seed_and_schema(profile: str, sampling: dict[str, float]) -> None:
    with OpenAIServer() as server:
        endpoint = server.endpoint(max_tokens=99)
        (reply,) = asked(
            endpoint, lambda client: replies(LanguageModel(client, Memory(), 2**40 + 5), "Why?", profile=profile)
        )
        (body,) = server.bodies
    assert body == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Why?"}],
        "seed": 5,
        "max_tokens": 99,
        "response_format": FORMAT,
        **sampling,
    }
    assert reply == fake.fill(body)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as proxy:  # which answers itself
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert chat(proxy.endpoint(api_base="http://llm.test/v1")).text
        assert len(proxy.bodies) == 1


def test_top_p_is_sent_when_set_and_a_key_goes_into_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_API_KEY", "s3cret")
    with OpenAIServer(key="s3cret") as server:
        endpoint = server.endpoint(sampled=Sampling(temperature=0.7, top_p=0.9))
        chat(endpoint, request(sampling=endpoint.sampled))
        assert server.bodies[0]["top_p"] == 0.9
        assert "top_k" not in server.bodies[0]
    assert "s3cret" not in repr(endpoint) + endpoint.model_dump_json()


def test_the_reply_carries_text_reason_and_usage() -> None:
    prompt = "A prefix that is long enough to be cached, and then some more. " * 4
    with OpenAIServer(responder=lambda body: "Eight tokens, that is 32 letters") as server:
        first = chat(server.endpoint(), request(prompt + "One."))
        second = chat(server.endpoint(), request(prompt + "Two."))
    tokens = len(prompt + "One.") // 4
    assert first == ChatReply(
        text="Eight tokens, that is 32 letters",
        finish_reason="stop",
        model="test-model",
        usage=Usage(calls=1, prompt=tokens, cached=0, completion=8),
    )
    assert second.usage.cached == 48


def test_usage_may_be_missing() -> None:
    with OpenAIServer(faults=[fake.plain('{"choices": [{"message": {"content": null}}], "usage": null}')]) as server:
        reply = chat(server.endpoint())
    assert reply == ChatReply(text="", finish_reason="stop", model="test-model", usage=Usage(calls=1))


def test_usage_is_never_negative() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": -1, "prompt_tokens_details": {"cached_tokens": -1}}
    body = json.dumps({"choices": [{"message": {"content": "Hello."}}], "usage": usage})
    with OpenAIServer(faults=[fake.plain(body)]) as server:
        assert chat(server.endpoint()).usage == Usage(calls=1, prompt=9)


def test_the_limit_of_open_files_is_raised_for_many_calls() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with OpenAIServer() as server:
            chat(server.endpoint(concurrency=512))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 512 + 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# Retries


@pytest.mark.parametrize(
    "fault",
    [
        *(fake.status(code) for code in (204, 408, 421, 429, 499, 500, 503)),
        fake.hang_up,
        fake.half_reply,
        fake.malformed,
        fake.no_choices,
        fake.hang,
    ],
)
def test_a_transient_failure_is_retried(fault: fake.Fault) -> None:
    with OpenAIServer(faults=[fault, fault]) as server:
        # A busy machine must not meet the time-out where it isn't what is tested.
        reply = chat(server.endpoint(timeout_s=1 if fault is fake.hang else 30))
        assert reply.text == fake.fill(server.bodies[0])
        assert len(server.bodies) == 3
        assert server.finished == {request().key: 1}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (fake.overflow, lm15.ContextLengthError),
        (fake.status(404), lm15.UnsupportedModelError),
        (fake.status(401), lm15.AuthError),
        (fake.status(403), lm15.AuthError),
        (fake.status(402), lm15.BillingError),
    ],
)
def test_a_refusal_is_not_retried(fault: fake.Fault, error: type[lm15.LM15Error]) -> None:
    with OpenAIServer(faults=[fault]) as server:
        with pytest.raises(error) as caught:
            chat(server.endpoint())
        assert type(caught.value) is error
        assert len(server.bodies) == 1


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(form: str) -> None:
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    value = "1" if form == "seconds" else format_datetime(due, usegmt=True)
    with OpenAIServer(faults=[fake.status(429, headers={"Retry-After": value})]) as server:
        chat(server.endpoint())
        if form == "seconds":
            assert server.times[1] - server.times[0] >= 0.9
        assert form == "seconds" or datetime.now(UTC) >= due


def test_a_wait_that_a_user_notices_is_explained_once_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = fake.status(429, "60 requests a minute", headers={"Retry-After": "0.05"})
    for noticed_s, notes in ((1, 0), (0.1, 1)):
        monkeypatch.setattr(concurrency, "NOTICED_S", noticed_s)
        with OpenAIServer(faults=[busy] * 3) as server:
            chat(server.endpoint())
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == notes
        assert all("HTTP 429: 60 requests a minute; next attempt in 0 s" in line for line in lines)


def test_a_message_in_parts_is_their_text() -> None:
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}]
    body = json.dumps({"choices": [{"message": {"content": parts}}]})
    with OpenAIServer(faults=[fake.plain(body)]) as server:
        assert chat(server.endpoint()).text == "Hello."


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ('<think>First {"label": "correct"}. Wait.</think>\n{"label": "incorrect"}', '{"label": "incorrect"}'),
        ('So, {"label": "correct"}?\n</think>\n\n{"label": "incorrect"}', '{"label": "incorrect"}'),
        ('<think>Then {"label": "correct"}', ""),
        ('{"answer": "The tag </think> ends it."}', '{"answer": "The tag </think> ends it."}'),
    ],
)
def test_thoughts_are_no_part_of_a_reply(text: str, reply: str) -> None:
    with OpenAIServer(responder=lambda body: text) as server:
        assert chat(server.endpoint()).text == reply


def test_a_pausing_call_gives_its_slot_to_another() -> None:
    async def work(client: HttpClient) -> list[str]:
        order: list[str] = []

        async def one(name: str) -> None:
            await client.chat(request(name))
            order.append(name)

        await asyncio.gather(one("fails first"), one("goes through"))
        return order

    with OpenAIServer(faults=[fake.status(500)]) as server:
        assert asked(server.endpoint(concurrency=1, retry_wait_s=0.2), work) == ["goes through", "fails first"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (fake.status(429), lm15.RateLimitError),
        (fake.status(500), lm15.ServerError),
        (fake.malformed, lm15.ServerError),
        (fake.hang_up, lm15.ServerError),
        (fake.hang, lm15.TimeoutError),
    ],
)
def test_when_attempts_are_used_up_only_the_call_is_lost(fault: fake.Fault, error: type[lm15.LM15Error]) -> None:
    with OpenAIServer(faults=[*[fault] * 3, None, fault]) as server:
        with pytest.raises(error) as caught:
            chat(server.endpoint(retries=2, timeout_s=1 if fault is fake.hang else 30))
        assert type(caught.value) is error
        prompts = [request().messages[0].content] * 3 + ["Say hello.", request().messages[0].content]
        assert [fake.prompt(body) for body in server.bodies] == prompts


@pytest.mark.parametrize("code", [400, 413])
def test_a_refused_request_is_made_twice(code: int) -> None:
    with OpenAIServer(faults=[fake.status(code), None, fake.status(code)]) as server:
        with pytest.raises(lm15.InvalidRequestError):
            chat(server.endpoint())
        assert [fake.prompt(body) for body in server.bodies] == [
            request().messages[0].content,
            "Say hello.",
            request().messages[0].content,
        ]


def test_a_refused_request_needs_no_trial_while_others_are_answered() -> None:
    async def refuse(received: web.Request, body: fake.Body) -> web.StreamResponse:
        while not server.finished:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # so that the other call has its answer before
        return await fake.status(400)(received, body)

    async def work(client: HttpClient) -> None:
        calls = client.chat(request("dead")), client.chat(request("alive"))
        refused, _ = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(refused, lm15.InvalidRequestError)

    with OpenAIServer(faults=dead(refuse)) as server:
        asked(server.endpoint(), work)
        assert sorted(map(fake.prompt, server.bodies)) == ["alive", "dead", "dead"]


def test_a_model_that_thinks_before_it_greets_is_not_lost() -> None:
    """OpenAI answers 400 where the limit on tokens cuts off the reasoning."""
    short = fake.status(400, "max_tokens or model output limit was reached")
    with OpenAIServer(faults=lambda number, body: short if number == 1 or body["max_tokens"] < 64 else None) as server:
        assert chat(server.endpoint()).text


def test_a_trial_after_a_refusal_that_meets_a_rate_limit_is_retried() -> None:
    with OpenAIServer(faults=[fake.status(400), fake.status(429), None, fake.status(400)]) as server:
        with pytest.raises(lm15.InvalidRequestError):
            chat(server.endpoint())
        assert len(server.bodies) == 4


def test_a_server_that_takes_no_response_format_is_lost_though_it_answers_a_trial() -> None:
    refuses = OpenAIServer(faults=[fake.status(400, "response_format isn't supported"), None])
    with refuses as server, pytest.raises(ServerGone, match=r"lm\.structured_outputs=false"):
        chat(server.endpoint())


@pytest.mark.parametrize(("code", "calls"), [(400, 2), (429, 4)])
def test_a_server_that_fails_at_every_call_is_lost(code: int, calls: int) -> None:
    with OpenAIServer(faults=[fake.status(code)] * calls) as server:
        with pytest.raises(ServerGone, match=rf"every call: .* HTTP {code}"):
            chat(server.endpoint(retries=2))
        assert len(server.bodies) == calls


# Dead calls


def dead(fault: fake.Fault, others: fake.Fault | None = None) -> Callable[[int, fake.Body], fake.Fault | None]:
    """Fail for ever at one prompt, and perhaps at others."""
    return lambda _, body: fault if fake.prompt(body) == "dead" else others


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

    with OpenAIServer(faults=dead(fault)) as server:
        asked(server.endpoint(retries=30, retry_wait_s=0.02, timeout_s=0.8 if fault is fake.hang else 30), work)
        assert attempts(server) == 5 or (fault is fake.hang and attempts(server) < 10)
        assert attempts(server, "Say hello.") == 0


def test_a_dead_call_that_fails_slowly_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing, "_WITHIN_S", 0.01)
    with OpenAIServer(faults=dead(fake.status(500))) as server:
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
        return dead(fault, others)(0, body) if attempts(server) <= 7 else None

    with OpenAIServer(faults=faults) as server:
        endpoint = server.endpoint(retries=8, retry_wait_s=0.001, timeout_s=1 if others is fake.hang else 30)
        assert chat(endpoint, request("dead")).text


# Error messages


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4744 in the messages, "
        "256 in the completion).",
        "You passed 5001 input tokens and requested 256 output tokens. However, the model's context length is only "
        "4096 tokens.",
        "The decoder prompt (length 5001) is longer than the maximum model length of 4096.",
        "request (6049 tokens) exceeds the available context size (4096 tokens), try increasing it",
    ],
)
def test_an_overflow_is_known_by_its_words(message: str) -> None:
    body = json.dumps({"error": {"message": message, "code": 400}}).encode()
    error = status_error("http://x/v1", 400, body, {}, None)
    assert isinstance(error, lm15.ContextLengthError)
    assert error.message.startswith(f"http://x/v1 answered HTTP 400: {message}")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"object": "error", "message": "older\\n vLLM"}', "older vLLM"),
        (b'{"detail": [{"msg": "FastAPI"}]}', "[{'msg': 'FastAPI'}]"),
        (b"<html>\n proxy </html>", "<html> proxy </html>"),
        (b"[1]", "[1]"),
        (b'{"error": {"message": ""}}', "no reason given"),
    ],
)
def test_errors_are_told_on_one_line(body: bytes, words: str) -> None:
    assert status_error("http://x/v1", 400, body, {}, None).message == f"http://x/v1 answered HTTP 400: {words}"


def test_no_message_repeats_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-canary-of-no-http"
    monkeypatch.setenv("LM_KEY", key)
    with OpenAIServer(key=key, model=key, faults=[fake.raw(f"HTTP/1.1 200 OK\r\nkey {key}: x\r\n")] * 2) as server:
        with pytest.raises(lm15.LM15Error) as caught:
            chat(server.endpoint(retries=0, timeout_s=5, api_key_env="LM_KEY"))
        assert key not in str(caught.value)
        assert key not in opening_error(server.endpoint(model="other", api_key_env="LM_KEY"))


# The journal


def test_a_replay_repeats_no_finished_call() -> None:
    """The dialog is cut off at its third call; repeated, it makes only the calls that are missing."""
    memory = Memory()

    async def dialog(client: HttpClient, memory: Memory) -> list[str]:
        return await replies(LanguageModel(client, memory, 2**31 - 1), "one", "one", "two")

    with OpenAIServer(faults=[None, None, fake.overflow]) as server:
        with pytest.raises(lm_errors.ContextWindowExceededError):
            asked(server.endpoint(), lambda client: dialog(client, memory))
        assert [body["seed"] for body in server.bodies[:2]] == [2**31 - 1, 0], "an equal request gets the next seed"
        again = asked(server.endpoint(), lambda client: dialog(client, memory))
        assert len(server.bodies) == 4
        assert set(server.finished.values()) == {1}
        assert asked(server.endpoint(), lambda client: dialog(client, Memory())) == again
        assert len(set(again)) == 3


def test_equal_requests_of_two_turns_differ_whichever_comes_first() -> None:
    async def work(client: HttpClient) -> list[dict[int, list[str]]]:
        found = []
        for turns in ((1, 2), (2, 1)):
            lm = LanguageModel(client, Memory(), 7)
            found.append({turn: await replies(lm, "one", turn=turn) for turn in turns})
        return found

    with OpenAIServer() as server:
        first, second = asked(server.endpoint(), work)
    assert first == second
    assert first[1] != first[2]


# Opening


def test_a_key_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(key="right") as server:
        monkeypatch.delenv("TEST_API_KEY", raising=False)
        assert "TEST_API_KEY is not set" in opening_error(server.endpoint())
        assert "TEST_API_KEY" in opening_error(server.endpoint(api_base="https://api.openai.com/v1"))
        for wrong, why in (("wrong", "was refused"), ("wröng\n", "is not a valid API key")):
            monkeypatch.setenv("TEST_API_KEY", wrong)
            assert f"TEST_API_KEY {why}" in opening_error(server.endpoint())


def test_a_server_without_the_model_or_the_api() -> None:
    with OpenAIServer(model="other") as server:
        message = opening_error(server.endpoint(model="mine"))
        assert f"{server.url} has no model mine" in message and message.endswith(": other")
        base = server.url.removesuffix("/v1") + "/another"
        assert f"{base} has no OpenAI API" in opening_error(server.endpoint(api_base=base))
    with OpenAIServer(model="") as empty:
        assert (
            opening_error(empty.endpoint(model="mine"))
            == f"{empty.url} lists no models: load mine in it, then try again"
        )


class Listing(OpenAIServer):
    """A server that answers so when it is asked for its models."""

    listing: tuple[int, Any]

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response(self.listing[1], status=self.listing[0])


@pytest.mark.parametrize("fault", [None, fake.status(429)])
def test_a_model_that_answers_need_not_be_listed(fault: fake.Fault | None, capsys: pytest.CaptureFixture[str]) -> None:
    with Listing(faults=[fault]) as server:
        server.listing = 200, [{"id": "another"}]
        assert chat(server.endpoint()).text
    assert "doesn't list the model test-model" in capsys.readouterr().err


def test_a_key_that_may_not_list_the_models_will_do() -> None:
    with Listing() as server:
        server.listing = 403, {"error": {"message": "Missing scopes: api.model.read."}}
        assert chat(server.endpoint()).text


def test_a_server_with_a_smaller_context_is_named_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(context=4096) as server:
        assert chat(server.endpoint(context=4096)).text
        assert "lm.context" not in capsys.readouterr().err
        assert chat(server.endpoint()).text
        assert "lm.context=8192 is more than the 4096 tokens of" in capsys.readouterr().err
        judge = server.endpoint()
        judge._setting = "judge.lm"
        assert chat(judge).text
        assert "set judge.lm.context=4096" in capsys.readouterr().err


def test_a_server_that_lists_no_models() -> None:
    with OpenAIServer(lists_models=False) as server:
        assert chat(server.endpoint()).text
        with pytest.raises(lm15.UnsupportedModelError, match="The model `mine` does not exist"):
            chat(server.endpoint(model="mine"), request(model="mine"))
