"""Several servers with the same model as one. A dialog stays on one of them, where its prompts are cached."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from zlib import crc32

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from generator.common.concurrency import backoff
from generator.common.console import note
from generator.models.client import HttpClient, ServerGone, ServerMissed
from generator.models.lm import ChatReply, ChatRequest, Client, Profile, Sampling

# A server may have so many times its share of the dialogs before one that prefers it goes elsewhere ("consistent
# hashing with bounded loads", Mirrokni, Thorup and Zadimoghaddam 2018).
_SLACK = 1.25
# A server that was gone is asked again after so long.
_AWAY_S = 60


class Servers:
    """A `Client` for each dialog; dialogs on the same document prefer the same server.

    When a server is gone, its dialogs go on with another one; when all are, one that comes back is waited for.

    Args:
        retries: how often all are asked again when none is there.
        retry_wait_s: before the first time; then it doubles.
    """

    def __init__(self, clients: Sequence[HttpClient], retries: int, retry_wait_s: float) -> None:
        self._clients = list(clients)
        self._stop, self._wait = stop_after_attempt(retries + 1), backoff(retry_wait_s)
        self._dialogs: Counter[HttpClient] = Counter()
        self._away: dict[HttpClient, float] = {}

    @property
    def model(self) -> str:
        """The model's name, as the servers know it."""
        return self._clients[0].model

    @contextmanager
    def for_dialog(self, document: str) -> Iterator[Client]:
        """The client for the calls of one dialog."""
        client = _Bound(self, document)
        try:
            yield client
        finally:
            client.leave()

    def enter(self, document: str) -> HttpClient:
        """The server that a dialog on `document` goes to now."""
        here = [client for client in self._clients if time.monotonic() >= self._away.get(client, 0)] or self._clients
        first = crc32(document.encode()) % len(self._clients)
        preferred = [client for client in self._clients[first:] + self._clients[:first] if client in here]
        share = (sum(self._dialogs[client] for client in here) + 1) / len(here)
        chosen = next(client for client in preferred if self._dialogs[client] < share * _SLACK + 1)
        self._dialogs[chosen] += 1
        return chosen

    def __len__(self) -> int:
        return len(self._clients)

    async def patiently(self, attempt: Callable[[], Awaitable[ChatReply]]) -> ChatReply:
        """What `attempt` gives, made again as long as no server is there and patience lasts."""
        waiting = AsyncRetrying(
            stop=self._stop, wait=self._wait, retry=retry_if_exception_type(ServerMissed), reraise=True
        )
        return await waiting(attempt)

    def leave(self, client: HttpClient) -> None:
        """A dialog is done with its server."""
        self._dialogs[client] -= 1

    def lost(self, client: HttpClient) -> bool:
        """A server is gone; returns whether another one is there."""
        now = time.monotonic()
        new = now >= self._away.get(client, 0)
        self._away[client] = now + _AWAY_S
        others = any(now >= self._away.get(other, 0) for other in self._clients)
        if new:
            what = "its dialogs go on elsewhere" if others else "no other is there; one that comes back is waited for"
            note(f"the model server {client.api_base} is gone; {what}")
        return others


class _Bound:
    """The calls of one dialog."""

    def __init__(self, servers: Servers, document: str) -> None:
        self._servers, self._document = servers, document
        self._client = servers.enter(document)

    @property
    def model(self) -> str:
        return self._client.model

    @property
    def max_tokens(self) -> int:
        return self._client.max_tokens

    @property
    def context(self) -> int:
        return self._client.context

    def sampling(self, profile: Profile) -> Sampling:
        return self._client.sampling(profile)

    async def chat(self, request: ChatRequest) -> ChatReply:
        return await self._servers.patiently(partial(self._anywhere, request))

    async def _anywhere(self, request: ChatRequest) -> ChatReply:
        failed = 0
        while True:
            client = self._client
            try:
                return await client.chat(request)
            except ServerGone:
                failed += 1
                if not self._servers.lost(client) or failed == len(self._servers):
                    raise
                if client is self._client:  # else another call of the dialog has moved it already
                    self.leave()
                    self._client = self._servers.enter(self._document)

    def leave(self) -> None:
        self._servers.leave(self._client)
