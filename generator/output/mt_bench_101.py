"""Dialogs of tasks in the file of MT-Bench-101 (Bai et al. 2024), a line each: `mtbench101.jsonl`."""

import json
from pathlib import Path
from typing import ClassVar

from generator.common.console import note
from generator.dialogs.filter import filter_pairs
from generator.errors import ExportError
from generator.output.base import ExportSource
from generator.schema import Record


class MtBench101Export(Record):
    """Writes the file of MT-Bench-101; see `generator.output.base.Exporter`."""

    name: ClassVar[str] = "mt_bench_101"

    def write(self, source: ExportSource, folder: Path) -> None:
        """Write the dialogs of which every pair is kept; the same dialogs give the same bytes.

        Ids are whole numbers: those of the dialogs if all of them are, else they count from 1.

        Raises:
            ExportError: a dialog belongs to no task.
        """
        numbered = all(_is_number(dialog.id) for dialog in source.dialogs())
        written = left_out = 0
        with (folder / "mtbench101.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for dialog in source.dialogs():
                if not dialog.task:
                    raise ExportError(
                        f"export={self.name}: the dialog {dialog.id} belongs to no task; "
                        "only dialogs of tasks can be written, as algorithm=whole generates them"
                    )
                if filter_pairs(dialog, source.filter)[1]:
                    left_out += 1
                    continue
                written += 1
                number = int(dialog.id) if numbered else written
                history = [{"user": turn.query, "bot": turn.answer} for turn in dialog.turns]
                line = {"task": dialog.task, "id": number, "history": history}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if left_out:
            note(f"export={self.name}: left out {left_out} dialogs with a pair that was not kept, see drops.jsonl")


def _is_number(dialog_id: str) -> bool:
    return dialog_id.isascii() and dialog_id.isdecimal() and str(int(dialog_id)) == dialog_id
