"""Dialogs to make a dataset of, and what its card says of their run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generator.output.card import DatasetInfo
from generator.output.summary import Share
from generator.schema import Dialog, Hit, Label, Passage, Split, Turn, Verdict
from tests.support.records import make_dialog, make_hits, make_passage, make_turn

AWKWARD = 'Über "quotes"\tand\nlines | ``` --- </passage> \U0001f40e \x00 $question {x} مرحبا'

INFO = DatasetInfo(
    name="ferries: a test",
    command="python -m generator +corpus=sample",
    corpus="ferries",
    licence="CC BY-SA 4.0",
    source="https://example.org/ferries",
    language="en",
    algorithm="multi",
    settings={"judge": "correctness (judge-model)"},
    attempted=5,
    shares=(("direct", Share(type="direct", target=0.5, achieved=0.25, stage="first", turns=1)),),
    dropped={"dialog": {"dedup": {"first question": 3}}},
    models=(("wrote the dialogs", "llama3.1:8b"), ("judged the answers", "judge-model")),
    toy=False,
)


def data_file(dataset: Path, split: str) -> Path:
    """Return the file that holds a split."""
    (file,) = dataset.glob(f"data/{split}-00000-of-00001-*.parquet")
    return file


def passage(number: int, text: str = "The ferry leaves at nine.", title: str = "Ferries") -> Passage:
    return make_passage(f"p{number}", text, document_id=f"d{number}", title=title)


def turn(number: int, label: Label | None = "correct", **changes: Any) -> Turn:
    """Return a turn of Algorithm 1 with a verdict, or without one."""
    name = "direct" if number == 1 else "follow_up"
    usual: dict[str, Any] = {"query": f"question {number}", "answer": f"answer {number} in words"}
    if label is not None:
        usual["verdicts"] = (Verdict(judge="j", label=label, explanation=f"why {number}", model="judge-lm"),)
    return make_turn(
        number, **usual | {"question_type": name, "multi_turn_type": name if number > 1 else None} | changes
    )


def dialog(*turns: Turn, name: str = "dialog", split: Split = "train", passages: Sequence[Passage] = ()) -> Dialog:
    algorithm = "multi" if any(t.hits for t in turns) else "single"
    return make_dialog(*turns, passages=passages or (passage(1),), id=name, algorithm=algorithm, split=split)


def hits(*numbers: int) -> tuple[Hit, ...]:
    return make_hits(*(f"p{n}" for n in numbers))


def made_dialogs(validation: bool = True) -> list[Dialog]:
    """Return dialogs of both algorithms, with every label, awkward text."""
    return [
        dialog(turn(1), turn(2, "incorrect"), turn(3, "unjudged"), name="a"),
        dialog(
            turn(1, hits=hits(1), query=AWKWARD, answer=AWKWARD, question_type="comparative"),
            name="b",
            passages=(passage(1, AWKWARD, title=AWKWARD),),
        ),
        dialog(turn(1, None), turn(2, None), name="c", split="validation" if validation else "train"),
    ]
