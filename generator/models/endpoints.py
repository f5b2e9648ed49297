"""The settings of language models: what all share, servers with the OpenAI API, and vLLM."""

import os
import re
import shlex
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

import aiohttp
from pydantic import Field, field_validator, model_validator
from pydantic_core import to_json

from generator.common.proxies import LOCAL_HOSTS, find_proxy
from generator.errors import ModelError
from generator.models.client import HttpClient
from generator.models.lm import ChatRequest, Clients, Sampling
from generator.models.pool import ServerPool
from generator.models.readiness import NoServer
from generator.models.vllm_server import serve
from generator.schema import Address, LocalPath, OneOrMore, Operational, Record, VariableName

# vLLM closes connections that are idle for 5 s; a call that reuses one at that moment fails.
_IDLE_S = 4
# No white space between the fields of a reply: JSON allows it without end, and small models go on with it.
_COMPACT = '{"backend": "xgrammar", "disable_any_whitespace": true}'


class Endpoint(Record, ABC):
    """The settings that all language models share."""

    model: str = Field(min_length=1, description="The model's name, as the server knows it.")
    context: int = Field(
        ge=512, description="Tokens of prompt and reply together that the model can hold (vLLM's `--max-model-len`)."
    )
    max_tokens: int = Field(ge=16, description="The longest reply, in tokens.")
    concurrency: Annotated[int, Operational] = Field(
        ge=1, description="The most calls in flight; there are fewer while the server says that it is overloaded."
    )
    dialogs: Annotated[int | None, Operational] = Field(
        None,
        ge=1,
        description="The most dialogs under way, on all servers together; null: as many as the servers' prefix caches "
        "hold, as the run finds out.",
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
        Sampling(temperature=0),
        description="Decoding of the first attempt at each user and agent turn (Lee et al. 2024, section 2.3), and of "
        "all calls of `python -m judges` and `judges.evaluate`.",
    )
    sampled: Sampling = Field(
        Sampling(temperature=1, top_k=50),
        description="Decoding of further candidates, of attempts after a refusal, of rewritten queries and of a run's "
        "verdicts.",
    )

    @model_validator(mode="after")
    def _room_for_a_prompt(self) -> Self:
        if self.max_tokens >= self.context:
            raise ValueError(f"max_tokens={self.max_tokens} leaves no room for a prompt in context={self.context}")
        return self

    # All prompts begin with the rules of all tasks, which a prefix cache keeps. Else each has those of its task alone.
    shares_rules: ClassVar[bool] = True
    # Schemas are sent with their bounds on the length of texts, which `read_reply` applies in any case.
    bounds_texts: ClassVar[bool] = True
    _processes: int = 1
    _setting: str = "lm"

    def shared_by(self, processes: int | None) -> Self:
        """Return the settings of one of several processes that ask the same servers, each its part of the calls.

        Args:
            processes: None: there is only this one.
        """
        if processes is None:
            return self
        numbers = {"concurrency": self.concurrency, "dialogs": self.dialogs}
        share = self.model_copy(update={name: n and max(1, n // processes) for name, n in numbers.items()})
        share._processes = processes
        return share

    @property
    def is_bundled(self) -> bool:
        """Return whether it is the model in the package, whose dialogs nobody should train on."""
        return False

    def decoding_greedily(self) -> Self:
        """Return the settings of a model that is to give the same reply again, as judges should."""
        return self.model_copy(update={"sampled": self.greedy})

    @property
    def most_dialogs(self) -> int:
        # Some more dialogs than calls, so that there is always one that has a call to make.
        return self.dialogs or self.concurrency + self.concurrency // 4

    def encode(self, request: ChatRequest) -> bytes:
        """Return the body of a request as this API takes it."""
        return request.content

    @abstractmethod
    def open(self, folder: Path) -> AbstractAsyncContextManager[Clients]:
        """Open a client after a check of the endpoint; leaving the block closes it.

        Args:
            folder: for the log of a server that is started.

        Raises:
            ModelError: the endpoint is down, refuses the key, or doesn't have the model.
        """

    async def enter(self, stack: AsyncExitStack, folder: Path, setting: str) -> Clients:
        """Open a client, as `open`, until the stack is closed; errors name the setting, such as `judge.lm`."""
        named = self.model_copy()
        named._setting = setting
        return await stack.enter_async_context(named.open(folder))

    @asynccontextmanager
    async def connected(self, api_base: str, key_env: str | None = None, share: int = 1) -> AsyncIterator[HttpClient]:
        """Open the client of one server after checking it; `share` is the number of servers that share the calls."""
        _raise_file_limit(self.concurrency)
        # The client's limiter bounds the connections.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S)
        async with aiohttp.ClientSession(connector=connector, **find_proxy(api_base)) as session:
            client = HttpClient(self, api_base, key_env, session, share)
            try:
                await client.check()
            except NoServer as error:
                if share == 1:
                    raise
                client.missing = error
            try:
                yield client
            finally:
                client.admission.close()


class OpenAIEndpoint(Endpoint):
    """One server with the OpenAI API, or several with the same model."""

    api_base: Annotated[tuple[Address, ...], OneOrMore, Operational] = Field(
        min_length=1,
        description="The server's address up to `/chat/completions`, or a list of the addresses of several servers.",
    )
    api_key_env: Annotated[VariableName, Operational] = Field(
        description="The environment variable that holds the API key; the key itself is no setting and is never stored."
    )

    fields: Annotated[dict[str, str | None], Operational] = Field(
        default_factory=dict,
        description="What this API calls fields of a request, `max_tokens`, `seed` or `temperature`; null leaves one "
        "out: `lm.fields.max_tokens=max_completion_tokens lm.fields.temperature=null` for OpenAI's reasoning models.",
    )

    @field_validator("api_base")
    @classmethod
    def _addresses(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        addresses = tuple(value.rstrip("/") for value in values)
        if len(set(addresses)) < len(addresses):
            raise ValueError("lists a server twice")
        return addresses

    def encode(self, request: ChatRequest) -> bytes:
        if all(name == own for name, own in self.fields.items()):
            return request.content
        body = {self.fields.get(name, name): value for name, value in request.body().items()}
        return to_json({name: value for name, value in body.items() if name is not None})

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[Clients]:
        for address in self.api_base:
            if address.startswith("https://api.openai.com") and not os.environ.get(self.api_key_env):
                raise ModelError(
                    f"{address} requires an API key: set the environment variable {self.api_key_env}, or set "
                    f"{self._setting}.api_base to another server"
                )
        async with AsyncExitStack() as stack:
            share = len(self.api_base)
            clients = [
                await stack.enter_async_context(self.connected(address, self.api_key_env, share))
                for address in self.api_base
            ]
            missing = [client.missing for client in clients if client.missing]
            if len(missing) == share:
                raise missing[0]
            yield clients[0] if share == 1 else ServerPool(clients, self.retries, self.retry_wait_s)


class VllmEndpoint(OpenAIEndpoint):
    """One or several vLLM servers; with `serve`, one that is started for the run and ends with it."""

    bounds_texts: ClassVar[bool] = False
    serve: Annotated[bool, Operational] = Field(
        description="Start vLLM at `lm.api_base` and end it with the run; its log is in the run folder."
    )
    serve_python: Annotated[LocalPath | None, Operational] = Field(
        description="The Python of the environment that vLLM is installed in; null: the one that runs this command."
    )
    serve_args: Annotated[str, Operational] = Field(
        description='Further arguments of vLLM, such as `"--tensor-parallel-size 2"`.'
    )
    serve_timeout_s: Annotated[float, Operational] = Field(
        gt=0, description="Time limit for vLLM's start, in seconds: until it answers."
    )

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        # The message must not show the value, which may be a key.
        if re.search(r"--(api[-_]k|hf[-_]t)", self.serve_args):
            raise ValueError(
                "serve_args holds a key, and would be stored: set the environment variable VLLM_API_KEY (for "
                "--hf-token: HF_TOKEN) instead, which vLLM reads itself"
            )
        if not self.serve:
            return self
        if len(self.api_base) > 1 or urlsplit(self.api_base[0]).hostname not in LOCAL_HOSTS:
            raise ValueError(
                "serve=true starts one server on this machine: api_base must be one address such as "
                "http://127.0.0.1:8000/v1"
            )
        try:
            shlex.split(self.serve_args)
        except ValueError as error:
            raise ValueError(f"serve_args: {error}") from error
        return self

    def shared_by(self, processes: int | None) -> Self:
        share = super().shared_by(processes)  # whose server is started already
        return share if processes is None else share.model_copy(update={"serve": False})

    def command(self) -> list[str]:
        """Return the server's command line; see `docs/serving.md`."""
        host, port = self._host_and_port()
        # The command `vllm` needs a distribution of that name, which builds for other hardware don't have.
        return [
            str(self.serve_python or sys.executable),
            *("-m", "vllm.entrypoints.openai.api_server"),
            *("--model", self.model, "--served-model-name", self.model),
            *("--host", host, "--port", port),
            *("--max-model-len", str(self.context)),
            # The model's own defaults would add sampling parameters.
            *("--generation-config", "vllm"),
            "--enable-prompt-tokens-details",
            *("--structured-outputs-config", _COMPACT),
            *shlex.split(self.serve_args),
        ]

    def _host_and_port(self) -> tuple[str, str]:
        address = urlsplit(self.api_base[0])
        return str(address.hostname), str(address.port or 80)

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[Clients]:
        async with AsyncExitStack() as stack:
            if self.serve:
                await stack.enter_async_context(serve(self, folder / f"vllm-{self._host_and_port()[1]}.log"))
            yield await stack.enter_async_context(super().open(folder))


def _raise_file_limit(sockets: int) -> None:
    """Raise this process's limit of open files, which is 256 on a Mac, as far as the system allows."""
    with suppress(ImportError, OSError, ValueError):
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

        soft, hard = getrlimit(RLIMIT_NOFILE)
        # Beside the calls, the run has files of its own.
        wanted = sockets + 256 if hard == RLIM_INFINITY else min(sockets + 256, hard)
        if RLIM_INFINITY != soft < wanted:
            setrlimit(RLIMIT_NOFILE, (wanted, hard))
