"""An index of a library's passages in Elasticsearch: created, filled, continued after an interruption, and checked."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from generator.common.console import note, paced
from generator.corpora.library import Library, wait_for
from generator.errors import RetrieverError, describe
from generator.retrievers.elastic.server import Refusal, Server, body, missing_shards
from generator.retrievers.encoder import Encoder
from generator.schema import Passage, Record, Split

if TYPE_CHECKING:
    from generator.retrievers.elastic.retriever import ElasticsearchSettings

Part = Literal["bm25", "dense", "elser"]
Fields = dict[str, Any]

# Version of the documents in an index; a change in what they hold, or in where passages are cut, increments it.
FORMAT = 5
# Bits of a document's split key: any JSON parser keeps integers of this size exactly.
KEY_BITS = 53
# Requests with passages that are under way at a time.
_REQUESTS = 4
# Passages that are looked up together, when a build continues.
_LOOKUP = 1000


class Contents(Record):
    """The contents of an index, stored as `_meta` in its mapping; an index of anything else is refused."""

    made_by: str = "grounded-dialogs"
    format: int = FORMAT
    corpus: str
    fingerprint: str
    passage_tokens: int
    overlap: int
    parts: tuple[Part, ...]
    model: str | None
    window: int | None
    window_overlap: int | None
    passage_prefix: str | None
    elser_model: str | None
    shards: int


# Names for an error message of what is no setting of the retriever's.
_NAMES = {
    "format": "format",
    "corpus": "corpus",
    "fingerprint": "documents (fingerprint)",
    "parts": "parts (retriever.mode)",
}


def _document_keys(library: Library) -> NDArray[np.uint64]:
    """Return `Library.split_keys` as an index holds them; shape (documents,)."""
    return library.split_keys() >> np.uint64(64 - KEY_BITS)


def split_filters(library: Library, validation: NDArray[np.bool_]) -> dict[Split, Fields | None]:
    """Return the filter clause of each split; None if no documents are kept for validation.

    Those that are have the lowest keys (`Library.validation`), so one bound separates the splits.
    """
    if not validation.any():
        return {"train": None, "validation": None}
    bound = int(_document_keys(library)[validation].max())
    return {"train": {"range": {"split_key": {"gt": bound}}}, "validation": {"range": {"split_key": {"lte": bound}}}}


class Index:
    """One index and what belongs in it; without an encoder it has no vectors."""

    def __init__(
        self, settings: "ElasticsearchSettings", server: Server, library: Library, encoder: Encoder | None
    ) -> None:
        self.settings, self.server, self.library, self.encoder = settings, server, library, encoder
        self.contents = settings.contents(library, encoder)
        self.name = settings.index_name(self.contents)
        self.place = f"index {self.name} at {settings.where}"

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        return _document_keys(self.library)

    def build(self) -> None:
        """Make sure that the index exists and is complete; only missing passages are sent.

        Of several processes that need the same index one builds it, and the others wait.

        Raises:
            RetrieverError: the index holds something else, or can't be created, filled or read; one line. What was
                loaded stays, and the next call continues from there.
        """
        file = self.library.folder / f"{quote(self.name, safe='')[-100:]}.lock"
        try:
            lock = wait_for(file, f"{self.place}: another process builds it")
        except OSError as error:
            raise RetrieverError(f"can't write {file}: {describe(error)}; set another cache_dir") from error
        with lock:
            meta = self._read_meta()
            created = meta is None and self._create()
            if not created:
                meta = meta or self._read_meta() or {}
                self._check_contents(meta)
                if meta.get("complete") and self._count() == self.library.passage_count:
                    return
            self._load(created)
            self._finish()

    def _read_meta(self) -> Fields | None:
        """Return what the index says of its contents; None if there is no such index."""
        found = self.server.request(
            "looking for the index",
            lambda client: body(client.options(ignore_status=404).indices.get_mapping(index=self.name)),
        )
        if found.get("status") == 404 or not found:  # as of a name with a wildcard
            return None
        return next(iter(found.values()))["mappings"].get("_meta", {})

    def _check_contents(self, meta: Fields) -> None:
        if meta.get("made_by") != self.contents.made_by:
            raise RetrieverError(
                f"{self.place}: was not made by grounded-dialogs; leave out retriever.index or give another name. To "
                "search an index of your own, use retriever=http (docs/retrieval.md)"
            )
        for key, wanted in self.contents.model_dump(mode="json").items():
            if meta.get(key) != wanted:
                raise RetrieverError(
                    f"{self.place}: holds another {_NAMES.get(key, f'retriever.{key}')}, {meta.get(key)} and "
                    f"not {wanted}; leave out retriever.index or give another name, or delete that index"
                )

    def _create(self) -> bool:
        """Create the index; return False if it already exists."""
        mappings = {
            "dynamic": "strict",
            "_meta": self.contents.model_dump(mode="json") | {"complete": False},
            "properties": {"row": {"type": "integer"}, "split_key": {"type": "long"}} | self._properties(),
        }
        # Loading is fastest without replicas and refreshes.
        settings = {"number_of_shards": self.contents.shards, "number_of_replicas": 0, "refresh_interval": "-1"}

        def create(client: Any) -> bool:
            from elasticsearch import BadRequestError

            try:
                client.indices.create(index=self.name, mappings=mappings, settings=settings)
            except BadRequestError as error:
                if error.error != "resource_already_exists_exception":  # created by an attempt whose answer was lost
                    raise
                return False
            return True

        return self.server.request("creating the index", create)

    def _properties(self) -> Fields:
        """Return the properties of the mapping; every index holds the text, so that users can look at it."""
        settings = self.settings
        analyzer = {"analyzer": self.library.language.elasticsearch}
        properties: Fields = {
            "text": {"type": "text"} | (analyzer if "bm25" in settings.searched else {"index": False})
        }
        if self.encoder is not None:
            # Without an index the vectors are kept as they are, and all are compared.
            dims = self.encoder.dimensions
            vector = {"type": "dense_vector", "element_type": "float", "dims": dims, "index": False}
            properties["windows"] = {"type": "nested", "properties": {"number": {"type": "integer"}, "vector": vector}}
        if "elser" in settings.searched:
            properties["elser"] = {
                "type": "semantic_text",
                "inference_id": settings.ingest_endpoint,
                "search_inference_id": settings.search_endpoint,
                "chunking_settings": {"strategy": "none"},  # passages are cut already
            }
        return properties

    def _load(self, new: bool) -> None:
        total = self.library.passage_count
        if self.encoder is not None:
            self.settings.note_unread(self.library, self.encoder)
        note(f"{self.place}: loading {total} passages" if new else f"{self.place}: looking for missing passages")
        done = sent = 0
        start, tell = time.monotonic(), paced()
        sending: deque[Future[None]] = deque()
        with ThreadPoolExecutor(_REQUESTS) as pool, self.server.giving_up_on_errors():
            for passages, known in self._chunks(new):
                if missing := [item for item in passages if item[0] not in known]:
                    # Encoded here, one chunk after another, while others are on their way.
                    sending.append(pool.submit(self._send, self._documents(missing)))
                if len(sending) > _REQUESTS:
                    sending.popleft().result()
                done, sent = done + len(passages), sent + len(missing)
                left = (total - done) * (time.monotonic() - start) / done
                tell(f"{self.place}: {done} of {total} passages, about {left / 60:.0f} min left")
            for request in sending:
                request.result()
        note(f"{self.place}: {sent} passages loaded in {time.monotonic() - start:.0f} s")

    def _chunks(self, new: bool) -> Iterator[tuple[list[tuple[int, Passage]], set[int]]]:
        """Yield all passages by row, in chunks, with the rows of those that the server has."""
        rows = enumerate(self.library.passages())
        while several := list(islice(rows, _LOOKUP)):
            known = set() if new else self._known([row for row, _ in several])
            for first in range(0, len(several), self.settings.chunk):
                yield several[first : first + self.settings.chunk], known

    def _known(self, rows: list[int]) -> set[int]:
        found = self.server.request(
            "looking for missing passages",
            lambda client: body(client.mget(index=self.name, ids=[str(row) for row in rows], source=False)),
        )
        return {int(document["_id"]) for document in found["docs"] if document.get("found")}

    def _documents(self, passages: list[tuple[int, Passage]]) -> dict[str, Fields]:
        """Return what the index holds of some passages, by `_id`."""
        return {
            str(row): {"row": row, "split_key": int(self._keys[self.library.document_rows[row]])} | fields
            for (row, _), fields in zip(passages, self._fields([p for _, p in passages]), strict=True)
        }

    def _fields(self, passages: Sequence[Passage]) -> list[Fields]:
        """Return the fields of each passage, as `_properties` defines them."""
        texts = [f"{passage.title}\n{passage.text}".strip() for passage in passages]
        fields: list[Fields] = [{"text": text} for text in texts]
        if "elser" in self.settings.searched:
            fields = [of | {"elser": of["text"]} for of in fields]
        if self.encoder is not None:
            several = [self.settings.windows(passage) for passage in passages]
            vectors = iter(self.encoder.encode_passages([text for windows in several for text in windows]).tolist())
            for of, windows in zip(fields, several, strict=True):
                of["windows"] = [{"number": number, "vector": next(vectors)} for number in range(len(windows))]
        return fields

    def _send(self, waiting: dict[str, Fields]) -> None:
        """Load some documents; those that the server rejects temporarily are sent again."""

        # `elasticsearch.helpers.bulk` retries rejected items too, but fails when a connection breaks.
        def send(client: Any) -> None:
            operations = [line for name, document in waiting.items() for line in ({"index": {"_id": name}}, document)]
            refusals = []
            for item in body(client.bulk(index=self.name, operations=operations))["items"]:
                if item["index"]["status"] < 300:
                    del waiting[item["index"]["_id"]]
                else:
                    refusals.append(Refusal(item["index"]["status"], item["index"]["error"]))
            # A permanent one goes first, since retries can't help.
            for refusal in sorted(refusals, key=self.server.transient):
                raise refusal

        self.server.request("loading passages", send)

    def _count(self) -> int:
        def count(client: Any) -> int:
            found = body(client.count(index=self.name))
            if found["_shards"]["failed"]:
                raise missing_shards()
            return int(found["count"])

        return self.server.request("counting passages", count)

    def _finish(self) -> None:
        request, name, total = self.server.request, self.name, self.library.passage_count
        refresh = {"index": {"refresh_interval": None}}
        request("refreshing the index", lambda client: client.indices.put_settings(index=name, settings=refresh))
        request("refreshing the index", lambda client: client.indices.refresh(index=name))
        if (count := self._count()) != total:
            raise RetrieverError(
                f"{self.place}: holds {count} passages after loading, not {total}; delete that index, or give another "
                "name as retriever.index, and the same command builds it again"
            )
        meta = self.contents.model_dump(mode="json") | {"complete": True}
        request("marking the index as complete", lambda client: client.indices.put_mapping(index=name, meta=meta))
