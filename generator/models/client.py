"""The client of a server with the OpenAI API.

Transient failures are retried here with growing waits; one that remains is raised as an error of `dspy.lm15`. This
module doesn't know prompts, DSPy's modules or the journal of finished calls.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
from dspy import lm15

from generator.common.concurrency import WaitNotes, backoff, retrying
from generator.common.console import note
from generator.common.proxies import find_proxy
from generator.common.sanitize import read_key, server_message
from generator.errors import ModelError
from generator.models.admission import Admission, capacity_of
from generator.models.completions import BAD_ANSWER, ListedModel, read_completion, read_models
from generator.models.failing import GIVEN_UP_AFTER, FailingCall, Tally
from generator.models.http_errors import connection_cause, connection_error, error_text, is_overload, status_error
from generator.models.limiter import Limiter
from generator.models.lm import ChatReply, ChatRequest, Client, Profile, Sampling, billions_named
from generator.schema import Message

if TYPE_CHECKING:
    from generator.models.endpoints import Endpoint

_JSON = {"Content-Type": "application/json"}
_FORMAT = re.compile(r"response_format|json_schema")
# Time limit for the list of models: a run should not hang on a server that is down.
_PROBE_S = 10
# One may fail by chance.
_SCHEMA_TRIALS = 3
# Time limit for a server's metrics, which only vLLM has.
_METRICS_S = 5
# Servers that hold replies to a schema with xgrammar; bounds on texts make it 20 to 40 times slower
# (`docs/performance.md`).
_BOUND_SLOWLY = ("vllm", "sglang")
# In a message, such a key has backslashes before its quotes.
_TEXT_BOUND = re.compile(rb'"maxLength":\d+,')
_HELLO = (Message(role="user", content="Say hello."),)
# Errors of a call without a complete response; ValueError is raised for an impossible host name.
_CONNECTION_ERRORS = (aiohttp.ClientError, OSError, ValueError)


class ServerGone(lm15.TransportError):
    """The server is lost to the run: it is down, or fails at every call."""


class ServerDown(ServerGone):
    """One of several servers is down at this moment; its calls were not retried."""


class NoServer(ModelError):
    """Nothing answers at the address, or a server that is starting or broken."""


class HttpClient:
    """The client of one server; it keeps as many calls in flight as the server can handle, up to its share.

    Args:
        share: the number of servers that share `concurrency`; with several, calls to a server that is down aren't
            retried.

    Attributes:
        missing: why it wasn't there at the start, if it is one of several.
    """

    missing: NoServer | None = None

    def __init__(
        self, endpoint: "Endpoint", api_base: str, key_env: str | None, session: aiohttp.ClientSession, share: int
    ) -> None:
        self.api_base = api_base
        self.model, self.max_tokens, self.context = endpoint.model, endpoint.max_tokens, endpoint.context
        self.billions = billions_named(self.model)
        self._endpoint, self._key_env, self._session = endpoint, key_env, session
        key = read_key(key_env)
        # Of each request: headers of a session go to a proxy, too.
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._setting = endpoint._setting
        self._backoff, self._wait_notes = backoff(endpoint.retry_wait_s), WaitNotes(_why)
        self._limiter = Limiter(-(-endpoint.concurrency // share))
        self.admission = Admission(
            api_base, -(-endpoint.most_dialogs // share), endpoint.dialogs is None, endpoint._processes
        )
        self._tally = Tally()
        self._good: tuple[Message, ...] = _HELLO
        self._lost: ServerGone | None = None
        self._trying, self._trials, self._tried = asyncio.Lock(), 0, False
        self._alone, self._bounds_texts = share == 1, endpoint.bounds_texts
        self._timeout = aiohttp.ClientTimeout(total=endpoint.timeout_s, sock_connect=min(30, endpoint.timeout_s))

    def sampling(self, profile: Profile) -> Sampling:
        return self._endpoint.greedy if profile == "greedy" else self._endpoint.sampled

    def for_dialog(self, document: str) -> AbstractContextManager[Client]:
        """Return the client for the calls of one dialog."""
        return closing(DialogClient(self))

    async def chat(self, request: ChatRequest, age: int = -1) -> ChatReply:
        """Make one call, with retries of transient failures: few while the server answers other calls.

        Once the server was lost, only a trial waits for it: a run may go on without its judge's server.

        Args:
            age: of the dialog that the call belongs to, by which calls get their turn.

        Raises:
            lm15.LM15Error: the server refused the call, or failed at every attempt; `ServerGone` if the server itself
                is lost.
        """
        if self._lost and not await self._try_soon():
            raise type(self._lost)(_why(self._lost))
        try:
            reply = await self._chat(request, age)
        except ServerGone as error:
            self._lost, self._good = error, _HELLO  # a server that is back has no prompt in its cache
            raise
        self._lost = None
        return reply

    async def _chat(self, request: ChatRequest, age: int) -> ChatReply:
        call, served = FailingCall(self._tally, self._endpoint.retry_wait_s), self._tally.served
        attempts = retrying(
            self._endpoint.retries,
            lambda state: call.pause_s or self._backoff(state),
            lambda error: _is_transient(error) and not call.given_up,
            self._wait_notes,
        )
        try:
            try:
                return await attempts(self._attempt, request, call, age)
            except (ServerGone, lm15.ContextLengthError, lm15.UnsupportedModelError):
                raise
            except lm15.AuthError as error:
                # Moderation and firewalls refuse single prompts by 403, for their words.
                if error.status != 403 or not await self._try_soon():
                    raise
                try:
                    return await self._post(request, age)
                except lm15.AuthError as again:
                    raise lm15.InvalidRequestError(again.message, status=again.status) from again
            except (*lm15.RETRYABLE_ERRORS, lm15.InvalidRequestError) as error:
                if not call.given_up:
                    await self._check_after(error, self._tally.served > served)
                if request.response_format and not self._tally.served:
                    await self._check_schemas(request.response_format)
                if call.given_up:
                    raise
            return await self._post(request, age)  # the server may have recovered since
        except ServerGone:
            raise
        except lm15.TransportError as error:
            raise lm15.ServerError(error.message) from error

    async def check(self) -> None:
        """Check that the endpoint answers, accepts the key, and has the model with the context that is set.

        Raises:
            ModelError: one of these fails; `NoServer` if it doesn't answer, or with a failure of its own.
        """
        try:
            status, body = await self._models()
        except _CONNECTION_ERRORS as error:
            self._check_proxy(getattr(error, "status", None))
            timed_out = isinstance(error, TimeoutError)
            why = f"no response within {_PROBE_S} s" if timed_out else connection_cause(error, self._key_env)
            proxy = find_proxy(self.api_base).get("proxy")
            where = f"{self.api_base}, asked by the proxy {proxy}" if proxy else self.api_base
            remedy = f"start it, or set its address with {self._setting}.api_base"
            if isinstance(error, aiohttp.ClientSSLError):
                remedy = f"check {self._setting}.api_base; SSL_CERT_FILE names the certificate of your own authority"
            raise NoServer(f"no model server at {where} ({why}): {remedy}") from error
        self._check_proxy(status)
        if status == 401:
            held = "was refused" if os.environ.get(self._key_env or "") else "is not set"
            raise ModelError(f"{self.api_base} requires an API key, and the one in {self._key_env} {held}")
        # Some servers don't list their models, or not with this key; there the first call shows what is wrong.
        if status in (403, 404, 405):
            return
        if status != 200:
            why = error_text(body, self._key_env)
            unready = NoServer if status >= 500 else ModelError
            raise unready(f"{self.api_base}/models answered HTTP {status}: {why}; try again when it is ready")
        try:
            known = read_models(body)
        except BAD_ANSWER as error:
            raise ModelError(
                f"{self.api_base} has no OpenAI API; {self._setting}.api_base usually ends in /v1"
            ) from error
        if not known:
            raise ModelError(f"{self.api_base} lists no models: load {self.model} in it, then try again")
        if self.model not in known:
            await self._try_unlisted(known)
        listed = known.get(self.model, ListedModel())
        self.billions = listed.billions or self.billions
        self._bounds_texts &= listed.server not in _BOUND_SLOWLY
        if listed.context is not None and listed.context < self.context:
            note(
                f"{self._setting}.context={self.context} is more than the {listed.context} tokens of {self.api_base}, "
                f"which refuses longer prompts: set {self._setting}.context={listed.context}, or start the server with "
                f"--max-model-len {self.context}"
            )

    def _check_proxy(self, status: int | None) -> None:
        """Raise ModelError if a proxy between refuses the login, or that there is none."""
        if status == 407:
            proxy = find_proxy(self.api_base).get("proxy", "before it")
            login = "HTTP_PROXY and HTTPS_PROXY take it as http://USER:PASSWORD@HOST:PORT"
            raise ModelError(f"{self.api_base}: the proxy {proxy} requires a login (HTTP 407): {login}")

    async def _try_unlisted(self, known: Iterable[str]) -> None:
        """Find out if the server has the model though it doesn't list it, as Azure and gateways don't list aliases."""
        try:
            with suppress(*lm15.RETRYABLE_ERRORS):  # which say nothing of the model
                await self._post(self._trial(self.max_tokens))
        except lm15.LM15Error as error:
            names = server_message(", ".join(known), self._key_env)
            raise ModelError(
                f"{self.api_base} has no model {self.model}; set {self._setting}.model to one of its models: {names}"
            ) from error
        note(f"{self.api_base} doesn't list the model {self.model}, which is used all the same")

    async def read_capacity(self) -> None:
        """Ask the server how much its prefix cache holds, as vLLM says in its metrics; others don't."""
        if not self.admission.measures:
            return
        with suppress(*_CONNECTION_ERRORS):
            limit = aiohttp.ClientTimeout(total=_METRICS_S)
            url = f"{self.api_base.removesuffix('/v1')}/metrics"
            async with self._session.get(url, headers=self._headers, timeout=limit) as response:
                text = await response.text() if response.status == 200 else ""
            self.admission.set_capacity(capacity_of(text), self.context)

    async def _attempt(self, request: ChatRequest, call: FailingCall, age: int) -> ChatReply:
        begun, served = time.monotonic(), self._tally.served
        try:
            reply = await self._post(request, age)
        except ServerGone:
            raise
        except lm15.RETRYABLE_ERRORS as error:
            seconds = time.monotonic() - begun
            call.fail()
            # After the last attempt, `chat` finds out.
            suspected = 1 < call.failures <= self._endpoint.retries
            own_fault = suspected and await self._is_own_fault(error, call)
            silent = isinstance(error, lm15.TimeoutError) and self._tally.served == served
            if not self._alone and not own_fault and await self._is_lost(error, call, silent):
                raise ServerDown(self._describe_loss("answers no call", error)) from error
            call.judge(own_fault, seconds)
            raise
        self._tally.served += 1
        self._good = request.messages
        return reply

    async def _is_own_fault(self, error: lm15.LM15Error, call: FailingCall) -> bool:
        """Return whether a call fails repeatedly while the server answers others."""
        if isinstance(error, lm15.RateLimitError) or getattr(error, "retry_after", None):
            return False  # the server says that it wants time
        # An overloaded server answers some calls too: there only a reply that comes soon says something.
        fare = call.others_fare
        known = fare > 0 or (fare == 0 and call.pause_s is not None)
        if known and not is_overload(error):
            return True
        return call.failures >= GIVEN_UP_AFTER and await self._try_soon()

    async def _is_lost(self, error: lm15.LM15Error, call: FailingCall, silent: bool) -> bool:
        """Return whether one of several servers fails at all calls, though it may answer with its list of models.

        Args:
            silent: it answered none while the call waited.
        """
        fails = call.failures >= GIVEN_UP_AFTER and not is_overload(error)
        if getattr(error, "retry_after", None) or not (silent or fails):
            return False
        return not await self._try_soon()

    async def _try_soon(self) -> bool:
        """Return whether the server answers a trial soon; calls that ask at the same time share one."""
        before = self._trials
        async with self._trying:
            if self._trials == before:
                self._tried = False
                with suppress(lm15.LM15Error, TimeoutError):
                    async with asyncio.timeout(min(_PROBE_S, self._endpoint.timeout_s / 2)):
                        await self._post(self._trial())
                        self._tried = True
                self._trials += 1
            return self._tried

    def _trial(self, max_tokens: int = 16) -> ChatRequest:
        """Return a trivial call with a prompt that the server has answered before, if there is one."""
        return ChatRequest(
            model=self.model, messages=self._good, sampling=self.sampling("greedy"), seed=0, max_tokens=max_tokens
        )

    async def _post(self, request: ChatRequest, age: int = -1) -> ChatReply:
        url = f"{self.api_base}/chat/completions"
        # The slot is released while a failed call waits.
        async with self._limiter.slot(age) as number:
            try:
                content = await self._send(url, self._encode(request))
            except lm15.LM15Error as error:
                if is_overload(error):
                    self._limiter.shrink(number)
                raise
            self._limiter.grow()
        try:
            return read_completion(content, self.model)
        except BAD_ANSWER as error:
            text = error_text(content, self._key_env)
            page = content.lstrip().startswith(b"<")  # of a server that shows one at any address
            hint = f"; {self._setting}.api_base usually ends in /v1" if page else ""
            raise lm15.ServerError(f"{url} answered with no chat completion: {text}{hint}") from error

    def _encode(self, request: ChatRequest) -> bytes:
        body = self._endpoint.encode(request)
        return body if self._bounds_texts else _TEXT_BOUND.sub(b"", body)

    async def _send(self, url: str, body: bytes) -> bytes:
        try:
            headers = _JSON | self._headers
            async with self._session.post(url, data=body, headers=headers, timeout=self._timeout) as response:
                content = await response.read()
        except _CONNECTION_ERRORS as error:
            self._check_proxy(getattr(error, "status", None))
            failure = connection_error(url, error, self._endpoint.timeout_s, self._key_env)
            if not self._alone and not await self._is_up():
                raise ServerDown(self._describe_loss("is gone", failure)) from error
            raise failure from error
        self._check_proxy(response.status)
        if response.status != 200:
            raise status_error(url, response.status, content, response.headers, self._key_env, self._setting)
        return content

    async def _check_after(self, error: lm15.LM15Error, answers: bool) -> None:
        """Find out if repeated failure is the fault of this call or of the server, with a trivial call.

        A failed call drops its dialog; a server that fails at every call must stop the run instead of dropping all.

        Args:
            answers: it has answered another call meanwhile, so that it doesn't refuse all.

        Raises:
            ServerGone: the server fails at the trivial call too, or takes no response format, which is not in it.
        """
        if isinstance(error, lm15.InvalidRequestError) and _FORMAT.search(error.message):
            remedy = f"set {self._setting}.structured_outputs=false"
            raise ServerGone(f"the model server refuses structured output: {_why(error)}; {remedy}")
        if answers and isinstance(error, lm15.InvalidRequestError):
            return
        if not await self._is_up():
            raise ServerGone(self._describe_loss("is gone", error)) from error
        # A refused call was not retried, so its trial may be the first call that meets a rate limit.
        retries = self._endpoint.retries if isinstance(error, lm15.InvalidRequestError) else 0
        attempts = retrying(retries, self._backoff, _is_transient, self._wait_notes)
        try:
            # Fewer tokens may end before a reasoning model says anything, which some servers refuse.
            await attempts(self._post, self._trial(self.max_tokens))
        except lm15.LM15Error:
            raise ServerGone(self._describe_loss("fails at every call", error)) from error

    async def _check_schemas(self, form: Mapping[str, Any]) -> None:
        """Find out if a server that answers the trivial call fails when a failed call's JSON schema is added to it.

        Raises:
            ServerGone: it does.
        """
        for seed in range(_SCHEMA_TRIALS):
            try:
                # A reply that is cut off is no JSON, which some servers refuse.
                trial = self._trial(self.max_tokens)
                await self._post(trial.model_copy(update={"response_format": form, "seed": seed}))
                return
            except (lm15.ServerError, lm15.InvalidRequestError) as error:
                failure = error
            except lm15.LM15Error:  # such as a rate limit, which says nothing of schemas
                return
        remedy = f"its log may say why; {self._setting}.structured_outputs=false does without"
        raise ServerGone(f"the model server fails at JSON schemas: {_why(failure)}; {remedy}") from failure

    def _describe_loss(self, how: str, error: lm15.LM15Error) -> str:
        if isinstance(error, lm15.InvalidRequestError):
            remedy = f"{self._setting}.fields renames or leaves out what it doesn't take (docs/serving.md)"
            return f"the model server refuses every call: {_why(error)}; {remedy}"
        which = "it" if self._setting == "lm" else f"the server of {self._setting}"  # several may have one address
        return f"the model server {how}: {_why(error)}; when {which} is back, the same command continues"

    async def _is_up(self) -> bool:
        try:
            status, _ = await self._models()
        except _CONNECTION_ERRORS:
            return False
        return status < 500

    async def _models(self) -> tuple[int, bytes]:
        limit = aiohttp.ClientTimeout(total=_PROBE_S)
        async with self._session.get(f"{self.api_base}/models", headers=self._headers, timeout=limit) as response:
            # Of a call that is redirected like this, the key gets lost, and often the prompt.
            if response.history and response.url.origin() != response.history[0].url.origin():
                place = server_message(str(response.url).removesuffix("/models"), self._key_env)
                raise ModelError(f"{self.api_base} redirects to {place}: set {self._setting}.api_base to that address")
            return response.status, await response.read()


class DialogClient:
    """The client of one dialog, whose calls wait until it is one of those under way on its server."""

    def __init__(self, server: HttpClient) -> None:
        self.server, self.place = server, server.admission.enter()
        # The same for all servers of a pool.
        self.model, self.max_tokens, self.context = server.model, server.max_tokens, server.context
        self.sampling = server.sampling

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Make one call, as `HttpClient.chat`, when the dialog is under way."""
        server, place = self.server, self.place
        await place.may_call.wait()
        reply = await server.chat(request, place.age)
        server.admission.record(place, request.content, reply.usage)
        return reply

    def close(self) -> None:
        """Release the dialog's place on its server."""
        self.server.admission.leave(self.place)

    def move(self, server: HttpClient) -> None:
        """Continue on another server."""
        self.close()
        self.server, self.place = server, server.admission.enter(self.place.age)


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, lm15.RETRYABLE_ERRORS) and not isinstance(error, ServerGone)


def _why(error: lm15.LM15Error) -> str:
    return error.message.partition("\n")[0]  # lm15 adds advice for its own users below
