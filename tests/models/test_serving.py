"""`lm.serve=true`: a server is started for the run, waited for, and ended with it, whatever becomes of the run.

What is started here stands in for vLLM (`tests/support/stand_in`); `tests/models/test_vllm.py` starts the real one.
"""

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.support.clients import free_port
from tests.support.openai_server import OpenAIServer
from tests.support.processes import processes_with
from tests.support.runs import Ended, Site, until

ROOT = Path(__file__).parents[2]


class Serving(Site):
    """A site whose runs start their server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server = OpenAIServer(port=free_port(), model="some/model")
        # Not by this process's environment, which runs that are started in others don't share.
        self.python = folder / "python"
        path = os.pathsep.join([str(ROOT / "tests" / "support" / "stand_in"), str(ROOT)])
        self.python.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} "$@"\n', encoding="utf-8")
        self.python.chmod(0o755)

    @property
    def log(self) -> Path:
        return self.run_dir / f"vllm-{self.server.port}.log"

    def arguments(self, server: OpenAIServer, *more: str) -> list[str]:
        usual = [argument for argument in super().arguments(server) if not argument.startswith("lm=")]
        return [*usual, "lm=vllm", "lm.serve=true", f"lm.serve_python={self.python}", *more]

    def go(self, *more: str) -> Ended:
        return self.run(self.server, *more)

    def processes(self) -> list[int]:
        """The server's and its child's."""
        found = re.search(r"^engine (\d+) of (\d+)$", self.log.read_text("utf-8"), re.MULTILINE)
        assert found
        return [int(number) for number in found.groups()]


def there(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # which only waits for whoever adopted it


def gone(processes: list[int], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(map(there, processes)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(there, processes))


def test_a_run_with_a_server_of_its_own(tmp_path: Path) -> None:
    site = Serving(tmp_path)
    ended = site.go("dialogs=2", "lm.context=9000", "lm.serve_args='--seconds 0.5'")
    assert ended.code == 0, ended.err
    assert site.summary()["accepted"] == 2
    assert "starting vLLM with some/model; its log: " in ended.err
    assert re.search(r"vLLM is ready after \d+ s", ended.err)
    first = site.log.read_text("utf-8").splitlines()[0]
    assert first == (
        f"{site.python} -m vllm.entrypoints.openai.api_server --model some/model --served-model-name some/model "
        f"--host 127.0.0.1 --port {site.server.port} --max-model-len 9000 --generation-config vllm "
        "--enable-prompt-tokens-details --structured-outputs-config "
        """'{"backend": "xgrammar", "disable_any_whitespace": true}' --seconds 0.5"""
    )
    assert gone(site.processes(), 0)
    assert site.go("dialogs=1", "fresh=true").code == 0
    assert site.summary()["accepted"] == 1
    assert site.log.is_file()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_server_ends_with_a_run_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    site = Serving(tmp_path)
    process = site.start(site.server, "dialogs=1000", "lm.concurrency=1")
    until(lambda: site.recorded() > 0, process)
    processes = site.processes()
    assert all(map(there, processes))
    assert process.pid is not None
    os.kill(process.pid, number)
    site.ended(process)
    assert gone(processes, 20)


def test_ctrl_c_does_not_wait_for_the_server(tmp_path: Path) -> None:
    site = Serving(tmp_path)
    process = site.start(site.server, "lm.serve_args='--seconds 600'")  # longer than `ended` waits
    until(lambda: site.log.exists() and site.log.stat().st_size > 0, process)
    other = Serving(tmp_path / "other")
    other.server = site.server
    assert f"at {site.server.url}: wait for it, or set lm.api_base" in other.go().error  # vLLM shares ports
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    ended = site.ended(process)
    assert ended.code == 130
    assert ended.err.splitlines()[-1] == "interrupted; the same command continues"
    assert processes_with(str(site.server.port)) == []


@pytest.mark.slow
def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    site = Serving(tmp_path)
    ended = site.go("lm.serve_args='--fail too-little-memory'")
    assert ended.code == 2
    assert "ValueError: too-little-memory" in ended.error and str(site.log) in ended.error
    assert "serve_python" not in ended.error, "which it has"
    ended = site.go("lm.serve_args='--seconds 60'", "lm.serve_timeout_s=1")
    assert "lm.serve_timeout_s" in ended.error
    assert [path.name for path in site.run_dir.iterdir()] == [site.log.name]
    assert site.go("dialogs=1").code == 0  # over the log that is left


def test_a_port_in_use_and_a_python_without_vllm(tmp_path: Path) -> None:
    site = Serving(tmp_path)
    with site.server:
        assert f"already running at {site.server.url}" in site.go().error
    assert not site.run_dir.exists()
    for python in ("/usr/bin/python3", str(tmp_path / "nowhere")):
        ended = site.go(f"lm.serve_python={python}")
        assert ended.code == 2
        assert "Error" in ended.error and "lm.serve_python" in ended.error


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("lm.api_base=[http://127.0.0.1:8000/v1,http://127.0.0.1:8001/v1]", "starts one server on this machine"),
        ("lm.api_base=http://gpu7:8000/v1", "starts one server on this machine"),
        ("lm.serve_args='\"--a'", "No closing quotation"),
    ],
)
def test_wrong_settings(tmp_path: Path, argument: str, words: str) -> None:
    ended = Serving(tmp_path).go(argument)
    assert ended.code == 2
    assert words in ended.error
