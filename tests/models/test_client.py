"""Requests to a model server, and its failures."""

import asyncio
import json
import resource
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web
from dspy import lm15

from generator.common import concurrency
from generator.errors import ModelError
from generator.models.client import HttpClient, ServerGone
from generator.models.completions import read_completion, read_models
from generator.models.lm import ChatReply, Sampling
from generator.schema import Usage
from tests.support import openai_server as fake
from tests.support.clients import asked, chat, opening_error, request
from tests.support.openai_server import OpenAIServer

Json = dict[str, Any]
LO, LABEL = {"type": "text", "text": "lo."}, '{"label": "correct"}'

# The wire


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as proxy:  # which answers itself
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert chat(proxy.endpoint(api_base="http://llm.test/v1")).text
        assert len(proxy.bodies) == 1


def test_a_proxy_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_API_KEY", "s3cret-canary")
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread, OpenAIServer() as server:

        def refuse() -> bytes:
            with listener.accept()[0] as proxied:
                received = proxied.recv(65536)
                proxied.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
                return received

        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listener.getsockname()[1]}")
        received = thread.submit(refuse)
        message = opening_error(server.endpoint(api_base="https://llm.test/v1"))
        assert f"proxy http://127.0.0.1:{listener.getsockname()[1]}" in message
        assert received.result().startswith(b"CONNECT llm.test:443") and b"s3cret" not in received.result()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_wants_a_login_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread, OpenAIServer() as server:

        def refuse() -> None:
            with listener.accept()[0] as proxied:
                proxied.recv(65536)
                proxied.sendall(refusal)

        address = f"127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://{address}")
        thread.submit(refuse)
        message = opening_error(server.endpoint(api_base=f"{scheme}://llm.test/v1"))
    assert f"http://{address}" in message and "login" in message


def test_a_proxy_that_wants_a_login_during_a_run_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(faults=[fake.status(407, "")]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        with pytest.raises(ModelError, match="requires a login"):
            chat(proxy.endpoint(api_base="http://llm.test/v1"))
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


@pytest.mark.parametrize(
    ("message", "more", "told"),
    [
        ({"content": None}, {"usage": None}, {"text": ""}),
        ({}, {"usage": "n/a"}, {}),
        ({}, {"usage": {"prompt_tokens": 9, "completion_tokens": -1}}, {"usage": Usage(calls=1, prompt=9)}),
        ({}, {"usage": {"prompt_tokens_details": {"cached_tokens": -1}}}, {}),
        *(({}, {"logprobs": form}, {}) for form in ([], ["a"], {"tokens": ["a"], "content": None})),
        ({"content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hel"}, LO]}, {}, {}),
        ({"content": None, "refusal": "I can't help with that."}, {}, {"text": "I can't help with that."}),
        ({"content": f"<think>First {LABEL}. Wait.</think>\nHello."}, {}, {}),
        ({"content": f"So, {LABEL}?\n</think>\n\nHello."}, {}, {}),
        ({"content": f"<think>Then {LABEL}"}, {}, {"text": ""}),
        ({"content": '{"answer": "It ends in </think>."}'}, {}, {"text": '{"answer": "It ends in </think>."}'}),
    ],
)
def test_what_servers_answer_in_other_forms_is_read(message: Json, more: Json, told: Json) -> None:
    choice = {"message": {"content": "Hello."} | message} | {k: v for k, v in more.items() if k != "usage"}
    body = json.dumps({"choices": [choice], "usage": more.get("usage")}).encode()
    usual = {"text": "Hello.", "finish_reason": "stop", "model": "test-model", "usage": Usage(calls=1)}
    assert read_completion(body, "test-model") == ChatReply(**usual | told)


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
        fake.plain('{"choices": [{"message": {"content": "It is abo"}, "finish_reason": "error"}]}'),
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


def test_a_limit_on_the_size_of_requests_is_named() -> None:
    with OpenAIServer(faults=[fake.status(413)] * 2) as server, pytest.raises(ServerGone, match="client_max_body_size"):
        chat(server.endpoint(retries=0))


def test_a_refused_request_needs_no_trial_while_others_are_answered() -> None:
    answered = threading.Event()

    async def refuse(received: web.Request, body: fake.Body) -> web.StreamResponse:
        await asyncio.to_thread(answered.wait, 300)
        return await fake.status(400)(received, body)

    async def work(client: HttpClient) -> None:
        refused = asyncio.create_task(client.chat(request("dead")))
        await client.chat(request("alive"))
        answered.set()
        with pytest.raises(lm15.InvalidRequestError):
            await refused

    with OpenAIServer(faults=fake.dead(refuse)) as server:
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


@pytest.mark.parametrize("code", [400, 403, 422])
def test_a_server_that_refuses_probabilities_is_lost_though_it_answers_a_trial(code: int) -> None:
    refusal = fake.status(code, "You are not allowed to request logprobs from this model")
    server = OpenAIServer(faults=lambda _, body: refusal if "logprobs" in body else None)
    with server, pytest.raises(ServerGone, match=rf"\(logprobs\).* HTTP {code}: You .*; .* another judge") as caught:
        chat(server.endpoint(), request(top_logprobs=20))
    assert "key" not in caught.value.message and len(server.bodies) == 1


@pytest.mark.parametrize(("code", "calls"), [(400, 2), (429, 4)])
def test_a_server_that_fails_at_every_call_is_lost(code: int, calls: int) -> None:
    with OpenAIServer(faults=[fake.status(code)] * calls) as server:
        with pytest.raises(ServerGone, match=rf"every call: .* HTTP {code}"):
            chat(server.endpoint(retries=2))
        assert len(server.bodies) == calls


def test_of_several_models_the_lost_one_is_named_by_its_setting() -> None:
    down = OpenAIServer(faults=lambda *_: fake.status(500))
    with down as server, pytest.raises(ServerGone, match=r"judge\.panel\.b is back"):
        chat(server.endpoint(retries=1), setting="judge.panel.b")


def test_a_lost_server_costs_later_calls_a_trial_alone_until_it_is_back() -> None:
    async def work(client: HttpClient) -> list[int]:
        counts = []
        for number in range(3):
            with pytest.raises(ServerGone, match="HTTP 500"):
                await client.chat(request(f"call {number}"))
            counts.append(len(server.bodies))
        server.faults = ()
        await client.chat(request("back"))
        await client.chat(request("again"))
        return counts

    with OpenAIServer(faults=lambda *_: fake.status(500)) as server:
        first, second, third = asked(server.endpoint(), work)
        assert first > 4 and (second, third) == (first + 1, first + 2)
        assert [fake.prompt(body) for body in server.bodies[first:]] == ["Say hello."] * 3 + ["back", "again"]


# Error messages


def test_no_message_repeats_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-canary-of-no-http"
    monkeypatch.setenv("LM_KEY", key)
    with OpenAIServer(key=key, model=key, faults=[fake.raw(f"HTTP/1.1 200 OK\r\nkey {key}: x\r\n")] * 2) as server:
        with pytest.raises(lm15.LM15Error) as caught:
            chat(server.endpoint(retries=0, api_key_env="LM_KEY"))
        assert key not in str(caught.value)
        assert key not in opening_error(server.endpoint(model="other", api_key_env="LM_KEY"))


# Opening


def test_a_key_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(key="right") as server:
        monkeypatch.delenv("TEST_API_KEY", raising=False)
        assert "requires an API key: set TEST_API_KEY" in opening_error(server.endpoint())
        assert "TEST_API_KEY" in opening_error(server.endpoint(api_base="https://api.openai.com/v1"))
        for wrong, why in (("wrong", "refuses the API key in"), ("wröng\n", "is not a valid API key")):
            monkeypatch.setenv("TEST_API_KEY", wrong)
            assert why in opening_error(server.endpoint())


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
    assert read_models(b'{"object": "list", "data": null}') == {}  # of an empty Ollama


def test_what_fails_of_a_secure_connection_is_named() -> None:
    with OpenAIServer() as server:
        message = opening_error(server.endpoint(api_base=server.url.replace("http:", "https:")))
    assert "wrong version number" in message and "SSL_CERT_FILE" in message


def test_a_server_that_has_moved_is_named_with_its_new_address() -> None:
    class Moved(OpenAIServer):
        async def _models(self, request: web.Request) -> web.Response:
            raise web.HTTPMovedPermanently(f"{server.url}/models")

    with OpenAIServer() as server, Moved() as moved:
        assert f"redirects to {server.url}: set lm.api_base" in opening_error(moved.endpoint())


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


def test_a_server_with_a_smaller_context_is_named_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(context=4096) as server:
        assert chat(server.endpoint(context=4096)).text
        assert "lm.context" not in capsys.readouterr().err
        assert chat(server.endpoint()).text
        assert "lm.context=8192 is more than the 4096 tokens of" in capsys.readouterr().err
        assert chat(server.endpoint(), setting="judge.lm").text
        assert "set judge.lm.context=4096" in capsys.readouterr().err


@pytest.mark.parametrize("status", [403, 404])
def test_a_server_that_lists_no_models_or_not_with_this_key(status: int) -> None:
    with Listing() as server:
        server.listing = status, {"error": {"message": "Missing scopes: api.model.read."}}
        assert chat(server.endpoint()).text
        with pytest.raises(lm15.UnsupportedModelError, match="The model `mine` does not exist"):
            chat(server.endpoint(model="mine"), request(model="mine"))
