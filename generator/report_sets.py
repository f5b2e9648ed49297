"""Read what a report shows of a set of dialogs, from the files of its run folder; write the report of a run."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from generator.common.console import note
from generator.config.settings import near_duplicates
from generator.corpora.files import local_file
from generator.corpora.json_records import read_numbered_lines, skipped
from generator.errors import CorpusError
from generator.output.html.page import write_report
from generator.output.html.sources import ReportSet, RunCounts
from generator.schema import Dialog, Drop, SkippedRecord
from generator.sets import dialog_set
from taxonomy import read_criteria

R = TypeVar("R", Dialog, Drop)


def write_run_report(folder: Path) -> None:
    """Write `report.html` of a run folder whose other files are written.

    Raises:
        RunError: it can't be written; the old one is still there.
    """
    write_report(folder / "report.html", [report_set(str(folder), writing=True)], read_criteria(), near_duplicates())


def report_set(
    path: str, corpus: dict[str, object] | None = None, name: str = "", *, writing: bool = False
) -> ReportSet:
    """Return the dialogs at `path`, as `generator.sets.dialog_set` reads them, with what their run folder tells.

    Args:
        name: shown for it; by default the last part of the path.
        writing: this process is the one that writes to the folder.

    Raises:
        ConfigError, CorpusError, RunError: as `dialog_set`.
    """
    found, folder = dialog_set(path, corpus), Path(path)
    is_folder = (folder / "dialogs.jsonl").is_file()
    notes: list[str] = []
    if is_folder and not writing and _goes_on(folder):
        _tell(notes, f"{path}: a run is writing here; the report shows its files as the last session left them")
    counts = _counts(folder / "summary.json") if is_folder else None
    drops = folder / "drops.jsonl"
    configuration = folder / "config.yaml"
    dialogs = partial(_told, path, found.records, notes, may_be_empty=is_folder and counts is not None)
    return ReportSet(
        name=name or folder.resolve().name,
        dialogs=dialogs,
        drops=partial(_told, str(drops), partial(_drops, drops), notes)
        if is_folder and drops.exists()
        else lambda: iter(()),
        targets=found.targets,
        dialogs_wanted=found.dialogs_wanted,
        counts=counts,
        configuration=configuration.read_text(encoding="utf-8", errors="replace")
        if is_folder and configuration.exists()
        else "",
        continues=f"python -m generator {quote(str(configuration))}" if counts and configuration.exists() else "",
        notes=notes,
    )


def _tell(notes: list[str], message: str) -> None:
    notes.append(message)
    note(message)


def _goes_on(folder: Path) -> bool:
    """Return whether another process has the run open."""
    if not (folder / ".lock").exists():
        return False
    with suppress(OSError):  # a folder that is read only
        try:
            FileLock(folder / ".lock").acquire(timeout=0).lock.release()
        except Timeout:
            return True
    return False


def _counts(summary: Path) -> RunCounts | None:
    try:
        return RunCounts.model_validate_json(summary.read_bytes())
    except (OSError, ValidationError):  # a folder of human or judged dialogs has another summary, or none
        return None


def _drops(file: Path) -> Iterator[Drop | SkippedRecord]:
    for where, line in read_numbered_lines(local_file(file)):
        try:
            yield Drop.model_validate_json(line)
        except ValidationError as error:
            yield skipped(where, error)


def _told(
    path: str,
    records: Callable[[], Iterator[R | SkippedRecord]],
    notes: list[str],
    *,
    may_be_empty: bool = True,
) -> Iterator[R]:
    """Yield the records that can be read, and report how many can't.

    Raises:
        CorpusError: there are none, and there should be.
    """
    broken: list[SkippedRecord] = []
    count = 0
    for record in records():
        if isinstance(record, SkippedRecord):
            broken.append(record)
        else:
            count += 1
            yield record
    message = ""
    if broken:
        first = f"{broken[0].where}: {broken[0].reason}"
        message = f"{path}: {len(broken)} of {count + len(broken)} records can't be read, the first: {first}"
    if not count and not may_be_empty:
        raise CorpusError(message or f"{path}: has no dialogs")
    if message:
        _tell(notes, message)
