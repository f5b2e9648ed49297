"""Passages from a search of one's own, asked over HTTP: one's retrieval in production, in the loop of the dialogs.

`http.schema.json` is the JSON schema of requests and replies, made of the records in `remote.py`.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated

import aiohttp
import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from generator.common.concurrency import LONGEST_WAIT_S, backoff
from generator.corpora.library import Library
from generator.errors import RetrieverError
from generator.models.http_errors import connection_cause, error_text, retry_after
from generator.retrievers.remote import FoundPassage, RemoteRetriever, RemoteSettings, SearchReply, SearchRequest
from generator.schema import Address, Operational, VariableName

# Statuses below 500 that may pass; those above do.
_TRANSIENT = frozenset({408, 425, 429})
_SHAPE = "docs/retrieval.md has the shape of requests and replies"


class HttpSettings(RemoteSettings):
    """Settings of `HttpRetriever`."""

    url: Annotated[Address, Operational] = Field(description="Address that searches are POSTed to.")
    api_key_env: Annotated[VariableName, Operational] = Field(
        description="Environment variable that holds an API key. If it is set, the key is sent as a bearer token."
    )

    def open(self, library: Library, validation: NDArray[np.bool_]) -> RemoteRetriever:
        retriever = HttpRetriever(self, library, validation)
        retriever.check()
        return retriever

    def place(self, library: Library) -> str:
        return f"searched at {self.url}"


class _Failed(Exception):
    """A search failed; the message is for the user.

    Args:
        transient: the same search may succeed later.
        unreached: there is no connection.
        wait_s: how long the server asks to wait.
    """

    def __init__(self, message: str, transient: bool = False, unreached: bool = False, wait_s: float = 0) -> None:
        super().__init__(message)
        self.transient, self.unreached, self.wait_s = transient, unreached, wait_s


class HttpRetriever(RemoteRetriever):
    """Posts each search as JSON, and reads the passages of the reply."""

    def __init__(self, settings: HttpSettings, library: Library, validation: NDArray[np.bool_]) -> None:
        super().__init__(library, validation, settings.max_k)
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._backoff = backoff(settings.retry_wait_s)
        key = os.environ.get(settings.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise RetrieverError(f"the environment variable {settings.api_key_env} does not hold a valid API key")
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    async def ask(self, request: SearchRequest, fail_fast: bool = False) -> Sequence[FoundPassage]:
        attempts = AsyncRetrying(
            retry=retry_if_exception(
                lambda error: isinstance(error, _Failed) and error.transient and not (fail_fast and error.unreached)
            ),
            stop=stop_after_attempt(self._settings.retries + 1),
            wait=self._wait,
            reraise=True,
        )
        try:
            content: bytes = await attempts(self._post, request.model_dump_json().encode())
            return SearchReply.parse(content).passages
        except _Failed as error:
            raise RetrieverError(f"{self._settings.url}: {error}") from error
        except ValueError as error:
            raise RetrieverError(f"{self._settings.url}: not a reply to a search ({error}); {_SHAPE}") from error

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return max(self._backoff(state), min(getattr(error, "wait_s", 0), LONGEST_WAIT_S))

    async def _post(self, body: bytes) -> bytes:
        settings = self._settings
        timeout = aiohttp.ClientTimeout(total=settings.timeout_s)
        try:
            # A connection for each search: beside the calls of a turn it costs nothing, and nothing is left to close.
            async with (
                self._slots,
                aiohttp.request("POST", settings.url, data=body, headers=self._headers, timeout=timeout) as response,
            ):
                content = await response.read()
        except TimeoutError as error:
            why = f"timed out after {settings.timeout_s:g} s while searching"
            raise _Failed(f"{why}; the same command continues, with a longer retriever.timeout_s", True) from error
        except aiohttp.ClientSSLError as error:
            cause = connection_cause(error, settings.api_key_env)
            raise _Failed(f"no secure connection ({cause}); check retriever.url and the certificate") from error
        except (aiohttp.ClientError, OSError) as error:
            why = f"connection failed while searching ({connection_cause(error, settings.api_key_env)})"
            advice = "start the server there or set retriever.url; the same command continues"
            raise _Failed(f"{why}; {advice}", True, isinstance(error, aiohttp.ClientConnectorError)) from error
        if response.status == 200:
            return content
        text = error_text(content, settings.api_key_env)
        what = f"HTTP {response.status} while searching" + (f" ({text})" if text else "")
        match response.status:
            case 401 | 403:
                held = "was refused" if os.environ.get(settings.api_key_env) else "is not set"
                raise _Failed(f"{what}; the API key in the environment variable {settings.api_key_env} {held}")
            case status if status in _TRANSIENT or status >= 500:
                wait_s = retry_after(response.headers) or 0
                raise _Failed(
                    f"{what}: the server is overloaded or failing; later the same command continues",
                    True,
                    wait_s=wait_s,
                )
            case _:
                raise _Failed(f"{what}; check retriever.url: {_SHAPE}")
