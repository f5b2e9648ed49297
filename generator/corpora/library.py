"""Keep the documents and passages of a corpus on disk, so that millions take no more memory than a few.

A library is built once for each content of the corpus and each passage size, and only read afterwards. Rows count
from 0, in the order of the corpus; the passages of a document are neighbours.
"""

import hashlib
import shutil
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

import numpy as np
from filelock import AcquireReturnProxy, FileLock, Timeout
from numpy.typing import NDArray

from generator.common.atomic_files import write_text
from generator.common.console import PACE_S, counted, note
from generator.common.detection import BEGINNING, MOST, SAMPLE, detect_language
from generator.common.language import ENGLISH, load_language
from generator.common.language_file import Language
from generator.common.passages import passage, windows
from generator.corpora.base import ChunkedDocument, LocatedDocument
from generator.errors import CorpusError, RetrieverError, describe
from generator.schema import Document, Evidence, Passage

_CUTS = 3  # part of a library's name; a change in where passages are cut increments it
_NO_SPACES = dict.fromkeys(code for code in range(0x3001) if chr(code).isspace())


def wait_for(file: Path, told: str) -> AcquireReturnProxy:
    """Return the lock of a file that one process at a time holds; `told` says what another one is doing meanwhile."""
    lock = FileLock(file)
    try:
        return lock.acquire(timeout=PACE_S)
    except Timeout:
        note(f"{told}; waiting")
        return lock.acquire()


def built_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return `folder`, which `build` fills if it doesn't exist yet.

    It is filled under another name and then renamed, so an interrupted build is never taken for a whole one. If several
    processes need the same folder, one builds it and the others wait.

    Raises:
        RetrieverError: the folder can't be written.
    """
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with wait_for(folder.with_name(f"{folder.name}.lock"), f"{folder}: another process builds it"):
                try:
                    if not folder.exists():
                        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
                        unfinished.mkdir()
                        build(unfinished)
                        unfinished.replace(folder)
                finally:
                    shutil.rmtree(unfinished, ignore_errors=True)
    except (OSError, sqlite3.Error) as error:
        raise RetrieverError(f"can't write {folder}: {describe(error)}; set another cache_dir") from error
    return folder


class Library:
    """Opened by `Library.open`; safe to read from several threads.

    Attributes:
        folder: its place on disk; indexes of its passages go in there, through `built_once`.
        corpus, fingerprint, size, overlap: the arguments of `open`.
        copies: the rows of documents with the text of another, each with that of the first; shape (copies, 2).
        document_rows: for each passage the row of its document, rising; shape (passages,).
        language: of the documents; English until it is set.
    """

    folder: Path
    document_rows: NDArray[np.int32]
    language: Language

    def __init__(
        self, folder: Path, corpus: str, fingerprint: str, size: int, overlap: int, language: Language = ENGLISH
    ) -> None:
        self.folder, self.language = folder, language
        self.corpus, self.fingerprint, self.size, self.overlap = corpus, fingerprint, size, overlap
        with as_retriever_error(folder):
            self.document_rows, self._starts, self._ends = np.load(folder / "passages.npy", mmap_mode="r")
            address = f"{(folder / 'documents.db').resolve().as_uri()}?mode=ro"
            self._db = sqlite3.connect(address, uri=True, check_same_thread=False)
            (self._documents,) = self._db.execute("SELECT max(row) + 1 FROM documents").fetchone()
            named = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'passages'").fetchone()
            self._given = named is not None
            self.copies = self._db.execute("SELECT row, first FROM copies").fetchall()

    @classmethod
    def open(
        cls,
        corpus: str,
        fingerprint: str,
        documents: Callable[[], Iterable[Document]],
        cache_dir: Path,
        size: int,
        overlap: int,
    ) -> "Library":
        """Return the library of a corpus, built by reading `documents()` if it doesn't exist yet.

        Args:
            corpus, fingerprint: equal ones mean equal documents; they name the folder, with `size` and `overlap`.
            documents: called only to build.
            size, overlap: of passages, in tokens; see `generator.common.passages.windows`.

        Raises:
            CorpusError: there is no document, or two have the same id.
            RetrieverError: the library can't be written or read.
        """

        def build(folder: Path) -> None:
            _build(corpus, folder, documents(), size, overlap)

        folder = built_once(cache_dir / f"{corpus}-{fingerprint[:12]}-{size}-{overlap}-{_CUTS}", build)
        return cls(folder, corpus, fingerprint, size, overlap)

    def __reduce__(self) -> tuple[type["Library"], tuple[Path, str, str, int, int, Language]]:
        """Pickle as the folder, which the other process opens."""
        return Library, (self.folder.absolute(), self.corpus, self.fingerprint, self.size, self.overlap, self.language)

    def close(self) -> None:
        self._db.close()

    def __len__(self) -> int:
        """Return the number of documents."""
        return self._documents

    @property
    def passage_count(self) -> int:
        return len(self.document_rows)

    def find_language(self, setting: str, code: str | None, folder: Path | None = None) -> str:
        """Set `language`, and return what to tell the user of it.

        Args:
            setting: the name of the one that has `code`.
            code: null: it is found in a sample of the documents, once for each library.
            folder: as in `load_language`.
        """
        told = ""
        if code is None:
            found = self.folder / "language.txt"
            if not _has_text(found):
                with wait_for(found.with_suffix(".lock"), f"{found}: another process finds the language"):
                    if not _has_text(found):
                        rows = sorted({round(place * (len(self) - 1) / SAMPLE) for place in range(SAMPLE + 1)})
                        texts = [self.document(row).text[:BEGINNING] for row in rows]
                        most, count = detect_language(texts)
                        write_text(found, f"{most or '?'} {count} {len(texts)}\n")
            code, sure, total = found.read_text(encoding="utf-8").split()
            if code == "?":
                code = "en"
                told = f"{setting}: no half of the documents is in one language, so English is assumed; set it if not"
            else:
                name = load_language(code, folder).name
                told = f"{setting}: {name} ({code}), found in {sure} of {total} documents looked at"
                if int(sure) < MOST * int(total):
                    told += f"; all are searched as {name}: if some are in another language, make a corpus for each"
        self.language = load_language(code, folder)
        return told

    def document(self, row: int) -> Document:
        """Return the document of a row.

        Raises:
            RetrieverError: the library is damaged. So does every method that reads documents, passages or ids.
        """
        query = "SELECT id, title, url, text FROM documents WHERE row = ?"
        with as_retriever_error(self.folder):
            name, title, url, text = self._db.execute(query, (int(row),)).fetchone()
            return Document(id=name, title=title, url=url, text=text)

    def find(self, document_id: str) -> int:
        """Return the row of the document with this id."""
        row = self.row(document_id)
        with as_retriever_error(self.folder):
            if row is None:
                raise ValueError(f"no document {document_id!r}")
            return row

    def get(self, document_id: str) -> Document | None:
        """Return the document with this id; None if there is none."""
        row = self.row(document_id)
        return None if row is None else self.document(row)

    def row(self, document_id: str) -> int | None:
        """Return the row of the document with this id; None if there is none."""
        with as_retriever_error(self.folder):
            found = self._db.execute("SELECT row FROM documents WHERE id = ?", (document_id,)).fetchone()
            return None if found is None else int(found[0])

    def passage(self, row: int) -> Passage:
        return self._passage(self.document(self.document_rows[row]), row)

    def documents(self, rows: range | None = None) -> Iterator[tuple[Document, list[Passage]]]:
        """Yield the documents of some rows, or all, each with its passages in order."""
        for document_row in range(len(self)) if rows is None else rows:
            document = self.document(document_row)
            yield document, [self._passage(document, row) for row in self.passage_rows(document_row)]

    def passages(self, rows: range | None = None) -> Iterator[Passage]:
        """Yield the passages of some rows, or all, in order."""
        rows = range(self.passage_count) if rows is None else rows
        if not rows:
            return
        first, last = (int(self.document_rows[row]) for row in (rows[0], rows[-1]))
        passages = chain.from_iterable(passages for _, passages in self.documents(range(first, last + 1)))
        before = self.passage_rows(first).start
        yield from islice(passages, rows.start - before, rows.stop - before)

    def passage_rows(self, document_row: int) -> range:
        """Return the rows of the passages of a document."""
        # Of the rows' own type: else NumPy converts all of them at each call.
        first, end = np.searchsorted(self.document_rows, np.array([document_row, document_row + 1], dtype=np.int32))
        return range(int(first), int(end))

    def rows_of(self, sentence: Evidence, passage: Passage) -> Iterator[int]:
        """Yield the rows of the passages that hold a sentence, given the passage that it was taken from."""
        start, end = passage.start + sentence.start, passage.start + sentence.end
        for row in self.passage_rows(self.find(passage.document_id)):
            if self._starts[row] <= start and end <= self._ends[row]:
                yield row

    def validation(self, share: float, least: int) -> NDArray[np.bool_]:
        """Return the mask of the validation documents; shape (documents,).

        Documents are drawn before anything is generated, so that train and validation never share one, and by the hash
        of their id, so that the order of the corpus doesn't matter. Their number is `share` (0 to 1) of all, or `least`
        if that is more and at most a third of all; none if `share` is 0; never all. Copies of a document are in its
        split, so that the number is about that.
        """
        count = len(self)
        chosen = min(max(round(share * count), min(least, count // 3)), count - 1) if share > 0 else 0
        if not chosen:
            return np.zeros(count, dtype=np.bool_)
        keys = self.split_keys()
        bound = np.sort(keys)[chosen - 1]
        return keys <= bound if bound < keys.max() else keys < bound  # the copies of one are left to train on

    def split_keys(self) -> NDArray[np.uint64]:
        """Return a key for each document, the lowest of which are validation's; shape (documents,).

        It is the hash of the document's id; that of the first one for copies, so that one bound separates the splits.
        """
        with as_retriever_error(self.folder):
            rows = self._db.execute("SELECT id FROM documents ORDER BY row")
            keys = np.fromiter((split_key(row[0]) for row in rows), dtype=np.uint64, count=len(self))
        for row, first in self.copies:
            keys[row] = keys[first]
        return keys

    def _passage(self, document: Document, row: int) -> Passage:
        cut = passage(document, int(self._starts[row]), int(self._ends[row]))
        if not self._given:
            return cut
        with as_retriever_error(self.folder):
            name, title, url = self._db.execute(
                "SELECT id, title, url FROM passages WHERE row = ?", (int(row),)
            ).fetchone()
        return cut.model_copy(update={"id": name, "title": title, "url": url})


def _has_text(file: Path) -> bool:
    """Return whether a file is there and not empty, as a loss of power may leave it."""
    return file.is_file() and file.stat().st_size > 0


def _keep_passages(db: sqlite3.Connection, document: ChunkedDocument, first: int) -> None:
    """Write what the passages of a document are called, if they were given; `first` is the row of the first one."""
    db.execute("CREATE TABLE IF NOT EXISTS passages (row INTEGER PRIMARY KEY, id TEXT, title TEXT, url TEXT)")
    rows = ((row, span.id, span.title, span.url) for row, span in enumerate(document.spans, first))
    db.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)


def _digest(text: str) -> int:
    """Return a hash of a text's letters, of 64 bits: copies differ in white space, perhaps."""
    letters = text.casefold().translate(_NO_SPACES)  # a list of a long text's words would take ten times its memory
    return int.from_bytes(hashlib.sha256(letters.encode(errors="replace")).digest()[:8], signed=True)


def split_key(document_id: str) -> int:
    """Return the hash of a document's id, of 64 bits, that decides its split."""
    return int.from_bytes(hashlib.sha256(document_id.encode()).digest()[:8])


@contextmanager
def as_retriever_error(folder: Path) -> Iterator[None]:
    """Raise RetrieverError, one line, at a damaged library, index or disk."""
    try:
        yield
    except (OSError, EOFError, ValueError, IndexError, sqlite3.Error) as error:
        reason = str(error).partition("\n")[0]
        raise RetrieverError(f"can't read {folder}: {reason}; delete that folder to build it again") from error


def _build(corpus: str, folder: Path, documents: Iterable[Document], size: int, overlap: int) -> None:
    spans = array("i")
    db = sqlite3.connect(folder / "documents.db")
    try:
        db.execute("PRAGMA journal_mode = OFF")  # nothing to roll back: an unfinished library is deleted
        db.execute("CREATE TABLE documents (row INTEGER PRIMARY KEY, id TEXT UNIQUE, title TEXT, url TEXT, text TEXT)")
        db.execute("CREATE TABLE digests (row INTEGER PRIMARY KEY, digest INTEGER)")
        for row, document in enumerate(counted(documents, "reading documents")):
            values = (row, document.id, document.title, document.url, document.text)
            try:
                db.execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", values)
            except sqlite3.IntegrityError:
                first = db.execute("SELECT row FROM documents WHERE id = ?", (document.id,)).fetchone()[0]
                where = f" ({document.where})" if isinstance(document, LocatedDocument) else ""
                raise CorpusError(
                    f"corpus {corpus}: documents {first + 1} and {row + 1}{where} have the same id {document.id!r}; "
                    "give each document a unique id"
                ) from None
            db.execute("INSERT INTO digests VALUES (?, ?)", (row, _digest(document.text)))
            if isinstance(document, ChunkedDocument):
                _keep_passages(db, document, len(spans) // 3)
                cuts: Iterable[tuple[int, int]] = ((span.start, span.end) for span in document.spans)
            else:
                cuts = windows(document.text, size, overlap, size // 8)
            for start, end in cuts:
                spans.extend((row, start, end))
        db.execute(
            "CREATE TABLE copies AS SELECT row, first FROM "
            "(SELECT row, min(row) OVER (PARTITION BY digest) AS first FROM digests) WHERE row > first"
        )
        db.execute("DROP TABLE digests")
        db.commit()
    finally:
        db.close()
    if not spans:
        raise CorpusError(f"corpus {corpus} has no document with text; check corpus.path")
    # Transposed: each of the three columns is contiguous when mapped into memory.
    np.save(folder / "passages.npy", np.array(spans, dtype=np.int32).reshape(-1, 3).T.copy())
