"""Runs to draw sheets from, and what stands in sheets."""

import csv
import io
from pathlib import Path

from generator.schema import Dialog


def run_of(folder: Path, *dialogs: Dialog) -> Path:
    """Return a folder with these dialogs."""
    folder.mkdir(exist_ok=True)
    (folder / "dialogs.jsonl").write_text("".join(f"{d.model_dump_json()}\n" for d in dialogs), encoding="utf-8")
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sheet."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
