"""A real vLLM server on the CPU, with SmolLM2-135M: what `tests/support/openai_server.py` only plays.

Slow to start (a minute), so one server serves most tests. `.ci/engines` installs what it takes and runs this.
"""

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy import lm15

from benchmarks.smollm2 import convert
from generator.models.endpoints import VllmEndpoint
from generator.models.lm import ChatReply, Sampling
from tests.models.test_embedded import SCHEMA
from tests.support import clients
from tests.support.clients import free_port
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Ended, Site

missing = importlib.util.find_spec("vllm") is None
pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(missing, reason="vLLM isn't installed here; .ci/engines installs it"),
]

CONTEXT = 4096
ARGUMENTS = "--dtype bfloat16 --enforce-eager"
FACTS = [
    "The ferry to Great Skerrow leaves at nine and at five. A ticket costs six crowns. Dogs travel free. In winter the "
    "second ferry leaves at three, since it is dark by four.",
    "The mill was built in 1788 by two brothers. It has ground no corn since 1931. On Sundays a guide shows the wheel, "
    "which is five metres wide. Children under six may not go up the ladder.",
    "The inn at Lorsund has nine rooms. Breakfast is from seven to ten. The kitchen closes at eight in winter. Guests "
    "may borrow bicycles for two crowns a day, and a boat for twenty.",
]


@pytest.fixture(scope="module", autouse=True)
def _few_resources() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(convert(tmp_path_factory.mktemp("models") / "SmolLM2-135M-Instruct"))


def endpoint(model: str, port: int) -> VllmEndpoint:
    return VllmEndpoint(
        model=model,
        api_base=f"http://127.0.0.1:{port}/v1",
        api_key_env="VLLM_API_KEY",
        context=CONTEXT,
        max_tokens=300,
        concurrency=8,
        timeout_s=300,
        retries=0,
        retry_wait_s=1,
        serve=True,
        serve_python=None,
        serve_args=ARGUMENTS,
        serve_timeout_s=600,
    )


@pytest.fixture(scope="module")
def server(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmEndpoint]:
    """Settings that reach a server that is running."""
    settings = endpoint(model, free_port())
    loop = asyncio.new_event_loop()
    serving = settings.open(tmp_path_factory.mktemp("server"))
    loop.run_until_complete(serving.__aenter__())
    yield settings.model_copy(update={"serve": False})
    loop.run_until_complete(serving.__aexit__(None, None, None))
    loop.close()


def chat(settings: VllmEndpoint, prompt: str, **fields: Any) -> ChatReply:
    usual = {"model": settings.model, "sampling": settings.greedy, "max_tokens": 60}
    return clients.chat(settings, clients.request(prompt, **usual | fields))


def test_replies_are_held_to_their_schema(server: VllmEndpoint) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA}}
    for sampling in (server.greedy, server.sampled):
        fields = {"sampling": sampling, "response_format": form, "max_tokens": 300}
        replies = (chat(server, f"{FACTS[0]} When does the ferry leave?", seed=seed, **fields) for seed in range(7, 17))
        reply = next(reply for reply in replies if reply.finish_reason == "stop")
        data = json.loads(reply.text)
        # JSON allows white space without end, and a model of this size, sampled, may go on with it.
        assert len(reply.text) <= len(json.dumps(data, separators=(",", ":")))
        assert set(data) - {"note"} == set(SCHEMA["required"])
        assert len(data["answer"]) <= 60
        assert len(data["evidence"]) <= 3 and all(1 <= number <= 12 for number in data["evidence"])


def test_the_likeliest_first_tokens_are_told(server: VllmEndpoint) -> None:
    reply = chat(server, "Is Paris in France? Reply with Yes or No.", max_tokens=1, top_logprobs=20)
    assert len(reply.likely) == 20 and {"Yes", "No"} <= {token.strip() for token, _ in reply.likely}
    assert all(log <= 0 for _, log in reply.likely)


def test_the_decoding_profiles_reach_the_sampler(server: VllmEndpoint) -> None:
    prompt = "Tell me something about boats."
    greedy = chat(server, prompt).text
    assert chat(server, prompt, seed=8).text == greedy
    sampled = {chat(server, prompt, sampling=server.sampled, seed=seed).text for seed in range(3)}
    assert len(sampled) == 3
    # With one token to choose from, a high temperature is greedy: so `top_k` was heeded. Where two tokens are equally
    # likely, as in bfloat16 they often are, it isn't; here the second is far behind.
    counted = "Count from 1 to 20."
    greedy = chat(server, counted).text
    assert chat(server, counted, sampling=Sampling(temperature=2)).text != greedy
    assert chat(server, counted, sampling=Sampling(temperature=2, top_k=1)).text == greedy


def test_cached_prompt_tokens_are_counted(server: VllmEndpoint) -> None:
    prefix = " ".join(FACTS * 8)
    chat(server, f"{prefix} When was the mill built?")
    again = chat(server, f"{prefix} How many rooms has the inn?")
    assert again.usage.cached > 0.8 * again.usage.prompt


def test_a_prompt_that_is_too_long_is_known_as_such(server: VllmEndpoint) -> None:
    with pytest.raises(lm15.ContextLengthError):
        chat(server, " ".join(FACTS * 60))


class Real(Site):
    """A site whose runs ask vLLM."""

    def __init__(self, folder: Path, server: VllmEndpoint, *settings: str) -> None:
        super().__init__(folder, FACTS)
        self.settings = [
            "corpus=jsonl",
            f"corpus.path={self.documents}",
            f"cache_dir={folder / 'cache'}",
            f"run_dir={self.run_dir}",
            "taxonomy=direct",
            "lm=vllm",
            f"lm.model={server.model}",
            f"lm.api_base={server.api_base[0]}",
            f"lm.context={CONTEXT}",
            "lm.max_tokens=250",
            "judge=none",
            "dedup=none",
            "validation=0",
            *settings,
        ]

    def arguments(self, server: OpenAIServer | None, *more: str) -> list[str]:
        return [*self.settings, *more]

    def go(self, *more: str) -> Ended:
        return self.run(None, *more)  # type: ignore[arg-type]


def test_a_whole_run(server: VllmEndpoint, tmp_path: Path) -> None:
    """Run the command: the server takes each call. Whether a dialog of so small a model is kept is chance."""
    settings = ("judge=correctness", "judge.grounding=false", "turns=2", "dialogs_per_document=4")
    site = Real(tmp_path, server, "algorithm=multi", *settings, "lm.greedy.temperature=0.7")
    ended = site.go("dialogs=1", "max_attempts=3", "lm.concurrency=4")
    assert ended.code in (0, 1), ended.err
    site.check_ledger()
    summary = site.summary()
    assert summary["attempted"] and {drop["stage"] for drop in site.drops()}.isdisjoint({"model", "context"})
    assert summary["tokens"]["cached"] > 0.5 * summary["tokens"]["prompt"]
    for dialog in site.dialogs():
        assert dialog["turns"][0]["hits"]
