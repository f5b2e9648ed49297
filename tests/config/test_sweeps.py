"""Sweeps by Hydra's own launchers: each run in a process of its own, in a folder of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.openai_server import OpenAIServer, openai_server
from tests.support.runs import Site

__all__ = ["openai_server"]

ROOT = Path(__file__).parents[2]


def sweep(site: Site, server: OpenAIServer, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = [a for a in site.arguments(server, "dialogs=1", "algorithm=single") if not a.startswith("run_dir")]
    command = [sys.executable, "-m", "generator", "-m", *arguments, *more]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=site.folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_a_launcher_runs_a_sweep_in_other_processes(launcher: str, tmp_path: Path, openai_server: OpenAIServer) -> None:
    plugin = f"hydra_plugins.hydra_{launcher.removesuffix('_local')}_launcher"
    if importlib.util.find_spec(plugin) is None:
        pytest.skip(f"{plugin} isn't installed")
    site = Site(tmp_path)
    done = sweep(site, openai_server, "+taxonomy=direct,comparative", f"hydra/launcher={launcher}", "retriever.k=2")
    assert done.returncode == 0, done.stderr
    outputs = {path.name: path for path in (tmp_path / "outputs").iterdir() if path.name != ".sweep"}
    assert set(outputs) == {f"jsonl-{kind}-single-test-model-0" for kind in ("direct", "comparative")}
    for folder in outputs.values():
        assert json.loads((folder / "summary.json").read_text())["accepted"] == 1
    assert not (tmp_path / "multirun").exists()


def test_a_run_that_fails_in_another_process_fails_the_sweep(tmp_path: Path, openai_server: OpenAIServer) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = sweep(Site(tmp_path), openai_server, "hydra/launcher=joblib", "retriever.k=2,0")
    assert done.returncode == 2
    assert "error: retriever.k=0: must be 1 or more" in done.stderr
    assert "Traceback" not in done.stderr
    names = {path.name for path in (tmp_path / "outputs").iterdir() if path.name != ".sweep"}
    assert names == {"jsonl-mixed-single-test-model-0-retriever.k-2"}
