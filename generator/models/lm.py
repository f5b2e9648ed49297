"""Model calls as data, and the DSPy model that makes them through a `Client`, unless a `Journal` has the reply.

Nothing here touches the network (`generator.models.connection` does) or the disk (`generator.execution.store` does).
"""

import hashlib
import re
from collections import Counter
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

import dspy
from dspy import lm15
from dspy.clients.errors import error_boundary
from pydantic import Field
from pydantic_core import to_json

from generator.schema import Message, Record, Usage

Profile = Literal["greedy", "sampled"]

# llama.cpp keeps 32 bits of a seed and takes the highest value for "random".
_SEEDS = 2**31
_SEEDS_A_TURN = 1000
_SEEDS_A_CANDIDATE = 50
# The most that OpenAI and, unless started otherwise, vLLM name.
_LIKELY = 20
NO_LOGPROBS = "the server tells no probabilities of tokens (logprobs), which the judge needs"
LOGPROBS_REMEDY = "take a server that does, such as vLLM or llama.cpp, or another judge"
# The parameters that a model's name tells: “Qwen2.5-1.5B-Instruct”, but not the experts of “Mixtral-8x7B”.
_SIZE = re.compile(r"(?<!\w)(?<!\w\.)(\d+(?:\.\d+)?)([bm])(?!\w)", re.IGNORECASE)
MOST_CANDIDATES = _SEEDS_A_TURN // _SEEDS_A_CANDIDATE


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
    """One call: the chat so far, whose last message is to be answered, and its sampling.

    Attributes:
        top_logprobs: how many of the likeliest tokens to name at each place of the reply, with their probabilities.
    """

    model: str
    messages: tuple[Message, ...]
    sampling: Sampling
    seed: int
    max_tokens: int
    response_format: dict[str, Any] | None = None
    top_logprobs: int | None = None

    def body(self) -> dict[str, Any]:
        """Return the JSON body of `POST /chat/completions`."""
        fields = {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in self.messages],
            **self.sampling.model_dump(),
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "response_format": self.response_format,
            "logprobs": True if self.top_logprobs else None,
            "top_logprobs": self.top_logprobs,
        }
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def prompt_bytes(self) -> int:
        """The length of all messages in bytes."""
        return sum(len(message.content.encode()) for message in self.messages)

    @cached_property
    def content(self) -> bytes:
        """The body as bytes. Keys keep their order, since servers generate a reply in the order of its schema."""
        return to_json(self.body())

    @cached_property
    def key(self) -> str:
        """A hash of the body: equal requests have equal keys."""
        return hashlib.sha256(self.content).hexdigest()


class ChatReply(Record):
    """The response to a call.

    Attributes:
        finish_reason: the server's: `stop`, `length` (cut off), `content_filter`, …
        likely: the likeliest first tokens with their log probabilities, if the request asked for them.
    """

    text: str
    finish_reason: str
    model: str
    usage: Usage
    likely: tuple[tuple[str, float], ...] = ()


def billions_named(model: str) -> float:
    """Return the billions of parameters that the last part of a model's name tells; 0 if it doesn't."""
    named = _SIZE.findall(Path(model).name)
    return max((float(number) / (1 if unit in "bB" else 1000) for number, unit in named), default=0)


def is_small(billions: float) -> bool:
    """Return whether plain words suit a model: with 1.5 billion they do, with 0.135 no question passes the checks."""
    return 1 <= billions < 2.2  # Qwen3-1.7B has 2.03


class Client(Protocol):
    """A client that makes model calls.

    Attributes:
        model: the model's name, as the server knows it.
        max_tokens: the longest reply, in tokens.
        context: tokens of prompt and reply together that the model can hold.
    """

    @property
    def model(self) -> str: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def context(self) -> int: ...

    def sampling(self, profile: Profile) -> Sampling:
        """Return the sampling parameters of a decoding profile (Lee et al. 2024, section 2.3)."""
        ...

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Make one call.

        Raises:
            dspy.lm15.LM15Error: it failed after all retries; `TransportError` if the endpoint itself is gone.
        """
        ...


class Clients(Protocol):
    """The clients of one server, or of several with the same model.

    Attributes:
        model: its name, as the server knows it.
        billions: its parameters, as far as server and name tell; else 0.
    """

    @property
    def model(self) -> str: ...
    @property
    def billions(self) -> float: ...

    def for_dialog(self, document: str) -> AbstractContextManager[Client]:
        """Return the client for all calls of one dialog, which starts from the document with this id."""
        ...


class Journal(Protocol):
    """The finished calls of one dialog, so that no call is paid for twice."""

    def find(self, key: str, stage: str, turn: int) -> ChatReply | None:
        """Return the reply to the call `key`, if an earlier run of this dialog finished it."""
        ...

    def add(self, key: str, stage: str, turn: int, reply: ChatReply) -> None:
        """Record a finished call, before its reply is used."""
        ...


class _Purpose(Record):
    """The metadata of a call: its decoding profile, stage and turn, and a temperature in place of the profile's."""

    profile: Profile
    stage: str
    turn: int
    temperature: float | None = None


class LanguageModel(dspy.BaseLM):
    """A DSPy language model for one dialog; await its calls.

    Each call names its decoding profile, its stage and its turn: `config={"metadata": {"profile": "greedy", "stage":
    "ask", "turn": "1"}}`; of that, only the profile's sampling reaches the server. `seed` is the first turn's, and each
    later turn has its own: turns are judged concurrently, and the order of two equal requests would be chance. A
    request that the turn has made before gets the next seed, and so another key and another reply.

    It calls the client directly: `dspy.LM` would convert every call twice and use two threads.
    """

    def __init__(self, client: Client, journal: Journal, seed: int) -> None:
        super().__init__(client.model, cache=False)
        self._client, self._journal, self._seed = client, journal, seed
        self._requests: Counter[str] = Counter()
        self._tokens_per_byte = 0.0  # until the server has counted a prompt

    def for_candidate(self, number: int) -> "LanguageModel":
        """Return the model for candidate `number`, from 0, of those drawn at once: seeds of its own for each.

        With the same seeds, the order of two equal requests would be chance. The first is this model itself.
        """
        if not number:
            return self
        other = copy(self)
        other._seed += _SEEDS_A_CANDIDATE * number
        return other

    def __call__(self, *prompt: object, **others: object) -> NoReturn:
        """Refuse synchronous calls, which would block all other dialogs; DSPy requires the method."""
        with error_boundary(self.model):
            raise lm15.UnsupportedFeatureError("synchronous calls are not supported: await `acall`")

    async def acall(
        self,
        prompt: str | None = None,
        *,
        messages: list[dict[str, Any]],
        metadata: dict[str, str],
        response_format: dict[str, Any] | None = None,
        one_token: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the text of the reply to a chat, how it ended, and its likeliest first tokens, as DSPy has them.

        Raises:
            dspy.utils.exceptions.LMError: the call failed; DSPy's class for the failure.
        """
        chat = tuple(Message(role=message["role"], content=message["content"]) for message in messages)
        reply = await self.chat(chat, metadata, response_format, one_token)
        return [{"text": reply.text, "finish_reason": reply.finish_reason, "likely": reply.likely}]

    async def chat(
        self,
        messages: tuple[Message, ...],
        metadata: dict[str, str],
        response_format: dict[str, Any] | None = None,
        one_token: bool = False,
    ) -> ChatReply:
        """Return the reply to a chat.

        Args:
            one_token: the reply is a single token, and comes with the probabilities of others in its place.
        """
        with error_boundary(self.model, unexpected=True):
            purpose = _Purpose.model_validate(metadata)
            sampling = self._client.sampling(purpose.profile)
            if purpose.temperature is not None:
                sampling = sampling.model_copy(update={"temperature": purpose.temperature})
            request = self._with_seed(
                ChatRequest(
                    model=self._client.model,
                    messages=messages,
                    sampling=sampling,
                    seed=(self._seed + _SEEDS_A_TURN * (purpose.turn - 1)) % _SEEDS,
                    max_tokens=1 if one_token else self._client.max_tokens,
                    response_format=response_format,
                    top_logprobs=_LIKELY if one_token else None,
                )
            )
            reply = self._journal.find(request.key, purpose.stage, purpose.turn)
            if reply is None:
                self._check_fits(request)
                reply = await self._client.chat(request)
                self._journal.add(request.key, purpose.stage, purpose.turn, reply)
            if purpose.profile == "greedy" and reply.usage.prompt:  # these calls are sequential: timing has no effect
                self._tokens_per_byte = reply.usage.prompt / request.prompt_bytes
            return reply

    def _check_fits(self, request: ChatRequest) -> None:
        """Raise ContextLengthError if prompt and reply exceed the context, by the tokens of the last counted prompt."""
        tokens = round(request.prompt_bytes * self._tokens_per_byte)
        context, reply = self._client.context, request.max_tokens
        if tokens + reply > context:
            raise lm15.ContextLengthError(
                f"about {tokens} prompt and {reply} reply tokens exceed the model's context of {context}"
            )

    def _with_seed(self, request: ChatRequest) -> ChatRequest:
        """Return the request, with a further seed if it was made before."""
        times = self._requests[request.key]
        self._requests[request.key] += 1
        if not times:
            return request
        # Not `model_copy`, which would copy the cached key.
        return ChatRequest.model_validate(request.model_dump() | {"seed": (request.seed + times) % _SEEDS})
