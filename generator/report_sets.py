"""Read what a report shows of a set of dialogs, from the files of its run folder; write the report of a run."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

from filelock import FileLock, Timeout
from pydantic import ValidationError

from generator.common.console import note
from generator.common.language import languages
from generator.corpora.files import local_file
from generator.corpora.json_records import read_numbered_lines, skipped
from generator.output.html.page import write_report
from generator.output.html.sources import ReportSet, RunCounts
from generator.schema import Drop, SkippedRecord
from generator.sets import NO_DIALOGS, dialog_set, readable
from taxonomy import read_criteria


def write_run_report(folder: Path) -> None:
    """Write `report.html` of a run folder whose other files are written.

    Raises:
        RunError: it can't be written; the old one is still there.
    """
    write_report(folder / "report.html", [report_set(str(folder), writing=True)], read_criteria())


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
    found, folder, notes = dialog_set(path, corpus), Path(path), list[str]()
    is_folder = (folder / "dialogs.jsonl").is_file()
    summary, drops, configuration = (
        file if is_folder and (file := folder / name).is_file() else None
        for name in ("summary.json", "drops.jsonl", "config.yaml")
    )
    counts: RunCounts | None = None
    with suppress(OSError, ValidationError):  # a folder of human or judged dialogs has another summary
        counts = RunCounts.model_validate_json(summary.read_bytes()) if summary else None

    def tell(message: str) -> None:
        notes.append(message)
        note(message)

    if is_folder and not writing and _goes_on(folder):
        tell(f"{path}: a run is writing here; the report shows its files as the last session left them")
    return ReportSet(
        name=name or folder.resolve().name,
        dialogs=lambda: readable(path, found.records(), "" if counts else NO_DIALOGS, tell=tell),
        drops=(lambda: readable(str(drops), _drops(drops), "", tell=tell)) if drops else None,
        targets=found.targets,
        dialogs_wanted=found.dialogs_wanted,
        languages=languages if writing else found.languages,
        counts=counts,
        configuration=configuration.read_text(encoding="utf-8", errors="replace") if configuration else "",
        continues=f"python -m generator {quote(str(configuration))}" if counts and configuration else "",
        notes=notes,
    )


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


def _drops(file: Path) -> Iterator[Drop | SkippedRecord]:
    for where, line in read_numbered_lines(local_file(file)):
        try:
            yield Drop.model_validate_json(line)
        except ValidationError as error:
            yield skipped(where, error)
