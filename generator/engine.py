"""A model call as data, and the `dspy.LM` that makes one: it asks a `Client`, unless a `Journal` remembers the reply.

Nothing here touches the network (`generator.lm` does) or the disk (`generator.store` does).
"""

import hashlib
import json
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import dspy
from dspy import lm15
from pydantic import Field

from generator.schema import Record, Usage

Profile = Literal["turns", "sampled"]

# How long a dialog's first prompt is taken to be; later ones go by what the server counted. English has about 0.25.
_TOKENS_PER_BYTE = 0.3
# llama.cpp keeps 32 bits of a seed and takes the highest value for "draw one".
_SEEDS = 2**31


class Sampling(Record):
    """How tokens are drawn; None leaves a field out of the request. Temperature 0 is greedy."""

    temperature: float = Field(ge=0, le=2)
    top_k: int | None = Field(default=None, ge=1)
    top_p: float | None = Field(default=None, gt=0, le=1)


class ChatRequest(Record):
    """What one call asks for: a prompt, sent as one user message."""

    model: str
    prompt: str
    sampling: Sampling
    seed: int
    max_tokens: int
    response_format: dict[str, Any] | None = None

    def body(self) -> dict[str, Any]:
        """The JSON body of `POST /chat/completions`."""
        fields = {
            "model": self.model,
            "messages": [{"role": "user", "content": self.prompt}],
            **self.sampling.model_dump(),
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "response_format": self.response_format,
        }
        return {name: value for name, value in fields.items() if value is not None}

    def key(self) -> str:
        """A hash of the body: equal keys ask for the same thing."""
        canonical = json.dumps(self.body(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class ChatReply(Record):
    """What came back. `finish_reason` is the server's word: `stop`, `length` (cut off), `content_filter`, …"""

    text: str
    finish_reason: str
    model: str
    usage: Usage


class Client(Protocol):
    """Someone who answers model calls."""

    @property
    def model(self) -> str:
        """The model's name, as the server knows it."""
        ...

    @property
    def max_tokens(self) -> int:
        """The longest reply asked for, in tokens."""
        ...

    @property
    def context(self) -> int:
        """Tokens of prompt and reply together that the model can hold."""
        ...

    def sampling(self, profile: Profile) -> Sampling:
        """How tokens are drawn for user and agent turns, and for everything else (Lee et al. 2024, section 2.3)."""
        ...

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Make one call.

        Raises:
            dspy.lm15.LM15Error: it failed for good; `TransportError` if the endpoint itself is gone.
        """
        ...


class Clients(Protocol):
    """Where the client of a dialog comes from: one server, or several."""

    @property
    def model(self) -> str:
        """The model's name, as the server knows it."""
        ...

    def for_dialog(self, document: str) -> AbstractContextManager[Client]:
        """The client for all calls of one dialog, which starts from the document with this id."""
        ...


class Journal(Protocol):
    """The finished calls of one dialog, so that none is ever paid for twice."""

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        """The reply to the call `key`, if an earlier run of this dialog finished it."""
        ...

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Write a finished call down before anything is made of it."""
        ...


def language_model(client: Client, journal: Journal, seed: int) -> dspy.LM:
    """A `dspy.LM` for one dialog; await its calls.

    Each call names its decoding profile, its stage and its turn: `config={"metadata": {"profile": "turns", "stage":
    "ask", "turn": "1"}}`; of that, only the profile's sampling reaches the server. `seed` is every call's seed, but a
    request that the dialog has made before gets the next one, so that it has a key of its own and can fare better.
    """
    engine = _AsyncEngine(client, journal, seed)
    return dspy.LM(client.model, engine=_SyncEngine(), async_engine=engine, cache=False, num_retries=0)


class _Purpose(Record):
    """What a call is for."""

    profile: Profile
    stage: str
    turn: int


class _SyncEngine:
    """DSPy wants one; ours would block every other dialog."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        raise lm15.UnsupportedFeatureError("models are asked asynchronously here: await `acall`")


class _AsyncEngine:
    """DSPy's custom engine interface (`dspy.clients.engines.base`): one request in, one response out."""

    def __init__(self, client: Client, journal: Journal, seed: int) -> None:
        self._client, self._journal, self._seed = client, journal, seed
        self._asked: Counter[str] = Counter()
        self._tokens_per_byte = _TOKENS_PER_BYTE

    async def complete(self, request: lm15.Request) -> lm15.Response:
        purpose = _Purpose.model_validate((request.config.extensions or {}).get("metadata"))
        asked = self._repeated(self._translated(request, purpose.profile))
        key = asked.key()
        reply = self._journal.find(key, purpose.stage, purpose.turn)
        if reply is None:
            self._check_room(asked)
            reply = await self._client.chat(asked)
            self._journal.add(key, purpose.stage, purpose.turn, reply)
        if purpose.profile == "turns" and reply.usage.prompt:  # these come one by one, so timing decides nothing
            self._tokens_per_byte = reply.usage.prompt / len(asked.prompt.encode())
        return _response(reply)

    def _check_room(self, asked: ChatRequest) -> None:
        """Raise ContextLengthError for a prompt that, judged by the dialog's last one, leaves no room for the reply."""
        tokens = round(len(asked.prompt.encode()) * self._tokens_per_byte)
        if tokens + asked.max_tokens > self._client.context:
            raise lm15.ContextLengthError(
                f"about {tokens} prompt and {asked.max_tokens} reply tokens exceed lm.context={self._client.context}"
            )

    def _translated(self, request: lm15.Request, profile: Profile) -> ChatRequest:
        (message,) = request.messages
        return ChatRequest(
            model=self._client.model,
            prompt=message.text or "",
            sampling=self._client.sampling(profile),
            seed=self._seed % _SEEDS,
            max_tokens=self._client.max_tokens,
            response_format=_response_format(request.config.response_format),
        )

    def _repeated(self, asked: ChatRequest) -> ChatRequest:
        key = asked.key()
        times = self._asked[key]
        self._asked[key] += 1
        return asked.model_copy(update={"seed": (asked.seed + times) % _SEEDS}) if times else asked


def _response_format(canonical: dict[str, Any] | None) -> dict[str, Any] | None:
    """DSPy's flat form of a JSON schema back in the form that servers read."""
    if canonical is None:
        return None
    return {"type": "json_schema", "json_schema": {k: v for k, v in canonical.items() if k != "type"}}


def _response(reply: ChatReply) -> lm15.Response:
    return lm15.Response(
        id=None,
        model=reply.model,
        message=lm15.Message.assistant(reply.text),
        finish_reason=reply.finish_reason if reply.finish_reason in lm15.FINISH_REASONS else "error",
        usage=lm15.Usage(
            input_tokens=reply.usage.prompt,
            output_tokens=reply.usage.completion,
            cache_read_tokens=reply.usage.cached,
        ),
    )
