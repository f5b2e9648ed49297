"""`--help` appears at once: nothing heavy is imported before it is needed; Ctrl-C meanwhile is no error."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("program", "title"), [("generator", "corpora (corpus=)"), ("judges", "judges (judge=)")])
def test_help_imports_nothing_heavy(program: str, title: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", program, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    assert title in done.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "re" in loaded, "no list of modules: what follows would hold of anything"
    assert loaded & {"dspy", "hydra", "omegaconf", "numpy", "datasets", "aiohttp"} == set()


@pytest.mark.parametrize("program", ["generator", "generator.push", "judges.evaluate"])
def test_ctrl_c_while_a_command_is_loaded_leaves_no_traceback(program: str, tmp_path: Path) -> None:
    (tmp_path / "pydantic.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", program, "--help"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
