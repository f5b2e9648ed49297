"""Quality and speed of retrievers: Recall and nDCG on mtRAG's judged pools and a part of SciFact, as Markdown.

    uv run --extra dense --group benchmark python -m benchmarks.retrieval --data DATA

Pools are not corpora: a pool holds only a few hundred passages, each of them found by some system for some question.
The figures compare retrievers and settings with each other; they are no results on mtRAG.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import numpy as np

from benchmarks.command_line import add_data
from generator.config.choices import compose_choice
from generator.config.parts import build_choice
from generator.corpora.mtrag.names import parse_turn_id
from generator.dialogs.query import form_query
from generator.output.markdown import table
from generator.retrievers.base import RetrieverSettings
from generator.schema import QueryForm, Retriever
from generator.sets import dialog_set
from judges.benchmarks.mtrag.retrieval import CONCURRENCY, WHOLE, open_library, open_retriever, rank_documents
from judges.benchmarks.mtrag.retrieval_tasks import read_qrels, read_queries
from judges.metrics.ranking import CUTS, Relevant, mean, measure, to_scores

HEADER = [f"{name}@{cut}" for name in ("nDCG", "R") for cut in CUTS]
DOMAINS = ("clapnq", "fiqa", "govt")
FORMS = get_args(QueryForm)
# Queries that are timed alone; fewer would show the machine's other work.
ALONE = 100


@dataclass(frozen=True)
class Collection:
    """The file of the passages, queries of each form by id, and the relevant passages of each query."""

    name: str
    corpus: Path
    queries: Mapping[str, Mapping[str, str]]
    relevant: Relevant


def retriever_settings(
    name: str, changes: Sequence[str], passage_tokens: int = WHOLE, overlap: int = 0
) -> RetrieverSettings:
    """Return the settings of `conf/retriever/<name>.yaml` with changes, each a `setting=value`."""
    lengths = [f"passage_tokens={passage_tokens}", f"overlap={overlap}"]
    return cast(RetrieverSettings, build_choice("retriever", compose_choice("retriever", name, [*lengths, *changes])))


def collections(data: Path) -> Iterator[Collection]:
    """Yield the three domains of mtRAG, and SciFact, whose claims stand alone and so have one form."""
    mtrag = data / "mtrag"
    dialogs = {dialog.id: dialog for dialog in dialog_set(str(mtrag), "mtrag").dialogs()}
    for domain in DOMAINS:
        folder = mtrag / "retrieval_tasks" / domain
        queries: dict[str, dict[str, str]] = {form: {} for form in FORMS}
        for query_id, rewrite in read_queries(folder / f"{domain}_rewrite.jsonl").items():
            conversation, number = parse_turn_id(query_id)
            *history, last = dialogs[conversation].turns[:number]
            for form in FORMS:
                queries[form][query_id] = form_query(form, history, last.query, rewrite)
        yield Collection(domain, folder / "corpus_pooled.jsonl", queries, read_qrels(folder / "qrels" / "dev.tsv"))
    folder = data / "beir_scifact_sub"
    claims = {"last_turn": read_queries(folder / "queries.jsonl")}
    yield Collection("scifact", folder / "corpus.jsonl", claims, read_qrels(folder / "qrels" / "test.tsv"))


def build(collection: Collection, settings: RetrieverSettings, cache: Path) -> tuple[Retriever, int, float | None]:
    """Return the retriever, its number of documents, and the seconds that its index took; None if it existed."""
    # Before the clock starts: the documents are no part of an index.
    library = open_library(collection.name, collection.corpus, settings, cache)
    before, start = set(library.folder.iterdir()), time.perf_counter()
    retriever = open_retriever(library, settings)
    seconds = time.perf_counter() - start
    return retriever, len(library), seconds if set(library.folder.iterdir()) != before else None


async def rank(retriever: Retriever, queries: Mapping[str, str], k: int) -> tuple[dict[str, list[str]], float]:
    """Return the ids of each query's documents, best first, and the queries answered a second."""
    start = time.perf_counter()
    rankings = await rank_documents(retriever, queries, k)
    return rankings, len(queries) / (time.perf_counter() - start)


async def time_alone(retriever: Retriever, queries: Sequence[str]) -> list[float]:
    """Return the milliseconds of each query, one after the other."""
    times = []
    for query in queries:
        start = time.perf_counter()
        await retriever.search(query, CUTS[-1], "train")
        times.append((time.perf_counter() - start) * 1000)
    return times


def mean_figures(relevant: Relevant, rankings: Mapping[str, Sequence[str]]) -> list[float]:
    """Return the mean nDCG and recall over all queries with a relevant passage; one that finds nothing counts as 0."""
    graded = {query: grades for query, grades in relevant.items() if query in rankings}
    total = mean(measure(graded, {query: to_scores(ids) for query, ids in rankings.items()}).values())
    assert total is not None
    return [*total.ndcg, *total.recall]


def cells(values: Sequence[float]) -> list[str]:
    return [f"{value:.3f}" for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "mtrag", "beir_scifact_sub")
    parser.add_argument("--cache", type=Path, default=Path("outputs/.cache/benchmark"), help="for indexes")
    parser.add_argument("--retrievers", nargs="+", default=["bm25", "dense", "hybrid"])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="of queries")
    parser.add_argument("--passage-tokens", type=int, default=WHOLE, help="cut the passages of the pools, too")
    parser.add_argument("--overlap", type=int, default=0)
    parser.add_argument("changes", nargs="*", help="settings, such as hybrid.rrf_k=60 or dense.model=FOLDER")
    given = parser.parse_args()
    quality: dict[tuple[str, str, str], list[float]] = {}
    costs = []
    pools = list(collections(given.data))
    for name in given.retrievers:
        changes = [change.removeprefix(f"{name}.") for change in given.changes if change.startswith(f"{name}.")]
        settings = retriever_settings(name, changes, given.passage_tokens, given.overlap)
        k = CUTS[-1] if given.passage_tokens == WHOLE else 5 * CUTS[-1]
        for pool in pools:
            forms = [form for form in given.forms if form in pool.queries]
            if not forms:
                continue
            retriever, size, seconds = build(pool, settings, given.cache)
            first = list(pool.queries[forms[0]].values())
            asyncio.run(time_alone(retriever, first[:3]))  # loads what is loaded on first use
            times = asyncio.run(time_alone(retriever, first[:ALONE]))
            for form in forms:
                rankings, throughput = asyncio.run(rank(retriever, pool.queries[form], k))
                quality[name, form, pool.name] = mean_figures(pool.relevant, rankings)
                if form == forms[0]:
                    build_time = f"{seconds:.1f}" if seconds is not None else "existed"
                    alone = (f"{np.median(times):.1f}", f"{np.percentile(times, 95):.1f}")
                    costs.append([name, pool.name, str(size), build_time, *alone, f"{throughput:.0f}"])
    for form in given.forms:
        print(f"mtRAG's pools, `{form}`:\n")
        lines = []
        for name in given.retrievers:
            each = [quality[name, form, domain] for domain in DOMAINS]
            lines += [[name, domain, *cells(values)] for domain, values in zip(DOMAINS, each, strict=True)]
            lines.append([name, "**mean**", *cells(np.mean(each, axis=0))])
        print(table(["retriever", "domain", *HEADER], lines) + "\n")
    if "last_turn" in given.forms:
        print("SciFact, a part:\n")
        lines = [[name, *cells(quality[name, "last_turn", "scifact"])] for name in given.retrievers]
        print(table(["retriever", *HEADER], lines) + "\n")
    print(f"Costs; a query alone (of {ALONE}), and with {CONCURRENCY} at once:\n")
    print(table(["retriever", "pool", "passages", "build s", "median ms", "p95 ms", "queries/s"], costs))


if __name__ == "__main__":
    main()
