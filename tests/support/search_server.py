"""An HTTP server in the place of a user's own search."""

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from tests.support.aiohttp_server import AiohttpServer
from tests.support.openai_server import hang_up

Json = dict[str, Any]
# Status, body and headers.
Reply = tuple[int, object, dict[str, str]]


class SearchServer(AiohttpServer):
    """Listens on 127.0.0.1 in a thread of its own while the block lasts.

    Args:
        search: returns the passages for a request's body.

    Attributes:
        faults: replies that come first, one a request; None: the connection is closed.
        requests: the bodies in order of arrival, and `headers` theirs.
    """

    def __init__(self, search: Callable[[Json], list[Json]]) -> None:
        super().__init__()
        self.search = search
        self.faults: list[Reply | None] = []
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/search"

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_post("/{tail:.*}", self._answer)
        await self._listen(app)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        reply = self.faults.pop(0) if self.faults else (200, {"passages": self.search(body)}, {})
        if reply is None:
            return await hang_up(request)
        status, content, headers = reply
        text = content if isinstance(content, str) else json.dumps(content)
        return web.Response(status=status, text=text, headers=headers)
