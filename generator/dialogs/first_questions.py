"""Read first questions that another run asked, to open dialogs with.

Lee et al. 2024 generate their dialogs on OR-QuAC so (table 9): the first questions come from documents of QuAC, and
everything after them rests on what is retrieved from the collection.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from generator.common.console import note
from generator.errors import ConfigError, describe
from generator.schema import Dialog, Record, Turn
from taxonomy import QuestionType, Share


class StoredQuestion(Record):
    """A first question of another run, and the type that it was asked as."""

    query: str
    question_type: str


def read_first_questions(run: Path, shares: Sequence[Share[QuestionType]]) -> list[StoredQuestion]:
    """Return the first questions of a run's accepted dialogs, in their order, whose type is one of `shares`.

    A measured question can have several types, joined by `+`: it counts as the first of them that is in `shares`. The
    number of questions left out is printed. `run` is the run's folder, or its `dialogs.jsonl`.

    Raises:
        ConfigError: the file can't be read, or holds no such question.
    """
    setting = f"algorithm.first_questions={run}"
    wanted, left_out = {share.type.name for share in shares}, Counter[str]()
    questions: list[StoredQuestion] = []
    for turn in _read_first_turns(run / "dialogs.jsonl" if run.is_dir() else run, setting):
        question_type = next((name for name in turn.question_type.split("+") if name in wanted), None)
        if question_type is None:
            left_out[turn.question_type] += 1
        else:
            questions.append(StoredQuestion(query=turn.meant, question_type=question_type))
    counts = ", ".join(f"{count} {name}" for name, count in left_out.most_common()) or "none"
    types = f"of a type in taxonomy.first ({', '.join(sorted(wanted))})"
    if not questions:
        raise ConfigError(f"{setting}: no first question is {types}; the file holds {counts}")
    if total := left_out.total():
        note(f"{setting}: {total} of {total + len(questions)} first questions are left out, not {types}: {counts}")
    return questions


def _read_first_turns(file: Path, setting: str) -> Iterator[Turn]:
    number = 0
    try:
        with file.open("rb") as lines:
            for line in lines:
                number += 1
                yield Dialog.model_validate_json(line).turns[0]
    except OSError as error:
        raise ConfigError(f"{setting}: can't read {file} ({describe(error)}); give the folder of a run") from error
    except (ValidationError, IndexError) as error:
        raise ConfigError(f"{setting}: line {number} of {file} is not a dialog; give the folder of a run") from error
