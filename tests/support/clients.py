"""Requests to a model server through a client of its own."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from generator.errors import ConfigError, ModelError
from generator.models.client import HttpClient
from generator.models.endpoints import Endpoint
from generator.models.lm import ChatReply, ChatRequest, Sampling
from generator.schema import Message

T = TypeVar("T")


def request(prompt: str = "Say something: “né”.", **fields: Any) -> ChatRequest:
    """Return a request, with usual values for all fields that a test doesn't name."""
    usual = {"model": "test-model", "sampling": Sampling(temperature=0), "seed": 7, "max_tokens": 64}
    return ChatRequest(messages=(Message(role="user", content=prompt),), **{**usual, **fields})


def asked(endpoint: Endpoint, work: Callable[[HttpClient], Awaitable[T]], setting: str = "lm") -> T:
    """Return the result of `work` with an open client of the endpoint that this setting gives."""

    async def main() -> T:
        async with AsyncExitStack() as stack:
            return await work(await endpoint.enter(stack, Path(), setting))

    return asyncio.run(main())


def chat(endpoint: Endpoint, what: ChatRequest | None = None, setting: str = "lm") -> ChatReply:
    """Return the reply to a request, with a client for it alone."""
    return asked(endpoint, lambda client: client.chat(what or request()), setting)


def opening_error(endpoint: Endpoint) -> str:
    """Return the error of one line with which a client fails to open."""
    with pytest.raises((ModelError, ConfigError)) as caught:
        chat(endpoint)
    message = str(caught.value)
    assert "\n" not in message
    return message


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
