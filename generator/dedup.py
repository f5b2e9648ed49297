"""Near-duplicates: of questions inside a dialog, of dialogs among each other, and of dialogs with test sets.

Two texts are alike when the Jaccard similarity of their shingles is at least the threshold. MinHash with banding
(Broder 1997; `datasketch`) only finds candidates, and each is compared exactly: nothing is called alike that isn't, and
a little is missed. The result depends on the texts and on the order in which they are added, and on nothing else.
"""

import gzip
import json
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from generator.errors import ConfigError
from generator.schema import Dialog, OneOrMore, Record
from generator.shingles import Shingles, digest, jaccard, question_shingles, text_shingles, words

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
    against: Annotated[tuple[Path, ...], OneOrMore]


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
    """Finds the question that another one repeats inside a dialog, by `generator.shingles.question_shingles`."""

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold

    def earlier(self, question: str, earlier: Sequence[str]) -> str | None:
        """The first of `earlier` that `question` repeats, if any. Few and short, they are compared without MinHash."""
        mine = question_shingles(question)
        return next((other for other in earlier if jaccard(mine, question_shingles(other)) >= self._threshold), None)


class Deduplicator:
    """The dialogs kept so far. To `add` one of 300 words takes 0.6 ms and 13 kB of memory.

    Raises:
        ConfigError: a file of `against` can't be read.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self._between_dialogs = settings.between_dialogs
        self._dialogs = _Index(text_shingles, settings)
        self._first_questions = _Index(question_shingles, settings)
        self._references = _Index(question_shingles, settings)
        for path in settings.against:
            for where, text in _references(path.expanduser()):
                if len(words(text)) >= _LEAST_QUESTION_WORDS:
                    self._references.add(text, where)

    def check(self, dialog: Dialog) -> Duplicate | None:
        """What `dialog` duplicates, if anything.

        A first question is a duplicate whatever document it is about: the same opening again teaches a model little.
        """
        for text, least in _utterances(dialog):
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
    """How many questions of a set repeat an earlier one, by `generator.shingles.question_shingles`.

    Nothing is compared before all are there: so a question takes the hashes of its bands and its shingles, some 300
    bytes, in place of the 5 kB of an index that can be asked at any time. One asked before word for word takes none.

    Attributes:
        questions: how many were added.
        repeated_in_dialog: those that repeat an earlier one of their own dialog; all of these are found.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self.questions = self.repeated_in_dialog = 0
        self._threshold = settings.threshold
        self._empty, lsh = _banding(settings)
        self._shape = lsh.b, lsh.r
        self._factors = np.random.default_rng(1).integers(1 << 63, size=lsh.r, dtype=np.uint64)
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
        for band in np.frombuffer(self._bands, dtype=np.uint64).reshape(-1, self._shape[0]).T:
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
        bands, rows = self._shape
        values = _signature(self._empty, shingles).hashvalues[: bands * rows].reshape(self._shape)
        self._bands.frombytes((values * self._factors).sum(axis=1, dtype=np.uint64).tobytes())
        self._shingles.frombytes(content)
        self._ends.append(len(self._shingles))
        self._known.append(known)

    def _alike(self, row: int, other: int) -> bool:
        return jaccard(self._of(row), self._of(other)) >= self._threshold

    def _of(self, row: int) -> Shingles:
        return np.frombuffer(self._shingles, dtype=np.uint32)[self._ends[row] : self._ends[row + 1]]


class _Match(NamedTuple):
    name: str
    exact: bool


class _Entry(NamedTuple):
    name: str
    digest: bytes
    shingles: Shingles


class _Index:
    """Texts that can be found by what is like them.

    The banding weighs a miss 19 times as much as a false candidate, which costs microseconds. With b bands of r rows a
    pair that is s alike becomes a candidate with probability 1 - (1 - s^r)^b: at the defaults (threshold 0.8, 128
    permutations: 16 bands of 8) that is 0.947 at s = 0.8 and 0.99996 at s = 0.91; equal texts always do.
    """

    def __init__(self, shingles: Callable[[str], Shingles], settings: DedupSettings) -> None:
        self._shingles = shingles
        self._threshold = settings.threshold
        self._empty, self._lsh = _banding(settings)
        self._entries: list[_Entry] = []

    def add(self, text: str, name: str) -> None:
        shingles = self._shingles(text)
        self._lsh.insert(len(self._entries), _signature(self._empty, shingles), check_duplication=False)
        self._entries.append(_Entry(name, digest(text), shingles))

    def nearest(self, text: str) -> _Match | None:
        """The first of the texts that are most like `text`, if any is like it."""
        if not self._entries:
            return None
        shingles, same = self._shingles(text), digest(text)
        candidates = self._lsh.query(_signature(self._empty, shingles))
        similarity = {n: jaccard(shingles, self._entries[n].shingles) for n in candidates}
        alike = [n for n in candidates if similarity[n] >= self._threshold]
        if not alike:
            return None
        best = max(alike, key=lambda n: (self._entries[n].digest == same, similarity[n], -n))
        return _Match(self._entries[best].name, self._entries[best].digest == same)


def _banding(settings: DedupSettings) -> tuple[Any, Any]:
    """The signature of nothing, and an empty index, which knows its number of bands `b` and of rows `r`."""
    from datasketch import MinHash, MinHashLSH

    empty = MinHash(num_perm=settings.num_perm, seed=1, hashfunc=int)
    return empty, MinHashLSH(threshold=settings.threshold, num_perm=settings.num_perm, weights=(0.05, 0.95))


def _signature(empty: Any, shingles: Shingles) -> Any:
    signature = empty.copy()
    signature.update_batch(shingles.tolist())
    return signature


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
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"dedup.against: can't read {path}: {reason}") from error


def _records(path: Path) -> Iterator[tuple[int, object]]:
    if path.suffix == ".parquet":
        from pyarrow.parquet import ParquetFile

        batches = ParquetFile(path).iter_batches()
        yield from enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        kind = Path(path.name.removesuffix(".gz")).suffix
        if kind == ".json":
            content = json.load(file)
            yield from enumerate(content if isinstance(content, list) else [content], start=1)
            return
        for number, line in enumerate(file, start=1):
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
