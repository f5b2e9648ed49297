"""The presets of `lm=` for servers and services that people have: what they send is what the API documents."""

from typing import Any

import pytest
from aiohttp import web

from generator.models.endpoints import OpenAIEndpoint
from tests.support.clients import chat, request
from tests.support.openai_server import Body, OpenAIServer
from tests.support.settings import settings

SENT = {"model", "messages", "temperature", "top_k", "seed", "max_tokens", "response_format"}
# What each API's documentation doesn't have, of what is sent (November 2026), and what it has in its place.
REFUSED: dict[str, set[str]] = {
    "openai": {"top_k"},
    "ollama": {"top_k"},
    "llamacpp": set(),
    "lmstudio": set(),
    "openrouter": set(),
    "together": set(),
    "groq": {"top_k", "response_format"},  # a JSON schema: only of some models
    "mistral": {"top_k", "seed"},
    "deepseek": {"top_k", "seed", "response_format"},
}
OWN = {"mistral": {"random_seed"}}


class BareList(OpenAIServer):
    """A server whose list of models is bare, as Together AI's."""

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response([{"id": self.model}])


@pytest.mark.parametrize("name", REFUSED)
def test_a_preset_sends_what_its_api_takes(name: str) -> None:
    def strict(number: int, body: Body) -> Any:
        allowed = (SENT - REFUSED[name]) | OWN.get(name, set())
        unknown = sorted(body.keys() - allowed)
        return refuse(unknown) if unknown else None

    def refuse(unknown: list[str]) -> Any:
        async def answer(received: web.Request, body: Body) -> web.Response:
            return web.json_response({"error": {"message": f"unknown: {unknown}"}}, status=400)

        return answer

    with (BareList if name == "together" else OpenAIServer)(faults=strict) as server:
        made = settings(f"lm={name}", "lm.model=test-model").lm
        assert isinstance(made, OpenAIEndpoint)
        assert made.api_key_env.endswith(("_KEY", "_TOKEN"))
        assert made.api_base[0].startswith(("https://", "http://127.0.0.1:"))
        here = made.model_copy(update={"api_base": (server.url,)})
        schema = {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}}
        form = schema if made.structured_outputs else None
        chat(here, request(sampling=made.sampled, response_format=form))
    (body,) = server.bodies
    assert body.keys() == (SENT - REFUSED[name]) | OWN.get(name, set())
    assert body.get("seed", body.get("random_seed")) == (None if name == "deepseek" else 7)


@pytest.mark.parametrize(
    ("lm", "owner", "bounded"),
    [("vllm", "", False), ("openai", "vllm", False), ("openai", "sglang", False), ("openai", "system", True)],
)
def test_vllm_gets_a_schema_without_bounds_on_texts_and_messages_as_they_are(
    lm: str, owner: str, bounded: bool
) -> None:
    """Such a bound makes its grammars 20 times slower."""
    said = 'A schema such as {"maxLength":3,"type":"string"}'
    text = {"maxLength": 40, "type": "string"}
    schema = {"properties": {"facts": {"items": text, "maxItems": 4, "type": "array"}, "answer": text}}
    with OpenAIServer(lambda _: "{}", owner=owner) as server:
        made = settings(f"lm={lm}", "lm.model=test-model").lm
        assert isinstance(made, OpenAIEndpoint)
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        here = made.model_copy(update={"api_base": (server.url,)})
        chat(here, request(said, sampling=made.sampled, response_format=form))
    (body,) = server.bodies
    assert body["messages"][0]["content"] == said
    sent = text if bounded else {"type": "string"}
    facts = {"items": sent, "maxItems": 4, "type": "array"}
    assert body["response_format"]["json_schema"]["schema"] == {"properties": {"facts": facts, "answer": sent}}
