"""Measure how far a run saturates its model server, and the CPU time of a call.

    uv run python -m benchmarks.saturation
    uv run python -m benchmarks.saturation --at-once 256 --algorithms multi --workers 2     # with the extra `ray`

A server of ours takes any number of calls at once and answers each after 250 ms, or after lognormal delays of that mean
(sigma 0.8). The whole pipeline runs against it in a process of its own: Algorithm 1 or 2, BM25, judge, dedup, store.
What counts is the middle half of a run: the mean number of calls in flight, as the server sees them, over the ceiling,
and the CPU time of the run's process over the calls that it finished. `busy` is that process's CPU seconds a second: on
a machine with other work it is below what the process wanted. With `--workers`, Ray's make the dialogs, and CPU time is
the driver's alone.
"""

import argparse
import asyncio
import json
import math
import multiprocessing
import random
import re
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from aiohttp import web
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tests.support.openai_server import fill, words

MEAN_S, SIGMA = 0.25, 0.8
MODEL = "instant"
TURNS = 3
CALLS_A_DIALOG = {"multi": 11, "single": 9}
# More calls a second than a run makes here; so long runs don't get longer still.
MOST_A_SECOND = 600
# Of as many lines of made-up words, so that what replies ask for is there to be found.
DOCUMENTS, LINES = 200, 120
SAMPLED_EVERY_S = 0.05


class Trace(NamedTuple):
    """The server's trace: arrivals and ends of calls by the monotonic clock."""

    begun: NDArray[np.float64]
    ended: NDArray[np.float64]


class Spent(NamedTuple):
    """The run's CPU seconds so far, at moments of the machine's monotonic clock."""

    at: NDArray[np.float64]
    cpu: NDArray[np.float64]


class Measured(NamedTuple):
    """The middle half of a run.

    Attributes:
        in_flight: mean over the ceiling, 0 to 1.
        calls_s: calls a second.
        cpu_ms: of the run's process, a call.
        busy: CPU seconds of that process a second; 1 is one core.
    """

    in_flight: float
    calls_s: float
    cpu_ms: float
    busy: float


def in_english(value: Any) -> Any:
    """Return a line of made-up words with English ones between, as real dialogs have, so that none is looked up."""
    if not isinstance(value, str) or " of the " in value:
        return value
    return re.sub(r"(\w+) (\w+)(?= )", r"\1 of the \2", value)


def serve(lognormal: bool, pipe: Connection) -> None:
    """Serve until the pipe receives a message; then send the trace."""
    draw = random.Random(1)
    begun, ended = array("d"), array("d")

    async def chat(request: web.Request) -> web.Response:
        begun.append(time.monotonic())
        delay = draw.lognormvariate(math.log(MEAN_S) - SIGMA**2 / 2, SIGMA) if lognormal else MEAN_S
        until = begun[-1] + delay
        body = await request.json()
        text = json.dumps({name: in_english(value) for name, value in json.loads(fill(body)).items()})
        usage = {"prompt_tokens": 4000, "completion_tokens": len(text) // 4, "total_tokens": 4000 + len(text) // 4}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": MODEL, "choices": [choice]}
        await asyncio.sleep(until - time.monotonic())
        ended.append(time.monotonic())
        return web.json_response(reply | {"usage": usage})

    async def models(_: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL}]})

    async def running() -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_get("/v1/models", models)
        app.router.add_post("/v1/chat/completions", chat)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
        pipe.send(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        await asyncio.to_thread(pipe.recv)
        await runner.cleanup()

    asyncio.run(running())
    pipe.send(Trace(np.array(begun), np.array(ended)))


def sampled(work: Callable[[], None]) -> Spent:
    """Do the work, and sample the CPU time of this process."""
    at, cpu, over = array("d"), array("d"), threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLED_EVERY_S):
            at.append(time.monotonic())
            cpu.append(time.process_time())

    watching = threading.Thread(target=sample)
    watching.start()
    try:
        work()
    finally:
        over.set()
        watching.join()
    return Spent(np.array(at), np.array(cpu))


def generate(url: str, algorithm: str, at_once: int, dialogs: int, workers: int) -> Spent:
    """Make a whole run, as the command does."""
    from generator.__main__ import COMMAND
    from generator.command import run_command

    with tempfile.TemporaryDirectory() as folder:
        chance = random.Random(1)
        texts = (in_english(" ".join(words(chance, 60) for _ in range(LINES))) for _ in range(DOCUMENTS))
        documents = [json.dumps({"id": f"d{number}", "text": text}) for number, text in enumerate(texts)]
        Path(folder, "documents.jsonl").write_text("\n".join(documents), encoding="utf-8")
        arguments = [
            *("corpus=jsonl", f"corpus.path={folder}/documents.jsonl"),
            *("lm=openai", f"lm.model={MODEL}", f"lm.api_base={url}", f"algorithm={algorithm}", f"turns={TURNS}"),
            *(f"dialogs={dialogs}", f"lm.concurrency={at_once}", f"run_dir={folder}/run", f"cache_dir={folder}/cache"),
            *(("executor=ray", f"executor.workers={workers}") if workers else ()),
        ]

        def work() -> None:
            sys.argv = ["generator", *arguments]
            code = run_command(COMMAND)
            assert code == 0, f"the run ended with {code}"

        return sampled(work)


def measure(trace: Trace, spent: Spent, at_once: int) -> Measured:
    """Measure the middle half of the calls."""
    ends = np.sort(trace.ended)
    since, until = ends[len(ends) // 4], ends[3 * len(ends) // 4]
    # The calls' time in the window: which of them began belongs to which that ended makes no difference.
    open_s = (np.clip(trace.ended, since, until) - since).sum() - (np.clip(trace.begun, since, until) - since).sum()
    open_s += (len(trace.begun) - len(trace.ended)) * (until - since)
    calls = int(((trace.ended > since) & (trace.ended <= until)).sum())
    cpu = float(np.interp(until, spent.at, spent.cpu) - np.interp(since, spent.at, spent.cpu))
    span = float(until - since)
    return Measured(float(open_s) / span / at_once, calls / span, cpu / calls * 1000, cpu / span)


def run_against_server(lognormal: bool, *arguments: Any) -> tuple[Trace, Spent]:
    """Make a run in a process of its own against a server in another."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(lognormal, there), daemon=True)
    server.start()
    url = here.recv()
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        spent = pool.submit(generate, url, *arguments).result()
    here.send("enough")
    trace = here.recv()
    server.join()
    return trace, spent


def main() -> None:
    parser = argparse.ArgumentParser(description="How busy a run keeps its model server.")
    parser.add_argument("--at-once", type=int, nargs="+", default=[64, 256, 1024], help="ceilings of calls in flight")
    parser.add_argument("--delays", nargs="+", choices=["fixed", "lognormal"], default=["fixed", "lognormal"])
    parser.add_argument("--algorithms", nargs="+", choices=["multi", "single"], default=["multi", "single"])
    parser.add_argument("--seconds", type=float, default=30, help="how long each takes, roughly")
    parser.add_argument("--workers", type=int, default=0, help="of Ray; 0: this process makes the dialogs")
    asked = parser.parse_args()
    table = Table("algorithm", "delays", "ceiling", "in flight", "calls a second", "CPU ms a call", "busy")
    console = Console(width=120)
    for delays, at_once, algorithm in product(asked.delays, asked.at_once, asked.algorithms):
        calls = int(asked.seconds * min(at_once / MEAN_S, MOST_A_SECOND)) + at_once
        dialogs = calls // CALLS_A_DIALOG[algorithm]
        trace, spent = run_against_server(delays == "lognormal", algorithm, at_once, dialogs, asked.workers)
        found = measure(trace, spent, at_once)
        figures = (f"{found.in_flight:.3f}", f"{found.calls_s:.0f}", f"{found.cpu_ms:.2f}", f"{found.busy:.2f}")
        table.add_row(algorithm, delays, str(at_once), *figures)
        console.print(algorithm, delays, at_once, *figures)
    console.print(table)


if __name__ == "__main__":
    main()
