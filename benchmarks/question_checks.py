"""People's later questions that the checks would refuse (`generator.dialogs.checks.questions`), by rule, as Markdown.

    uv run python -m benchmarks.question_checks --data DATA --cases

mtRAG's conversations (each question checked as its human label, follow-up or clarification, says), the dialogs of CoQA
and QuAC, and the histories of CANARD and INSCIT, which come without documents and are checked as follow-ups: of these,
more seem to leave the subject than would with their documents. What people ask counts as right, so that every refusal
is a false alarm; a clarification of mtRAG is checked as one of the answer or of the question, whichever it passes.
Below it, people's rewritten questions (CANARD, mtRAG) that say more than their dialog (`generator.dialogs.query`).
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.command_line import add_data
from generator.corpora.human import human_turn
from generator.dialogs.checks.questions import find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.query import adds_facts, pastes_dialog
from generator.output.markdown import table
from generator.prompts.sections import Documents, said_in
from generator.schema import Turn
from generator.sets import dialog_set
from taxonomy import QuestionType, read_types

TYPES, REPETITION = read_types(), Repetition(0.8)
FILES = {
    "mtrag": ("mtrag",),
    "coqa": ("coqa/coqa-dev-v1.0.sample.json", "coqa/coqa-train-v1.0.sample.json"),
    "quac": ("quac/train_v0.2.sample.json", "quac/val_v0.2.sample.json"),
}


class Question(NamedTuple):
    """A person's later question, with the types that it may be of, and what was there before it."""

    text: str
    types: tuple[QuestionType, ...]
    documents: Documents
    history: tuple[Turn, ...]
    rewrite: str = ""


def read_dialogs(data: Path, corpus: str) -> Iterator[Question]:
    """Yield the later questions of human dialogs with documents."""
    for file in FILES[corpus]:
        for dialog in dialog_set(f"{corpus}:{data / file}").dialogs():
            for turn in dialog.turns[1:]:
                history = dialog.turns[: turn.turn - 1]
                clarifies = turn.multi_turn_type == "clarification"
                names = ("clarification", "correction") if clarifies else ("follow-up",)
                documents = Documents(passages=dialog.grounding(turn.turn - 1))
                types = tuple(TYPES[name] for name in names)
                yield Question(turn.query, types, documents, history, turn.retrieval_query)


def read_histories(pairs: Sequence[tuple[str, str]]) -> Iterator[Question]:
    """Yield the later questions of a dialog without documents, given its questions and answers."""
    turns = tuple(
        human_turn(number, query, answer or "…", "answerable") for number, (query, answer) in enumerate(pairs, 1)
    )
    for turn in turns[1:]:
        yield Question(turn.query, (TYPES["follow-up"],), Documents(passages=()), turns[: turn.turn - 1])


def read_canard(data: Path) -> Iterator[Question]:
    """Yield the later questions of CANARD's dialogs, which are QuAC's."""
    last = {}
    for record in json.loads((data / "canard" / "dev.json").read_text(encoding="utf-8")):
        last[record["QuAC_dialog_id"]] = [*record["History"][2:], record["Question"], ""]
    for texts in last.values():
        yield from read_histories(list(zip(texts[::2], texts[1::2], strict=True)))


def read_inscit(data: Path) -> Iterator[Question]:
    """Yield the later questions of INSCIT's dialogs."""
    for dialog in json.loads((data / "inscit" / "dev_half.json").read_text(encoding="utf-8")).values():
        texts = [*dialog["turns"][-1]["context"], ""]
        yield from read_histories(list(zip(texts[::2], texts[1::2], strict=True)))


def read_rewrites(data: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield people's rewritten questions, each with the question and what was said before it, and the passages."""
    for record in json.loads((data / "canard" / "dev.json").read_text(encoding="utf-8")):
        yield record["Rewrite"], [record["Question"], *record["History"]], []
    for question in read_dialogs(data, "mtrag"):
        if question.rewrite:
            told = [p.titled for p in question.documents.passages]
            yield question.rewrite, [question.text, *said_in(question.history)], told


def find_faults(question: Question) -> str | None:
    """Return the reason why a question is refused as each of its types, or None."""
    faults = [
        find_fault(question.text, question.documents, question.history, each, REPETITION) for each in question.types
    ]
    return None if None in faults else faults[0]


def main() -> None:
    """Print the shares, and each refused question."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add_data(parser, "mtrag", "coqa", "quac", "canard", "inscit")
    parser.add_argument("--cases", action="store_true", help="print the questions that are refused")
    arguments = parser.parse_args()
    sets = {name: list(read_dialogs(arguments.data, name)) for name in FILES}
    sets |= {"canard": list(read_canard(arguments.data)), "inscit": list(read_inscit(arguments.data))}
    refused = {name: [(find_faults(each), each) for each in questions] for name, questions in sets.items()}
    counts = {name: Counter(fault for fault, _ in each if fault) for name, each in refused.items()}
    faults = sorted(set[str]().union(*counts.values()))
    head = ["refused because it …", *(f"{name} ({len(questions)})" for name, questions in sets.items())]
    rows = [[fault, *(f"{counts[n][fault]} ({counts[n][fault] / len(sets[n]):.1%})" for n in sets)] for fault in faults]
    print(table(head, rows))
    rewrites = list(read_rewrites(arguments.data))
    print()
    adding = sum(adds_facts(*each) for each in rewrites)
    print(f"rewritten questions that add facts: {adding} of {len(rewrites)}")
    pasting = sum(pastes_dialog(query, said) for query, said, _ in rewrites)
    print(f"rewritten questions that paste the dialog: {pasting} of {len(rewrites)}")
    for name, each in refused.items() if arguments.cases else ():
        for fault, question in each:
            if fault:
                last = question.history[-1]
                print(f"\n{name}: {fault}\n  {last.query} → {last.answer[:120]!r}\n  {question.text}")


if __name__ == "__main__":
    main()
