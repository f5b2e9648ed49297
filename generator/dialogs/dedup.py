"""Near-duplicates: of questions inside a dialog, of dialogs among each other, and of dialogs with test sets.

Two texts are alike when the Jaccard similarity of their shingles is at least the threshold. How they are found among
many is `generator.common.minhash`.
"""

import gzip
import json
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from generator.common.limits import read_lines, read_whole
from generator.common.minhash import Banding, Index
from generator.common.shingles import Shingles, jaccard, question_shingles, text_shingles, words
from generator.errors import ConfigError, describe
from generator.schema import Dialog, LocalPath, OneOrMore, Record

_TEST_FILES = (".json", ".jsonl", ".txt", ".json.gz", ".jsonl.gz", ".txt.gz", ".parquet")
_LEAST_QUESTION_WORDS, _LEAST_ANSWER_WORDS = 4, 8  # of what is looked for in a test set: less is said everywhere


class DedupSettings(Record):
    """Settings of `Deduplicator` and, with their threshold, of `Repetition`.

    Attributes:
        threshold: the Jaccard similarity from which on two texts are alike.
        num_perm: permutations of a MinHash signature; more find more of what is just at the threshold.
        between_dialogs: whether dialogs are compared with each other.
        against: test files that no dialog may overlap: .json, .jsonl or .txt, each also with .gz, or .parquet.
    """

    threshold: float = Field(ge=0.3, le=0.99)
    num_perm: int = Field(ge=64, le=1024)
    between_dialogs: bool
    against: Annotated[tuple[LocalPath, ...], OneOrMore]


class Duplicate(Record):
    """Why a dialog is not kept.

    Attributes:
        kind: which text of the dialog is a duplicate; `contamination`: a question or answer that a test file holds.
        exact: the words are the same, but for case and punctuation.
        text: that text of the dialog.
        of: the earlier dialog's id, or where the test file holds it.
    """

    kind: Literal["contamination", "dialog", "first question"]
    exact: bool
    text: str
    of: str

    @property
    def reason(self) -> str:
        """A short phrase that groups like cases in the summary."""
        return f"{'exact' if self.exact else 'near'} duplicate: {self.kind}"


class Repetition:
    """Finds the question that another one repeats inside a dialog, by `generator.common.shingles.question_shingles`."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def earlier(self, question: str, earlier: Sequence[str]) -> str | None:
        """The first of `earlier` that `question` repeats, if any. Few and short, they are compared without MinHash."""
        mine = question_shingles(question)
        return next((other for other in earlier if jaccard(mine, question_shingles(other)) >= self._threshold), None)


class Deduplicator:
    """The dialogs kept so far, in temporary files: memory doesn't grow with them (`docs/performance.md`).

    Raises:
        ConfigError: a file of `against` can't be read.
        RunError: there is no room for the temporary files; so do `check` and `add`.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self._between_dialogs = settings.between_dialogs
        banding = Banding(settings.threshold, settings.num_perm)
        self._dialogs = Index(text_shingles, settings.threshold, banding)
        self._first_questions = Index(question_shingles, settings.threshold, banding)
        self._references = Index(question_shingles, settings.threshold, banding)
        for path in settings.against:
            for where, text in _references(path):
                if len(words(text)) >= _LEAST_QUESTION_WORDS:
                    self._references.add(text, where)

    def check(self, dialog: Dialog) -> Duplicate | None:
        """What `dialog` duplicates, if anything.

        A first question is a duplicate whatever document it is about: the same opening again teaches a model little.
        """
        for text, least in _utterances(dialog) if len(self._references) else ():
            if len(words(text)) >= least and (found := self._references.nearest(text)):
                return Duplicate(kind="contamination", exact=found.exact, text=text, of=found.name)
        if not self._between_dialogs:
            return None
        if found := self._dialogs.nearest(_whole(dialog)):
            return Duplicate(kind="dialog", exact=found.exact, text=_whole(dialog), of=found.name)
        if found := self._first_questions.nearest(dialog.turns[0].query):
            return Duplicate(kind="first question", exact=found.exact, text=dialog.turns[0].query, of=found.name)
        return None

    def add(self, dialog: Dialog) -> None:
        """Remember a dialog that is kept."""
        if self._between_dialogs:
            self._dialogs.add(_whole(dialog), dialog.id)
            self._first_questions.add(dialog.turns[0].query, dialog.id)


class Asked:
    """How many questions of a set repeat an earlier one, by `generator.common.shingles.question_shingles`.

    Nothing is compared before all are there: so a question takes the hashes of its bands and its shingles, some 300
    bytes of memory, and no index. One asked before word for word takes none.

    Attributes:
        questions: how many were added.
        repeated_in_dialog: those that repeat an earlier one of their own dialog; all of these are found.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self.questions = self.repeated_in_dialog = 0
        self._threshold = settings.threshold
        self._banding = Banding(settings.threshold, settings.num_perm)
        self._seen: set[int] = set()
        self._word_for_word = 0
        self._known: list[bool] = []  # to repeat one of its dialog; and of the same question …
        self._bands = array("Q")
        self._shingles = array("I")
        self._ends = array("Q", [0])

    def add(self, questions: Sequence[str]) -> None:
        """Count the questions of one dialog, in their order."""
        earlier: list[Shingles] = []
        for question in questions:
            mine = question_shingles(question)
            again = any(jaccard(mine, other) >= self._threshold for other in earlier)
            earlier.append(mine)
            self.questions += 1
            self.repeated_in_dialog += again
            if len(mine):
                self._remember(mine, again)

    def repeated(self) -> int:
        """How many questions repeat an earlier one, of whatever dialog."""
        alike = np.array(self._known, dtype=np.bool_)
        for band in np.frombuffer(self._bands, dtype=np.uint64).reshape(-1, self._banding.bands).T:
            order = np.argsort(band, kind="stable")
            edges = np.concatenate(([0], np.flatnonzero(np.diff(band[order])) + 1, [len(order)]))
            for group in np.flatnonzero(np.diff(edges) > 1):
                rows = order[edges[group] : edges[group + 1]]
                for place, row in enumerate(rows[1:], start=1):
                    alike[row] = alike[row] or any(self._alike(row, other) for other in rows[:place])
        return self._word_for_word + int(alike.sum())

    def _remember(self, shingles: Shingles, known: bool) -> None:
        content = shingles.tobytes()
        if hash(content) in self._seen:
            self._word_for_word += 1
            return
        self._seen.add(hash(content))
        self._bands.frombytes(self._banding.hashes(shingles).tobytes())
        self._shingles.frombytes(content)
        self._ends.append(len(self._shingles))
        self._known.append(known)

    def _alike(self, row: int, other: int) -> bool:
        return jaccard(self._of(row), self._of(other)) >= self._threshold

    def _of(self, row: int) -> Shingles:
        return np.frombuffer(self._shingles, dtype=np.uint32)[self._ends[row] : self._ends[row + 1]]


def _whole(dialog: Dialog) -> str:
    return "\n".join(text for turn in dialog.turns for text in (turn.query, turn.answer))


def _utterances(dialog: Dialog) -> Iterator[tuple[str, int]]:
    for turn in dialog.turns:
        yield turn.query, _LEAST_QUESTION_WORDS
        yield turn.answer, _LEAST_ANSWER_WORDS


def _references(path: Path) -> Iterator[tuple[str, str]]:
    """Where a text stands in a test file (`file:line` or `file:record`), and the text: every string at any depth."""
    if not path.name.endswith(_TEST_FILES):
        raise ConfigError(f"dedup.against: {path} must be a file of one of the kinds {', '.join(_TEST_FILES)}")
    try:
        for number, record in _records(path):
            yield from ((f"{path}:{number}", text) for text in _strings(record))
    except RecursionError as error:
        raise ConfigError(f"dedup.against: can't read {path}: it is nested too deeply") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise ConfigError(f"dedup.against: can't read {path}: {describe(error)}") from error


def _records(path: Path) -> Iterator[tuple[int, object]]:
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        batches = ParquetFile(path).iter_batches()
        yield from enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        kind = Path(path.name.removesuffix(".gz")).suffix
        if kind == ".json":
            content = json.loads(read_whole(file))
            yield from enumerate(content if isinstance(content, list) else [content], start=1)
            return
        for number, line in enumerate(read_lines(file), start=1):
            if kind == ".txt":
                yield number, line
            elif line.strip():
                try:
                    yield number, json.loads(line)
                except json.JSONDecodeError as error:
                    raise ValueError(f"line {number} is no JSON ({error.msg})") from error


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
