"""Dialogs as a folder that `datasets.load_dataset` opens: a parquet file for each split, and the card as README.md.

The new folder replaces the old one when it is complete. Rows are streamed; memory holds one row group of each split.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

from generator.common.atomic_files import atomic_replace, digest
from generator.common.console import counted
from generator.errors import ExportError
from generator.output.card import Origin, SplitFile, render_card
from generator.output.chat import Row, kept_turns, rows
from generator.output.stats.guesses import GuessTally
from generator.output.stats.statistics import Tally
from generator.schema import Dialog, Split

# A row repeats its passages: some 50 kB, so that a group stays below 15 MB.
ROWS_PER_GROUP = 256


def write_dataset(dialogs: Iterable[Dialog], folder: Path, info: Origin) -> None:
    """Write the pairs that `info.filter` keeps; the same dialogs give the same bytes.

    A split without rows has no file, since `datasets` refuses to load an empty one.

    Raises:
        ExportError: there are no pairs, or the folder can't be written. The old folder is still complete.
    """
    tally, guesses, example = Tally(), GuessTally(), None
    with atomic_replace(folder, "the dataset") as new:
        (new / "data").mkdir()
        with ExitStack() as stack:
            files = {split: stack.enter_context(_SplitWriter(new / f"{split}.parquet")) for split in get_args(Split)}
            for dialog in counted(dialogs, "writing dialogs to the dataset"):
                tally.add(dialog)
                guesses.add(dialog, kept_turns(dialog, info.filter))
                for row in rows(dialog, info.filter):
                    files[dialog.split].add(row)
                    example = example or row
        if example is None:
            raise ExportError(f"{folder}: no context-response pair to write; drops.jsonl has the reasons")
        splits = {split: _with_content_name(file, split) for split, file in files.items() if file.rows}
        card = render_card(info, tally.statistics(), guesses.guesses(), splits, example)
        (new / "README.md").write_text(card, encoding="utf-8", newline="\n")


def _with_content_name(file: "_SplitWriter", split: Split) -> SplitFile:
    """Rename a file so that its name holds a hash of its content.

    The cache of `datasets` identifies a folder by its last name and the metadata in its card. With the same file names
    in all cards it would return the rows of whichever run was loaded first.
    """
    path = f"data/{split}-00000-of-00001-{digest(file.path)[:16]}.parquet"
    file.path.rename(file.path.parent / path)
    return SplitFile(rows=file.rows, path=path)


class _SplitWriter:
    """Writes the parquet file of a split, which exists once it has a row."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self._group: list[dict[str, Any]] = []
        self._writer: Any = None

    def __enter__(self) -> "_SplitWriter":
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()

    def add(self, row: Row) -> None:
        self.rows += 1
        self._group.append(row.model_dump())
        if len(self._group) == ROWS_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if not self._group:
            return
        import pyarrow as pa
        from pyarrow import parquet

        schema = arrow_schema()
        self._writer = self._writer or parquet.ParquetWriter(self.path, schema, compression="zstd")
        self._writer.write_table(pa.Table.from_pylist(self._group, schema=schema))
        self._group = []


def arrow_schema() -> Any:
    """Return the columns of `Row` as a `pyarrow.Schema`, the same also where a column holds only nulls."""
    import pyarrow as pa

    text, number, texts = pa.string(), pa.int64(), pa.list_(pa.string())
    types = {
        "messages": pa.list_(pa.struct([("role", text), ("content", text)])),
        "evidence": pa.list_(pa.struct([("passage_id", text), ("start", number), ("end", number), ("text", text)])),
        "document_ids": texts,
        "passage_ids": texts,
        **dict.fromkeys(("turn", "seed", "rank_last_turn", "rank_query", "new_passages"), number),
        "overlap": pa.float64(),
        "needs_documents": pa.bool_(),
    }
    return pa.schema([(name, types.get(name, text)) for name in Row.model_fields])
