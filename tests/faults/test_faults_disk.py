"""A run whose disk fails; tests/test_resume.py has a disk that is full in mid-run."""

import errno
from pathlib import Path

import pytest

from generator.common.atomic_files import atomic_replace
from generator.errors import ExportError
from tests.faults.test_faults import SETTINGS, undisturbed
from tests.support.openai_server import Body, OpenAIServer, fill
from tests.support.runs import Site

__all__ = ["undisturbed"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full, a disk that is always full")
def test_a_disk_that_is_full_when_the_files_are_written(undisturbed: Site, site: Site) -> None:

    def responder(body: Body) -> str:
        if len(server.bodies) == 20:
            (site.run_dir / ".summary.json.unfinished").symlink_to("/dev/full")
        return fill(body)

    with OpenAIServer(responder) as server:
        full = site.run(server, *SETTINGS)
        assert full.code == 2
        assert str(site.run_dir / "summary.json") in full.error and "No space left on device" in full.error
        calls = len(server.bodies)
        assert site.run(server, *SETTINGS).code == 0
        assert len(server.bodies) == calls, "the dialogs were finished: only files were missing"
    assert site.made() == undisturbed.made()


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
