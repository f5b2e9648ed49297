"""`generator.dialogs.answerability` against people's labels, beside simpler and learned measures, as Markdown.

    uv run --group benchmark python -m benchmarks.answerability --data ../shared/data

mtRAG's human conversations; the sample of MTRAG-UN without its underspecified tasks; INSCIT's answers, where no answer
with relevant information is partial. The classifier is trained on mtRAG alone: there in ten folds by conversation.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from generator.common.refusals import drop_refusals
from generator.config.settings import human_corpus
from generator.dialogs.answerability import measure_answerability
from generator.dialogs.later_turns import content_of
from generator.output.markdown import table
from generator.schema import Answerability, Dialog

LABELS: tuple[Answerability, ...] = ("answerable", "partial", "unanswerable")
INSCIT: dict[str, Answerability] = {
    "directAnswer": "answerable",
    "noAnswerButRelevantInfo": "partial",
    "noAnswerNoRelevantInfo": "unanswerable",
}
System = Callable[[Sequence["Answer"]], Sequence[str]]


class Answer(NamedTuple):
    """A person's answer, its label, its conversation and the passages at hand."""

    conversation: str
    query: str
    text: str
    label: str
    passages: tuple[str, ...]


def read_mtrag(data: Path) -> Iterator[Answer]:
    """Yield the answers of mtRAG's conversations, with all passages retrieved up to each."""
    found = human_corpus("mtrag", str(data / "mtrag")).dialogs()
    for dialog in (each for each in found if isinstance(each, Dialog)):
        for turn in dialog.turns:
            passages = tuple(p.text for p in dialog.grounding(turn.turn))
            yield Answer(dialog.id, turn.query, turn.answer, turn.answerability, passages)


def read_mtrag_un(data: Path) -> Iterator[Answer]:
    """Yield the reference answers of MTRAG-UN's tasks."""
    for line in (data / "mtrag_un" / "reference_sample.jsonl").read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        passages = tuple(each["text"] for each in task["contexts"])
        query, text, label = task["input"][-1]["text"], task["targets"][0]["text"], task["answerability"][0].lower()
        yield Answer(task["conversation_id"], query, text, label, passages)


def read_inscit(data: Path) -> Iterator[Answer]:
    """Yield the answers of INSCIT's dialogs."""
    for name, dialog in json.loads((data / "inscit" / "dev_half.json").read_text(encoding="utf-8")).items():
        for turn in dialog["turns"]:
            for answer in turn["labels"]:
                passages = tuple(each["passage_text"] for each in answer["evidence"])
                label = INSCIT.get(answer["responseType"], "")
                yield Answer(name, turn["context"][-1], answer["response"], label, passages)


def describe(answer: Answer) -> dict[str, float]:
    """Return the features of the classifier."""
    claims, query = drop_refusals(answer.text), content_of(answer.query)
    passages = frozenset[str]().union(*map(content_of, answer.passages))
    return {
        measure(answer): 1,
        "told": len(content_of(claims) - query),
        "kept": len(claims) / max(1, len(answer.text)),
        "question told": len(query & content_of(claims)) / max(1, len(query)),
        "question in the passages": len(query & passages) / max(1, len(query)),
        "words": np.log1p(len(answer.text.split())),
    }


def measure(answer: Answer) -> str:
    """Return the label that a run gives to an English answer."""
    return measure_answerability(answer.query, answer.text, "answerable")


def make_classifier() -> Any:
    return make_pipeline(DictVectorizer(), LogisticRegression(C=1, max_iter=5000))


def row(name: str, true: Sequence[str], given: Sequence[str]) -> list[str]:
    """Return accuracy, kappa, and precision and recall of each label."""
    precision, recall, *_ = precision_recall_fscore_support(true, given, labels=LABELS, zero_division=0)
    right = np.mean([one == other for one, other in zip(true, given, strict=True)])
    pairs = (f"{one:.2f}, {other:.2f}" for one, other in zip(precision, recall, strict=True))
    return [name, f"{right:.3f}", f"{cohen_kappa_score(true, given):.3f}", *pairs]


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that mtrag/ is in")
    parser.add_argument("--cases", action="store_true", help="print the answers that the measure labels otherwise")
    arguments = parser.parse_args()
    readers = {"mtRAG": read_mtrag, "MTRAG-UN": read_mtrag_un, "INSCIT": read_inscit}
    sets = {name: [a for a in read(arguments.data) if a.label in LABELS] for name, read in readers.items()}
    learned = sets["mtRAG"]
    features, labels = [describe(answer) for answer in learned], [answer.label for answer in learned]
    groups = [answer.conversation for answer in learned]
    crossed = cross_val_predict(make_classifier(), features, labels, groups=groups, cv=GroupKFold(10))
    classifier = make_classifier().fit(features, labels)
    for name, answers in sets.items():
        true, found = [answer.label for answer in answers], [measure(answer) for answer in answers]
        predicted = crossed if answers is learned else classifier.predict([describe(answer) for answer in answers])
        counts = ", ".join(f"{true.count(label)} {label}" for label in LABELS)
        rows = [
            row("always answerable", true, ["answerable"] * len(true)),
            row("always partial", true, ["partial"] * len(true)),
            row("classifier", true, list(predicted)),
            row("**measure**", true, found),
        ]
        head = [f"{name}: {counts}", "accuracy", "kappa", *(f"{label} (precision, recall)" for label in LABELS)]
        print(table(head, rows) + "\n")
        for answer, label in zip(answers, found, strict=True) if arguments.cases else ():
            if label != answer.label:
                print(f"{answer.label} → {label}: {answer.query[:80]} → {' '.join(answer.text.split())[:200]}")


if __name__ == "__main__":
    main()
