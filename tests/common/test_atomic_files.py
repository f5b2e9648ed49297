"""Files and folders that are replaced as a whole."""

import errno
from pathlib import Path

import pytest

from generator.common.atomic_files import atomic_replace
from generator.errors import ExportError


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


def test_a_folder_behind_a_link_is_replaced_again_and_again(tmp_path: Path) -> None:
    target, link = tmp_path / "disk/rows", tmp_path / "dataset"
    target.mkdir(parents=True)
    link.symlink_to(target)
    for text in ("1", "2"):
        with atomic_replace(link, "the dataset") as new:
            (new / "rows").write_text(text)
        assert (target / "rows").read_text() == text
    assert link.is_symlink() and {path.name for path in tmp_path.iterdir()} == {"disk", "dataset"}
