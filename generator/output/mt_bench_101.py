"""Dialogs of tasks in the file of MT-Bench-101 (Bai et al. 2024), a line each: `mtbench101.jsonl`."""

import re
from pathlib import Path
from typing import ClassVar

from generator.output.base import ExportSource, kept_items, open_text, to_json
from generator.schema import Record

_NUMBER = re.compile(r"0|[1-9][0-9]*")


class MtBench101Export(Record):
    """Writes the file of MT-Bench-101; see `generator.output.base.Exporter`."""

    name: ClassVar[str] = "mt_bench_101"

    def write(self, source: ExportSource, folder: Path) -> None:
        """Write the dialogs of which every pair is kept; the same dialogs give the same bytes.

        Ids are whole numbers: those of the dialogs if all of them are, else they count from 1.

        Raises:
            ExportError: a dialog belongs to no task.
        """
        numbered = all(_NUMBER.fullmatch(dialog.id) for dialog in source.dialogs())
        with open_text(folder / "mtbench101.jsonl") as file:
            for count, dialog in enumerate(kept_items(source, self.name), start=1):
                number = int(dialog.id) if numbered else count
                history = [{"user": turn.query, "bot": turn.answer} for turn in dialog.turns]
                file.write(to_json({"task": dialog.task, "id": number, "history": history}) + "\n")
