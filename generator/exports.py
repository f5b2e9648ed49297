"""The export of a run folder, beside its dataset."""

import shutil
from pathlib import Path

from generator.common.atomic_files import atomic_replace, digest
from generator.config.settings import Settings, exporters
from generator.output.base import ExportSource


def dialogs_digest(folder: Path) -> str | None:
    """A hash of a run folder's dialogs; None if it has none."""
    try:
        return digest(folder / "dialogs.jsonl")
    except OSError:
        return None


def write_export(settings: Settings, material: ExportSource, before: str | None) -> None:
    """Write the export that the settings choose, and remove others once they are of other dialogs.

    Args:
        before: what `dialogs_digest` gave before the dialogs were written.

    Raises:
        ExportError: the folder can't be written; what was there is still whole.
    """
    chosen, folder = settings.exporter, settings.folder
    if dialogs_digest(folder) != before:
        remove_exports(folder, chosen.name if chosen else None)
    if chosen is not None:
        with atomic_replace(folder / chosen.name, f"the export {chosen.name}") as new:
            chosen.write(material, new)


def remove_exports(folder: Path, but: str | None = None) -> None:
    """Remove all exports of a run folder, `but` one."""
    for name in exporters():
        if name != but:
            shutil.rmtree(folder / name, ignore_errors=True)
