"""Model servers on this machine are found where they usually are, and others are left alone."""

import asyncio
import socket
import time

import pytest
from aiohttp import web

from generator.models import local_servers
from generator.models.local_servers import find_servers
from tests.support.openai_server import OpenAIServer


class _TwoModels(OpenAIServer):
    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "nomic-Embed-text"}, {"id": "my models/qwen.gguf"}]})


def test_a_model_for_embeddings_is_not_proposed_and_a_name_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "_TIMEOUT_S", 2)
    with _TwoModels() as server, OpenAIServer(model="text-embedding-nomic") as other:
        ports = {"llamacpp": server.port, "lmstudio": other.port}
        assert asyncio.run(find_servers(ports)) == ["lm=llamacpp lm.model='my models/qwen.gguf'"]


def test_servers_that_list_a_model_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "_TIMEOUT_S", 2)  # a busy machine may take half a second
    with OpenAIServer() as server, OpenAIServer(lists_models=False) as other, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        ports = {"ollama": server.port, "vllm": other.port, "lmstudio": silent.getsockname()[1], "llamacpp": 9}
        begun = time.monotonic()
        assert asyncio.run(find_servers(ports)) == ["lm=ollama lm.model=test-model"]
        assert time.monotonic() - begun < 10
