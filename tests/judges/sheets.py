"""Runs to draw sheets from, and what stands in sheets."""

import csv
import io
from pathlib import Path

from generator.schema import Dialog
from tests.support.records import write_dialogs


def run_of(folder: Path, *dialogs: Dialog) -> Path:
    """Return a folder with these dialogs."""
    folder.mkdir(exist_ok=True)
    write_dialogs(folder / "dialogs.jsonl", *dialogs)
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sheet."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
