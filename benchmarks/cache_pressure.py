"""Measure what dialogs under way cost a server whose prefix cache holds only some of them.

    python -m benchmarks.cache_pressure                                   # starts vLLM with 1 GB of cache; 20 minutes
    python -m benchmarks.cache_pressure --dialogs 8 40 0 --seconds 60     # 0: as many as the run finds

Dialogs are laid out as ours: what all share, a document that two neighbours share, what is appended from call to call,
and the task. Prompts grow from some 1,500 to 2,900 tokens in 12 calls, each with 16 tokens to generate. They go through
our client to SmolLM2-135M on vLLM; only texts and replies are made up. The dialogs that begin a measurement are at
different places of their course, as in the middle of a run. Calls a minute and the cached share are those of the time
after `--warm` seconds; the cache is emptied before each measurement.
"""

import argparse
import asyncio
import random
import tempfile
import time
from functools import partial
from pathlib import Path

import aiohttp

from benchmarks.smollm2 import serve
from generator.common.concurrency import in_order
from generator.common.sentences import sentences
from generator.corpora.folder import SAMPLE_DOCUMENTS
from generator.models.client import HttpClient
from generator.models.endpoints import OpenAIEndpoint
from generator.models.lm import ChatRequest, Sampling
from generator.schema import Message

CALLS, REPLY_TOKENS = 12, 16
# In characters, of which four or five are a token.
RULES, DOCUMENT, APPENDED, TASK = 3000, 3300, 520, 250
CONTEXT, CONCURRENCY = 4096, 256


class Texts:
    """Sentences of our sample documents in random order."""

    def __init__(self) -> None:
        texts = [path.read_text(encoding="utf-8") for path in sorted(SAMPLE_DOCUMENTS.glob("*.md"))]
        self._sentences = [text[start:end] for text in texts for start, end in sentences(text)]

    def text(self, key: str, length: int) -> str:
        """Return a text of so many characters, the same for the same key."""
        chance, text = random.Random(key), ""
        while len(text) < length:
            text += f"{chance.choice(self._sentences)} "
        return text[:length]

    def prompt(self, dialog: int, call: int) -> str:
        """Return the prompt of a dialog's call, from 0."""
        appended = (self.text(f"{dialog} {number}", APPENDED) for number in range(call))
        document = self.text(f"document {dialog // 2}", DOCUMENT)
        return self.text("rules", RULES) + document + "".join(appended) + self.text(f"task {call}", TASK)


async def lead(client: HttpClient, texts: Texts, model: str, at_once: int, dialog: int) -> None:
    """Make the calls of a dialog; those that begin a measurement have some of them behind them."""
    with client.for_dialog(f"document {dialog // 2}") as bound:
        for call in range(dialog * 5 % CALLS if dialog < at_once else 0, CALLS):
            message = Message(role="user", content=texts.prompt(dialog, call))
            request = ChatRequest(
                model=model, messages=(message,), sampling=Sampling(temperature=0), seed=dialog, max_tokens=REPLY_TOKENS
            )
            await bound.chat(request)


# Calls answered, their prompt tokens, and those of them that were cached.
Counts = tuple[float, float, float]


class Vllm:
    """The counters of a vLLM server."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def empty(self) -> None:
        """Empty its cache."""
        async with aiohttp.ClientSession() as session, session.post(f"{self._address}/reset_prefix_cache") as response:
            response.raise_for_status()

    async def count(self) -> Counts:
        async with aiohttp.ClientSession() as session, session.get(f"{self._address}/metrics") as response:
            lines = (await response.text()).splitlines()

        def total(name: str) -> float:
            return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"vllm:{name}_total{{"))

        return total("request_success"), total("prompt_tokens"), total("prompt_tokens_cached")


async def measure(
    endpoint: OpenAIEndpoint, server: Vllm, dialogs: int, seconds: float, warm: float
) -> tuple[list[str], float]:
    """Return the cells of one number of dialogs, and the calls a minute."""
    texts, stop = Texts(), asyncio.Event()
    endpoint = endpoint.model_copy(update={"dialogs": dialogs or None})
    await server.empty()
    async with endpoint.open(Path()) as client:
        assert isinstance(client, HttpClient)

        async def watch() -> tuple[Counts, Counts, float]:
            await asyncio.sleep(warm)
            before, since = await server.count(), time.monotonic()
            await asyncio.sleep(seconds)
            after, until = await server.count(), time.monotonic()
            stop.set()
            return before, after, until - since

        watching = asyncio.create_task(watch())
        make = partial(lead, client, texts, endpoint.model, client.admission.limit)
        async for _ in in_order(make, range(10**9), endpoint.most_dialogs, stop):
            pass
        before, after, passed = await watching
        calls, prompt, cached = (b - a for a, b in zip(before, after, strict=True))
        name = str(dialogs) if dialogs else f"found: {client.admission.limit}"
        rate = calls / passed * 60
        return [name, f"{rate:.1f}", f"{cached / max(1, prompt):.1%}", f"{calls:.0f}"], rate


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dialogs", type=int, nargs="+", default=[4, 8, 16, 24, 40, 0])
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--warm", type=float, default=60)
    parser.add_argument("--gigabytes", default="1", help="of vLLM's cache")
    parser.add_argument("--port", type=int, default=8021)
    arguments = parser.parse_args()
    header = ["dialogs under way", "calls a minute", "from the cache", "calls"]
    print(f"| {' | '.join(header)} |\n| --- | --- | --- | --- |", flush=True)
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        served = serve(Path(folder), arguments.port, arguments.gigabytes, CONTEXT, REPLY_TOKENS, CONCURRENCY)
        async with served as endpoint:
            server = Vllm(endpoint.api_base[0].removesuffix("/v1"))
            for dialogs in arguments.dialogs:
                cells, rates[dialogs] = await measure(endpoint, server, dialogs, arguments.seconds, arguments.warm)
                print(f"| {' | '.join(cells)} |", flush=True)
    if fixed := {dialogs: rate for dialogs, rate in rates.items() if dialogs and 0 in rates}:
        print(f"\nfound: {rates[0] / max(fixed.values()):.2f} of the best fixed number", end="")
        print(f", {rates[0] / fixed[40]:.1f} times what 40 give" if 40 in fixed else "")


if __name__ == "__main__":
    asyncio.run(main())
