"""Accuracy of `judges.metrics.question_type` on mtRAG's question types, beside simpler guesses, as Markdown.

    uv run python -m benchmarks.question_types --data DATA

Cross-validation in ten folds by conversation, the mean of five divisions. Intervals hold 95% of 2,000 bootstrap
draws of conversations. `--write` fits the judge to all questions, and writes its weights.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_fscore_support
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import MultiLabelBinarizer

from benchmarks.command_line import add_data
from generator.output.markdown import table
from generator.schema import Dialog
from generator.sets import dialog_set
from judges.metrics import question_type
from judges.metrics.question_type import ALSO, Weights, cues, rules

SHIPPED = Path(question_type.__file__).with_name("question_type.json")
SOURCE = (
    "learned from people's labels of question type in mtRAG (Katsis et al. 2025; Apache-2.0; "
    "https://github.com/pashaAbri/mt-rag-benchmark, commit 8bb7127798149e44eebd255b7434d0e97b1f12a8, "
    "cleaned_data/conversations), domains clapnq, fiqa and govt, by benchmarks/question_types.py"
)
FOLDS, DIVISIONS, DRAWS = 10, 5, 2000
# Inverse strength of the regularization: there are few questions for each type.
C = 0.5
# Cues that fewer questions show are left out: they would describe these questions rather than a type.
SHOWN = 3
JUDGE = "cues (**the judge**)"

Matrix = NDArray[np.float64]
# Returns probabilities for questions, having learned from others and their labels: (train, labels, test).
System = Callable[[Sequence["Question"], Matrix, Sequence["Question"]], Matrix]


class Question(NamedTuple):
    """A question and its labels; conversations count from 1."""

    conversation: int
    text: str
    types: tuple[str, ...]


def read_questions(dialogs: Sequence[Dialog]) -> list[Question]:
    """Return all questions of the conversations, in order."""
    return [
        Question(number, turn.query, tuple(turn.question_type.split("+")))
        for number, dialog in enumerate(dialogs, start=1)
        for turn in dialog.turns
    ]


def fit(questions: Sequence[Question], labels: Matrix, types: Sequence[str]) -> Weights:
    """Return the judge's weights, learned from these questions.

    Args:
        labels: 1 where a question (row) has a type (column), else 0.
    """
    seen = [cues(item.text) for item in questions]
    shown = Counter(name for one in seen for name, value in one.items() if value)
    names = sorted(name for name, count in shown.items() if count >= SHOWN)
    matrix = np.array([[one.get(name, 0.0) for name in names] for one in seen])
    start, columns = [], []
    for column in labels.T:
        if column.any():
            model = LogisticRegression(C=C, tol=1e-8, max_iter=10_000).fit(matrix, column)
            start.append(round(float(model.intercept_[0]), 3))
            columns.append([round(float(weight), 3) for weight in model.coef_[0]])
        else:  # troubleshooting, if both of its questions are in the test fold
            start.append(-10.0)
            columns.append([0.0] * len(names))
    return Weights(
        source=SOURCE,
        types=tuple(types),
        start=tuple(start),
        cues=dict(zip(names, zip(*columns, strict=True), strict=True)),
    )


def to_json(weights: Weights) -> str:
    """Return the content of the file in the package: one cue a line."""
    head = (f'"{name}": {json.dumps(getattr(weights, name))}' for name in ("source", "types", "start"))
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in weights.cues.items())
    return "{\n" + ",\n".join(head) + ',\n"cues": {\n' + ",\n".join(lines) + "\n}\n}\n"


def majority(train: Sequence[Question], labels: Matrix, test: Sequence[Question]) -> Matrix:
    """Predict the most frequent type."""
    return np.tile(np.eye(labels.shape[1])[labels.sum(axis=0).argmax()], (len(test), 1))


def by_rules(names: Sequence[str]) -> System:
    """Return the system that predicts the strongest rule that applies."""

    def predicted(train: Sequence[Question], labels: Matrix, test: Sequence[Question]) -> Matrix:
        found = np.zeros((len(test), len(names)))
        for row, item in enumerate(test):
            found[row, names.index(rules(item.text)[0])] = 1
        return found

    return predicted


def shipped(train: Sequence[Question], labels: Matrix, test: Sequence[Question]) -> Matrix:
    """Predict with the judge, fitted to these questions."""
    weights = fit(train, labels, [str(place) for place in range(labels.shape[1])])
    return np.array([weights.probabilities(item.text) for item in test])


def cross_validate(system: System, questions: Sequence[Question], labels: Matrix) -> Iterator[Matrix]:
    """Yield the system's probabilities for every question, learned from other conversations; once for each division."""
    groups = [item.conversation for item in questions]
    for division in range(DIVISIONS):
        probabilities = np.zeros(labels.shape)
        folds = GroupKFold(FOLDS, shuffle=True, random_state=division)
        for train, test in folds.split(questions, groups=groups):
            probabilities[test] = system([questions[i] for i in train], labels[train], [questions[i] for i in test])
        yield probabilities


def named(probabilities: Matrix) -> Matrix:
    """Return the types that the judge would name: the most probable, and all above its threshold."""
    chosen = (probabilities >= ALSO).astype(float)
    chosen[np.arange(len(chosen)), probabilities.argmax(axis=1)] = 1
    return chosen


def interval(right: Matrix, questions: Sequence[Question]) -> str:
    """Return the bootstrap interval of a mean over questions, by drawing conversations."""
    groups = np.array([item.conversation for item in questions])
    sums, sizes = (np.bincount(groups, weights=of)[1:] for of in (right, np.ones(len(right))))
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    drawn = np.random.default_rng(0).integers(len(sums), size=(DRAWS, len(sums)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), (0.025, 0.975))
    return f"{low:.3f} to {high:.3f}"


def type_rows(runs: dict[str, list[Matrix]], questions: Sequence[Question], labels: Matrix) -> Iterator[list[str]]:
    """Yield for each system: accuracy of the first label, interval, the judge's lead, exact set, macro and micro F1."""
    places = np.arange(len(questions))
    right = {
        name: np.mean([labels[places, run.argmax(axis=1)] for run in of_one], axis=0) for name, of_one in runs.items()
    }
    for name, first in right.items():
        sets = [named(run) for run in runs[name]]
        exact = np.mean([(chosen == labels).all(axis=1).mean() for chosen in sets])
        macro, micro = (
            np.mean([f1_score(labels, chosen, average=kind, zero_division=0) for chosen in sets])
            for kind in ("macro", "micro")
        )
        figures = (f"{value:.3f}" for value in (exact, macro, micro))
        lead = "" if name == JUDGE else interval(right[JUDGE] - first, questions)
        yield [name, f"{first.mean():.3f}", interval(first, questions), lead, *figures]


def each_type(names: Sequence[str], runs: Sequence[Matrix], labels: Matrix) -> Iterator[list[str]]:
    """Yield for each type: questions with it by the human labels and by the judge, precision, recall and F1."""
    sets = [named(run) for run in runs]
    figures = np.mean([precision_recall_fscore_support(labels, chosen, zero_division=0)[:3] for chosen in sets], axis=0)
    given = np.mean([chosen.sum(axis=0) for chosen in sets], axis=0)
    for place, name in enumerate(names):
        counts = (f"{count:.0f}" for count in (labels[:, place].sum(), given[place]))
        yield [name, *counts, *(f"{value:.2f}" for value in figures[:, place])]


def main() -> None:
    """Print the tables, or write the weights."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_data(parser, "mtrag")
    parser.add_argument("--write", action="store_true", help=f"write {SHIPPED.name} and stop")
    arguments = parser.parse_args()
    questions = read_questions(list(dialog_set(f"mtrag:{arguments.data / 'mtrag'}").dialogs()))
    binarizer = MultiLabelBinarizer()
    labels = binarizer.fit_transform([item.types for item in questions]).astype(float)
    names = list(binarizer.classes_)
    if arguments.write:
        SHIPPED.write_text(to_json(fit(questions, labels, names)), encoding="utf-8")
        return
    systems: dict[str, System] = {
        "factoid, always": majority,
        "rules": by_rules(names),
        JUDGE: shipped,
    }
    several = int((labels.sum(axis=1) > 1).sum())
    print(f"{len(questions)} questions, {several} with several labels\n", flush=True)
    head = ["", "first label right", "95%", "the judge's lead, 95%", "exact set", "macro F1", "micro F1"]
    runs = {name: list(cross_validate(system, questions, labels)) for name, system in systems.items()}
    print(table(head, type_rows(runs, questions, labels)), flush=True)
    head = ["of the judge", "people", "judge", "precision", "recall", "F1"]
    print("\n" + table(head, each_type(names, runs[JUDGE], labels)), flush=True)


if __name__ == "__main__":
    main()
