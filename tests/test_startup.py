"""Starting a command: `--help` is there at once, so that nothing heavy is imported before it is needed."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("program", "title"), [("generator", "corpora (+corpus=)"), ("judges", "judges (judge=)")])
def test_help_is_there_in_no_time(program: str, title: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-X", "importtime", "-m", program, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert title in done.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "re" in loaded, "no list of modules: what follows would hold of anything"
    assert loaded & {"dspy", "hydra", "omegaconf", "pydantic", "numpy", "datasets", "aiohttp"} == set()
    # Time of the processor, which a busy machine doesn't stretch.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
