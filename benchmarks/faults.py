"""Measure the cost of a SIGKILL and of calls that never succeed: 2,000 calls, killed at half, 2% of them dead.

    uv run python -m benchmarks.faults
    uv run python -m benchmarks.faults --dead --in-flight 32     # what dead calls cost in time: ten minutes

The work is 500 dialogs of Algorithm 1 with two turns and no judge: four calls each, independent of other dialogs. A
server of ours answers each after 200 to 300 ms; 2% of them, drawn by a hash of the request, it answers with HTTP 500
for ever. Its own count says how often it answered a request in full. The run is the command that a person types.

With `--dead`, 60 dialogs of Algorithm 2 with four turns run against a server whose delays are lognormal with a mean of
2 s: without dead calls, then with them and default retries, "before" as if all failures were the server's, and
"after" as it is.
"""

import argparse
import json
import math
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from generator.models.client import HttpClient
from tests.support.openai_server import Body, Fault, OpenAIServer, digest, status
from tests.support.runs import Site

CALLS_OF_A_DIALOG = 4
DEAD = 0.02
DELAY_S = (0.2, 0.3)


def dead(_: int, body: Body) -> Fault | None:
    """Return the fault of a request that never succeeds; the client's trivial check of the server always does."""
    chance = random.Random(digest(body)).random() if "response_format" in body else 1
    return status(500) if chance < DEAD else None


def work(server: OpenAIServer) -> Counter[str]:
    """Count the answers to each request of the run."""
    finished, asked = server.finished, {digest(body) for body in server.bodies if "response_format" in body}
    return Counter({call: finished[call] for call in asked & finished.keys()})


async def blame_server(*_: object) -> bool:
    """Wait for the server whatever it answers to others, as clients did before."""
    return False


def time_dead_calls(in_flight: int) -> None:
    """Print how long a run takes without dead calls, and with them before and after they are told from the others."""
    table = Table("2% dead", "seconds", "of the first", "calls", "attempted", "model drops", "longest for a dead call")
    seconds, data, port = [0.0], [], 0
    for name in ("none", "after", "before"):

        def delay(body: Body) -> float:
            return random.Random(digest(body)).lognormvariate(math.log(2) - 0.8**2 / 2, 0.8)

        with (
            patch.object(HttpClient, "_is_own_fault", blame_server) if name == "before" else nullcontext(),
            tempfile.TemporaryDirectory() as folder,
            OpenAIServer(faults=() if name == "none" else dead, delay_s=delay, port=port) as server,
        ):
            port = server.port  # which drops name
            site = Site(Path(folder))
            settings = ["dialogs=60", "turns=4", f"lm.concurrency={in_flight}", "lm.retries=8", "lm.retry_wait_s=1"]
            ended = site.run(server, *settings)
            assert ended.code == 0, ended.err
            site.check_ledger()
            took, summary = time.monotonic() - server.times[0], site.summary()
            times: dict[str, list[float]] = {}
            for body, at in zip(server.bodies, server.times, strict=True):
                if name != "none" and dead(0, body):
                    times.setdefault(digest(body), []).append(at)
            lost = sum(drop["stage"] == "model" for drop in site.drops())
            data.append((site.data(), site.counts()))
        seconds.append(took)
        longest = max((max(at) - min(at) for at in times.values()), default=0)
        figures = (f"{took:.0f}", f"{took / seconds[1]:.2f}", str(summary["lm_calls"]), str(summary["attempted"]))
        table.add_row(name, *figures, str(lost), f"{longest:.0f} s")
    Console(width=120).print(table)
    print("before and after have the same data" if data[1] == data[2] else "before and after differ")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--dead", action="store_true")
    chosen, chance = parser.parse_args(), random.Random(0)
    if chosen.dead:
        time_dead_calls(chosen.in_flight)
        return
    dialogs = chosen.calls // CALLS_OF_A_DIALOG
    settings = [f"dialogs={dialogs}", f"max_attempts={dialogs}", f"lm.concurrency={chosen.in_flight}"]
    settings += ["algorithm=single", "turns=2", "judge=none", "lm.retries=2", "lm.retry_wait_s=0.1"]
    with (
        tempfile.TemporaryDirectory() as folder,
        OpenAIServer(faults=dead, delay_s=lambda _: chance.uniform(*DELAY_S)) as server,
    ):
        site = Site(Path(folder))
        command = [sys.executable, "-m", "generator", *site.arguments(server, *settings)]

        first = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while server.finished.total() < chosen.calls // 2:
            assert first.poll() is None, "the run ended before it was killed"
            time.sleep(0.005)
        first.send_signal(signal.SIGKILL)
        killed = first.wait()
        while server.in_flight:
            time.sleep(0.05)
        answered, recorded = work(server).total(), site.recorded()
        on_the_way = answered - recorded
        print(f"killed with exit code {killed} after {answered} answers, {recorded} of them recorded")

        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        times = work(server)
        summary, drops = site.summary(), site.drops()
        site.check_ledger()
        failed = {digest(body) for body in server.bodies if dead(0, body)}
        lost = [drop for drop in drops if drop["stage"] == "model"]
        dropped = summary["attempted"] - summary["accepted"]
        print(f"the same command again: exit code {done.returncode}; {done.stderr.strip().splitlines()[-1]}")
        print(f"calls answered {times.total()}, of {len(times)} requests; in the summary {summary['lm_calls']}")
        again = times.total() - len(times)
        print(
            f"made again: {again - on_the_way} recorded calls, {on_the_way} whose answers were on the way at the kill"
        )
        print(f"dead calls: {len(failed)}, reported as drops: {len(lost)}")
        print(f"dialogs: {summary['attempted']} attempted = {summary['accepted']} accepted + {dropped} dropped")
        print(f"dropped: dialogs {json.dumps(summary['dropped'])}, turns {json.dumps(summary['dropped_turns'])}")


if __name__ == "__main__":
    main()
