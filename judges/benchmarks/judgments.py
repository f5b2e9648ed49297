"""Read judgments that exist: a run of `python -m judges.evaluate`, or lines of a benchmark's own form."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from generator.common.console import note
from generator.corpora.files import list_files
from generator.corpora.json_records import read_json_lines, require_record
from generator.errors import ConfigError, CorpusError
from generator.schema import Context, Dialog
from generator.sets import dialog_set
from judges.benchmarks.scores import Rated, Ratings, rated_turns


class JudgmentLine(BaseModel, ABC):
    """A line of a file of judgments; a subclass adds the fields of a benchmark."""

    # The fields that a line needs, for messages.
    form: ClassVar[str]

    turn: int = Field(ge=1)
    model: str
    context: Context

    @abstractmethod
    def rated(self) -> Rated:
        """Return the rating."""

    @property
    def misread(self) -> bool:
        """True if the line has the judge's text, and that ends with another rating."""
        return False


def read_judgments(path: Path, line: type[JudgmentLine], check_task: Callable[[str], str | None]) -> Ratings:
    """Return the ratings of a run, or of a file or a folder of lines, by model and context.

    Raises:
        CorpusError: a line can't be read, is there twice, or is of a task without a file.
    """
    ratings: dict[str, dict[Context, list[Rated]]] = {}
    try:
        answered = [dialog for dialog in dialog_set(str(path)).records() if isinstance(dialog, Dialog)]
    except ConfigError:
        answered = []
    for dialog in answered:
        if dialog.context is None or (fault := check_task(dialog.task)) is not None:
            why = "no model has answered it" if dialog.context is None else fault
            raise CorpusError(f"{path}: dialog {dialog.id}: {why}")
        ratings.setdefault(dialog.lm, {}).setdefault(dialog.context, []).extend(rated_turns(dialog))
    return ratings if answered else _read_lines(path, line, check_task)


def _read_lines(path: Path, line: type[JudgmentLine], check_task: Callable[[str], str | None]) -> Ratings:
    ratings: dict[str, dict[Context, list[Rated]]] = {}
    seen = set()
    misread = 0
    for file in list_files(str(path), (".jsonl", ".jsonl.gz"), archives=False, setting="judgments"):
        for where, record in read_json_lines(file):
            given = require_record(line, where, record, f"a judgment has {line.form}")
            rated = given.rated()
            if (fault := check_task(rated.task)) is not None:
                raise CorpusError(f"{where}: {fault}")
            key = (given.model, given.context, rated.item, rated.turn)
            if key in seen:
                raise CorpusError(
                    f"{where}: turn {rated.turn} of dialog {rated.item} is there twice for {given.model}; remove one, "
                    "and give one judge's judgments at a time"
                )
            seen.add(key)
            misread += given.misread
            ratings.setdefault(given.model, {}).setdefault(given.context, []).append(rated)
    if not ratings:
        raise CorpusError(f"{path}: has no judgments")
    if misread:
        note(f"{path}: {misread} of {len(seen)} scores are not the rating that their text ends with; the scores count")
    return ratings
