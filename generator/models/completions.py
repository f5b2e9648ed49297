"""Read what servers with the OpenAI API answer, which differ in all but the model's name and the message."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from generator.common.sanitize import drop_thoughts
from generator.models.lm import ChatReply, billions_named
from generator.schema import Usage

# Errors of what reads models and completions, if the answer isn't of this API.
BAD_ANSWER = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
# The line in vLLM's `/metrics` that tells the size of its prefix cache, and the labels in it.
_INFO = re.compile(r"^vllm:cache_config_info\{(.*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class ListedModel(NamedTuple):
    """Holds what a server says of a model.

    Attributes:
        context: the longest prompt and reply in tokens, as vLLM and SGLang say; None if it says none.
        server: the software, as vLLM and SGLang say.
        billions: its parameters; 0 if they aren't known.
    """

    context: int | None = None
    server: str | None = None
    billions: float = 0.0


def read_models(body: bytes) -> dict[str, ListedModel]:
    """Return the models of a server's list, by name."""
    listed = json.loads(body)
    # A bare list at Together AI; null at an Ollama that holds none.
    models = listed if isinstance(listed, list) else listed["data"] or []
    return {str(model["id"]): _read_model(model) for model in models}


def _read_model(model: Mapping[str, Any]) -> ListedModel:
    context, meta = model.get("max_model_len"), model.get("meta")
    parameters = meta.get("n_params") if isinstance(meta, Mapping) else None  # llama.cpp
    # vLLM says the name or the folder.
    billions = parameters / 1e9 if isinstance(parameters, int) else billions_named(str(model.get("root")))
    return ListedModel(context if isinstance(context, int) else None, model.get("owned_by"), billions)


def read_completion(body: bytes, model: str) -> ChatReply:
    """Return the reply of a chat completion by `model`. Only the message is required.

    Raises:
        ValueError: the reply broke off; one of `BAD_ANSWER` where it is no completion.
    """
    completion = json.loads(body)
    choice = completion["choices"][0]
    if choice.get("finish_reason") == "error":  # OpenRouter's, of a provider that failed in the middle of its reply
        raise ValueError("the reply ends in an error")
    message = choice["message"]
    usage = completion.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details") or {}
    prompt, cached, written = (
        max(0, int(tokens or 0))
        for tokens in (usage.get("prompt_tokens"), details.get("cached_tokens"), usage.get("completion_tokens"))
    )
    return ChatReply(
        text=_text_of(message.get("content") or message.get("refusal")),  # in which OpenAI's models decline
        finish_reason=choice.get("finish_reason") or "stop",
        model=completion.get("model") or model,
        usage=Usage(calls=1, prompt=prompt, cached=min(prompt, cached), completion=written),
        likely=_first_tokens(choice.get("logprobs")),
    )


def _first_tokens(logprobs: Any) -> tuple[tuple[str, float], ...]:
    """Return the likeliest first tokens of a reply with their log probabilities; none if the server sends none."""
    # Other servers have lists in their place, also where nobody asked for any.
    places = (isinstance(logprobs, dict) and logprobs.get("content")) or [{}]
    return tuple((token["token"], float(token["logprob"])) for token in places[0].get("top_logprobs") or ())


def _text_of(content: Any) -> str:
    """Return the text of a message without thoughts; some servers send it in parts, thoughts among them."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    # JSON escapes can hold lone surrogates, which no file can.
    return drop_thoughts(content or "").encode(errors="replace").decode()


def capacity_of(metrics: str) -> int | None:
    """Return the tokens that a vLLM server's prefix cache holds, by the text of its `/metrics`; None if unknown.

    Several engines behind one address have a line each.
    """
    tokens = 0
    for line in _INFO.findall(metrics):
        labels = dict(_LABEL.findall(line))
        if labels.get("enable_prefix_caching") == "False":
            return None
        size, blocks, of_block = (labels.get(n, "") for n in ("kv_cache_size_tokens", "num_gpu_blocks", "block_size"))
        if size.isdecimal():  # the number of blocks says less where layers have caches of different kinds
            tokens += int(size)
        elif blocks.isdecimal() and of_block.isdecimal():
            tokens += int(blocks) * int(of_block)
    return tokens or None
