"""Sweeps by Hydra's own launchers: each run in a process of its own, in a folder of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_a_launcher_runs_a_sweep_in_other_processes(launcher: str, tmp_path: Path, openai_server: OpenAIServer) -> None:
    plugin = f"hydra_plugins.hydra_{launcher.removesuffix('_local')}_launcher"
    if importlib.util.find_spec(plugin) is None:
        pytest.skip(f"{plugin} isn't installed")
    settings = ["dialogs=1", "algorithm=single", "run_dir=null", "+taxonomy=direct", "retriever.k=2,3,0"]
    arguments = Site(tmp_path).arguments(openai_server, "-m", f"hydra/launcher={launcher}", *settings)
    command = [sys.executable, "-m", "generator", *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    shown = done.stderr
    if launcher != "joblib":  # submitit keeps the output of each run in a file
        (log,) = {line.rpartition(" ")[2] for line in shown.splitlines() if line.endswith("_log.err")}
        shown = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob(log))
    assert "error: retriever.k=0: must be 1 or more" in shown
    outputs = {path.name: path for path in (tmp_path / "outputs").iterdir() if path.name != ".sweep"}
    assert set(outputs) == {f"jsonl-direct-single-test-model-0-retriever.k-{k}" for k in (2, 3)}
    for folder in outputs.values():
        assert json.loads((folder / "summary.json").read_text())["accepted"] == 1
    assert not (tmp_path / "multirun").exists()


def test_a_sweep_for_slurm_elsewhere_is_refused(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = ("-m", "hydra/launcher=submitit_slurm", "run_dir=null", "+taxonomy=direct,comparative")
    assert Site(tmp_path).run(openai_server, *settings).refused.startswith("hydra/launcher=submitit_slurm: no srun")
    assert not openai_server.bodies
