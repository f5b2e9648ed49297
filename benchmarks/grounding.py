"""Agreement of `judges.metrics.grounding` with people, on sources that it wasn't trained on, as Markdown.

    uv run --group benchmark python -m benchmarks.grounding --data DATA

One source at a time is left out, of Q² both systems at once, since they answered the same messages. `--write` fits the
judge to all sources but Q²'s dodeca, and writes its weights.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from benchmarks.command_line import add_data
from benchmarks.judgements import read_ratings
from generator.execution.session import collect_rarely
from generator.optimization.labels import AUDIT, item, read_csv
from generator.output.markdown import table
from generator.schema import Dialog, Verdict
from generator.sets import dialog_set
from judges.metrics import grounding
from judges.metrics.grounding import GroundingJudge, Weights, features
from judges.metrics.words import k_precision

SHIPPED = Path(grounding.__file__).with_name("grounding.json")
SOURCE = (
    "learned from people's labels of responses to Wizard of Wikipedia: FaithDial's audit (Dziri et al. 2022; MIT; "
    "https://github.com/McGill-NLP/FaithDial, commit 25671c6e3aa7d667943b7744a2b91507e7187f83, data-audit) and those "
    "of memnet in Q2 (Honovich et al. 2021; Apache-2.0; https://github.com/orhonovich/q-squared, commit "
    "cab6027dc9a50cf73d80caf0858da05c2323c433, third_party/data), by benchmarks/grounding.py"
)
# Words don't show what people found wrong with dodeca's responses, which keep the words of their knowledge.
TESTED_ONLY = {"dodeca"}
TOGETHER = ({"dodeca", "memnet"},)
# Inverse strength of the regularization, and the probabilities between which a response is unjudged.
C = 0.05
INCORRECT, CORRECT = 0.36, 0.59
LABELS = ("correct", "unjudged", "incorrect")
# People's faithfulness, 1 to 4, from which a response of mtRAG's evaluation counts as grounded.
FAITHFUL = 3.5
# BEGIN's labels; a generic response claims nothing that one could agree about, and is left out.
GROUNDED = {
    "entailment": True,
    "entailment,uncooperative": True,
    "entailmentt,uncooperative": True,  # as published
    "uncooperative": True,
    "entailment,hallucination": False,
    "partial hallucination": False,
    "hallucination": False,
}
PARTIAL = {"entailment,hallucination", "partial hallucination"}


class Response(NamedTuple):
    """A response, the source of its label, and whether people found it grounded, or `partial`, which is not."""

    source: str
    dialog: Dialog
    grounded: bool
    partial: bool

    @property
    def texts(self) -> tuple[str, list[str], list[str]]:
        """The arguments of `features`."""
        turn = self.dialog.turns[-1]
        return turn.answer, [p.titled for p in self.dialog.passages], [turn.query]


def read_responses(data: Path) -> Iterator[Response]:
    """Yield the labelled responses of FaithDial's audit and of Q²."""
    for source, (response, column) in AUDIT.items():
        for number, row in enumerate(read_csv(data / "faithdial_audit" / f"{source}_wow.csv")):
            label = row[column].lower().strip()
            if label in GROUNDED and row[response].strip():
                knowledge = row.get("knowledge") or row["evidence"]
                one = item(source, number, knowledge, row["history"], row[response], label)
                yield Response(source, one.dialog, GROUNDED[label], label in PARTIAL)
    for number, row in enumerate(read_csv(data / "q2_wow" / "cross_annotation.csv")):
        for source in ("dodeca", "memnet"):
            label = row[f"{source}_label"]  # 1: inconsistent
            one = item(source, number, row["knowledge"], row["message"], row[f"{source}_response"], label)
            yield Response(source, one.dialog, label == "0", False)


def fit(responses: Sequence[Response]) -> Weights:
    """Return the judge's weights, learned from these responses; of rare labels and small sources each counts more."""
    found = [features(*one.texts) for one in responses]
    names = list(found[0])
    matrix = np.array([[one[name] for name in names] for one in found])
    grounded = np.array([one.grounded for one in responses])
    groups = np.array([f"{one.source} {one.grounded}" for one in responses])
    sizes = {str(group): int((groups == group).sum()) for group in np.unique(groups)}
    weights = np.array([sizes[group] ** -0.5 for group in groups])
    spread = matrix.std(axis=0) + 1e-9
    model = LogisticRegression(C=C, tol=1e-8, max_iter=10_000)
    model.fit(matrix / spread, grounded, sample_weight=weights / weights.mean())
    slopes = model.coef_[0] / spread
    return Weights(
        source=SOURCE,
        start=round(float(model.intercept_[0]), 3),
        weights={name: round(float(slope), 3) for name, slope in zip(names, slopes, strict=True)},
        incorrect=INCORRECT,
        correct=CORRECT,
    )


def to_json(weights: Weights) -> str:
    """Return the content of the file in the package."""
    return json.dumps(weights.model_dump(), indent=2, ensure_ascii=False) + "\n"


def trained_for(source: str, responses: Sequence[Response]) -> list[Response]:
    """Return the responses that the judge may learn from before it judges a source."""
    apart = next((group for group in TOGETHER if source in group), {source})
    return [one for one in responses if one.source not in apart | TESTED_ONLY]


def rows(responses: Sequence[Response], partial: bool) -> Iterator[list[str]]:
    """Yield for each source, and for their mean: responses, grounded, AUC of k_precision and of the judge, kappa of
    all responses at one threshold, kappa of the judged ones, and the share of unjudged ones.

    Args:
        partial: test on responses that are partly grounded, too.
    """
    found: list[NDArray[np.float64]] = []
    for source in dict.fromkeys(one.source for one in responses):
        mine = [one for one in responses if one.source == source and (partial or not one.partial)]
        verdicts = judged(mine, fit(trained_for(source, responses)))
        human = [one.grounded for one in mine]
        scores = [verdict.score or 0.0 for verdict in verdicts]
        words = [k_precision(answer, passages) for answer, passages, _ in (one.texts for one in mine)]
        sure = [
            (verdict.label == "correct", one)
            for verdict, one in zip(verdicts, human, strict=True)
            if verdict.label != "unjudged"
        ]
        figures = np.array(
            [
                roc_auc_score(human, words),
                roc_auc_score(human, scores),
                cohen_kappa_score(human, [score >= (INCORRECT + CORRECT) / 2 for score in scores]),
                cohen_kappa_score(*zip(*sure, strict=True)),
                1 - len(sure) / len(mine),
            ]
        )
        found.append(figures)
        yield [source, str(len(mine)), str(sum(human)), *(f"{figure:.3f}" for figure in figures)]
    yield ["mean", "", "", *(f"{figure:.3f}" for figure in np.mean(found, axis=0))]


def judged(responses: Sequence[Response], weights: Weights) -> list[Verdict]:
    """Return the verdicts of the judge with these weights."""
    judge = GroundingJudge(weights)
    return [judge.judge_answer(one.texts[0], one.dialog.passages, one.texts[2]) for one in responses]


def rows_of_ratings(data: Path) -> Iterator[list[str]]:
    """Yield the labels of mtRAG's rated responses, long answers from several passages, by people's faithfulness."""
    judge = GroundingJudge()
    found: Counter[tuple[bool, str]] = Counter()
    for rated, _ in read_ratings(data):
        *history, turn = rated.dialog.turns
        said = [*(text for before in history for text in (before.query, before.answer)), turn.query]
        found[rated.human["F"] >= FAITHFUL, judge.judge_answer(turn.answer, rated.dialog.passages, said).label] += 1
    for faithful in (True, False):
        name = f"{'at least' if faithful else 'below'} {FAITHFUL}"
        yield [name, *(str(found[faithful, label]) for label in LABELS)]


def rows_of_no_claims(data: Path) -> Iterator[list[str]]:
    """Yield the labels of people's answers to questions that can't be answered, or not before asking back."""
    judge = GroundingJudge()
    sets = {"mtRAG": "mtrag/conversations.json", "MTRAG-UN": "mtrag_un/reference_sample.jsonl"}
    for (name, file), kind in product(sets.items(), ("unanswerable", "underspecified")):
        found: Counter[str] = Counter()
        for dialog in dialog_set(f"mtrag:{data / file}").dialogs():
            # Of a task, the earlier turns were given.
            for turn in dialog.turns[-1:] if name == "MTRAG-UN" else dialog.turns:
                if turn.answerability == kind:
                    said = [*(text for t in dialog.turns[: turn.turn - 1] for text in (t.query, t.answer)), turn.query]
                    found[judge.judge_answer(turn.answer, dialog.grounding(turn.turn), said).label] += 1
        if found:
            yield [name, kind, *(str(found[label]) for label in LABELS)]


def main() -> None:
    """Print the tables and the speed, or write the weights."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_data(parser, "faithdial_audit", "q2_wow", "mtrag", "mtrag_un")
    parser.add_argument("--write", action="store_true", help=f"write {SHIPPED.name} and stop")
    arguments = parser.parse_args()
    responses = list(read_responses(arguments.data))
    if arguments.write:
        SHIPPED.write_text(to_json(fit([one for one in responses if one.source not in TESTED_ONLY])), encoding="utf-8")
        return
    head = ["left out", "responses", "grounded", "k_precision AUC", "AUC", "kappa of all", "kappa", "unjudged"]
    start = time.process_time()  # before anything is cached
    with collect_rarely():  # as the judge does in a run
        judged(responses, grounding.load_weights())
    print(f"{len(responses) / (time.process_time() - start):.0f} pairs a second of processor time\n")
    print(table(head, rows(responses, partial=True)))
    print("\nWithout responses that are grounded in part:\n\n" + table(head, rows(responses, partial=False)))
    print("\nmtRAG's rated responses:\n\n" + table(["faithfulness", *LABELS], rows_of_ratings(arguments.data)))
    head = ["set", "question", *LABELS]
    print("\nPeople's answers that claim nothing:\n\n" + table(head, rows_of_no_claims(arguments.data)))


if __name__ == "__main__":
    main()
