"""First questions that another run asked, to open dialogs with.

Lee et al. 2024 generate the dialogs on OR-QuAC so (table 9): the questions come from documents of QuAC, and everything
after them rests on what is retrieved from the collection.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from generator.common.console import note
from generator.errors import ConfigError, describe
from generator.schema import Dialog, Record, Turn
from taxonomy import Share


class Opening(Record):
    """A first question, and the type that it was asked as."""

    query: str
    question_type: str


def openings(run: Path, wanted: Sequence[Share]) -> list[Opening]:
    """The first questions of a run's accepted dialogs, in their order, as far as their types are wanted.

    A measured question may be of several types, joined by `+`: it counts as the first of them that is wanted. How many
    questions are left out is said.

    Args:
        run: the run's folder, or its `dialogs.jsonl`.

    Raises:
        ConfigError: there is no such run, it can't be read, or has no such question.
    """
    setting = f"algorithm.first_questions={run}"
    kinds, others = {share.type.name for share in wanted}, Counter[str]()
    questions: list[Opening] = []
    for turn in _first_turns(run / "dialogs.jsonl" if run.is_dir() else run, setting):
        kind = next((kind for kind in turn.question_type.split("+") if kind in kinds), None)
        if kind is None:
            others[turn.question_type] += 1
        else:
            questions.append(Opening(query=turn.query, question_type=kind))
    found = ", ".join(f"{count} {name}" for name, count in others.most_common()) or "none"
    there = f"of a type in taxonomy.first ({', '.join(sorted(kinds))})"
    if not questions:
        raise ConfigError(f"{setting}: no first question is {there}; it has {found}")
    if others:
        total = others.total()
        note(f"{setting}: {total} of {total + len(questions)} first questions are left out, not {there}: {found}")
    return questions


def _first_turns(file: Path, setting: str) -> Iterator[Turn]:
    number = 0
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                yield Dialog.model_validate_json(line).turns[0]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{setting}: can't read {file} ({describe(error)}); give the folder of a run") from error
    except (ValidationError, IndexError) as error:
        raise ConfigError(f"{setting}: line {number} of {file} is no dialog; give the folder of a run") from error


def fingerprint(questions: Sequence[Opening]) -> str:
    """A short hash of questions and their order; empty without any."""
    if not questions:
        return ""
    return hashlib.sha256("\n".join(q.model_dump_json() for q in questions).encode()).hexdigest()[:16]
