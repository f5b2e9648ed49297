"""A server that speaks the OpenAI API: the settings that all have in common, and the client that asks one.

Transient failures are asked again here, with growing pauses; what remains is an error of `dspy.lm15`. Knows
nothing of prompts, of DSPy's modules, or of what is remembered between runs.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Self

import aiohttp
from dspy import lm15
from pydantic import Field, model_validator
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
)

from generator.common.concurrency import backoff
from generator.common.sanitize import without_secrets
from generator.errors import ModelError
from generator.models.http_errors import broken, overloaded, reason, refusal, said
from generator.models.limiter import Limiter
from generator.models.lm import ChatReply, ChatRequest, Clients, Profile, Sampling
from generator.schema import Operational, Record, Usage

_JSON = {"Content-Type": "application/json"}
# A server may ask for more by Retry-After, within reason.
LONGEST_ASKED_PAUSE_S = 600
# Long enough for any server that is there; a run should not hang on one that isn't.
_PROBE_S = 10
# No reply is longer than this, in bytes; a server that sends on and on would take all memory.
LONGEST_REPLY = 1 << 24
# Nor did any count so many tokens, which are to be added up.
_MOST_TOKENS = 1 << 40
# What a call that got no whole answer ends with; ValueError is of addresses that can't be, to which one was sent on.
_BROKEN = (aiohttp.ClientError, OSError, ValueError)
# vLLM closes a connection that idled for 5 s; one that we would reuse at that moment is a broken call.
_IDLE_S = 4


class Endpoint(Record, ABC):
    """A language model that can be opened: the settings that all have in common."""

    model: str = Field(min_length=1, description="The model's name, as the server knows it.")
    context: int = Field(
        ge=512, description="Tokens of prompt and reply together that the model can hold (vLLM's `--max-model-len`)."
    )
    max_tokens: int = Field(ge=16, description="The longest reply, in tokens.")
    concurrency: Annotated[int, Operational] = Field(
        ge=1, description="The most calls in flight; there are fewer while the server says that it is overloaded."
    )
    structured_outputs: bool = Field(
        True, description="Send the JSON schema of each reply; false for servers that refuse `response_format`."
    )
    timeout_s: Annotated[float, Operational] = Field(gt=0, description="Time limit of one call, in seconds.")
    retries: Annotated[int, Operational] = Field(ge=0, description="Further attempts at a call that failed.")
    retry_wait_s: Annotated[float, Operational] = Field(
        gt=0, description="Seconds before the first retry; the wait doubles with each further one, up to a minute."
    )
    greedy: Sampling = Field(
        Sampling(temperature=0), description="Decoding of user and agent turns (Lee et al. 2024, section 2.3)."
    )
    sampled: Sampling = Field(
        Sampling(temperature=1, top_k=50), description="Decoding of everything else: rewritten queries and verdicts."
    )

    @model_validator(mode="after")
    def _room_for_a_prompt(self) -> Self:
        if self.max_tokens >= self.context:
            raise ValueError(f"max_tokens={self.max_tokens} leaves no room for a prompt in context={self.context}")
        return self

    @abstractmethod
    def open(self, folder: Path) -> AbstractAsyncContextManager[Clients]:
        """A client that was seen to work; leaving the block closes it.

        Args:
            folder: where a server that is started for this writes its log.

        Raises:
            ModelError: the endpoint isn't there, refuses the key, or doesn't know the model; one line.
        """

    @asynccontextmanager
    async def connected(self, api_base: str, key_env: str | None = None, share: int = 1) -> AsyncIterator["HttpClient"]:
        """The client of one server, which has the model; one of `share` servers that the calls are divided among."""
        key = os.environ.get(key_env, "").strip() if key_env else ""
        if not (key.isascii() and key.isprintable()):
            raise ModelError(f"the environment variable {key_env} holds what can't be a key; set it anew")
        _allow_sockets(self.concurrency)
        # The slots of the client are the ceiling, so the connector needs none.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            client = HttpClient(self, api_base, key_env, session, share)
            await client.check()
            yield client


class ServerGone(lm15.TransportError):
    """A server that is lost to the run: it isn't there any more, or answers nothing, however often it is asked."""


class ServerMissed(ServerGone):
    """One of several servers that isn't there at this moment; it wasn't waited for."""


class HttpClient:
    """Asks one server; of its share of `concurrency`, as many calls are in flight as it keeps up with.

    Args:
        share: the number of servers with the same model; if there are others, a server that is gone isn't waited for.
    """

    def __init__(
        self, endpoint: Endpoint, api_base: str, key_env: str | None, session: aiohttp.ClientSession, share: int
    ) -> None:
        self.api_base = api_base
        self._endpoint, self._key_env, self._session = endpoint, key_env, session
        self._backoff = backoff(endpoint.retry_wait_s)
        self._limiter = Limiter(-(-endpoint.concurrency // share))
        self._alone = share == 1
        self._timeout = aiohttp.ClientTimeout(total=endpoint.timeout_s, sock_connect=min(30, endpoint.timeout_s))

    @property
    def model(self) -> str:
        """The model's name, as the server knows it."""
        return self._endpoint.model

    @property
    def max_tokens(self) -> int:
        """The longest reply asked for, in tokens."""
        return self._endpoint.max_tokens

    @property
    def context(self) -> int:
        """Tokens of prompt and reply together that the model can hold."""
        return self._endpoint.context

    def sampling(self, profile: Profile) -> Sampling:
        """How tokens are drawn under a decoding profile."""
        return self._endpoint.greedy if profile == "greedy" else self._endpoint.sampled

    def for_dialog(self, document: str) -> AbstractContextManager["HttpClient"]:
        """This client, whichever the dialog."""
        return nullcontext(self)

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Make one call, and make it again as long as that can help.

        Raises:
            lm15.LM15Error: the server refused it, or failed at every attempt; `ServerGone` if it fails at any call.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self._endpoint.retries + 1),
            wait=self._pause,
            retry=retry_if_exception(_worth_repeating),
            reraise=True,
        )
        try:
            return await retrying(self._post, request.content)
        except (ServerGone, lm15.ContextLengthError, lm15.UnsupportedModelError):
            raise
        except (*lm15.RETRYABLE_ERRORS, lm15.InvalidRequestError) as error:
            await self._see_whether_well(error)
        try:
            return await self._post(request.content)  # it may be well since a moment ago
        except ServerGone:
            raise
        except lm15.TransportError as error:
            raise lm15.ServerError(error.message) from error

    async def check(self) -> None:
        """See that the endpoint answers and has the model.

        Raises:
            ModelError: it doesn't.
        """
        try:
            status, body = await self._models()
        except _BROKEN as error:
            why = f"nothing within {_PROBE_S} s" if isinstance(error, TimeoutError) else reason(error, self._key_env)
            raise ModelError(
                f"no model server at {self.api_base} ({why}): start it, or give its address with lm.api_base"
            ) from error
        if status in (401, 403):
            held = "has none that it accepts" if os.environ.get(self._key_env or "") else "is not set"
            raise ModelError(f"{self.api_base} wants a key, and the environment variable {self._key_env} {held}")
        # Not every server lists its models; then the first call will tell.
        if status in (404, 405):
            return
        if status != 200:
            why = said(body, self._key_env)
            raise ModelError(f"{self.api_base}/models answered HTTP {status}: {why}; try again when it is ready")
        try:
            names = [str(model["id"]) for model in json.loads(body)["data"]]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise ModelError(f"{self.api_base} has no OpenAI API; lm.api_base usually ends in /v1") from error
        if self.model not in names:
            known = without_secrets(", ".join(names[:5]), self._key_env) + (", …" if len(names) > 5 else "") or "none"
            raise ModelError(f"{self.api_base} has no model {self.model}; set lm.model to one it has: {known}")

    async def _post(self, body: bytes) -> ChatReply:
        url = f"{self.api_base}/chat/completions"
        # The slot is given back while a failed call pauses.
        async with self._limiter.slot() as slot:
            try:
                content = await self._sent(url, body)
            except lm15.LM15Error as error:
                if overloaded(error):
                    slot.refused()
                raise
            slot.served()
        try:
            return _reply(json.loads(content), self.model)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
            raise lm15.ServerError(f"{url} answered with no chat completion: {said(content, self._key_env)}") from error

    async def _sent(self, url: str, body: bytes) -> bytes:
        try:
            async with self._session.post(url, data=body, headers=_JSON, timeout=self._timeout) as response:
                content = await _whole(response)
        except _BROKEN as error:
            failure = broken(url, error, self._endpoint.timeout_s, self._key_env)
            if not self._alone and not await self._there():
                raise ServerMissed(_stopped("is gone", failure)) from error
            raise failure from error
        if response.status != 200:
            raise refusal(url, response.status, content, response.headers, self._key_env)
        return content

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(self._backoff(state), min(getattr(error, "retry_after", None) or 0, LONGEST_ASKED_PAUSE_S))

    async def _see_whether_well(self, error: lm15.LM15Error) -> None:
        """What repeated failure means: this call is lost, or the server is.

        Only the first is a drop. A server that fails at everything would have every dialog dropped; so it is asked
        for what nobody can fail at.

        Raises:
            ServerGone: it doesn't do even that.
        """
        if not await self._there():
            raise ServerGone(_stopped("is gone", error)) from error
        trial = ChatRequest(
            model=self.model, prompt="Say hello.", sampling=self.sampling("greedy"), seed=0, max_tokens=16
        )
        try:
            await self._post(trial.content)
        except lm15.LM15Error:
            raise ServerGone(_stopped("fails at every call", error)) from error

    async def _there(self) -> bool:
        try:
            status, _ = await self._models()
        except _BROKEN:
            return False
        return status < 500

    async def _models(self) -> tuple[int, bytes]:
        async with self._session.get(
            f"{self.api_base}/models", timeout=aiohttp.ClientTimeout(total=_PROBE_S)
        ) as response:
            return response.status, await _whole(response)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body of an answer.

    Raises:
        aiohttp.ClientPayloadError: it is longer than any reply.
    """
    if "Content-Encoding" not in response.headers and (response.content_length or LONGEST_REPLY) < LONGEST_REPLY:
        return await response.read()
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > LONGEST_REPLY:
            raise aiohttp.ClientPayloadError(f"its answer is longer than {LONGEST_REPLY >> 20} MiB")
    return bytes(content)


def _stopped(how: str, error: lm15.LM15Error) -> str:
    why = error.message.partition("\n")[0]  # lm15 adds advice for its own users below
    return f"the model server {how}: {why}; when it is well, the same command continues"


def _worth_repeating(error: BaseException) -> bool:
    return isinstance(error, lm15.RETRYABLE_ERRORS) and not isinstance(error, ServerGone)


def _allow_sockets(count: int) -> None:
    """Raise this process's limit of open files, 256 on a Mac, as far as the system lets us."""
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

        soft, hard = getrlimit(RLIMIT_NOFILE)
        # Beside the calls, room for the run's own files.
        wanted = count + 256 if hard == RLIM_INFINITY else min(count + 256, hard)
        if RLIM_INFINITY != soft < wanted:
            setrlimit(RLIMIT_NOFILE, (wanted, hard))


def _reply(body: Any, model: str) -> ChatReply:
    """Read a chat completion. Servers differ in what they leave out: only the message must be there."""
    choice = body["choices"][0]
    usage = body.get("usage") or {}
    prompt = _tokens(usage.get("prompt_tokens"))
    return ChatReply(
        # JSON's escapes can smuggle in halves of characters, which nothing can be written with.
        text=(choice["message"].get("content") or "").encode(errors="replace").decode(),
        finish_reason=choice.get("finish_reason") or "stop",
        model=body.get("model") or model,
        usage=Usage(
            calls=1,
            prompt=prompt,
            cached=min(prompt, _tokens((usage.get("prompt_tokens_details") or {}).get("cached_tokens"))),
            completion=_tokens(usage.get("completion_tokens")),
        ),
    )


def _tokens(counted: Any) -> int:
    """A count of tokens; none is 0."""
    count = int(counted or 0)
    if not 0 <= count <= _MOST_TOKENS:
        raise ValueError(f"{count} tokens")
    return count
