"""Measure what a JSON schema costs xgrammar, which holds vLLM's replies to it: with bounds on texts, and without.

    uv run --with xgrammar --with transformers --with torch python -m benchmarks.grammars MODEL

MODEL is a Hugging Face folder or name, of which the tokenizer is used. For each task: seconds to compile its schema in
a fresh compiler, and microseconds a token for the mask of allowed tokens, on one thread. vLLM makes a mask for each
reply under way before it writes the next token of all.
"""

import argparse
import json
import re
import time
from typing import Any

import dspy
import xgrammar  # type: ignore[import-not-found, unused-ignore]
from transformers import AutoTokenizer

from generator.prompts.replies import limited_schema
from generator.prompts.signatures import FirstQuestion, GroundedAnswer, NextQuestion

SHOWN = 37
_TEXT = "The ferry leaves every hour from 7 am to 8 pm, and a bicycle costs 4 euros."
_BOUND = re.compile(r'"maxLength": \d+, ')


def fill(field: dict[str, Any]) -> Any:
    """Return a value that a field's schema allows."""
    match field.get("type"):
        case "array":
            return [3] if field["items"]["type"] == "integer" else [_TEXT] * 2
        case "boolean":
            return True
    return field["enum"][0] if "enum" in field else _TEXT


def measure(info: xgrammar.TokenizerInfo, schema: str, tokens: list[int]) -> tuple[float, float]:
    """Return seconds to compile a schema, and microseconds a token for its masks."""
    start = time.perf_counter()
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_json_schema(
        schema, any_whitespace=False, separators=(",", ":")
    )
    seconds = time.perf_counter() - start
    matcher, mask = xgrammar.GrammarMatcher(compiled), xgrammar.allocate_token_bitmask(1, info.vocab_size)
    start = time.perf_counter()
    for token in tokens:
        matcher.fill_next_token_bitmask(mask)
        assert matcher.accept_token(token)
    return seconds, (time.perf_counter() - start) / len(tokens) * 1e6


def main() -> None:
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    tokenizer = AutoTokenizer.from_pretrained(parser.parse_args().model)
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
    tasks: tuple[type[dspy.Signature], ...] = (FirstQuestion, NextQuestion, GroundedAnswer)
    for task in tasks:
        schema = limited_schema(task, SHOWN)
        reply = {name: fill(field) for name, field in schema["properties"].items()}
        tokens = tokenizer.encode(json.dumps(reply, separators=(",", ":")), add_special_tokens=False)
        bounded = json.dumps(schema)
        for name, text in (("bounds", bounded), ("no bounds", _BOUND.sub("", bounded))):
            seconds, microseconds = measure(info, text, tokens)
            print(f"{task.__name__:16} {name:10} {seconds:6.2f} s {microseconds:6.0f} µs")


if __name__ == "__main__":
    main()
