"""The presets of `lm=` for servers and services that people have: what they send is what the API documents."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from generator.models.endpoints import OpenAIEndpoint
from generator.models.lm import ChatRequest, Message
from tests.support.openai_server import Body, OpenAIServer
from tests.support.runs import Site
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


async def send(endpoint: OpenAIEndpoint, request: ChatRequest) -> None:
    async with endpoint.open(Path()) as clients:
        with clients.for_dialog("") as client:
            await client.chat(request)


@pytest.mark.parametrize("name", REFUSED)
def test_a_preset_sends_what_its_api_takes(name: str) -> None:
    def strict(number: int, body: Body) -> Any:
        allowed = (SENT - REFUSED[name]) | OWN.get(name, set())
        unknown = sorted(body.keys() - allowed)
        return refuse(unknown) if unknown else None

    def refuse(unknown: list[str]) -> Any:
        async def answer(request: web.Request, body: Body) -> web.Response:
            return web.json_response({"error": {"message": f"unknown: {unknown}"}}, status=400)

        return answer

    with (BareList if name == "together" else OpenAIServer)(faults=strict) as server:
        made = settings(f"lm={name}", "lm.model=test-model").lm
        assert isinstance(made, OpenAIEndpoint)
        assert made.api_key_env.endswith(("_KEY", "_TOKEN"))
        assert made.api_base[0].startswith(("https://", "http://127.0.0.1:"))
        here = made.model_copy(update={"api_base": (server.url,)})
        schema = {"type": "json_schema", "json_schema": {"name": "reply", "schema": {"type": "object"}}}
        request = ChatRequest(
            model="test-model",
            messages=(Message(role="user", content="Say hello."),),
            sampling=made.sampled,
            seed=7,
            max_tokens=20,
            response_format=schema if made.structured_outputs else None,
        )
        asyncio.run(send(here, request))
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
        request = ChatRequest(
            model="test-model",
            messages=(Message(role="user", content=said),),
            sampling=made.sampled,
            seed=7,
            max_tokens=20,
            response_format={"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}},
        )
        asyncio.run(send(made.model_copy(update={"api_base": (server.url,)}), request))
    (body,) = server.bodies
    assert body["messages"][0]["content"] == said
    sent = text if bounded else {"type": "string"}
    facts = {"items": sent, "maxItems": 4, "type": "array"}
    assert body["response_format"]["json_schema"]["schema"] == {"properties": {"facts": facts, "answer": sent}}


@pytest.mark.parametrize(
    ("parameters", "given", "advised"),
    [
        (1_543_714_304, (), "set algorithm.reasoning=false lm.sampled.temperature=0.5"),
        (1_543_714_304, ("lm.sampled.temperature=0.5",), "set algorithm.reasoning=false, "),
        (1_543_714_304, ("algorithm.reasoning=true", "lm.sampled.temperature=0.5"), ""),
        (1_543_714_304, ("algorithm=whole", "taxonomy=qa", "lm.sampled.temperature=0.5"), ""),
        (134_515_008, (), ""),
        (2_031_739_904, (), "set algorithm.reasoning=false lm.sampled.temperature=0.5"),
        (7_241_732_096, (), ""),
        (None, (), ""),
    ],
)
def test_what_suits_a_small_model_is_said_where_only_its_server_tells_its_size(
    site: Site, parameters: int | None, given: tuple[str, ...], advised: str
) -> None:
    with OpenAIServer(parameters=parameters) as server:
        done = site.run(server, "judge=none", "dialogs=1", "turns=1", *given)
    assert done.code == 0
    assert ("test-model has " in done.err) == bool(advised) and advised in done.err


@pytest.mark.parametrize(
    ("context", "k", "told"),
    [(3000, 8, "not even a first turn"), (3000, 5, "end early"), (3000, 1, ""), (16384, 5, "")],
)
def test_a_context_that_holds_no_dialog_is_named_before_it_begins(site: Site, context: int, k: int, told: str) -> None:
    given = (f"lm.context={context}", "lm.max_tokens=512", f"retriever.k={k}", "retriever.passage_tokens=200")
    with OpenAIServer() as server:
        done = site.run(server, "judge=none", "dialogs=1", "turns=4", *given)
        assert (f"lm.context={context} has room for" in done.err) == bool(told) and told in done.err
        fixes = re.findall(r"(?:set|or for instance) ((?:[\w.]+=\d+ ?)+)", done.err)
        assert len(fixes) == 2 * bool(told)
        for fix in fixes:
            done = site.run(server, "judge=none", "dialogs=1", "turns=4", *given, *fix.split(), "fresh=true")
            assert "has room for" not in done.err
