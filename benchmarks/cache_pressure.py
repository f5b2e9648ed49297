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
import os
import random
import tempfile
import time
from functools import partial
from pathlib import Path

import aiohttp

from benchmarks.smollm2 import convert
from generator.common.concurrency import in_order
from generator.common.passages import sentences
from generator.corpora.folder import SAMPLE_DOCUMENTS
from generator.models.client import HttpClient
from generator.models.endpoints import VllmEndpoint
from generator.models.lm import ChatRequest, Message, Sampling

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
            await bound.chat(
                ChatRequest(
                    model=model,
                    messages=(message,),
                    sampling=Sampling(temperature=0),
                    seed=dialog,
                    max_tokens=REPLY_TOKENS,
                )
            )


async def measure(endpoint: VllmEndpoint, dialogs: int, seconds: float, warm: float) -> str:
    """Return the row of one number of dialogs."""
    texts, stop = Texts(), asyncio.Event()
    endpoint = endpoint.model_copy(update={"serve": False, "dialogs": dialogs or None})
    async with aiohttp.ClientSession() as session, endpoint.open(Path()) as client:
        assert isinstance(client, HttpClient)
        address = endpoint.api_base[0].removesuffix("/v1")
        async with session.post(f"{address}/reset_prefix_cache") as response:
            response.raise_for_status()

        async def count() -> tuple[float, list[float]]:
            async with session.get(f"{address}/metrics") as response:
                lines = (await response.text()).splitlines()
            names = ("request_success_total", "prompt_tokens_total", "prompt_tokens_cached_total")
            of = ((line for line in lines if line.startswith(f"vllm:{name}{{")) for name in names)
            return time.monotonic(), [sum(float(line.rpartition(" ")[2]) for line in each) for each in of]

        async def watch() -> list[tuple[float, list[float]]]:
            await asyncio.sleep(warm)
            begun = await count()
            await asyncio.sleep(seconds)
            ended = await count()
            stop.set()
            return [begun, ended]

        watching = asyncio.create_task(watch())
        at_once = min(endpoint.most_dialogs, 320)
        make = partial(lead, client, texts, endpoint.model, client.admission.limit)
        async for _ in in_order(make, 0, at_once, stop):
            pass
        (since, before), (until, after) = await watching
        calls, prompt, cached = (b - a for a, b in zip(before, after, strict=True))
        name = str(dialogs) if dialogs else f"found: {client.admission.limit}"
        return f"| {name} | {calls / (until - since) * 60:.1f} | {cached / max(1, prompt):.1%} | {calls:.0f} |"


async def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dialogs", type=int, nargs="+", default=[4, 8, 16, 24, 40, 0])
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--warm", type=float, default=60)
    parser.add_argument("--gigabytes", default="1")
    parser.add_argument("--port", type=int, default=8021)
    arguments = parser.parse_args()
    os.environ |= {
        "VLLM_SERVER_DEV_MODE": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": arguments.gigabytes,
    }
    with tempfile.TemporaryDirectory() as folder:
        endpoint = VllmEndpoint(
            model=str(convert(Path(folder) / "SmolLM2-135M-Instruct")),
            api_base=f"http://127.0.0.1:{arguments.port}/v1",
            api_key_env="VLLM_API_KEY",
            context=CONTEXT,
            max_tokens=REPLY_TOKENS,
            concurrency=CONCURRENCY,
            timeout_s=600,
            retries=0,
            retry_wait_s=1,
            serve=True,
            serve_python=None,
            serve_args="--dtype bfloat16 --enforce-eager",
            serve_timeout_s=600,
        )
        async with endpoint.open(Path(folder)):
            print("| dialogs under way | calls a minute | from the cache | calls |")
            print("| --- | --- | --- | --- |", flush=True)
            for dialogs in arguments.dialogs:
                print(await measure(endpoint, dialogs, arguments.seconds, arguments.warm), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
