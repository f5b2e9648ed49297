"""How well and how fast retrievers find: Recall and nDCG on mtRAG's judged pools and a part of SciFact, as Markdown.

    uv run --extra dense --group benchmark python -m benchmarks.retrieval --data ../shared/data

Pools are not corpora: a pool holds only a few hundred passages, each of them found by some system for some question.
The figures compare retrievers and settings with each other; they are no results on mtRAG.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from generator.corpora.library import Library
from generator.corpora.mtrag.names import parse_turn_id
from generator.dialogs.query import retrieval_query
from generator.retrievers.base import RetrieverSettings
from generator.schema import QueryForm, Retriever, Turn
from judges.benchmarks.mtrag.retrieval_tasks import documents, judgements, queries
from judges.metrics.ranking import CUTS, Relevant, figures, mean, scores
from judges.retrieval import AT_ONCE, WHOLE, hashed, opened, ranked, settings

HEADER = [f"{name}@{cut}" for name in ("nDCG", "R") for cut in CUTS]
DOMAINS = ("clapnq", "fiqa", "govt")
FORMS = get_args(QueryForm)
# Queries that are timed alone; the machine's other work shows in fewer.
ALONE = 100


@dataclass(frozen=True)
class Collection:
    """The file of the passages, queries of each form by id, and which passages are relevant to them."""

    name: str
    corpus: Path
    queries: Mapping[str, Mapping[str, str]]
    relevant: Relevant


@dataclass(frozen=True)
class Speed:
    """Milliseconds of a query alone; queries a second when many are asked at once."""

    median: float
    p95: float
    throughput: float


def collections(data: Path) -> Iterator[Collection]:
    """The three domains of mtRAG, and SciFact, whose claims stand alone and so have one form."""
    mtrag = data / "mtrag"
    conversations = json.loads((mtrag / "conversations.json").read_text(encoding="utf-8"))
    ids = dict(
        line.split("\t")[:2][::-1]
        for line in (mtrag / "conversation_ids.tsv").read_text(encoding="utf-8").splitlines()[1:]
    )
    for domain in DOMAINS:
        folder = mtrag / "retrieval_tasks" / domain
        asked: dict[str, dict[str, str]] = {form: {} for form in FORMS}
        for query_id, rewrite in queries(folder / f"{domain}_rewrite.jsonl").items():
            conversation, number = parse_turn_id(query_id)
            *history, last = turns(conversations[int(ids[conversation])]["messages"])[:number]
            for form in FORMS:
                asked[form][query_id] = retrieval_query(form, history, last.query, rewrite)
        yield Collection(domain, folder / "corpus_pooled.jsonl", asked, judgements(folder / "qrels" / "dev.tsv"))
    folder = data / "beir_scifact_sub"
    claims = {"last_turn": queries(folder / "queries.jsonl")}
    yield Collection("scifact", folder / "corpus.jsonl", claims, judgements(folder / "qrels" / "test.tsv"))


def turns(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a conversation; the last may have no answer."""
    texts = [str(message["text"]).strip() for message in messages]
    made = {"question_type": "", "answerability": "answerable", "reasoning": "", "consistent": True}
    return [
        Turn(turn=number, query=query, answer=texts[2 * number - 1] if 2 * number <= len(texts) else "", **made)
        for number, query in enumerate(texts[::2], start=1)
    ]


def chosen_by(retriever: str, changes: Sequence[str]) -> RetrieverSettings:
    """A retriever's settings, with the changes that begin with its name."""
    prefix = f"{retriever}."
    return settings(retriever, [change.removeprefix(prefix) for change in changes if change.startswith(prefix)])


def built(collection: Collection, chosen: RetrieverSettings, cache: Path) -> tuple[Retriever, int, float | None]:
    """The retriever, how many documents it has, and how many seconds its index took: None if another retriever had made
    it, or an earlier run.
    """
    read, fingerprint = partial(documents, collection.corpus), hashed(collection.corpus)
    # GeneratedDialog before the clock starts: the documents are no part of an index.
    library = Library.open(collection.name, fingerprint, read, cache, chosen.passage_tokens, chosen.overlap)
    before, start = set(library.folder.iterdir()), time.perf_counter()
    retriever = opened(collection.name, read, fingerprint, chosen, cache)
    seconds = time.perf_counter() - start
    return retriever, len(library), seconds if set(library.folder.iterdir()) != before else None


async def found(retriever: Retriever, queries: Mapping[str, str], k: int) -> tuple[dict[str, list[str]], float]:
    """The ids of documents that each query finds, best first, and how many queries a second that was."""
    start = time.perf_counter()
    rankings = await ranked(retriever, queries, k)
    return rankings, len(queries) / (time.perf_counter() - start)


async def alone(retriever: Retriever, queries: Sequence[str]) -> list[float]:
    """Milliseconds of each query, one after the other."""
    times = []
    for query in queries:
        start = time.perf_counter()
        await retriever.search(query, CUTS[-1], "train")
        times.append((time.perf_counter() - start) * 1000)
    return times


def measured(relevant: Relevant, answers: Mapping[str, Sequence[str]]) -> list[float]:
    """The mean of each measure over all queries that have a relevant passage; who finds nothing gets 0."""
    asked = {query: graded for query, graded in relevant.items() if query in answers}
    total = mean(figures(asked, {query: scores(ids) for query, ids in answers.items()}).values())
    assert total is not None
    return [*total.ndcg, *total.recall]


def printed(header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    for line in (header, ["---"] * len(header), *lines):
        print(f"| {' | '.join(line)} |")
    print()


def cells(values: Sequence[float]) -> list[str]:
    return [f"{value:.3f}" for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds mtrag and beir_scifact_sub")
    parser.add_argument("--cache", type=Path, default=Path("outputs/.cache/benchmark"), help="for indexes")
    parser.add_argument("--retrievers", nargs="+", default=["bm25", "dense", "hybrid"])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="of queries")
    parser.add_argument("--passage-tokens", type=int, default=WHOLE, help="cut the passages of the pools, too")
    parser.add_argument("--overlap", type=int, default=0)
    parser.add_argument("changes", nargs="*", help="settings, such as hybrid.constant=60 or dense.model=FOLDER")
    given = parser.parse_args()
    cut = [f"passage_tokens={given.passage_tokens}", f"overlap={given.overlap}"]
    quality: dict[tuple[str, str, str], list[float]] = {}
    costs = []
    pools = list(collections(given.data))
    for name in given.retrievers:
        chosen = chosen_by(name, [*(f"{name}.{change}" for change in cut), *given.changes])
        k = CUTS[-1] if given.passage_tokens == WHOLE else 5 * CUTS[-1]
        for pool in pools:
            if not pool.queries.keys() & set(given.forms):
                continue
            retriever, size, seconds = built(pool, chosen, given.cache)
            first = list(pool.queries["last_turn"].values())
            asyncio.run(alone(retriever, first[:3]))  # what is read on the first use is read now
            times = asyncio.run(alone(retriever, first[:ALONE]))
            for form in given.forms:
                if form not in pool.queries:
                    continue
                answers, throughput = asyncio.run(found(retriever, pool.queries[form], k))
                quality[name, form, pool.name] = measured(pool.relevant, answers)
                if form == given.forms[0]:
                    speed = Speed(float(np.median(times)), float(np.percentile(times, 95)), throughput)
            build = f"{seconds:.1f}" if seconds is not None else "there already"
            costs.append(
                [
                    *(name, pool.name, str(size), build),
                    *(f"{speed.median:.1f}", f"{speed.p95:.1f}", f"{speed.throughput:.0f}"),
                ]
            )
    for form in given.forms:
        print(f"mtRAG's pools, `{form}`:\n")
        lines = []
        for name in given.retrievers:
            each = [quality[name, form, domain] for domain in DOMAINS]
            lines += [[name, domain, *cells(values)] for domain, values in zip(DOMAINS, each, strict=True)]
            lines.append([name, "**mean**", *cells(np.mean(each, axis=0))])
        printed(["retriever", "domain", *HEADER], lines)
    if "last_turn" in given.forms:
        print("SciFact, a part:\n")
        lines = [[name, *cells(quality[name, "last_turn", "scifact"])] for name in given.retrievers]
        printed(["retriever", *HEADER], lines)
    print(f"Costs; a query alone (of {ALONE}), and with {AT_ONCE} at once:\n")
    printed(["retriever", "pool", "passages", "build s", "median ms", "p95 ms", "queries/s"], costs)


if __name__ == "__main__":
    main()
