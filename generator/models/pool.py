"""A pool of servers with the same model. A dialog stays on one of them, where its prompts are cached."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from zlib import crc32

from generator.common.concurrency import backoff, retrying
from generator.common.console import note
from generator.models.client import DialogClient, HttpClient, ServerDown, ServerGone
from generator.models.lm import ChatReply, ChatRequest, Client

# The most dialogs on a server, as a multiple of its even share, before further ones go to another server ("consistent
# hashing with bounded loads", Mirrokni, Thorup and Zadimoghaddam 2018).
_SLACK = 1.25
# A server that was down is tried again after so many seconds.
_DOWN_S = 60


class ServerPool:
    """A `Client` for each dialog; dialogs on the same document prefer the same server.

    When a server is down, its dialogs move to another one; when all are, calls are retried until one is back.

    Args:
        retries: the number of retries while all servers are down.
        retry_wait_s: seconds before the first retry; they double with each further one.
    """

    def __init__(self, clients: Sequence[HttpClient], retries: int, retry_wait_s: float) -> None:
        checked = next(client for client in clients if not client.missing)
        self.model, self.billions = checked.model, checked.billions
        self.clients = list(clients)
        self.retries, self.backoff = retries, backoff(retry_wait_s)
        self._down_until: dict[HttpClient, float] = {}
        for client in clients:
            if client.missing:
                self.mark_down(client, client.missing)

    def for_dialog(self, document: str) -> AbstractContextManager[Client]:
        """Return the client for the calls of one dialog."""
        return closing(_MovingClient(self, document))

    def choose(self, document: str) -> HttpClient:
        """Return the server for a further dialog on `document`: one that has room for it, if there is any."""
        up = [client for client in self.clients if time.monotonic() >= self._down_until.get(client, 0)] or self.clients
        first = crc32(document.encode()) % len(self.clients)
        preferred = [client for client in self.clients[first:] + self.clients[:first] if client in up]
        share = (sum(client.admission.dialogs for client in up) + 1) / len(up)
        even = [client for client in preferred if client.admission.dialogs < share * _SLACK + 1]
        return next((client for client in even if client.admission.has_room), even[0])

    def mark_down(self, client: HttpClient, why: Exception) -> bool:
        """Mark a server as down; return whether another one is up."""
        now = time.monotonic()
        new = now >= self._down_until.get(client, 0)
        self._down_until[client] = now + _DOWN_S
        others = any(now >= self._down_until.get(other, 0) for other in self.clients)
        if new:
            what = "its dialogs move to another one" if others else "no other one is up; waiting for one"
            note(f"{str(why).partition('; ')[0]}; {what}")
        return others


class _MovingClient(DialogClient):
    """The client of one dialog, which moves to another server when its own is down."""

    def __init__(self, pool: ServerPool, document: str) -> None:
        super().__init__(pool.choose(document))
        self._pool, self._document = pool, document

    async def chat(self, request: ChatRequest) -> ChatReply:
        attempts = retrying(self._pool.retries, self._pool.backoff, lambda error: isinstance(error, ServerDown))
        return await attempts(self._on_any_server, request)

    async def _on_any_server(self, request: ChatRequest) -> ChatReply:
        failed = 0
        while True:
            server = self.server
            try:
                return await super().chat(request)
            except ServerGone as error:
                failed += 1
                if not self._pool.mark_down(server, error) or failed == len(self._pool.clients):
                    raise
                if server is self.server:  # otherwise another call has already moved the dialog
                    self.move(self._pool.choose(self._document))
