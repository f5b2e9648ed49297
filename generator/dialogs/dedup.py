"""Find near-duplicates: questions inside a dialog, dialogs among each other, and dialogs that overlap test sets.

Two texts are alike if the Jaccard similarity of their shingles is at least the threshold. `generator.common.minhash`
finds them among many.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from generator.common.minhash import Banding, Index
from generator.common.scripts import words
from generator.common.shingles import jaccard, question_shingles, text_shingles
from generator.errors import ConfigError, describe
from generator.prompts.sections import said_in
from generator.schema import Dialog, LocalPath, OneOrMore, Operational, Record

# The threshold of `dedup=minhash` and `dedup=none`, by which figures of any set count repeated questions.
USUAL_THRESHOLD = 0.8
_TEST_FILES = (".json", ".jsonl", ".txt", ".json.gz", ".jsonl.gz", ".txt.gz", ".parquet")
# Shorter questions and answers occur everywhere, so they are not compared with test sets.
_LEAST_QUESTION_WORDS, _LEAST_ANSWER_WORDS = 4, 8


class DedupSettings(Record):
    """Settings of `Deduplicator`, and the threshold of `Repetition`."""

    threshold: float = Field(
        ge=0.3,
        le=0.99,
        description="Jaccard similarity, 0.3 to 0.99, from which two texts count as duplicates. It also decides which "
        "question repeats an earlier one of its dialog.",
    )
    between_dialogs: bool = Field(
        description="Compare dialogs with each other, by their first questions and as a whole. A question repeated "
        "inside a dialog is found in either case.",
    )
    # The files' content decides; see `generator.run`.
    against: Annotated[tuple[LocalPath, ...], OneOrMore, Operational] = Field(
        description="Test files that no dialog may overlap: .json, .jsonl or .txt, each also with .gz, or .parquet. "
        "Every text in them counts, at any depth."
    )


class Duplicate(Record):
    """The reason why a dialog is not kept.

    Attributes:
        part: the part of the dialog that is a duplicate; `contamination` is a question or answer found in a test file.
        exact: the words are the same, except for case and punctuation.
        text: that part's text.
        of: the earlier dialog's id, or the place in the test file.
    """

    part: Literal["contamination", "dialog", "first question"]
    exact: bool
    text: str
    of: str

    @property
    def reason(self) -> str:
        """Return a short phrase that groups like cases in the summary."""
        return f"{'exact' if self.exact else 'near'} duplicate: {self.part}"


class Repetition:
    """Finds the question that another one repeats, by `generator.common.shingles.question_shingles`."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def find(self, question: str, earlier: Sequence[str]) -> str | None:
        """Return the first of `earlier` that `question` repeats, or None. Every pair is compared."""
        mine = question_shingles(question)
        return next((other for other in earlier if jaccard(mine, question_shingles(other)) >= self._threshold), None)


class Deduplicator:
    """An index of the dialogs kept so far, in temporary files: memory doesn't grow with them (`docs/performance.md`).

    Raises:
        ConfigError: a file of `against` can't be read, or has no text to compare with.
        RunError: there is no room for the temporary files (also from `check` and `add`).
    """

    def __init__(self, settings: DedupSettings) -> None:
        self._between_dialogs = settings.between_dialogs
        banding = Banding(settings.threshold)
        self._dialogs = Index(text_shingles, settings.threshold, banding)
        self._first_questions = Index(question_shingles, settings.threshold, banding)
        self._references = Index(question_shingles, settings.threshold, banding)
        for path in settings.against:
            before = len(self._references)
            for where, text in _read_texts(path):
                if len(words(text)) >= _LEAST_QUESTION_WORDS:
                    self._references.add(text, where)
            if len(self._references) == before:
                raise ConfigError(f"dedup.against: {path}: has no text of four words or more; give a test set, or none")

    def check(self, dialog: Dialog) -> Duplicate | None:
        """Return what `dialog` duplicates, or None.

        A repeated first question is a duplicate even on another document: the same opening teaches a model little.
        """
        for turn in dialog.turns if len(self._references) else ():
            for text, least in ((turn.meant, _LEAST_QUESTION_WORDS), (turn.answer, _LEAST_ANSWER_WORDS)):
                if len(words(text)) >= least and (match := self._references.nearest(text)):
                    return Duplicate(part="contamination", exact=match.exact, text=text, of=match.name)
        if not self._between_dialogs:
            return None
        whole, first = "\n".join(said_in(dialog.turns)), dialog.turns[0].meant
        if match := self._dialogs.nearest(whole):
            return Duplicate(part="dialog", exact=match.exact, text=whole, of=match.name)
        if match := self._first_questions.nearest(first):
            return Duplicate(part="first question", exact=match.exact, text=first, of=match.name)
        return None

    def add(self, dialog: Dialog) -> None:
        """Add a dialog that is kept."""
        if self._between_dialogs:
            self._dialogs.add("\n".join(said_in(dialog.turns)), dialog.id)
            self._first_questions.add(dialog.turns[0].meant, dialog.id)


def _read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield every text of a test file, at any depth, with its place (`file:line` or `file:record`)."""
    if not path.name.endswith(_TEST_FILES):
        raise ConfigError(f"dedup.against: {path}: unknown file type; use one of {', '.join(_TEST_FILES)}")
    try:
        for number, record in _read_records(path):
            yield from ((f"{path}:{number}", text) for text in _strings(record))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ConfigError(f"dedup.against: can't read {path}: {describe(error)}") from error


def _read_records(path: Path) -> Iterator[tuple[int, object]]:
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        batches = ParquetFile(path).iter_batches()
        yield from enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
        return
    import fsspec

    suffix = Path(path.name.removesuffix(".gz")).suffix
    with fsspec.open(path, "rt", encoding="utf-8-sig", compression="infer") as file:
        if suffix == ".json":
            content = json.load(file)
            yield from enumerate(content if isinstance(content, list) else [content], start=1)
            return
        for number, line in enumerate(file, start=1):
            if suffix == ".txt":
                yield number, line
            elif line.strip():
                try:
                    yield number, json.loads(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number} is not valid JSON ({error.msg})") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
