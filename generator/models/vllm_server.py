"""Start a vLLM server for a run, wait until it answers, and end it with the run."""

import asyncio
import os
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import gettempdir
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
from filelock import FileLock, Timeout

from generator.common.console import note
from generator.errors import ModelError, describe
from generator.models import process_guard as guard

if TYPE_CHECKING:
    from generator.models.endpoints import VllmEndpoint

_POLL_S = 1
_NOTE_S = 15


@asynccontextmanager
async def serve(endpoint: "VllmEndpoint", log: Path) -> AsyncIterator[None]:
    """Start the server and wait until it answers at its address; leaving the block ends it.

    Raises:
        ModelError: a server is running there or starts for another run, this one fails, or its log can't be written.
    """
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session, _lock_port(endpoint):
        if await _answers(session, endpoint):
            raise ModelError(
                f"a server is already running at {endpoint.api_base[0]}: stop it, or set {endpoint._setting}"
                ".serve=false to use it"
            )
        process = _start(endpoint.command(), log)
        note(f"starting vLLM with {endpoint.model}; its log: {log}")
        try:
            await _ready(session, endpoint, process, log)
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()  # so that the guard ends the server
            await asyncio.to_thread(process.wait)


@asynccontextmanager
async def _lock_port(endpoint: "VllmEndpoint") -> AsyncIterator[None]:
    """Keep the port from other runs on this machine: vLLM's servers would share it, and each get half of the calls."""
    port = urlsplit(endpoint.api_base[0]).port
    try:
        lock = FileLock(Path(gettempdir()) / f"grounded-dialogs-{os.getuid()}-{port}.lock").acquire(timeout=0)
    except Timeout:
        raise ModelError(
            f"another run starts or uses a server at {endpoint.api_base[0]}: wait for it, or set "
            f"{endpoint._setting}.api_base to another port"
        ) from None
    with lock:
        yield


def _start(command: Sequence[str], log: Path) -> Popen[bytes]:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            output.write(f"{shlex.join(command)}\n".encode())
            output.flush()
            return Popen(
                [sys.executable, guard.__file__, *command],
                stdin=PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C goes to the run, which still needs the server to finish
            )
    except OSError as error:
        raise ModelError(f"{log}: can't be written ({describe(error)})") from error


async def _ready(session: aiohttp.ClientSession, endpoint: "VllmEndpoint", process: Popen[bytes], log: Path) -> None:
    start = shown = time.monotonic()
    setting, timeout_s = endpoint._setting, endpoint.serve_timeout_s
    while not await _answers(session, endpoint):
        if process.poll() is not None:
            line = _log_line(log, failed=True)
            remedy = f"see its log {log}"
            if re.search("No module named|No such file|Permission denied", line):
                need = "must be the Python of an environment with vLLM (uv sync --inexact --extra vllm)"
                remedy += f"; {setting}.serve_python {need}"
            raise ModelError(f"vLLM failed to start: {line}; {remedy}")
        now = time.monotonic()
        if now - start > timeout_s:
            raise ModelError(
                f"vLLM isn't ready after {timeout_s:g} s; see its log {log}, or raise {setting}.serve_timeout_s"
            )
        if now - shown >= _NOTE_S:
            shown = now
            note(f"vLLM isn't ready yet after {now - start:.0f} s: {_log_line(log)}")
        await asyncio.sleep(_POLL_S)
    note(f"vLLM is ready after {time.monotonic() - start:.0f} s")


async def _answers(session: aiohttp.ClientSession, endpoint: "VllmEndpoint") -> bool:
    try:
        async with session.get(f"{endpoint.api_base[0]}/models"):
            return True
    except (aiohttp.ClientError, OSError):
        return False


def _log_line(log: Path, failed: bool = False) -> str:
    """Return the last line of a log; if the program failed, its first error, which caused the others."""
    lines = [line.strip() for line in log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\w(Error|Exception): ", line)] if failed else []
    line = errors[0] if errors else lines[-1]
    return line if len(line) <= 200 else f"{line[:200]}…"
