"""Recall and nDCG on mtRAG's retrieval tasks (Katsis et al. 2025, table 4), of our retrievers or of given rankings."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import cast

import numpy as np

from generator.common.atomic_files import digest
from generator.common.concurrency import run_async
from generator.common.console import note, paced
from generator.corpora.library import Library
from generator.errors import CorpusError, Rejected, RetrieverError
from generator.retrievers.base import RetrieverSettings
from generator.schema import Passage, Retriever
from judges.benchmarks.mtrag.retrieval_table import Row
from judges.benchmarks.mtrag.retrieval_tasks import (
    FORMS,
    Collection,
    Form,
    read_collections,
    read_documents,
    read_run,
    turn_number,
)
from judges.metrics.ranking import CUTS, Figures, Scores, mean, measure, to_scores

# Tokens of a passage, more than any has: the passages of a collection stay whole.
WHOLE = 1_000_000
# Queries at the same time.
CONCURRENCY = 64
_document_id = attrgetter("document_id")


def evaluate_run(folder: Path, split: str | None, run: Path) -> list[Row]:
    """Return the figures of the rankings in a file in TREC's format; see `evaluate_retriever`."""
    return list(_rows(run.name, _read(folder, split), read_run(run)))


def evaluate_retriever(
    folder: Path,
    split: str | None,
    name: str,
    settings: RetrieverSettings,
    form: Form | None,
    language: str | None,
    cache: Path,
) -> list[Row]:
    """Return the figures of a retriever for each form of the queries.

    Args:
        folder, split: the tasks; see `read_collections`.
        name: of the retriever, for the table.
        form: of the queries; None: all that exist.
        language: of the passages; None: found in a sample of each collection.
        cache: the folder for indexes.

    Raises:
        CorpusError: the tasks can't be read, or have no passages or no queries of that form.
        ConfigError: pytrec_eval-terrier isn't installed.
        RetrieverError: an index can't be built or searched.
    """
    collections = _read(folder, split)
    forms = [form] if form else [form for form in FORMS if any(form in of.queries for of in collections)]
    found: dict[Form, dict[str, dict[str, float]]] = {form: {} for form in forms}
    for collection in collections:
        if collection.corpus is None:
            raise CorpusError(f"{collection.name}: no passages to search; add its corpus.jsonl, or give run=FILE")
        if missing := [form for form in forms if form not in collection.queries]:
            raise CorpusError(
                f"{collection.name}: {collection.name}_{missing[0]}.jsonl is missing; choose others with queries=…"
            )
    for collection in collections:
        library = open_library(collection.name, cast(Path, collection.corpus), settings, cache)
        wanted = set().union(*collection.relevant.values())
        if absent := sum(library.row(passage) is None for passage in wanted):
            note(
                f"{collection.name}: {absent} of {len(wanted)} relevant passages of the qrels are not in "
                f"{collection.corpus}; check that both files have the same ids"
            )
        retriever = open_retriever(library, settings, language)
        of_forms = run_async(_rank_forms(retriever, library, collection, forms))
        for form, rankings in of_forms.items():
            found[form] |= {query: to_scores(ranking) for query, ranking in rankings.items()}
        ids = {each for rankings in of_forms.values() for ranking in rankings.values() for each in ranking}
        if strange := sum(library.row(each) is None for each in ids):
            note(
                f"{collection.name}: {strange} of {len(ids)} passages that were found are not in {collection.corpus} "
                "and count as not relevant; check that the search gives them the same ids"
            )
    return [row for form in forms for row in _rows(f"{name}, {form}", collections, found[form])]


def open_library(name: str, corpus: Path, settings: RetrieverSettings, cache: Path) -> Library:
    """Return the library of a collection's passages, building it unless it is in `cache`."""
    try:
        fingerprint = digest(corpus)
    except OSError as error:
        raise CorpusError(f"{corpus}: can't be read: {error.strerror}") from error
    documents = partial(read_documents, corpus)
    return Library.open(name, fingerprint, documents, cache, settings.passage_tokens, settings.overlap)


def open_retriever(library: Library, settings: RetrieverSettings, language: str | None = "en") -> Retriever:
    """Return the retriever over a collection's passages, building its index unless it is in the cache."""
    if told := library.find_language("language", language):
        note(f"{library.corpus}: {told}")
    return settings.open(library, np.zeros(len(library), dtype=np.bool_))


async def rank_documents(
    retriever: Retriever, queries: Mapping[str, str], k: int, id_of: Callable[[Passage], str] = _document_id
) -> dict[str, list[str]]:
    """Return the ids of each query's documents among its best `k` passages, best first."""
    limit = asyncio.Semaphore(CONCURRENCY)
    searched, tell = count(1), paced()

    async def rank(query: str) -> list[str]:
        async with limit:
            try:
                hits = await retriever.search(query, k, "train")
            except Rejected as failure:
                raise RetrieverError(f"{failure.reason}: {failure.text}") from failure
        tell(f"searching: {next(searched)} of {len(queries)} queries")
        return list(dict.fromkeys(id_of(hit.passage) for hit in hits))

    rankings = await asyncio.gather(*map(rank, queries.values()))
    return dict(zip(queries, rankings, strict=True))


async def _rank_forms(
    retriever: Retriever, library: Library, collection: Collection, forms: Sequence[Form]
) -> dict[Form, dict[str, list[str]]]:
    """Return the rankings of the queries in each form; in one event loop, since a retriever may hold to its first."""

    def id_of(passage: Passage) -> str:
        # A search of one's own may say which document a passage of the collection is from.
        return passage.document_id if library.row(passage.id) is None else passage.id

    return {
        form: await rank_documents(
            retriever,
            {query: text for query, text in collection.queries[form].items() if query in collection.relevant},
            CUTS[-1],
            id_of,
        )
        for form in forms
    }


def _read(folder: Path, split: str | None) -> list[Collection]:
    collections = read_collections(folder, split)
    for collection in collections:
        total = len(collection.query_ids)
        if unjudged := total - len(collection.relevant):
            note(f"{collection.name}: {unjudged} of {total} queries have no relevant passage and are left out")
        if collection.unknown:
            note(f"{collection.name}: {collection.unknown} queries of the qrels are in no query file and are left out")
    return collections


def _rows(ranking: str, collections: Sequence[Collection], found: Scores) -> Iterator[Row]:
    """Yield the figures of one ranking: overall, by turn, standalone or not, by collection."""
    collection_of = {query: collection for collection in collections for query in collection.relevant}
    each: dict[str, Figures] = {}
    for collection in collections:
        each |= measure(collection.relevant, found)
    if unranked := len(each.keys() - found.keys()):
        note(f"{ranking}: no ranking for {unranked} of {len(each)} queries; they count as 0")
    if others := len(found.keys() - set[str]().union(*(of.query_ids for of in collections))):
        note(f"{ranking}: {others} of {len(found)} queries are not in the tasks and are left out")

    later = {query: collection_of[query].standalone(query) for query in each if turn_number(query) > 1}
    subsets: list[tuple[str, str, Iterable[str]]] = [
        ("", "all", each),
        ("turn", "first", each.keys() - later.keys()),
        ("turn", "later", later),
        *(
            ("standalone, later turns", subset, [query for query, standalone in later.items() if standalone is same])
            for subset, same in (("rewrite says the same", True), ("rewrite differs", False))
        ),
        *(("collection", of.name, [query for query in each if collection_of[query] is of]) for of in collections),
    ]
    for by, subset, chosen in subsets:
        # Sorted, so that sums are the same to the last bit.
        yield Row(ranking, by, subset, mean(each[query] for query in sorted(chosen)))
