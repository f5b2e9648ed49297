"""A sample in a real Label Studio: imported, annotated, exported, read back."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.judges.test_human import HOSTILE, command, dialog, drawn, key_of, run_of, verdicts_of

TOKEN = "0123456789abcdef0123456789abcdef01234567"


class Studio:
    """A running Label Studio."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def call(self, path: str, body: object = None) -> Any:
        """Return the JSON reply to a GET, or to a POST of `body`."""
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Token {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    program = shutil.which("label-studio")
    if program is None:
        pytest.skip('no Label Studio: uv tool install "label-studio>=1.23,<2"')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path / "studio"
    home.mkdir()
    # It reports, and looks for a newer version, unless it is told not to.
    quiet = {"COLLECT_ANALYTICS": "0", "LATEST_VERSION_CHECK": "0", "FEATURE_FLAGS_OFFLINE": "true", "SENTRY_DSN": ""}
    quiet |= {"FRONTEND_SENTRY_DSN": "", "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "HOME": str(home)}
    user = ["--username", "ann@example.org", "--password", "a-password", "--user-token", TOKEN]
    where = ["--internal-host", "127.0.0.1", "--port", str(port), "--data-dir", str(home)]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "start", "--no-browser", *user, *where],
            env={**os.environ, **quiet},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home,
        )
    running = Studio(port)
    try:
        for _ in range(600):
            assert process.poll() is None, (home / "log").read_text(encoding="utf-8", errors="replace")[-3000:]
            try:
                running.call("/api/projects")
                break
            except OSError:
                time.sleep(1)
        yield running
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
def test_a_sample_goes_through_label_studio_and_back(studio: Studio, tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", *(dialog(n) for n in range(3)))
    sample = drawn(tmp_path, run, "items=9")
    config = (sample / "label_studio_turns.xml").read_text(encoding="utf-8")
    project = studio.call("/api/projects", {"title": "sample", "label_config": config})["id"]
    tasks = json.loads((sample / "label_studio_turns.json").read_text(encoding="utf-8"))
    assert studio.call(f"/api/projects/{project}/import", tasks)["task_count"] == 9
    stored = {
        task["data"]["id"]: task
        for task in studio.call(f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")
    }
    assert stored.keys() == key_of(tmp_path).keys()
    hostile = next(task for task in stored.values() if "<script>" in task["data"]["response"])
    assert hostile["data"]["response"] == HOSTILE.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    answers = {"answerability": "yes", "plausibility": "yes", "correctness": "no"}
    result = [
        {"from_name": name, "to_name": about, "type": "choices", "value": {"choices": [answers[name]]}}
        for name, about in (("answerability", "question"), ("plausibility", "question"), ("correctness", "response"))
    ]
    note = {"from_name": "note", "to_name": "response", "type": "textarea", "value": {"text": ["says too much"]}}
    studio.call(f"/api/tasks/{hostile['id']}/annotations", {"result": [*result, note]})
    exported = studio.call(f"/api/projects/{project}/export?exportType=JSON")
    (tmp_path / "export.json").write_text(json.dumps(exported), encoding="utf-8")
    key = f"key={tmp_path / 'sample.key.json'}"
    done = command("read", tmp_path / "export.json", key, f"run_dir={tmp_path / 'people'}", "names=ann@example.org:ann")
    assert done.code == 0, done.err
    verdicts = verdicts_of(tmp_path / "people")["secret-0", 1]
    names = {name: (v.label, v.explanation) for name, v in verdicts.items() if name.startswith("human:")}
    (annotator,) = {name.split(":")[1] for name in names} - {"all"}
    assert names[f"human:{annotator}:correctness"] == ("no", "says too much")
    assert verdicts["human:all:correctness"].label == "incorrect"
