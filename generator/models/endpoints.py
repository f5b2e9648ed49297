"""Servers with the OpenAI API: one or several that somebody runs, or a vLLM that is started here for a run."""

import asyncio
import os
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Annotated, Self
from urllib.parse import urlsplit

import aiohttp
from pydantic import Field, field_validator, model_validator

from generator.common.console import note
from generator.errors import ModelError
from generator.models import process_guard as guard
from generator.models.client import Endpoint
from generator.models.lm import Clients
from generator.models.pool import Servers
from generator.schema import Address, LocalPath, OneOrMore, Operational, VariableName

_HERE = ("127.0.0.1", "localhost", "::1")
_POLL_S = 1
_NOTE_S = 15


class OpenAIEndpoint(Endpoint):
    """One server with the OpenAI API, or several with the same model."""

    api_base: Annotated[tuple[Address, ...], OneOrMore, Operational] = Field(
        min_length=1,
        description="The server's address up to `/chat/completions`, or a list of the addresses of several servers.",
    )
    api_key_env: Annotated[VariableName, Operational] = Field(
        description="The environment variable that holds the API key; the key itself is no setting and is never stored."
    )

    @field_validator("api_base")
    @classmethod
    def _addresses(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        addresses = tuple(value.rstrip("/") for value in values)
        if len(set(addresses)) < len(addresses):
            raise ValueError("names a server twice")
        return addresses

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[Clients]:
        for address in self.api_base:
            if address.startswith("https://api.openai.com"):
                self._check_openai(address)
        async with AsyncExitStack() as stack:
            share = len(self.api_base)
            clients = [
                await stack.enter_async_context(self.connected(address, self.api_key_env, share))
                for address in self.api_base
            ]
            yield clients[0] if share == 1 else Servers(clients, self.retries, self.retry_wait_s)

    def _check_openai(self, address: str) -> None:
        if not os.environ.get(self.api_key_env):
            raise ModelError(
                f"{address} needs a key: set the environment variable {self.api_key_env}, or lm.api_base to "
                "a server of yours"
            )
        if self.greedy.top_k or self.sampled.top_k:
            raise ModelError(f"{address} has no top-k sampling and refuses it: give lm.sampled.top_k=null")


class VllmEndpoint(OpenAIEndpoint):
    """One or several vLLM servers; with `serve`, one that is started for the run and ends with it."""

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
        # Not shown: what is in there may be a key.
        if re.search(r"--(api[-_]k|hf[-_]t)", self.serve_args):
            raise ValueError(
                "serve_args would be stored with the key in it: leave it out, and set the environment variable "
                "VLLM_API_KEY (for --hf-token: HF_TOKEN), which vLLM reads itself"
            )
        if not self.serve:
            return self
        if len(self.api_base) > 1 or urlsplit(self.api_base[0]).hostname not in _HERE:
            raise ValueError(
                "serve=true starts one server on this machine: api_base must be one address such as "
                "http://127.0.0.1:8000/v1"
            )
        try:
            shlex.split(self.serve_args)
        except ValueError as error:
            raise ValueError(f"serve_args: {error}") from error
        return self

    def command(self) -> list[str]:
        """The command line of the server; see `docs/serving.md`."""
        host, port = self._place()
        # The command `vllm` would look for a distribution of that name, which builds for other hardware haven't.
        return [
            str(self.serve_python or sys.executable),
            *("-m", "vllm.entrypoints.openai.api_server"),
            *("--model", self.model, "--served-model-name", self.model),
            *("--host", host, "--port", port),
            *("--max-model-len", str(self.context)),
            # The model's own defaults would add sampling that we didn't ask for.
            *("--generation-config", "vllm"),
            "--enable-prompt-tokens-details",
            *shlex.split(self.serve_args),
        ]

    def _place(self) -> tuple[str, str]:
        """Host and port of the server."""
        address = urlsplit(self.api_base[0])
        return str(address.hostname), str(address.port or 80)

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator[Clients]:
        async with AsyncExitStack() as stack:
            if self.serve:
                await stack.enter_async_context(self._served(folder))
            yield await stack.enter_async_context(super().open(folder))

    @asynccontextmanager
    async def _served(self, folder: Path) -> AsyncIterator[None]:
        """The server, from when it answers on."""
        (address,) = self.api_base
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            if await _answers(session, address):
                raise ModelError(f"something answers at {address} already: stop it, or use it with lm.serve=false")
            log = folder / f"vllm-{self._place()[1]}.log"
            process = self._start(log)
            try:
                await self._ready(session, address, process, log)
                yield
            finally:
                assert process.stdin is not None
                process.stdin.close()  # so the guard knows
                await asyncio.to_thread(process.wait)

    def _start(self, log: Path) -> "Popen[bytes]":
        python = self.command()[0]
        try:
            installed = run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('vllm') is None)"])
        except OSError as error:
            raise ModelError(f"lm.serve_python={python}: can't be run ({error.strerror or error})") from error
        if installed.returncode:
            raise ModelError(
                f"lm.serve=true needs vLLM, which {python} hasn't: install the extra 'vllm' (uv sync --extra "
                "vllm), or give lm.serve_python, the Python of the environment that has it"
            )
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as output:
                output.write(f"{shlex.join(self.command())}\n".encode())
                output.flush()
                return Popen(
                    [sys.executable, guard.__file__, *self.command()],
                    stdin=PIPE,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # Ctrl-C is for the run, which ends the server when it is done with it
                )
        except OSError as error:
            raise ModelError(f"{log}: can't be written ({error.strerror or error})") from error

    async def _ready(self, session: aiohttp.ClientSession, address: str, process: "Popen[bytes]", log: Path) -> None:
        start = shown = time.monotonic()
        note(f"starting vLLM with {self.model}; its log: {log}")
        while not await _answers(session, address):
            if process.poll() is not None:
                said = _last_words(log, failed=True)
                raise ModelError(f"vLLM ended before it was ready: {said}; its log: {log}")
            now = time.monotonic()
            if now - start > self.serve_timeout_s:
                raise ModelError(
                    f"vLLM isn't ready after {self.serve_timeout_s:g} s; see its log {log}, or raise lm.serve_timeout_s"
                )
            if now - shown >= _NOTE_S:
                shown = now
                note(f"vLLM isn't ready yet after {now - start:.0f} s: {_last_words(log)}")
            await asyncio.sleep(_POLL_S)
        note(f"vLLM is ready after {time.monotonic() - start:.0f} s")


async def _answers(session: aiohttp.ClientSession, address: str) -> bool:
    try:
        async with session.get(f"{address}/models"):
            return True
    except (aiohttp.ClientError, OSError):
        return False


def _last_words(log: Path, failed: bool = False) -> str:
    """What a log says last; if the program failed, the first error in it, which led to the others."""
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\w(Error|Exception): ", line)] if failed else []
    said = errors[0] if errors else lines[-1]
    return said if len(said) <= 200 else f"{said[:200]}…"
