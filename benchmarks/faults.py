"""Measure the cost of a SIGKILL and of calls that never succeed: 2,000 calls, killed at half, 2% of them dead.

    uv run python -m benchmarks.faults

The work is 500 dialogs of Algorithm 1 with two turns and no judge: four calls each, independent of other dialogs. A
server of ours answers each after 200 to 300 ms; 2% of them, drawn by a hash of the request, it answers with HTTP 500
for ever. Its own count says how often it answered a request in full. The run is the command that a person types.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=64)
    chosen, chance = parser.parse_args(), random.Random(0)
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
