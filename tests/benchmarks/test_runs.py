"""Benchmarks that lead real parts by a script: they still come to their end."""

import asyncio
from pathlib import Path

import pytest

from benchmarks import memory, prefix_cache


def test_a_run_with_a_model_that_answers_at_once_keeps_its_dialogs() -> None:
    calls, seconds, peak = memory.measure_run("single", 2)
    assert calls and seconds and peak


@pytest.mark.parametrize(("algorithm", "calls"), [("single", 300), ("multi", 380)])
def test_the_scripted_dialogs_pass_all_checks(algorithm: str, calls: int, tmp_path: Path) -> None:
    dialogs, _ = asyncio.run(prefix_cache.record(algorithm, tmp_path))
    assert sum(map(len, dialogs)) == calls
