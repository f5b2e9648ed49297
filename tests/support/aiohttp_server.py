"""The base of servers that stand in for others over HTTP."""

import asyncio
import threading
from typing import Any, Self

from aiohttp import web


class AiohttpServer:
    """Listens on 127.0.0.1, in a thread of its own, for the time of a `with` block; a subclass has `_start`.

    Args:
        port: 0 for a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        raise NotImplementedError

    async def _listen(self, app: web.Application, *, cancels: bool = False, **site: Any) -> None:
        """Start to listen; `cancels` ends the handler of a request whose connection is closed."""
        self._runner = web.AppRunner(app, handler_cancellation=cancels, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, **site).start()
        self.port = self._runner.addresses[0][1]
