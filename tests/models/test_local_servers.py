"""Model servers on this machine are found where they usually are, and others are left alone."""

import asyncio
import socket

import pytest
from aiohttp import web

from generator.models import local_servers
from generator.models.local_servers import find_servers
from tests.support.openai_server import OpenAIServer


class _TwoModels(OpenAIServer):
    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "nomic-Embed-text"}, {"id": "my models/qwen.gguf"}]})


def test_a_model_for_embeddings_is_not_proposed_and_a_name_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "_TIMEOUT_S", 300)  # a busy machine may take half a second
    with _TwoModels() as server, OpenAIServer(model="text-embedding-nomic") as other:
        monkeypatch.setattr(local_servers, "PORTS", {"llamacpp": server.port, "lmstudio": other.port})
        assert asyncio.run(find_servers()) == ["lm=llamacpp lm.model='my models/qwen.gguf'"]


def test_servers_that_list_a_model_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_servers, "_TIMEOUT_S", 300)
    with OpenAIServer() as server, OpenAIServer(lists_models=False) as other:
        monkeypatch.setattr(local_servers, "PORTS", {"ollama": server.port, "vllm": other.port, "llamacpp": 9})
        assert asyncio.run(find_servers()) == ["lm=ollama lm.model=test-model"]


def test_a_server_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setattr(local_servers, "PORTS", {"lmstudio": port, "vllm": port})
        assert asyncio.run(asyncio.wait_for(find_servers(), 300)) == []
