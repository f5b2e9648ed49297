"""Keep passages as the user's own pipeline cut them: each record is one, and those of a document make up its text."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter

from generator.corpora.base import Chunk, ChunkedDocument, Span
from generator.errors import CorpusError
from generator.schema import Document, SkippedRecord

_GAP = "\n\n"


def gather(records: Iterator[Document | SkippedRecord]) -> Iterator[Document | SkippedRecord]:
    r"""Yield the documents that chunks make up, in the order of their first ones, and broken records as they come.

    A document's text is its chunks, in their order and with `\n\n` between them; its title and url are the first that
    a chunk has. The chunks wait on disk, so those of a document need not be neighbours.

    Raises:
        CorpusError: two chunks have the same id.
    """
    with closing(sqlite3.connect("")) as db:  # a file that SQLite deletes
        db.execute("CREATE TABLE chunks (place INTEGER PRIMARY KEY, document, id TEXT UNIQUE, title, url, text)")
        for record in records:
            if not isinstance(record, Chunk):
                yield record
                continue
            values = (record.document_id, record.id, record.title, record.url, record.text)
            try:
                db.execute("INSERT INTO chunks (document, id, title, url, text) VALUES (?, ?, ?, ?, ?)", values)
            except sqlite3.IntegrityError:
                raise CorpusError(
                    f"{record.where}: another record has the same id {record.id!r}; give each record a unique id"
                ) from None
        rows = db.execute(
            "SELECT document, id, title, url, text FROM chunks "
            "JOIN (SELECT place AS own, min(place) OVER (PARTITION BY document) AS first FROM chunks) ON place = own "
            "ORDER BY first, place"
        )
        for name, chunks in groupby(rows, itemgetter(0)):
            yield _join(name, list(chunks))


def _join(name: str, chunks: list[tuple[str, str, str, str | None, str]]) -> ChunkedDocument:
    spans, start = [], 0
    for _, chunk_id, title, url, text in chunks:
        spans.append(Span(id=chunk_id, title=title, url=url, start=start, end=start + len(text)))
        start += len(text) + len(_GAP)
    return ChunkedDocument(
        id=name,
        text=_GAP.join(chunk[-1] for chunk in chunks),
        title=next((span.title for span in spans if span.title), ""),
        url=next((span.url for span in spans if span.url), None),
        spans=tuple(spans),
    )
