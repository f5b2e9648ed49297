"""The folder of a run: whether it is one, or may become one, and what is removed when a run starts over."""

import shutil
from pathlib import Path

from generator.errors import RunError


def prepare_folder(folder: Path, fresh: bool) -> bool:
    """Make a run folder if needed, and return whether a run to be continued has begun in it.

    Raises:
        RunError: it isn't a folder, or holds other files than a run's.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder}: is not a folder; set another run_dir")
    folder.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in folder.iterdir() if not _is_kept(path)}
    if names and "run.db" not in names:
        raise RunError(f"{folder}: is not a run folder, and holds other files; set another run_dir")
    return not fresh and any(not name.startswith("run.db") for name in names)


def empty_folder(folder: Path, mark: str = "run.db") -> None:
    """Remove the files of an earlier run; last the one that marks the folder as a run folder, or as a student's."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == mark):
        if path.is_dir():
            shutil.rmtree(path)
        elif not _is_kept(path):
            path.unlink()


def _is_kept(path: Path) -> bool:
    """Return whether a file belongs to this session: the lock, or the log of a server started for it."""
    return path.name == ".lock" or path.suffix == ".log"
