"""An HTTP server with the OpenAI API and scripted replies, in place of a model server.

    with OpenAIServer() as server:
        async with server.endpoint().open(folder) as client: ...
        server.bodies, server.finished, server.peak

Its replies fill the JSON schema of the request, the same for the same prompt and seed.
"""

import asyncio
import hashlib
import json
import math
import random
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from aiohttp import web
from pydantic_core import to_json

from generator.models.endpoints import OpenAIEndpoint
from tests.support.aiohttp_server import AiohttpServer

Body = dict[str, Any]
Responder = Callable[[Body], str]
Fault = Callable[[web.Request, Body], Awaitable[web.StreamResponse]]

# Tokens are four characters here, and a prefix is cached in blocks of 16 tokens, as vLLM does.
_TOKEN = 4
_BLOCK = 16 * _TOKEN
_SYLLABLES = "ba con da fer gi hol in ka lu mer no pa qui ra sel tor um ve win ya zan bri cla dor est".split()
_SENTENCE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


class OpenAIServer(AiohttpServer):
    """A server on 127.0.0.1, in a thread of its own, for the time of a `with` block.

    Args:
        responder: returns the text of a reply, given the body of a request.
        faults: faults of the first calls, one a call (None: none); or a function that returns one, given the call's
            number, from 1, and its body.
        model: the name of the model that it serves.
        key: the API key that it requires; None: it requires none.
        lists_models: False for a server without `/models`.
        context: the longest prompt and reply, which its list of models says; None: it doesn't say it.
        delay_s: seconds that a reply takes; or a function that returns them, given the request's body.
        hold: a reply waits while this is true of its request's body (five minutes at the longest).
        port: 0 for a free one.
        cache: tokens that its prefix cache holds, and evicts when they were not used for longest; None: no end of them.
        metrics: it says the size of its cache, as vLLM does.
        says_cached: its replies say how many tokens were cached.
        owner: the owner of its model, as its list says; vLLM and SGLang give their own names there.
        parameters: the model's number of parameters, which its list says as llama.cpp does; None: it doesn't say it.
        likely: returns the likeliest first tokens of a reply and their probabilities, given the body of a request that
            asks for them; None: it tells none.

    Attributes:
        silent: True: connections are accepted and requests never answered.
        bodies: of all calls, in order of arrival.
        times: when they arrived, in seconds of the monotonic clock.
        in_flight: the number of calls without a reply yet; `peak`: the largest at a time.
        prompt_tokens, cached_tokens: of all replies.
    """

    silent = False

    def __init__(
        self,
        responder: Responder | None = None,
        faults: Sequence[Fault | None] | Callable[[int, Body], Fault | None] = (),
        *,
        model: str = "test-model",
        key: str | None = None,
        lists_models: bool = True,
        context: int | None = None,
        delay_s: float | Callable[[Body], float] = 0,
        hold: Callable[[Body], bool] = lambda _: False,
        port: int = 0,
        cache: int | None = None,
        metrics: bool = False,
        says_cached: bool = True,
        owner: str = "",
        parameters: int | None = None,
        likely: Callable[[Body], Mapping[str, float]] | None = None,
    ) -> None:
        super().__init__(port)
        self.responder = responder or fill
        self.faults = faults
        self.model, self.key, self.lists_models, self.context = model, key, lists_models, context
        self.owner, self.parameters, self.likely = owner, parameters, likely
        self.delay_s, self.hold = delay_s, hold
        self.bodies: list[Body] = []
        self.times: list[float] = []
        self._finished: Counter[str] = Counter()
        self.in_flight = self.peak = 0
        self.cache, self.metrics, self.says_cached = cache, metrics, says_cached
        self.prompt_tokens = self.cached_tokens = 0
        self._blocks: OrderedDict[str, None] = OrderedDict()

    @property
    def url(self) -> str:
        """The value of `lm.api_base`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def finished(self) -> Counter[str]:
        """Number of complete replies to each body, by the body's hash."""
        return self._finished.copy()

    def settings(self, lm: str = "lm") -> list[str]:
        """Return the settings of a command whose model `lm` this server has, with hardly a pause between attempts."""
        usual = {"model": self.model, "api_base": self.url, "max_tokens": 256, "retries": 2, "retry_wait_s": 0.01}
        return [f"{lm}=openai", *(f"{lm}.{name}={value}" for name, value in usual.items())]

    def endpoint(self, **settings: Any) -> OpenAIEndpoint:
        """Return settings that reach this server, with hardly a pause between attempts."""
        usual = {
            "model": self.model,
            "api_base": self.url,
            "api_key_env": "TEST_API_KEY",
            "context": 8192,
            "max_tokens": 256,
            "concurrency": 16,
            "timeout_s": 300,
            "retries": 3,
            "retry_wait_s": 0.01,
        }
        return OpenAIEndpoint(**{**usual, **settings})

    def vanish(self, seconds: float | None = None) -> None:
        """Break all connections and stop listening, for so many seconds or for good."""

        async def gone() -> None:
            await self._runner.cleanup()
            if seconds is not None:
                await asyncio.sleep(seconds)
                await self._start()

        self._gone = asyncio.run_coroutine_threadsafe(gone(), self._loop)

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/another/models", self._another)
        app.router.add_get("/metrics", self._metrics)
        await self._listen(app, cancels=True, backlog=2048)

    def _denied(self, request: web.Request) -> web.Response | None:
        if self.key is None or request.headers.get("Authorization") == f"Bearer {self.key}":
            return None
        return _error(401, "Incorrect API key provided.", "invalid_api_key")

    async def _models(self, request: web.Request) -> web.Response:
        if self.silent:
            await asyncio.Event().wait()
        if not self.lists_models:
            return _error(404, "Not Found")
        model: Body = {"id": self.model, "object": "model", "max_model_len": self.context, "owned_by": self.owner}
        if self.parameters is not None:
            model["meta"] = {"n_params": self.parameters}  # as llama.cpp says it
        models = {"object": "list", "data": [model] if self.model else []}
        return self._denied(request) or web.json_response(models)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if denied := self._denied(request):
            return denied
        body = await request.json()
        self.bodies.append(body)
        self.times.append(time.monotonic())
        number = len(self.bodies)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            if fault := self._fault(number, body):
                return await fault(request, body)
            if body["model"] != self.model:
                return _error(404, f"The model `{body['model']}` does not exist.", "model_not_found")
            if delay := self.delay_s(body) if callable(self.delay_s) else self.delay_s:
                await asyncio.sleep(delay)
            until = time.monotonic() + 300
            while self.hold(body):
                if time.monotonic() > until:
                    return _error(401, "held for five minutes")  # which ends the run, and fails the test
                await asyncio.sleep(0.01)
            return await self._answer(request, body)
        finally:
            self.in_flight -= 1

    def _fault(self, number: int, body: Body) -> Fault | None:
        if callable(self.faults):
            return self.faults(number, body)
        return self.faults[number - 1] if number <= len(self.faults) else None

    async def _answer(self, request: web.Request, body: Body) -> web.StreamResponse:
        if self.silent:
            await asyncio.Event().wait()
        tokens, cached = len(prompt(body)) // _TOKEN, self._cached(prompt(body))
        self.prompt_tokens += tokens
        self.cached_tokens += cached
        completion = _completion(body, self.responder(body), cached=cached)
        if self.likely and body.get("logprobs"):
            found = sorted(self.likely(body).items(), key=lambda each: -each[1])[: body["top_logprobs"]]
            ranked = [{"token": token, "logprob": math.log(share)} for token, share in found]
            completion["choices"][0]["logprobs"] = {"content": [{**ranked[0], "top_logprobs": ranked}]}
        if not self.says_cached:
            completion["usage"]["prompt_tokens_details"] = None
        response = web.json_response(completion)
        await response.prepare(request)
        self._finished[digest(body)] += 1  # before the client can have it
        try:
            await response.write_eof()
        except ConnectionResetError:  # the client has gone
            self._finished -= Counter([digest(body)])
            raise
        return response

    def _cached(self, text: str) -> int:
        """Return how many tokens at a prompt's start an earlier prompt started with, and cache those of this one."""
        state = hashlib.sha256()
        blocks = []
        for end in range(_BLOCK, len(text) + 1, _BLOCK):
            state.update(text[end - _BLOCK : end].encode())
            blocks.append(state.hexdigest())
        cached = next((place for place, block in enumerate(blocks) if block not in self._blocks), len(blocks))
        for block in reversed(blocks):  # so that the end of a prompt is evicted first
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while self.cache is not None and len(self._blocks) * _BLOCK > self.cache * _TOKEN:
            self._blocks.popitem(last=False)
        return cached * _BLOCK // _TOKEN

    async def _metrics(self, _: web.Request) -> web.Response:
        if not self.metrics or self.cache is None:
            return _error(404, "Not Found")
        labels = f'block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="{self.cache // 16}"'
        return web.Response(text=f"# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{{{labels}}} 1.0\n")

    async def _another(self, _: web.Request) -> web.Response:
        """Answer like a server of another kind."""
        return web.json_response({"status": "ok"})


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """Return a server without faults."""
    with OpenAIServer() as server:
        yield server


def prompt(body: Body) -> str:
    """Return the text of a request's last message."""
    return str(body["messages"][-1]["content"])


def digest(body: Body) -> str:
    """Return a hash of a request's body, the same as `generator.models.lm.ChatRequest.key`."""
    return hashlib.sha256(to_json(body)).hexdigest()


def fill(body: Body) -> str:
    """Return the default reply: a value of the request's JSON schema, or a line of words without one.

    An answer that rests on evidence is a sentence of the documents that the Agent hasn't said yet, while there is one.
    """
    chance = random.Random(f"{prompt(body)}\n{body.get('seed')}")
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return words(chance, 80)
    reply = value(schema, schema, chance)
    told = _SENTENCE.findall(prompt(body))
    if isinstance(reply, dict) and "answer" in reply:
        if "evidence" in reply and told:
            dialog = prompt(body).partition("\n<dialog>")[2]
            number, sentence = chance.choice([one for one in told if one[1] not in dialog] or told)
            reply |= {"evidence": [int(number)], "answer": sentence[: schema["properties"]["answer"].get("maxLength")]}
        elif "evidence" not in reply and "<task>" in prompt(body):
            reply["answer"] = "You are welcome."
    return json.dumps(reply)


def value(schema: Body, root: Body, chance: random.Random, name: str = "") -> Any:
    """Return a value that `schema` allows: booleans are true, enums their first value, text is made of words."""
    if "$ref" in schema:
        return value(root["$defs"][schema["$ref"].rpartition("/")[2]], root, chance, name)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return value(schema["anyOf"][0], root, chance, name)
    match schema.get("type"):
        case "object":
            return {key: value(child, root, chance, key) for key, child in schema.get("properties", {}).items()}
        case "array":
            most = max(schema.get("minItems", 0), min(schema.get("maxItems", 3), 3))
            count = chance.randint(min(max(schema.get("minItems", 0), 1), most), most)
            items = [value(schema["items"], root, chance) for _ in range(count)]
            return sorted(set(items)) if all(isinstance(item, int) for item in items) else items
        case "integer" | "number":
            low = schema.get("minimum", 1)
            return chance.randint(low, schema.get("maximum", low + 9))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            most = 7 if name == "question" else 14
            return words(chance, schema.get("maxLength", 200), "?" if name in ("question", "query") else ".", most)


def words(chance: random.Random, longest: int, end: str = ".", most: int = 14) -> str:
    """Return a line of 6 to 14 made-up words, but of `most` words and `longest` characters at most."""
    made = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(chance.randint(6, 14))]
    return " ".join(made[:most]).capitalize()[: longest - 1].rstrip() + end


# Faults


def status(code: int, message: str = "The server said no.", headers: dict[str, str] | None = None) -> Fault:
    """Answer with an HTTP status and an error of OpenAI's form, such as 429 with a `Retry-After`."""

    async def fault(request: web.Request, body: Body) -> web.StreamResponse:
        return _error(code, message, headers=headers)

    return fault


def plain(text: str) -> Fault:
    """Answer 200 with this text in place of a completion."""

    async def fault(request: web.Request, body: Body) -> web.StreamResponse:
        return web.Response(text=text, content_type="application/json")

    return fault


def raw(line: str) -> Fault:
    """Send this line in place of an HTTP response."""

    async def fault(request: web.Request, body: Body) -> web.StreamResponse:
        assert isinstance(request.transport, asyncio.Transport)
        request.transport.write(f"{line}\r\n\r\n".encode())
        request.transport.close()
        return web.Response()

    return fault


malformed = plain('{"choices": [{"mess')
no_choices = plain('{"object": "chat.completion", "choices": []}')
overflow = status(
    400,
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4744 in the messages, 256 "
    "in the completion). Please reduce the length of the messages or completion.",
)


async def hang_up(request: web.Request, body: Body | None = None) -> web.StreamResponse:
    """Close the connection without a response."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def half_reply(request: web.Request, body: Body) -> web.StreamResponse:
    """Close the connection in the middle of the reply."""
    response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"choices": [{"message": {"content": "I was about to')
    assert request.transport is not None
    request.transport.close()
    return response


async def hang(request: web.Request, body: Body) -> web.StreamResponse:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def cut_off(request: web.Request, body: Body) -> web.StreamResponse:
    """Send a reply that stops at `max_tokens`, in the middle of its JSON."""
    text = fill(body)
    return web.json_response(_completion(body, text[: len(text) // 2], finish_reason="length"))


def dead(fault: Fault, others: Fault | None = None) -> Callable[[int, Body], Fault | None]:
    """Fail for ever at the prompt “dead”, and perhaps at others."""
    return lambda _, body: fault if prompt(body) == "dead" else others


def _error(code: int, message: str, kind: str = "error", headers: dict[str, str] | None = None) -> web.Response:
    error = {"message": message, "type": kind, "param": None, "code": kind}
    return web.json_response({"error": error}, status=code, headers=headers)


def _completion(body: Body, text: str, cached: int = 0, finish_reason: str = "stop") -> Body:
    usage = {"prompt_tokens": len(prompt(body)) // _TOKEN, "completion_tokens": len(text) // _TOKEN}
    return {
        "id": f"chatcmpl-{digest(body)[:12]}",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}],
        "usage": {**usage, "total_tokens": sum(usage.values()), "prompt_tokens_details": {"cached_tokens": cached}},
    }
