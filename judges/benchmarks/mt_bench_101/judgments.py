"""Read judgments of MT-Bench-101's dialogs that exist. None were published, so the format of lines is ours."""

from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, Field

from generator.corpora.files import list_files
from generator.corpora.json_records import read_json_lines, validate_record
from generator.errors import ConfigError, CorpusError
from generator.schema import Context, Dialog, SkippedRecord
from generator.sets import dialog_set
from judges.benchmarks.base import Ratings
from judges.benchmarks.scores import Rated, rated_turns


class Judgment(BaseModel):
    """A line of judgments: `{"task": "CM", "id": 1, "turn": 2, "score": 8}`; a score of null failed."""

    task: str
    id: int | str
    turn: int = Field(ge=1)
    score: float | None = Field(ge=1, le=10)
    model: str = "model"
    context: Context = "golden"


def read_judgments(path: Path, check_task: Callable[[str], str | None]) -> Ratings:
    """Return the ratings of a run of `python -m judges.evaluate`, or of a file of `Judgment`s, by model and context.

    Raises:
        CorpusError: a line can't be read, is there twice, or is of a task without a file.
    """
    ratings: dict[str, dict[Context, list[Rated]]] = {}
    try:
        answered = [dialog for dialog in dialog_set(str(path), None).records() if isinstance(dialog, Dialog)]
    except ConfigError:
        answered = []
    for dialog in answered:
        if dialog.context is None or (fault := check_task(dialog.task)) is not None:
            why = "no model has answered it" if dialog.context is None else fault
            raise CorpusError(f"{path}: dialog {dialog.id}: {why}")
        ratings.setdefault(dialog.lm, {}).setdefault(dialog.context, []).extend(rated_turns(dialog))
    return ratings if answered else _read_lines(path, check_task)


def _read_lines(path: Path, check_task: Callable[[str], str | None]) -> Ratings:
    ratings: dict[str, dict[Context, list[Rated]]] = {}
    seen = set()
    (file,) = list_files(str(path), ("",), archives=False, setting="judgments")
    for where, record in read_json_lines(file):
        line = validate_record(Judgment, where, record)
        if isinstance(line, SkippedRecord):
            raise CorpusError(f"{line.where}: {line.reason}; a judgment has task, id, turn and score")
        if (fault := check_task(line.task)) is not None:
            raise CorpusError(f"{where}: {fault}")
        key = (line.model, line.context, str(line.id), line.turn)
        if key in seen:
            raise CorpusError(f"{where}: turn {line.turn} of dialog {line.id} is there twice; remove one")
        seen.add(key)
        reason = "" if line.score is not None else "not judged"
        rated = Rated(task=line.task, item=str(line.id), turn=line.turn, score=line.score, reason=reason)
        ratings.setdefault(line.model, {}).setdefault(line.context, []).append(rated)
    if not ratings:
        raise CorpusError(f"{path}: has no judgments")
    return ratings
