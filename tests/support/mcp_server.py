"""A server of the MCP SDK: over stdio as a script (`python mcp_server.py FILE`), over HTTP in a thread."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent

PASSAGES = [{"id": f"p{n}", "document_id": f"d{n}", "text": f"The tram stops here {n}."} for n in range(40)]


def build(calls: list[dict[str, Any]] | None = None, once: Path | None = None) -> MCPServer:
    """Return a server whose tools find every passage.

    Args:
        calls: gets the arguments of each call.
        once: a file; while there is none, a call of `fragile` makes it and kills the process.
    """
    server = MCPServer("tests", log_level="ERROR")

    @server.tool()
    def search(query: str, k: int) -> dict[str, Any]:
        if calls is not None:
            calls.append({"query": query, "k": k})
        return {"passages": PASSAGES[:k]}

    @server.tool()
    def find(question: str, where: dict[str, Any], store: str = "none") -> CallToolResult:
        assert where["split"] and store == "manuals", store
        text = f'{{"result": {{"hits": [{{"id": "a", "text": "{question}!"}}]}}}}'
        return CallToolResult(content=[TextContent(text=text)])

    @server.tool()
    def listed(query: str, k: int) -> list[dict[str, Any]]:
        return PASSAGES[:k]

    @server.tool()
    def written(query: str, k: int) -> str:
        return json.dumps({"passages": PASSAGES[:k]})

    @server.tool()
    def prose(query: str, k: int) -> str:
        return "The tram stops here."

    @server.tool()
    def failing(query: str, k: int) -> dict[str, Any]:
        raise ToolError("no index\nhere")

    @server.tool()
    def slow(query: str, k: int) -> dict[str, Any]:
        time.sleep(3)
        return {"passages": []}

    @server.tool()
    def fragile(query: str, k: int) -> dict[str, Any]:
        if once is not None and query == "tram" and not once.exists():
            once.touch()
            sys.stderr.write("out of memory\n")
            os._exit(1)
        return {"passages": PASSAGES[:k]}

    return server


class HttpServer:
    """The same server at an address of 127.0.0.1, while a block lasts.

    Attributes:
        calls: the arguments of each search.
        faults: HTTP statuses of the next replies to calls of tools.
        key: if it is set, requests without this bearer token are refused.
    """

    def __init__(self, port: int = 0) -> None:
        self.calls: list[dict[str, Any]] = []
        self.faults: list[int] = []
        self.key = ""
        app = build(self.calls).streamable_http_app()

        async def faulty(scope: Any, receive: Any, send: Any) -> None:
            headers = dict(scope.get("headers", ()))
            status = 0
            if self.key and headers.get(b"authorization") != f"Bearer {self.key}".encode():
                status = 401
            elif self.faults and headers.get(b"mcp-method") == b"tools/call":
                status = self.faults.pop(0)
            if scope["type"] != "http" or not status:
                await app(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": status, "headers": [(b"retry-after", b"0.01")]})
            await send({"type": "http.response.body", "body": f"no {self.key}".encode()})

        self._server = uvicorn.Server(uvicorn.Config(faulty, "127.0.0.1", port, log_level="critical"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.servers[0].sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.should_exit = True
        self._thread.join()


if __name__ == "__main__":
    build(once=Path(sys.argv[1])).run()
