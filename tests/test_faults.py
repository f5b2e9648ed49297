"""What a run makes of a server that fails now and then."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import openai_server as fake
from tests.openai_server import Body, Fault, OpenAIServer
from tests.runs import Site, stage

SETTINGS = ("dialogs=6", "lm.concurrency=4", "lm.retries=2", "lm.retry_wait_s=0.01")
PASSING = {
    "busy": fake.status(429),
    "busy, with a pause asked for": fake.status(429, headers={"Retry-After": "0.01"}),
    "out of order": fake.status(500),
    "overloaded": fake.status(503),
    "hangs up": fake.hang_up,
    "hangs up in its reply": fake.half_reply,
    "never answers": fake.hang,
    "breaks off its JSON": fake.malformed,
    "answers nothing": fake.no_choices,
}


def twice(fault: Fault) -> Callable[[int, Body], Fault | None]:
    """A fault at the first two attempts of some calls."""
    attempts: Counter[str] = Counter()

    def faults(_: int, body: Body) -> Fault | None:
        call = fake.digest(body)
        attempts[call] += 1
        return fault if attempts[call] <= 2 and random.Random(call).random() < 0.2 else None

    return faults


@pytest.mark.parametrize("algorithm", ["single", "multi"])
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_what_passes_leaves_no_trace(fault: Fault, algorithm: str, tmp_path: Path) -> None:
    data = []
    for name, faults in (("smooth", ()), ("rough", twice(fault))):
        (tmp_path / name).mkdir()
        site = Site(tmp_path / name)
        with OpenAIServer(faults=faults) as server:
            # Only who never answers is to be given up soon: a busy machine can be slow.
            patience = f"lm.timeout_s={1.5 if fault is fake.hang else 60}"
            ended = site.run(server, f"algorithm={algorithm}", patience, *SETTINGS)
            assert ended.code == 0, ended.err
            assert set(server.finished.values()) == {1}
            assert site.summary()["lm_calls"] == server.finished.total()
            failed = len(server.bodies) - server.finished.total()
        site.check_ledger()
        data.append((site.data(), site.counts()))
    assert failed > 5
    assert data[0] == data[1]


def test_replies_that_are_cut_off_are_repaired_or_dropped_without_noise(tmp_path: Path) -> None:
    chance, site = random.Random(3), Site(tmp_path)

    def cut(_: int, body: Body) -> Fault | None:
        return fake.cut_off if chance.random() < {"ask": 0.4, "answer": 0.4, "judge": 0.6}.get(stage(body), 0) else None

    with OpenAIServer(faults=cut) as server:
        # A process of its own, as a person starts it: DSPy's log goes where it pleases.
        command = [sys.executable, "-m", "generator", *site.arguments(server, "dialogs=8", "algorithm=single")]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0
    site.check_ledger()
    summary = site.summary()
    assert summary["unjudged_pairs"] > 0
    assert {"ask", "answer"} & {stage for scope in ("dropped", "dropped_turns") for stage in summary[scope]}
    assert all("unusable reply" in drop["reason"] for drop in site.drops())
    assert "WARNING" not in ended.stderr and "Traceback" not in ended.stderr
