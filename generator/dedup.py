"""Near-duplicates: of questions inside a dialog, of dialogs among each other, and of dialogs with test sets.

Two texts are alike when the Jaccard similarity of their shingles is at least the threshold. MinHash with banding
(Broder 1997; `datasketch`) only finds candidates, and each is compared exactly: nothing is called alike that isn't, and
a little is missed. The result depends on the texts and on the order in which they are added, and on nothing else.
"""

import gzip
import json
import sqlite3
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from generator.errors import ConfigError, RunError
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
    """The dialogs kept so far, in temporary files: memory doesn't grow with them (`docs/performance.md`).

    Raises:
        ConfigError: a file of `against` can't be read.
        RunError: there is no room for the temporary files; so do `check` and `add`.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self._between_dialogs = settings.between_dialogs
        banding = _Banding(settings)
        self._dialogs = _Index(text_shingles, settings.threshold, banding)
        self._first_questions = _Index(question_shingles, settings.threshold, banding)
        self._references = _Index(question_shingles, settings.threshold, banding)
        for path in settings.against:
            for where, text in _references(path.expanduser()):
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
    """How many questions of a set repeat an earlier one, by `generator.shingles.question_shingles`.

    Nothing is compared before all are there: so a question takes the hashes of its bands and its shingles, some 300
    bytes of memory, and no index. One asked before word for word takes none.

    Attributes:
        questions: how many were added.
        repeated_in_dialog: those that repeat an earlier one of their own dialog; all of these are found.
    """

    def __init__(self, settings: DedupSettings) -> None:
        self.questions = self.repeated_in_dialog = 0
        self._threshold = settings.threshold
        self._banding = _Banding(settings)
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


class _Match(NamedTuple):
    name: str
    exact: bool


class _Looked(NamedTuple):
    """A text as it is looked at: its shingles, the hashes of its bands as SQLite keeps integers, its words' digest."""

    text: str
    shingles: Shingles
    bands: list[int]
    digest: bytes


class _Banding:
    """What makes two texts candidates: an equal band in their signatures, known by a hash of 64 bits.

    Bands and rows are those with the least cost if a miss weighs 19 times as much as a false candidate, which costs
    microseconds. With b bands of r rows a pair that is s alike becomes a candidate with probability
    1 - (1 - s^r)^b: at the defaults (threshold 0.8, 128 permutations: 16 bands of 8) that is 0.947 at s = 0.8 and
    0.99996 at s = 0.91; equal texts always do.

    Attributes:
        bands: how many there are.
    """

    def __init__(self, settings: DedupSettings) -> None:
        from datasketch import MinHash, MinHashLSH

        lsh = MinHashLSH(threshold=settings.threshold, num_perm=settings.num_perm, weights=(0.05, 0.95))
        self.bands = lsh.b
        self._empty = MinHash(num_perm=settings.num_perm, seed=1, hashfunc=int)
        self._factors = np.random.default_rng(1).integers(1 << 63, size=(lsh.b, lsh.r), dtype=np.uint64)

    def hashes(self, shingles: Shingles) -> NDArray[np.uint64]:
        """One for each band; shape (bands,)."""
        signature = self._empty.copy()
        signature.update_batch(shingles.tolist())
        values = signature.hashvalues[: self._factors.size].reshape(self._factors.shape)
        return (values * self._factors).sum(axis=1, dtype=np.uint64)


class _Index:
    """Texts that can be found by what is like them.

    They lie in a temporary database of SQLite: a file without a name, gone with the process; memory holds 2 MB of it.
    """

    def __init__(self, shingles: Callable[[str], Shingles], threshold: float, banding: _Banding) -> None:
        self._shingles, self._threshold, self._banding = shingles, threshold, banding
        self._last: _Looked | None = None
        self._count = 0
        with _roomy():
            # What is written is never committed: that would do nothing but flush it.
            self._db = sqlite3.connect("")
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("CREATE TABLE texts (number INTEGER PRIMARY KEY, name TEXT, digest BLOB, shingles BLOB)")
            self._db.execute(
                "CREATE TABLE bands (hash INTEGER, number INTEGER, PRIMARY KEY (hash, number)) WITHOUT ROWID"
            )
        self._candidates = (
            "SELECT number, name, digest, shingles FROM texts WHERE number IN "
            f"(SELECT number FROM bands WHERE hash IN ({', '.join('?' * self._banding.bands)}))"
        )

    def __len__(self) -> int:
        return self._count

    def add(self, text: str, name: str) -> None:
        """Remember a text."""
        looked = self._looked(text)
        number, self._count = self._count, self._count + 1
        with _roomy():
            row = (number, name, looked.digest, looked.shingles.tobytes())
            self._db.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", row)
            bands = ((band, number) for band in looked.bands)
            self._db.executemany("INSERT OR IGNORE INTO bands VALUES (?, ?)", bands)

    def nearest(self, text: str) -> _Match | None:
        """The first of the texts that are most like `text`, if any is like it."""
        if not self._count:
            return None
        looked = self._looked(text)
        alike: list[tuple[bool, float, int, str]] = []
        with _roomy():
            for number, name, hashed, content in self._db.execute(self._candidates, looked.bands):
                similarity = jaccard(looked.shingles, np.frombuffer(content, dtype=np.uint32))
                if similarity >= self._threshold:
                    alike.append((hashed == looked.digest, similarity, -number, name))
        if not alike:
            return None
        exact, _, _, name = max(alike)
        return _Match(name, exact)

    def _looked(self, text: str) -> _Looked:
        """A text that isn't found is added next: it is looked at once."""
        if self._last is None or self._last.text != text:
            shingles = self._shingles(text)
            bands = self._banding.hashes(shingles).view(np.int64).tolist()
            self._last = _Looked(text, shingles, bands, digest(text))
        return self._last


@contextmanager
def _roomy() -> Iterator[None]:
    """Say where room is needed, if there is none."""
    try:
        yield
    except sqlite3.Error as error:
        raise RunError(
            f"dedup: can't keep the dialogs in a temporary file ({error}); make room in $TMPDIR, or in /var/tmp if "
            "that isn't set, and the same command continues"
        ) from error


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
