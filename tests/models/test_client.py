"""Requests to a model server, its failures, and that no finished call is repeated."""

import asyncio
import json
import resource
import socket
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import dspy
import pytest
from dspy import lm15
from dspy.utils import exceptions as lm_errors
from pydantic import ValidationError

from generator.errors import ModelError
from generator.models.client import HttpClient, ServerGone
from generator.models.endpoints import OpenAIEndpoint
from generator.models.http_errors import status_error
from generator.models.lm import ChatReply, ChatRequest, LanguageModel, Sampling
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
RESPONSE_FORMAT = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA}}


class Memory:
    """A journal in memory."""

    def __init__(self) -> None:
        self.replies: dict[str, ChatReply] = {}
        self.added: list[tuple[str, int]] = []

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        return self.replies.get(key)

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        assert key not in self.replies
        self.replies[key] = reply
        self.added.append((stage, turn))


class OneMessage(dspy.Adapter):
    """A minimal adapter: one user message, a JSON schema, a JSON reply."""

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        return [{"role": "user", "content": str(inputs)}]

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        return dict(json.loads(completion))

    async def acall(self, lm: dspy.BaseLM, lm_kwargs: dict[str, Any], *rest: Any, **more: Any) -> list[dict[str, Any]]:
        return list(await super().acall(lm, {**lm_kwargs, "response_format": RESPONSE_FORMAT}, *rest, **more))


def request(prompt: str = "Say something: “né”.", **fields: Any) -> ChatRequest:
    usual = {"model": "test-model", "sampling": Sampling(temperature=0), "seed": 7, "max_tokens": 64}
    return ChatRequest(prompt=prompt, **{**usual, **fields})


def asked(endpoint: OpenAIEndpoint, work: Callable[[HttpClient], Awaitable[T]]) -> T:
    """Return the result of `work` with an open client."""

    async def main() -> T:
        async with endpoint.open(Path()) as client:
            return await work(client)

    return asyncio.run(main())


def chat(endpoint: OpenAIEndpoint, what: ChatRequest | None = None) -> ChatReply:
    return asked(endpoint, lambda client: client.chat(what or request()))


def predict(
    client: HttpClient, memory: Memory, *, profile: str = "greedy", stage: str = "ask", turn: int = 1, seed: int = 7
) -> Callable[[str], Coroutine[Any, Any, dspy.Prediction]]:
    """A predictor of one dialog, as the modules use it."""
    lm = LanguageModel(client, memory, seed)
    config = {"metadata": {"profile": profile, "stage": stage, "turn": str(turn)}}

    async def call(question: str) -> dspy.Prediction:
        with dspy.context(lm=lm, adapter=OneMessage(), disable_history=True):
            return await dspy.Predict("question -> answer").acall(question=question, config=config)

    return call


def opening_error(endpoint: OpenAIEndpoint) -> str:
    with pytest.raises(ModelError) as caught:
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
        memory = Memory()
        endpoint = server.endpoint(max_tokens=99)
        prediction = asked(endpoint, lambda client: predict(client, memory, profile=profile, seed=2**40 + 5)("Why?"))
        (body,) = server.bodies
    assert body == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "{'question': 'Why?'}"}],
        "seed": 5,
        "max_tokens": 99,
        "response_format": RESPONSE_FORMAT,
        **sampling,
    }
    assert prediction.answer == json.loads(fake.fill(body))["answer"]
    assert memory.added == [("ask", 1)]


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


def test_a_cut_off_reply_says_so() -> None:
    with OpenAIServer(faults=[fake.cut_off]) as server:
        assert chat(server.endpoint()).finish_reason == "length"


def test_dspy_is_used_without_deprecated_interfaces() -> None:
    with OpenAIServer() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        asked(server.endpoint(), lambda client: predict(client, Memory())("Why?"))


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
        reply = chat(server.endpoint(timeout_s=1 if fault in (fake.hang, fake.endless) else 30))
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


def test_pauses_grow() -> None:
    with OpenAIServer(faults=[fake.status(500)] * 4) as server:
        chat(server.endpoint(retries=4, retry_wait_s=0.05))
        pauses = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    # The pause before repetition n (from 0) is 0.05 s · 2^n and up to 0.05 s of jitter.
    assert all(pause >= 0.05 * 2**n for n, pause in enumerate(pauses))


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(form: str) -> None:
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    value = "1" if form == "seconds" else format_datetime(due, usegmt=True)
    with OpenAIServer(faults=[fake.status(429, headers={"Retry-After": value})]) as server:
        chat(server.endpoint())
        if form == "seconds":
            assert server.times[1] - server.times[0] >= 0.9
        assert form == "seconds" or datetime.now(UTC) >= due


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
            chat(server.endpoint(retries=2, timeout_s=0.3))
        assert type(caught.value) is error
        prompts = [request().prompt] * 3 + ["Say hello.", request().prompt]
        assert [fake.prompt(body) for body in server.bodies] == prompts


def test_a_call_is_made_once_more_when_its_server_is_seen_to_be_well() -> None:
    with OpenAIServer(faults=[fake.status(500)] * 3) as server:
        assert chat(server.endpoint(retries=2)).text == fake.fill(server.bodies[-1])
        assert len(server.bodies) == 5


@pytest.mark.parametrize("code", [400, 413])
def test_a_refused_request_is_made_twice(code: int) -> None:
    with OpenAIServer(faults=[fake.status(code), None, fake.status(code)]) as server:
        with pytest.raises(lm15.InvalidRequestError):
            chat(server.endpoint())
        assert [fake.prompt(body) for body in server.bodies] == [request().prompt, "Say hello.", request().prompt]


@pytest.mark.parametrize(("code", "calls"), [(400, 2), (429, 4)])
def test_a_server_that_fails_at_every_call_is_lost(code: int, calls: int) -> None:
    with OpenAIServer(faults=[fake.status(code)] * calls) as server:
        with pytest.raises(ServerGone, match=rf"fails at every call: .* HTTP {code}"):
            chat(server.endpoint(retries=2))
        assert len(server.bodies) == calls


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


def test_a_used_up_quota_is_not_a_rate_limit() -> None:
    body = b'{"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}'
    assert isinstance(status_error("http://x/v1", 429, body, {}, None), lm15.BillingError)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"object": "error", "message": "older\\n vLLM"}', "older vLLM"),
        (b'{"detail": [{"msg": "FastAPI"}]}', "[{'msg': 'FastAPI'}]"),
        (b"<html>\n proxy </html>", "<html> proxy </html>"),
        (b"[1]", "[1]"),
    ],
)
def test_errors_are_told_on_one_line(body: bytes, words: str) -> None:
    assert status_error("http://x/v1", 400, body, {}, None).message == f"http://x/v1 answered HTTP 400: {words}"


def test_no_message_repeats_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-canary-of-no-http"
    monkeypatch.setenv("LM_KEY", key)
    with OpenAIServer(key=key, model=key, faults=[fake.raw(f"HTTP/1.1 200 OK\r\nkey {key}: x\r\n")] * 3) as server:
        with pytest.raises(lm15.LM15Error) as caught:
            chat(server.endpoint(retries=0, timeout_s=5, api_key_env="LM_KEY"))
        assert key not in str(caught.value)
        assert key not in opening_error(server.endpoint(model="other", api_key_env="LM_KEY"))


# Through DSPy


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (fake.overflow, lm_errors.ContextWindowExceededError),
        (fake.status(400), lm_errors.LMInvalidRequestError),
        (fake.status(401), lm_errors.LMAuthError),
        (fake.status(402), lm_errors.LMBillingError),
        (fake.status(404), lm_errors.LMUnsupportedModelError),
        (fake.status(429), lm_errors.LMRateLimitError),
        (fake.status(500), lm_errors.LMServerError),
        (fake.hang, lm_errors.LMTimeoutError),
    ],
)
def test_dspy_gives_failures_its_own_names(fault: fake.Fault, error: type[lm_errors.LMError]) -> None:
    with OpenAIServer(faults=[fault, None, fault]) as server:
        endpoint = server.endpoint(retries=0, timeout_s=0.3)
        with pytest.raises(error) as caught:
            asked(endpoint, lambda client: predict(client, Memory())("Why?"))
    assert type(caught.value) is error
    assert server.url in str(caught.value).partition("\n")[0]


def test_dspy_calls_a_gone_server_a_transport_error() -> None:
    async def work(client: HttpClient) -> None:
        await asyncio.to_thread(server.__exit__)
        with pytest.raises(lm_errors.LMTransportError, match="the model server is gone"):
            await predict(client, Memory())("Why?")

    server = OpenAIServer().__enter__()
    asked(server.endpoint(retries=0), work)


# The journal


def test_a_replay_repeats_no_finished_call() -> None:
    """The dialog is cut off at its third call; made again, it makes only the calls that are missing."""
    memory, again = Memory(), Memory()

    async def dialog(client: HttpClient, memory: Memory) -> list[str]:
        ask = predict(client, memory)
        return [(await ask(question)).answer for question in ("one", "one", "two")]

    with OpenAIServer(faults=[None, None, fake.overflow]) as server:
        with pytest.raises(lm_errors.ContextWindowExceededError):
            asked(server.endpoint(), lambda client: dialog(client, memory))
        assert len(memory.added) == 2
        answers = asked(server.endpoint(), lambda client: dialog(client, memory))
        assert len(server.bodies) == 4
        assert set(server.finished.values()) == {1}
        assert asked(server.endpoint(), lambda client: dialog(client, again)) == answers


def test_equal_requests_of_two_turns_are_two_whichever_comes_first() -> None:
    async def work(client: HttpClient) -> list[set[tuple[int, int]]]:
        found = []
        for turns in ((1, 2), (2, 1)):
            before, lm = len(server.bodies), LanguageModel(client, Memory(), 7)
            for turn in turns:
                metadata = {"profile": "sampled", "stage": "judge", "turn": str(turn)}
                await lm.acall(messages=[{"role": "user", "content": "one"}], metadata=metadata)
            found.append(set(zip(turns, (body["seed"] for body in server.bodies[before:]), strict=True)))
        return found

    with OpenAIServer() as server:
        first, second = asked(server.endpoint(), work)
    assert first == second
    assert len({seed for _, seed in first}) == 2


def test_the_same_request_again_gets_the_next_seed() -> None:
    async def work(client: HttpClient) -> list[str]:
        ask = predict(client, Memory(), seed=2**31 - 1)
        return [(await ask("one")).answer for _ in range(2)]

    with OpenAIServer() as server:
        first, second = asked(server.endpoint(), work)
        assert [body["seed"] for body in server.bodies] == [2**31 - 1, 0]
    assert first != second


def test_a_reply_is_written_down_before_anything_is_made_of_it() -> None:
    memory = Memory()
    with OpenAIServer(responder=lambda body: "no JSON") as server, pytest.raises(ValueError, match="Expecting value"):
        asked(server.endpoint(), lambda client: predict(client, memory, stage="judge", turn=3)("Why?"))
    assert memory.added == [("judge", 3)]


# Opening


def test_a_server_that_is_not_running() -> None:
    with OpenAIServer() as server:
        endpoint = server.endpoint(api_base=f"http://127.0.0.1:{free_port()}/v1/")
    message = opening_error(endpoint)
    assert f"no model server at {endpoint.api_base[0]} (Connection refused)" in message
    assert "lm.api_base" in message


def test_a_key_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(key="right") as server:
        monkeypatch.delenv("TEST_API_KEY", raising=False)
        assert "TEST_API_KEY is not set" in opening_error(server.endpoint())
        monkeypatch.setenv("TEST_API_KEY", "wrong")
        assert "TEST_API_KEY was refused" in opening_error(server.endpoint())
        monkeypatch.setenv("TEST_API_KEY", "wröng\n")
        assert "TEST_API_KEY is not a valid API key" in opening_error(server.endpoint())


def test_openai_without_a_key_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_API_KEY", raising=False)
    with OpenAIServer() as server:
        assert "TEST_API_KEY" in opening_error(server.endpoint(api_base="https://api.openai.com/v1"))


def test_an_unknown_model() -> None:
    with OpenAIServer(model="other") as server:
        message = opening_error(server.endpoint(model="mine"))
        assert f"{server.url} has no model mine" in message
        assert message.endswith("lm.model to one of its models: other")


def test_a_server_that_lists_no_models() -> None:
    with OpenAIServer(lists_models=False) as server:
        assert chat(server.endpoint()).text
        with pytest.raises(lm15.UnsupportedModelError, match="The model `mine` does not exist"):
            chat(server.endpoint(model="mine"), request(model="mine"))


def test_a_server_without_the_openai_api() -> None:
    with OpenAIServer() as server:
        base = server.url.removesuffix("/v1") + "/another"
        assert f"{base} has no OpenAI API" in opening_error(server.endpoint(api_base=base))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"api_base": "127.0.0.1:8000"}, "api_base"),
        ({"api_key": "s3cret"}, "api_key"),
        ({"max_tokens": 8192}, "max_tokens=8192 leaves no room for a prompt in context=8192"),
        ({"sampled": {"temperature": 1, "topk": 50}}, "sampled.topk"),
        ({"greedy": {"temperature": -1}}, "greedy.temperature"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        OpenAIServer().endpoint(**settings)
