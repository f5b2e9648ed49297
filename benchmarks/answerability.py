"""`generator.dialogs.checks.answerability` against people's labels, beside always saying `answerable`, as Markdown.

    uv run --group benchmark python -m benchmarks.answerability --data DATA

mtRAG's human conversations; the sample of MTRAG-UN without its underspecified tasks; INSCIT's answers, where no answer
with relevant information is partial.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from benchmarks.command_line import add_data
from generator.dialogs.checks.answerability import measure_answerability
from generator.output.markdown import table
from generator.schema import Answerability
from generator.sets import dialog_set

LABELS: tuple[Answerability, ...] = ("answerable", "partial", "unanswerable")
INSCIT: dict[str, Answerability] = {
    "directAnswer": "answerable",
    "noAnswerButRelevantInfo": "partial",
    "noAnswerNoRelevantInfo": "unanswerable",
}


class Answer(NamedTuple):
    """A person's answer, and its label."""

    query: str
    text: str
    label: str


def read_mtrag(data: Path, name: str) -> Iterator[Answer]:
    """Yield the answers of mtRAG's conversations, or of tasks in its format."""
    for dialog in dialog_set(f"mtrag:{data / name}").dialogs():
        for turn in dialog.own_turns:
            yield Answer(turn.query, turn.answer, turn.answerability)


def read_inscit(data: Path) -> Iterator[Answer]:
    """Yield the answers of INSCIT's dialogs."""
    for dialog in json.loads((data / "inscit" / "dev_half.json").read_text(encoding="utf-8")).values():
        for turn in dialog["turns"]:
            for answer in turn["labels"]:
                yield Answer(turn["context"][-1], answer["response"], INSCIT.get(answer["responseType"], ""))


def measure(answer: Answer) -> str:
    """Return the label that a run gives to an English answer."""
    return measure_answerability(answer.query, answer.text, "answerable")


def row(name: str, true: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return accuracy, kappa, and precision and recall of each label."""
    precision, recall, *_ = precision_recall_fscore_support(true, given, labels=LABELS, zero_division=0)
    right = np.mean([one == other for one, other in zip(true, given, strict=True)])
    pairs = (f"{one:.2f}, {other:.2f}" for one, other in zip(precision, recall, strict=True))
    return [name, f"{right:.3f}", f"{cohen_kappa_score(true, given):.3f}", *pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_data(parser, "mtrag", "mtrag_un", "inscit")
    parser.add_argument("--cases", action="store_true", help="print the answers that the measure labels otherwise")
    arguments = parser.parse_args()
    sets = {
        "mtRAG": read_mtrag(arguments.data, "mtrag"),
        "MTRAG-UN": read_mtrag(arguments.data, "mtrag_un/reference_sample.jsonl"),
        "INSCIT": read_inscit(arguments.data),
    }
    for name, people in sets.items():
        answers = [answer for answer in people if answer.label in LABELS]
        true, found = [answer.label for answer in answers], [measure(answer) for answer in answers]
        counts = ", ".join(f"{true.count(label)} {label}" for label in LABELS)
        rows = [row("always answerable", true, ["answerable"] * len(true)), row("**measure**", true, found)]
        head = [f"{name}: {counts}", "accuracy", "kappa", *(f"{label} (precision, recall)" for label in LABELS)]
        print(table(head, rows) + "\n")
        for answer, label in zip(answers, found, strict=True) if arguments.cases else ():
            if label != answer.label:
                print(f"{answer.label} → {label}: {answer.query[:80]} → {' '.join(answer.text.split())[:200]}")


if __name__ == "__main__":
    main()
