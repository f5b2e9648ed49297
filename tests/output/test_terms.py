"""The licence or terms of a model, told by its name as servers and providers spell it."""

import pytest

from generator.output.terms import find_terms


@pytest.mark.parametrize(
    ("model", "terms"),
    [
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Apache-2.0"),
        ("mistral-large-latest", "Mistral AI's terms"),
        ("SmolLM2-135M-Instruct", "Apache-2.0"),
        ("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M", "Apache-2.0"),
        ("qwen2.5:3b", "research"),
        ("Qwen3-Coder-30B-A3B-Instruct", "Apache-2.0"),
        ("qwen3-max", "Alibaba"),
        ("qwen3-coder-plus-2025-09-23", "Alibaba"),
        ("google/gemma-7b-it", "Gemma"),
        ("google/gemma-3-4b-it", "Gemma"),
        ("gpt-4o-mini", "OpenAI"),
        ("openai/gpt-oss-20b", "Apache-2.0"),
        ("anthropic/claude-3-5-haiku", "Anthropic"),
        ("gemini-2.0-flash", "Gemini"),
        ("deepseek-chat", "DeepSeek"),
        ("deepseek-ai/DeepSeek-R1", "MIT"),
    ],
)
def test_a_models_licence_or_terms_are_known_by_its_name(model: str, terms: str) -> None:
    found = find_terms(model)
    assert found is not None and terms in found.terms
    assert found.url.startswith("https://")
    assert bool(found.binds) == (found.terms not in ("Apache-2.0", "MIT"))


def test_the_releases_of_llama_bind_in_different_ways() -> None:
    old = {find_terms(name) for name in ("llama3:8b", "Meta-Llama-3-8B-Instruct", "Llama-2-7b-chat-hf", "codellama-7b")}
    new = {find_terms(name) for name in ("llama3.1", "llama-3.3-70b-versatile", "llama-4-scout", "Llama-3.2-1B")}
    assert len(old) == len(new) == 1 and not old & new


@pytest.mark.parametrize("model", ["test-model", "EleutherAI/gpt-j-6b", "EleutherAI/gpt-neox-20b", "gemma-4-31b-it"])
def test_of_other_models_nothing_is_said(model: str) -> None:
    assert find_terms(model) is None
