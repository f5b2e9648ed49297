"""An index of a library's passages in Elasticsearch: made, filled, continued where it was broken off, and checked."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from generator.common.console import note
from generator.corpora.library import Library
from generator.errors import RetrieverError, describe
from generator.retrievers.elastic.answers import Count, Indexes, Load, Lookup, Refusal, Unreadable, read
from generator.retrievers.elastic.server import Server, speaks_as_elasticsearch
from generator.schema import Passage, Record, Split

Part = Literal["bm25", "dense", "elser"]
Fields = dict[str, Any]

# Of the documents in an index; a change in what they hold counts it up.
FORMAT = 1
# Bits of a document's split key: what any JSON parser keeps exactly.
KEY_BITS = 53
_LOOKED_UP = 1000
# The most values that Elasticsearch takes in one `terms` query.
_MOST_TERMS = 65_536
_NOTE_EVERY_S = 10.0
# Longer than any English stop word that Elasticsearch leaves out, so it finds the passage that it is from.
_CONTENT_WORD = re.compile(r"[^\W\d_]{6,}")


class Contents(Record):
    """What an index holds, as its mapping says in `_meta`; an index of anything else is refused.

    `parts` are the ways it can be searched; `model` made the dense vectors, `elser_model` the token weights.
    """

    made_by: str = "grounded-dialogs"
    format: int = FORMAT
    corpus: str
    fingerprint: str
    passage_tokens: int
    overlap: int
    parts: tuple[Part, ...]
    model: str | None
    elser_model: str | None


_NAMES = {
    "made_by": "program",
    "format": "format",
    "corpus": "corpus",
    "fingerprint": "documents (fingerprint)",
    "passage_tokens": "retriever.passage_tokens",
    "overlap": "retriever.overlap",
    "parts": "parts (retriever.mode)",
    "model": "retriever.model",
    "elser_model": "retriever.elser_model",
}


def document_keys(library: Library) -> NDArray[np.uint64]:
    """`Library.split_keys`, as an index holds them; shape (documents,)."""
    return library.split_keys() >> np.uint64(64 - KEY_BITS)


def split_filters(library: Library, validation: NDArray[np.bool_]) -> dict[Split, Fields | None]:
    """For each split the clause that keeps to its documents; None where all documents are its own.

    The documents of validation are those with the lowest keys, so one bound tells them apart, however many they are.
    A choice of another kind is told document by document.
    """
    if not validation.any() or validation.all():
        return {"train": None, "validation": None}
    keys = document_keys(library)
    bound = int(keys[validation].max())
    if bound < int(keys[~validation].min()):
        return {
            "train": {"range": {"split_key": {"gt": bound}}},
            "validation": {"range": {"split_key": {"lte": bound}}},
        }
    smaller = validation if validation.sum() * 2 <= len(validation) else ~validation
    rows = np.flatnonzero(smaller)
    if len(rows) > _MOST_TERMS:
        raise RetrieverError(
            f"retriever=elasticsearch: can tell at most {_MOST_TERMS} chosen documents from the others, not "
            f"{len(rows)}; choose them by Library.validation, for which there is no limit"
        )
    inside: Fields = {"terms": {"document": rows.tolist()}}
    outside: Fields = {"bool": {"must_not": [inside]}}
    return (
        {"train": outside, "validation": inside} if smaller is validation else {"train": inside, "validation": outside}
    )


class Index:
    """One index and what belongs in it.

    Args:
        name: of the index.
        properties: of the mapping, for the fields that `fields` makes.
        fields: the fields of some passages that are particular to the ways of searching, such as vectors.
        chunk: passages sent at a time.
        shards: of the index if it is made.
    """

    def __init__(
        self,
        server: Server,
        name: str,
        contents: Contents,
        library: Library,
        properties: Fields,
        fields: Callable[[Sequence[Passage]], list[Fields]],
        chunk: int,
        shards: int,
    ) -> None:
        self._server, self.name, self._contents, self._library = server, name, contents, library
        self._properties, self._fields, self._chunk, self._shards = properties, fields, chunk, shards

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        return document_keys(self._library)

    @property
    def _shown(self) -> str:
        return f"index {self.name} at {self._server.access.where}"

    def build(self) -> None:
        """See that the index is there and whole; only what is missing is sent.

        Raises:
            RetrieverError: the index holds something else, or can't be made, filled or read; one line. What was loaded
                stays, and the next call goes on from there.
        """
        with self._alone():
            meta = self._meta()
            new = meta is None and self._create()
            if not new:
                meta = self._compared(meta or self._meta() or {})
                if meta.get("complete") and self._count() == self._library.passage_count:
                    return
            self._load(new)
            self._finish()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of several processes that want the same index one builds, and the others wait."""
        lock = FileLock(self._library.folder / f"{self.name[-100:]}.lock")
        try:
            lock.acquire()
        except OSError as error:
            raise RetrieverError(f"can't write {lock.lock_file}: {describe(error)}; set another cache_dir") from error
        try:
            yield
        finally:
            lock.release()

    def _meta(self) -> Fields | None:
        """What the index says of itself; None if there is no such index."""

        def look(client: Any) -> Indexes | None:
            from elasticsearch import NotFoundError

            try:
                return read(Indexes, client.indices.get_mapping(index=self.name))
            except NotFoundError as error:
                if not speaks_as_elasticsearch(error):
                    raise
                return None

        found = self._server.ask("looking for the index", look, at_once=True)
        if found is None:
            return None
        if len(found.root) != 1:
            raise RetrieverError(
                f"{self._shown}: is an alias of {len(found.root)} indexes; name one as retriever.index"
            )
        return next(iter(found.root.values())).mappings.meta

    def _compared(self, meta: Fields) -> Fields:
        wanted = self._contents.model_dump(mode="json")
        for key, value in wanted.items():
            if meta.get(key) != value:
                there = "none" if meta.get(key) is None else _text(meta[key])
                raise RetrieverError(
                    f"{self._shown}: was built with another {_NAMES[key]}, {there}, where this command has "
                    f"{_text(value)}; leave retriever.index out or give another name, or delete that index"
                )
        return meta

    def _create(self) -> bool:
        """True if the index was made, False if somebody else just did."""
        mappings = {
            "dynamic": "strict",
            "_meta": self._contents.model_dump(mode="json") | {"complete": False},
            "properties": {"row": {"type": "integer"}, "document": {"type": "integer"}, "split_key": {"type": "long"}}
            | self._properties,
        }
        # Without copies and refreshes loading is fastest.
        settings = {"number_of_shards": self._shards, "number_of_replicas": 0, "refresh_interval": "-1"}

        def create(client: Any) -> bool:
            from elasticsearch import BadRequestError

            try:
                client.indices.create(index=self.name, mappings=mappings, settings=settings)
            except BadRequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
                return False
            return True

        return self._server.ask("making the index", create)

    def _load(self, new: bool) -> None:
        total = self._library.passage_count
        note(f"{self._shown}: loading {total} passages" if new else f"{self._shown}: looking for what is missing")
        done = sent = 0
        start = last = time.monotonic()
        for passages, known in self._chunks(new):
            missing = [item for item in passages if item[0] not in known]
            if missing:
                self._send(missing)
            done, sent, now = done + len(passages), sent + len(missing), time.monotonic()
            if now - last >= _NOTE_EVERY_S:
                last = now
                left = (total - done) * (now - start) / done
                note(f"{self._shown}: {done} of {total} passages, some {left / 60:.0f} min left")
        note(f"{self._shown}: {sent} passages loaded in {time.monotonic() - start:.0f} s")

    def _chunks(self, new: bool) -> Iterator[tuple[list[tuple[int, Passage]], set[int]]]:
        """All passages by row, some at a time, with the rows of those that the server has."""
        rows = enumerate(self._library.passages())
        while several := list(islice(rows, _LOOKED_UP)):
            known = set() if new else self._known([row for row, _ in several])
            for first in range(0, len(several), self._chunk):
                yield several[first : first + self._chunk], known

    def _known(self, rows: list[int]) -> set[int]:
        ids = [str(row) for row in rows]
        found = self._server.ask(
            "looking for what is missing",
            lambda client: read(Lookup, client.mget(index=self.name, ids=ids, source=False)),
        )
        return {held.row for held in found.docs if held.found}

    def _send(self, passages: list[tuple[int, Passage]]) -> None:
        """Load some passages; those that the server had no time for are sent again."""
        documents = self._library.document_rows
        waiting = []
        for (row, _), fields in zip(passages, self._fields([p for _, p in passages]), strict=True):
            document = int(documents[row])
            common = {"row": row, "document": document, "split_key": int(self._keys[document])}
            waiting.append((str(row), common | fields))

        # `elasticsearch.helpers` repeats rejected items too, but gives up when a connection breaks between them.
        def send(client: Any) -> None:
            nonlocal waiting
            operations = [line for name, body in waiting for line in ({"index": {"_id": name}}, body)]
            items = read(Load, client.bulk(index=self.name, operations=operations)).items
            if len(items) != len(waiting):
                raise Unreadable(f"{len(items)} answers to {len(waiting)} passages")
            answers = [next(iter(item.values())) for item in items]
            refused = {answer.name: Refusal(answer.status, answer.error) for answer in answers if answer.status >= 300}
            waiting = [item for item in waiting if item[0] in refused]
            # One that stays is told first: the others may only be waiting for their turn.
            for refusal in sorted(refused.values(), key=self._server.transient):
                raise refusal

        self._server.ask("loading passages", send)

    def _count(self) -> int:
        return self._server.ask("counting passages", lambda c: read(Count, c.count(index=self.name))).count

    def _finish(self) -> None:
        meta = self._contents.model_dump(mode="json") | {"complete": True}
        ask, name, total = self._server.ask, self.name, self._library.passage_count
        ask(
            "ending the load",
            lambda c: c.indices.put_settings(index=name, settings={"index": {"refresh_interval": None}}),
        )
        ask("refreshing the index", lambda c: c.indices.refresh(index=name))
        count = self._count()
        if count != total:
            raise RetrieverError(
                f"{self._shown}: holds {count} passages after loading, not {total}; delete that index, or give another "
                "as retriever.index, and the same command builds it anew"
            )
        ask("ending the load", lambda c: c.indices.put_mapping(index=name, meta=meta))

    def sample(self) -> tuple[str, bool]:
        """A text to search for, and whether every way of searching must find something for it."""
        passages = islice(self._library.passages(), _LOOKED_UP)
        for passage in passages:
            if word := _CONTENT_WORD.search(passage.text):
                return word.group(), True
        return self._library.passage(0).text[:100], False


def _text(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)
