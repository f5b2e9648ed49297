"""The client of a server with the OpenAI API: it retries what fails, and tells whose fault a failure is.

Transient failures are retried with growing waits; one that remains is raised as an error of `dspy.lm15`. This module
doesn't know prompts, DSPy's modules or the journal of finished calls.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
from dspy import lm15

from generator.common.concurrency import WaitNotes, backoff, retrying
from generator.models.admission import Admission
from generator.models.completions import BAD_ANSWER, capacity_of, read_completion
from generator.models.connection import CONNECTION_ERRORS, PROBE_S, Connection
from generator.models.failing import GIVEN_UP_AFTER, FailingCall, Tally
from generator.models.http_errors import error_text, is_overload
from generator.models.limiter import Limiter
from generator.models.lm import (
    LOGPROBS_REMEDY,
    NO_LOGPROBS,
    ChatReply,
    ChatRequest,
    Client,
    Profile,
    Sampling,
    billions_named,
)
from generator.models.readiness import NoServer, check_server
from generator.schema import Message

if TYPE_CHECKING:
    from generator.models.endpoints import Endpoint

_FORMAT = re.compile(r"response_format|json_schema")
# One may fail by chance.
_SCHEMA_TRIALS = 3
# Servers that hold replies to a schema with xgrammar; bounds on texts make it 20 to 40 times slower
# (`docs/performance.md`).
_BOUND_SLOWLY = ("vllm", "sglang")
# In a message, such a key has backslashes before its quotes.
_TEXT_BOUND = re.compile(rb'"maxLength":\d+,')
_HELLO = (Message(role="user", content="Say hello."),)


class ServerGone(lm15.TransportError):
    """The server is lost to the run: it is down, or fails at every call."""


class ServerDown(ServerGone):
    """One of several servers is down at this moment; its calls were not retried."""


class HttpClient:
    """The client of one server; it keeps as many calls in flight as the server can handle, up to its share.

    Args:
        share: the number of servers that share `concurrency`; with several, calls to a server that is down aren't
            retried.

    Attributes:
        server: the connection to it.
        missing: why it wasn't there at the start, if it is one of several.
    """

    missing: NoServer | None = None

    def __init__(
        self, endpoint: "Endpoint", api_base: str, key_env: str | None, session: aiohttp.ClientSession, share: int
    ) -> None:
        self.model, self.max_tokens, self.context = endpoint.model, endpoint.max_tokens, endpoint.context
        self.billions = billions_named(self.model)
        self._endpoint = endpoint
        self.server = Connection(session, api_base, key_env, endpoint._setting, endpoint.timeout_s)
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
        except lm15.TransportError as error:
            raise lm15.ServerError(error.message) from error
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
            return await attempts(self._attempt, request, call, age)
        except (ServerGone, lm15.ContextLengthError, lm15.UnsupportedModelError):
            raise
        except lm15.AuthError as error:
            # Moderation and firewalls refuse single prompts by 403, for their words.
            if error.status != 403 or not await self._try_soon():
                raise
            return await self._post_refused(request, age)
        except (*lm15.RETRYABLE_ERRORS, lm15.InvalidRequestError) as error:
            if not call.given_up:
                await self._check_after(error, self._tally.served > served)
            if request.response_format and not self._tally.served:
                await self._check_schemas(request.response_format)
            if call.given_up:
                raise
        return await self._post(request, age)  # the server may have recovered since

    async def _post_refused(self, request: ChatRequest, age: int) -> ChatReply:
        """Make a call again that was refused as with a wrong key; if it is refused again, the call is at fault."""
        try:
            return await self._post(request, age)
        except lm15.AuthError as error:
            raise lm15.InvalidRequestError(error.message, status=error.status) from error

    async def check(self) -> None:
        """Check the server before a run, and learn of its model and its prefix cache; errors as of `check_server`."""
        call = partial(self._post, self._trial(self.max_tokens))
        listed = await check_server(self.server, self.model, self.context, call)
        self.billions = listed.billions or self.billions
        self._bounds_texts &= listed.server not in _BOUND_SLOWLY
        if self.admission.measures:
            with suppress(*CONNECTION_ERRORS):
                self.admission.set_capacity(capacity_of(await self.server.read_metrics()), self.context)

    async def _attempt(self, request: ChatRequest, call: FailingCall, age: int) -> ChatReply:
        begun, served = time.monotonic(), self._tally.served
        try:
            reply = await self._post(request, age)
        except ServerGone:
            raise
        except lm15.RETRYABLE_ERRORS as error:
            seconds = time.monotonic() - begun
            call.fail()
            # After the last attempt, `_check_after` finds out.
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
        if call.others_fare_well and not is_overload(error):
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
                    async with asyncio.timeout(min(PROBE_S, self._endpoint.timeout_s / 2)):
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
        # The slot is released while a failed call waits.
        async with self._limiter.slot(age) as number:
            try:
                content = await self.server.post(self._encode(request))
            except lm15.LM15Error as error:
                no_answer = getattr(error, "status", None) is None
                if no_answer and not self._alone and not await self.server.is_up():
                    raise ServerDown(self._describe_loss("is gone", error)) from error
                if is_overload(error):
                    self._limiter.shrink(number)
                refused = "logprobs" in error.message and not isinstance(error, lm15.RETRYABLE_ERRORS)
                if request.top_logprobs and refused:  # by OpenAI with 403, as if the key were wrong
                    refusal = _why(error).partition("; ")[0]
                    raise ServerGone(f"{NO_LOGPROBS}: {refusal}; {LOGPROBS_REMEDY}") from error
                raise
            self._limiter.grow()
        try:
            return read_completion(content, self.model)
        except BAD_ANSWER as error:
            text = error_text(content, self.server.key_env)
            page = content.lstrip().startswith(b"<")  # of a server that shows one at any address
            hint = f"; {self.server.setting}.api_base usually ends in /v1" if page else ""
            raise lm15.ServerError(f"{self.server.url} answered with no chat completion: {text}{hint}") from error

    def _encode(self, request: ChatRequest) -> bytes:
        body = self._endpoint.encode(request)
        return body if self._bounds_texts else _TEXT_BOUND.sub(b"", body)

    async def _check_after(self, error: lm15.LM15Error, answers: bool) -> None:
        """Find out if repeated failure is the fault of this call or of the server, with a trivial call.

        A failed call drops its dialog; a server that fails at every call must stop the run instead of dropping all.

        Args:
            answers: it has answered another call meanwhile, so that it doesn't refuse all.

        Raises:
            ServerGone: the server fails at the trivial call too, or takes no response format, which is not in it.
        """
        if isinstance(error, lm15.InvalidRequestError) and _FORMAT.search(error.message):
            remedy = f"set {self.server.setting}.structured_outputs=false"
            raise ServerGone(f"the model server refuses structured output: {_why(error)}; {remedy}")
        if answers and isinstance(error, lm15.InvalidRequestError):
            return
        if not await self.server.is_up():
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
        remedy = f"its log may say why; {self.server.setting}.structured_outputs=false does without"
        raise ServerGone(f"the model server fails at JSON schemas: {_why(failure)}; {remedy}") from failure

    def _describe_loss(self, how: str, error: lm15.LM15Error) -> str:
        setting = self.server.setting
        if isinstance(error, lm15.InvalidRequestError):
            remedy = f"{setting}.fields renames or leaves out what it doesn't take (docs/serving.md)"
            if error.status == 413:  # of a proxy before it
                remedy = "raise its limit on the size of requests (nginx: client_max_body_size)"
            return f"the model server refuses every call: {_why(error)}; {remedy}"
        which = "it" if setting == "lm" else f"the server of {setting}"  # several may have one address
        return f"the model server {how}: {_why(error)}; when {which} is back, the same command continues"


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
