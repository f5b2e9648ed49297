"""Read `mtbench101.jsonl`, the dialogs of MT-Bench-101 (Bai et al. 2024): dialogs of tasks, without documents."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, StrictInt

from generator.corpora.human import BenchmarkCorpus, human_dialog, human_turn
from generator.corpora.json_records import convert_records, read_json_lines
from generator.schema import Dialog, SkippedRecord


class _Exchange(BaseModel):
    user: str
    bot: str


class _Item(BaseModel):
    task: Annotated[str, Field(min_length=1)]
    id: StrictInt
    history: list[_Exchange]


class MtBench101Corpus(BenchmarkCorpus):
    """The published dialogs, or those that `export=mt_bench_101` wrote; a dialog's id is the record's, as text.

    GPT-4 wrote the published ones and people checked them; `lm` is `human`, as of every published dialog.
    """

    published: ClassVar[str] = "mtbench101.jsonl"

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        for file in self.files():
            yield from convert_records(read_json_lines(file), _Item, self._dialog)

    def _dialog(self, where: str, item: _Item) -> Dialog | SkippedRecord:
        turns = [
            human_turn(
                number, pair.user, pair.bot, question_type=item.task, multi_turn_type=item.task if number > 1 else None
            )
            for number, pair in enumerate(item.history, start=1)
        ]
        return human_dialog(where, self.name, str(item.id), "whole", turns, [], task=item.task)
