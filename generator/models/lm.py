"""A model call as data, and DSPy's model that makes one: it asks a `Client`, unless a `Journal` remembers the reply.

Nothing here touches the network (`generator.models.client` does) or the disk (`generator.execution.store` does).
"""

import hashlib
from collections import Counter
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, Literal, NoReturn, Protocol

import dspy
from dspy import lm15
from dspy.clients.errors import error_boundary
from pydantic import Field
from pydantic_core import to_json

from generator.schema import Record, Usage

Profile = Literal["greedy", "sampled"]

# llama.cpp keeps 32 bits of a seed and takes the highest value for "draw one".
_SEEDS = 2**31
_SEEDS_A_TURN = 1000


class Sampling(Record):
    """Sampling parameters of a call; None leaves a field out of the request."""

    temperature: float = Field(ge=0, le=2, description="0 is greedy decoding.")
    top_k: int | None = Field(
        default=None,
        ge=1,
        description="Sample from so many of the likeliest tokens; null: not sent (api.openai.com refuses it).",
    )
    top_p: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Sample from the likeliest tokens of this probability mass; null: not sent.",
    )


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

    @cached_property
    def content(self) -> bytes:
        """The body as it is sent. Keys keep their order: a server has the model reply in the order of the schema's."""
        return to_json(self.body())

    @cached_property
    def key(self) -> str:
        """A hash of the body: equal keys ask for the same thing."""
        return hashlib.sha256(self.content).hexdigest()


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


class _Purpose(Record):
    """What a call is for."""

    profile: Profile
    stage: str
    turn: int


class LanguageModel(dspy.BaseLM):
    """A language model of DSPy's for one dialog; await its calls.

    Each call names its decoding profile, its stage and its turn: `config={"metadata": {"profile": "greedy", "stage":
    "ask", "turn": "1"}}`; of that, only the profile's sampling reaches the server. `seed` is the first turn's, and each
    later turn has its own: turns are judged at once, and which of two equal requests comes first is chance. A request
    that the turn has made before gets the next seed, so that it has a key of its own and can fare better.

    It asks the client at once: `dspy.LM` would take every call through two other forms and two threads.
    """

    def __init__(self, client: Client, journal: Journal, seed: int) -> None:
        super().__init__(client.model, cache=False)
        self._client, self._journal, self._seed = client, journal, seed
        self._asked: Counter[str] = Counter()
        self._tokens_per_byte = 0.0  # nothing was counted yet: the server knows what fits

    def __call__(self, *prompt: object, **others: object) -> NoReturn:
        """DSPy wants one; ours would block every other dialog."""
        with error_boundary(self.model):
            raise lm15.UnsupportedFeatureError("models are asked asynchronously here: await `acall`")

    async def acall(
        self,
        prompt: str | None = None,
        *,
        messages: list[dict[str, Any]],
        metadata: dict[str, str],
        response_format: dict[str, Any] | None = None,
    ) -> list[str]:
        """The text of the reply to one user message.

        Raises:
            dspy.utils.exceptions.LMError: what became of the call, in DSPy's words for it.
        """
        (message,) = messages
        with error_boundary(self.model, unexpected=True):
            reply = await self._reply(message["content"], _Purpose.model_validate(metadata), response_format)
        return [reply.text]

    async def _reply(self, prompt: str, purpose: _Purpose, response_format: dict[str, Any] | None) -> ChatReply:
        asked = self._repeated(
            ChatRequest(
                model=self._client.model,
                prompt=prompt,
                sampling=self._client.sampling(purpose.profile),
                seed=(self._seed + _SEEDS_A_TURN * (purpose.turn - 1)) % _SEEDS,
                max_tokens=self._client.max_tokens,
                response_format=response_format,
            )
        )
        reply = self._journal.find(asked.key, purpose.stage, purpose.turn)
        if reply is None:
            self._check_room(asked)
            reply = await self._client.chat(asked)
            self._journal.add(asked.key, purpose.stage, purpose.turn, reply)
        if purpose.profile == "greedy" and reply.usage.prompt:  # these come one by one, so timing decides nothing
            self._tokens_per_byte = reply.usage.prompt / len(asked.prompt.encode())
        return reply

    def _check_room(self, asked: ChatRequest) -> None:
        """Raise ContextLengthError for a prompt that, judged by the last one counted, leaves no room for the reply."""
        tokens = round(len(asked.prompt.encode()) * self._tokens_per_byte)
        if tokens + asked.max_tokens > self._client.context:
            raise lm15.ContextLengthError(
                f"about {tokens} prompt and {asked.max_tokens} reply tokens exceed lm.context={self._client.context}"
            )

    def _repeated(self, asked: ChatRequest) -> ChatRequest:
        times = self._asked[asked.key]
        self._asked[asked.key] += 1
        if not times:
            return asked
        # No `model_copy`: it would take the key along.
        return ChatRequest.model_validate(asked.model_dump() | {"seed": (asked.seed + times) % _SEEDS})
