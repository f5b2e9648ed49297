"""Compute how many dialogs a server's prefix cache holds.

    uv run --group benchmark python -m benchmarks.dialog_size --data DATA

Passages of a dialog: measured with the human conversations of mtRAG. Each turn's rewritten question is searched with
BM25 in the pool of its domain; passages that are new join, as in Algorithm 2. Dialogs, calls and pairs of a server:
computed from that, from the models' configurations, and from the assumptions below.
"""

import argparse
import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.command_line import add_data
from benchmarks.retrieval import DOMAINS, build, collections, rank, retriever_settings
from generator.corpora.mtrag.names import parse_turn_id
from generator.output.markdown import table
from generator.retrievers.bm25 import Bm25Settings

# A passage of 512 words and punctuation marks, with the numbers of its sentences; what all prompts begin with, and the
# question and the answer of a turn: in a model's tokens.
PASSAGE, RULES, TURN = 700, 1500, 180
# Assumed: vLLM's share of the memory, and GB of each GPU that are neither weights nor cache; of the peak rates of an
# H100, what a server reaches; calls of a planned turn, tokens of a reply, the part of a prompt that isn't cached, and
# the pairs kept of those planned.
USABLE, OTHER_GB = 0.92, 3
FLOPS, BANDWIDTH, REACHED = 990e12, 3.35e12, 0.5
CALLS, REPLY, COMPUTED, KEPT = 4, 120, 0.12, 0.7


class Model(NamedTuple):
    """A model: billions of parameters in all and for a token, layers, and heads for keys and values, of 128 each."""

    name: str
    parameters: float
    active: float
    layers: int
    heads: int

    def token_bytes(self, width: int) -> int:
        """Return the bytes of a token in the cache, at so many bytes a number."""
        return 2 * self.layers * self.heads * 128 * width


MODELS = (Model("Mixtral 8x7B", 46.7, 12.9, 32, 8), Model("Mixtral 8x22B", 140.6, 39.1, 56, 8))


async def measure_passages(data: Path, k: int, cache: Path) -> dict[int, float]:
    """Return the mean number of passages that a dialog holds, by turn."""
    found: dict[int, list[int]] = defaultdict(list)
    for collection in collections(data):
        if collection.name not in DOMAINS:
            continue
        settings = retriever_settings("bm25", [])
        assert isinstance(settings, Bm25Settings)
        retriever, _, _ = build(collection, settings, cache)
        rankings, _ = await rank(retriever, collection.queries["rewrite"], k)
        dialogs: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for query in rankings:
            conversation, number = parse_turn_id(query)
            dialogs[conversation].append((number, query))
        for turns in dialogs.values():
            held = set[str]()
            for place, (_, query) in enumerate(sorted(turns), start=1):
                held.update(rankings[query])
                found[place].append(len(held))
    return {place: fmean(counts) for place, counts in found.items()}


def room(model: Model, gpus: int, weights: int, cache: int) -> float:
    """Return the tokens that fit beside the weights, each of so many bytes; below 0 if those don't fit."""
    free = gpus * (80 * USABLE - OTHER_GB) - model.parameters * weights
    return free * 1e9 / model.token_bytes(cache)


def calls_an_hour(
    model: Model, gpus: int, dialogs: int, tokens: float, widths: tuple[int, int], computed: float
) -> float:
    """Return the calls an hour: the prompt's computed part by FLOPs, the reply by reading weights and cache."""
    weights, cache = widths
    prefill = computed * tokens * 2 * model.active * 1e9 / (FLOPS * gpus * REACHED)
    step = (model.parameters * 1e9 * weights + dialogs * tokens * model.token_bytes(cache)) / (
        BANDWIDTH * gpus * REACHED
    )
    return 3600 / (prefill + REPLY * step / dialogs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_data(parser, "mtrag")
    data: Path = parser.parse_args().data
    with tempfile.TemporaryDirectory() as cache:
        held = {k: asyncio.run(measure_passages(data, k, Path(cache))) for k in (3, 5, 10)}

    def tokens(k: int, words: int, count: int) -> float:
        return held[k][count] * PASSAGE * words / 512 + count * TURN

    settings = [(5, 512, 4), (3, 512, 4), (10, 512, 4), (5, 256, 4), (5, 512, 2), (5, 512, 8)]
    base = room(MODELS[0], 2, 2, 2) - RULES
    rows = [[*map(str, each), f"{tokens(*each):,.0f}", f"{base // tokens(*each):.0f}"] for each in settings]
    head = ["retriever.k", "passage_tokens", "turns", "tokens a dialog adds", "dialogs that fit"]
    print(table(head, rows) + "\n")
    rows = []
    for model in MODELS:
        for gpus in (1, 2, 4):
            for widths in ((2, 2), (1, 2), (1, 1)):
                free, each = room(model, gpus, *widths), tokens(5, 512, 4)
                name = [model.name, str(gpus), *({2: "bf16", 1: "fp8"}[width] for width in widths)]
                fit = int((free - RULES) / each)
                if fit < 1:
                    rows.append([*name, "–", "0", "", "", ""])
                    continue
                mean = RULES + each / 2  # prompts of all lengths
                calls = calls_an_hour(model, gpus, fit, mean, widths, COMPUTED)
                thrash = calls_an_hour(model, gpus, fit, mean, widths, 1)
                pairs = calls / CALLS * KEPT
                rows.append(
                    [*name, f"{free:,.0f}", str(fit), f"{calls:,.0f}", f"{pairs:,.0f}", f"{thrash / calls:.0%}"]
                )
    head = ["model", "GPUs", "weights", "cache", "tokens", "dialogs", "calls an hour", "pairs an hour"]
    print(table([*head, "without the cache"], rows))


if __name__ == "__main__":
    main()
