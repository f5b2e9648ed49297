"""What a run makes of a disk that lets it down; tests/test_resume.py has one that is full in mid-run."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generator.common.atomic_files import atomic_replace
from generator.errors import ExportError
from tests.support.openai_server import Body, OpenAIServer, fill
from tests.support.runs import Ended, Site

SETTINGS = ("dialogs=6", "lm.concurrency=4")


@pytest.fixture
def sites(tmp_path: Path) -> tuple[Site, Site]:
    """A run that is left alone, made already, and one that isn't."""
    made = []
    for name in ("undisturbed", "disturbed"):
        (tmp_path / name).mkdir()
        made.append(Site(tmp_path / name))
    with OpenAIServer() as server:
        assert made[0].run(server, *SETTINGS).code == 0
    return made[0], made[1]


def same(site: Site, undisturbed: Site) -> bool:
    """Whether a run has come to what it would have been undisturbed."""
    site.check_ledger()
    return (site.data(), site.counts()) == (undisturbed.data(), undisturbed.counts())


def unprivileged(site: Site, server: OpenAIServer) -> Ended:
    """The command in a process that can't write what its folder's permissions forbid, as root else can."""
    command = [sys.executable, "-m", "generator", *site.arguments(server, *SETTINGS)]
    if os.geteuid() == 0:
        if not (setpriv := shutil.which("setpriv")):
            pytest.skip(
                "root may write everywhere, and setpriv (util-linux), which takes that from it, isn't installed"
            )
        forgone = "-dac_override,-dac_read_search"
        command = [setpriv, f"--bounding-set={forgone}", f"--inh-caps={forgone}", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("when", ["before the run", "in mid-run"])
def test_a_folder_that_is_read_only(when: str, sites: tuple[Site, Site]) -> None:
    undisturbed, site = sites
    site.run_dir.mkdir()

    def responder(body: Body) -> str:
        if len(server.bodies) >= 20:
            site.run_dir.chmod(0o555)
        return fill(body)

    try:
        with OpenAIServer(responder) as server:
            if when == "before the run":
                site.run_dir.chmod(0o555)
            refused = unprivileged(site, server)
        assert refused.code == 2, refused.err
        assert str(site.run_dir) in refused.error
        assert "Permission denied" in refused.error
        assert "same command" in refused.error
        kept = site.recorded()
        assert (kept > 15) == (when == "in mid-run")
    finally:
        site.run_dir.chmod(0o755)
    with OpenAIServer() as server:
        assert site.run(server, *SETTINGS).code == 0
        assert len(server.bodies) == site.summary()["lm_calls"] - kept
    assert same(site, undisturbed)


@pytest.mark.parametrize("file", ["dialogs.jsonl", "summary.json"])
def test_a_disk_that_is_full_when_the_files_are_written(file: str, sites: tuple[Site, Site]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full, a disk that is always full")
    undisturbed, site = sites

    def responder(body: Body) -> str:
        if len(server.bodies) == 20:
            (site.run_dir / f".{file}.unfinished").symlink_to("/dev/full")
        return fill(body)

    with OpenAIServer(responder) as server:
        full = site.run(server, *SETTINGS)
        assert full.code == 2
        assert full.error == (
            f"{site.run_dir / file}: can't be written (No space left on device); make room, then the same command"
        )
        calls = len(server.bodies)
        assert site.run(server, *SETTINGS).code == 0
        assert len(server.bodies) == calls, "the dialogs were finished: only files were missing"
    assert same(site, undisturbed)


def test_a_folder_that_can_not_take_its_place_leaves_the_old_one_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dataset"
    folder.mkdir()
    (folder / "rows").write_text("old")
    rename = Path.rename

    def refusing(path: Path, target: Path) -> Path:
        if path.name == ".dataset.new":
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patched, pytest.raises(ExportError, match="Input/output error"):
        patched.setattr(Path, "rename", refusing)
        with atomic_replace(folder, "the dataset") as new:
            (new / "rows").write_text("new")
    assert (folder / "rows").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_a_run_folder_that_a_file_takes_the_place_of(sites: tuple[Site, Site]) -> None:
    undisturbed, site = sites
    moved = site.folder / "moved"

    def responder(body: Body) -> str:
        if len(server.bodies) == 20:
            site.run_dir.rename(moved)
            site.run_dir.write_text("a file")
        return fill(body)

    with OpenAIServer(responder) as server:
        stopped = site.run(server, *SETTINGS)
    assert stopped.code == 2
    assert "run.db is gone or another file now" in stopped.error
    assert site.run_dir.read_text() == "a file"
    site.run_dir.unlink()
    moved.rename(site.run_dir)
    with OpenAIServer() as server:
        assert site.run(server, *SETTINGS).code == 0
    assert same(site, undisturbed)


@pytest.mark.parametrize("algorithm", ["single", "multi"])
def test_a_run_folder_that_is_removed_in_mid_run(algorithm: str, sites: tuple[Site, Site]) -> None:
    undisturbed, site = sites
    settings = (*SETTINGS, f"algorithm={algorithm}")

    def responder(body: Body) -> str:
        if len(server.bodies) == 20:
            shutil.rmtree(site.run_dir)
        return fill(body)

    with OpenAIServer(responder) as server:
        stopped = site.run(server, *settings)
        assert stopped.code == 2
        assert stopped.error == (
            f"{site.run_dir}: run.db is gone or another file now; put it back and the same command continues"
        )
        assert not site.run_dir.exists(), "nothing is written where the run isn't any more"
        assert len(server.bodies) < 30, "no more is paid for what can't be kept"
    with OpenAIServer() as server:
        assert site.run(server, *settings).code == 0
        assert undisturbed.run(server, *settings, "fresh=true").code == 0
    assert same(site, undisturbed)
