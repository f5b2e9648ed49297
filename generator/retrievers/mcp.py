"""Passages from a tool of an MCP server (Model Context Protocol), by its official SDK, imported when needed."""

import asyncio
import json
import logging
import os
import shlex
import tempfile
import threading
import weakref
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from generator.common.sanitize import server_message
from generator.corpora.library import Library
from generator.errors import RetrieverError, describe
from generator.retrievers.remote import Filter, RemoteRetriever, RemoteSettings, SearchFailed, SearchRequest
from generator.schema import Address, Operational, VariableName

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.types import CallToolResult

# A server that we started gets two seconds to end by itself, and two after SIGTERM.
_CLOSING_S = 6


class McpSettings(RemoteSettings):
    command: Annotated[str | None, Operational] = Field(
        description="Command that starts a server which speaks over stdin and stdout, as in a shell; null: see `url`."
    )
    env: Annotated[tuple[VariableName, ...], Operational] = Field(
        description="Environment variables that this server gets, beside PATH, HOME and the like."
    )
    url: Annotated[Address | None, Operational] = Field(
        description="Address of a server that speaks streamable HTTP; null: see `command`."
    )
    tool: str = Field(min_length=1, description="The tool that searches.")
    query_argument: str = Field(min_length=1, description="Its argument for the text to search for.")
    k_argument: str | None = Field(description="Its argument for the number of passages wanted; null: it has none.")
    filter_argument: str | None = Field(
        description="Its argument for the filter that `retriever=http` sends, an object; null: it has none."
    )
    arguments: dict[str, Any] = Field(description="Its further arguments, the same in each search.")
    passages: str = Field(
        pattern=r"^$|^[^.]+(\.[^.]+)*$",
        description="Where its result has the passages: the key, or keys with dots between; empty: it is their list.",
    )

    @model_validator(mode="after")
    def _check_server(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("set either retriever.command, for a server to start, or retriever.url, of one that runs")
        if self.command is not None and not _split(self.command):
            raise ValueError(f"command ({self.command}) must be a command as in a shell")
        return self

    @property
    def where(self) -> str:
        return f"{self.url or self.command}, tool {self.tool}"

    def open(self, library: Library, validation: NDArray[np.bool_]) -> RemoteRetriever:
        retriever = McpRetriever(self, library, validation)
        retriever.check()
        return retriever

    def call(self, request: SearchRequest) -> dict[str, Any]:
        """Return the arguments of the tool."""
        values = (request.query, request.k, request.filter.model_dump())
        names = (self.query_argument, self.k_argument, self.filter_argument)
        return self.arguments | {name: value for name, value in zip(names, values, strict=True) if name is not None}


def _split(command: str) -> list[str]:
    with suppress(ValueError):
        return shlex.split(command)
    return []


class McpRetriever(RemoteRetriever):
    """Calls a tool for each search; all share a session, which is opened again when it breaks."""

    def __init__(self, settings: McpSettings, library: Library, validation: NDArray[np.bool_]) -> None:
        super().__init__(settings, library, validation)
        try:
            import mcp  # noqa: F401
        except ImportError as error:
            raise RetrieverError(
                f"retriever=mcp: the package mcp is missing ({error}); install the extra 'mcp' (uv sync --inexact "
                "--extra mcp), or choose retriever=http"
            ) from error
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it reports each attempt that failed
        self._settings = settings
        self._server = _Server(settings)
        weakref.finalize(self, self._server.close)

    async def send(self, request: SearchRequest) -> str:
        try:
            result = await self._server.call(self._settings.call(request))
        except Exception as error:  # the SDK raises those of its libraries, too
            raise self._explain(error) from error
        text = "".join(part.text for part in result.content if part.type == "text")
        if result.is_error:
            why = server_message(text, self._settings.api_key_env)
            raise SearchFailed(
                f"the tool failed ({why}); arguments sent: {', '.join(self._settings.call(request))}",
                True,
                at_once=True,
            )
        found = result.structured_content
        if found is None or found == {"result": text}:  # as Python's SDK wraps the text of a tool that returns one
            found = json.loads(text)
        for key in filter(None, self._settings.passages.split(".")):
            if not isinstance(found, dict) or key not in found:
                raise ValueError(f"no {key}, as in retriever.passages={self._settings.passages}")
            found = found[key]
        return json.dumps({"passages": found})

    def _explain(self, error: Exception) -> SearchFailed:
        import httpx2
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT

        code = error.code if isinstance(error, MCPError) else None
        cause = server_message(describe(error), self._settings.api_key_env)
        if isinstance(error, SearchFailed):
            return error
        if isinstance(error, httpx2.TimeoutException) or code == REQUEST_TIMEOUT:
            return self.timed_out()
        if isinstance(error, httpx2.TransportError) or (self._settings.url and code == CONNECTION_CLOSED):
            return self.broken(cause, isinstance(error, httpx2.ConnectError))
        if code == CONNECTION_CLOSED:
            why = f"the server ended{self._server.last_words()}; check retriever.command"
            return SearchFailed(why, True, at_once=True)
        if isinstance(error, OSError):
            return SearchFailed(f"can't be started ({cause}); check retriever.command")
        if code is not None and self._server.refusal is not None:
            return self.refused(*self._server.refusal)
        return SearchFailed(f"failed ({cause}); check retriever.tool", code == INTERNAL_ERROR, at_once=True)


class _Server:
    """The current session with the server, in an event loop of its own, since searches come from several.

    Attributes:
        refusal: status, body and headers of the last HTTP response if it was an error, which the SDK doesn't pass on.
    """

    def __init__(self, settings: McpSettings) -> None:
        self.refusal: tuple[int, bytes, Mapping[str, str]] | None = None
        self._settings, self._headers = settings, settings.headers()
        self._log = tempfile.TemporaryFile("a+", encoding="utf-8", errors="replace")  # noqa: SIM115, of the server
        self._session: _Session | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        if self._session is not None:
            self._loop.run_until_complete(self._session.end())

    def close(self) -> None:
        """End the session, and with it a server that was started here."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:  # garbage may be collected in any thread
            self._thread.join(_CLOSING_S)

    def last_words(self) -> str:
        """Return the last line on stderr of a server that was started here, in brackets for a message, or nothing."""
        self._log.seek(0)
        last = server_message(([line for line in self._log if line.strip()] or [""])[-1])
        return last and f" ({last})"

    async def call(self, arguments: dict[str, Any]) -> "CallToolResult":
        """Return the tool's result; errors as the SDK raises them, or SearchFailed."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._call(arguments), self._loop))

    async def _call(self, arguments: dict[str, Any]) -> "CallToolResult":
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        if self._session is None or self._session.over.is_set():
            self._session = _Session(self)
        session, settings = self._session, self._settings
        try:
            client = await asyncio.shield(session.client)
        except MCPError as error:
            if error.code != REQUEST_TIMEOUT or settings.command is None:
                raise
            wanted = "retriever.command must start a server that speaks MCP over stdin and stdout"
            why = f"no answer within {settings.timeout_s:g} s{self.last_words()}; {wanted}"
            raise SearchFailed(why, True, at_once=True) from error
        try:
            return await client.call_tool(settings.tool, arguments, settings.timeout_s)
        except MCPError as error:
            # A server over HTTP that was restarted answers 404, since it doesn't know the session.
            if error.code != CONNECTION_CLOSED and (self.refusal is None or self.refusal[0] != 404):
                raise
            raise await session.end() or MCPError(CONNECTION_CLOSED, error.message) from error

    @asynccontextmanager
    async def connect(self) -> "AsyncIterator[Client]":
        """Connect with the server for the time of a block, and check that it has the tool."""
        import httpx2
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamable_http_client

        settings = self._settings
        hooks = {"response": [self._note_refusal]}
        async with httpx2.AsyncClient(headers=self._headers, timeout=settings.timeout_s, event_hooks=hooks) as web:
            if settings.url is not None:
                transport = streamable_http_client(settings.url, http_client=web)
            else:
                command, *arguments = _split(settings.command or "")
                env = {name: os.environ[name] for name in settings.env if name in os.environ}
                transport = stdio_client(StdioServerParameters(command=command, args=arguments, env=env), self._log)
            async with Client(transport, read_timeout_seconds=settings.timeout_s) as client:
                await self._check_tool(client)
                yield client

    async def _note_refusal(self, response: "httpx2.Response") -> None:
        self.refusal = None
        if response.status_code >= 400:
            self.refusal = response.status_code, await response.aread(), response.headers

    async def _check_tool(self, client: "Client") -> None:
        tools: dict[str, Collection[str]] = {}
        cursor: str | None = ""
        while cursor is not None:
            page = await client.list_tools(cursor=cursor or None)
            tools |= {tool.name: tool.input_schema.get("properties", {}) for tool in page.tools}
            cursor = page.next_cursor
        known = tools.get(self._settings.tool)
        if known is None:
            names = server_message(", ".join(tools)) or "none"
            raise SearchFailed(f"retriever.tool={self._settings.tool}: there is no such tool; the server has: {names}")
        filters = Filter(split="train", document_id=None)
        given = self._settings.call(SearchRequest(query="", k=1, filter=filters))
        wrong = [name for name in given if name not in known]
        if wrong:
            names = server_message(", ".join(known)) or "none"
            raise SearchFailed(
                f"the tool has no argument {', '.join(wrong)}, but: {names}; set retriever.query_argument, "
                "retriever.k_argument, retriever.filter_argument or retriever.arguments"
            )


class _Session:
    """A connection that is open until `end`; opened and closed by one task, as the SDK wants it.

    Attributes:
        client: what calls go through, once it is connected.
        over: set when it ends or has failed.
    """

    def __init__(self, server: _Server) -> None:
        loop = asyncio.get_running_loop()
        self.client: asyncio.Future[Client] = loop.create_future()
        self.over = asyncio.Event()
        self._task = loop.create_task(self._hold(server))

    async def _hold(self, server: _Server) -> Exception | None:
        try:
            async with server.connect() as client:
                self.client.set_result(client)
                await self.over.wait()
        except Exception as error:
            self.over.set()
            cause = error
            while isinstance(cause, ExceptionGroup):  # of the SDK's tasks
                cause = cause.exceptions[0]
            if self.client.done():
                return cause
            self.client.set_exception(cause)
        return None

    async def end(self) -> Exception | None:
        """Close the connection; return what had broken it, if that is known."""
        self.over.set()
        return await asyncio.shield(self._task)
