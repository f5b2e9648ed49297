"""Measure the memory of a whole run by its number of dialogs, with a model that answers at once.

    python -m benchmarks.memory                              # 1,000, 10,000 and 50,000 dialogs
    python -m benchmarks.memory 500 5000 --algorithm single

Everything is as in a run with its defaults (plans, BM25, the modules through DSPy, the judge, near-duplicates, the
store, all files of the run folder), 64 dialogs at a time over 200 documents of 100 words, but for two things that make
it end in time: a dialog has one turn (two, if its question type has a number of its own), and the model is a client in
the process, without HTTP. It replies made-up words, with answers of 70, so that no dialog repeats another, and none is
checked for its grounding. Each figure is that of a process of its own.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import ClassVar

from omegaconf import OmegaConf

from benchmarks.measuring import in_new_process, peak_memory
from generator.config.job import Job
from generator.config.settings import load
from generator.models.endpoints import Endpoint
from generator.models.lm import ChatReply, ChatRequest, Profile, Sampling
from generator.run import generate_run
from generator.schema import Usage
from tests.support.openai_server import fill, words
from tests.support.settings import composed

DOCUMENTS, DOCUMENT = 200, 100


class Instant(Endpoint):
    """A model in the process that answers at once; every client is this one."""

    billions: ClassVar[float] = 0

    @asynccontextmanager
    async def open(self, folder: Path) -> AsyncIterator["Instant"]:
        yield self

    def for_dialog(self, document: str) -> AbstractContextManager["Instant"]:
        return nullcontext(self)

    def sampling(self, profile: Profile) -> Sampling:
        return self.greedy if profile == "greedy" else self.sampled

    async def chat(self, request: ChatRequest) -> ChatReply:
        reply = json.loads(fill(request.body()))
        if "answer" in reply:
            chance = random.Random(request.key)
            reply["answer"] = " ".join(words(chance, 80) for _ in range(9))[:490]
        text = json.dumps(reply)
        usage = Usage(calls=1, prompt=request.prompt_bytes // 4, completion=len(text) // 4)
        return ChatReply(text=text, finish_reason="stop", model=self.model, usage=usage)


def measure_run(algorithm: str, dialogs: int) -> tuple[int, float, float]:
    """Make a run; return its calls, seconds, and the highest resident memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "documents.jsonl")
        chance = random.Random(0)
        with corpus.open("w", encoding="utf-8") as file:
            for number in range(DOCUMENTS):
                text = " ".join(words(chance, 80) for _ in range(DOCUMENT // 10))
                file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
        arguments = [
            *("corpus=jsonl", f"corpus.path={corpus}", f"cache_dir={folder}/cache", f"run_dir={folder}/run"),
            *("lm=openai", "lm.model=instant", "lm.concurrency=64"),
            *(f"algorithm={algorithm}", f"dialogs={dialogs}", "turns=1", "judge.grounding=false"),
        ]
        configuration = composed(*arguments)
        settings = load(configuration)
        model = Instant(
            model="instant", context=8192, max_tokens=512, concurrency=64, timeout_s=1, retries=0, retry_wait_s=1
        )
        start = time.perf_counter()
        with redirect_stdout(sys.stderr):
            generate_run(
                settings.model_copy(update={"lm": model}), OmegaConf.to_yaml(configuration), Job("-", {}, False)
            )
        seconds = time.perf_counter() - start
        calls = json.loads(Path(folder, "run", "summary.json").read_text())["lm_calls"]
    return calls, seconds, peak_memory()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dialogs", nargs="*", type=int, default=[1_000, 10_000, 50_000])
    parser.add_argument("--algorithm", choices=["single", "multi"], default="multi")
    given = parser.parse_args()
    print("| dialogs | calls | seconds | peak memory | growth |\n| --- | --- | --- | --- | --- |")
    before = None
    for dialogs in given.dialogs:
        calls, seconds, peak = in_new_process(measure_run, given.algorithm, dialogs)
        growth = f"{peak / before - 1:+.1%}" if before else ""
        print(f"| {dialogs:,} | {calls:,.0f} | {seconds:.0f} | {peak:.0f} MiB | {growth} |", flush=True)
        before = peak


if __name__ == "__main__":
    main()
