"""How well and how fast retrievers find: Recall and nDCG on mtRAG's judged pools and a part of SciFact, as Markdown.

    uv run --extra dense --group benchmark python -m benchmarks.retrieval --data ../shared/data

Pools are not corpora: a pool holds only a few hundred passages, each of them found by some system for some question.
The figures compare retrievers and settings with each other; they are no results on mtRAG.
"""

import argparse
import asyncio
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytrec_eval
from hydra import compose, initialize_config_dir

from generator.__main__ import CONF
from generator.config import load
from generator.library import Library
from generator.retrievers.base import RetrieverSettings
from generator.retrievers.query import retrieval_query
from generator.schema import Document, QueryForm, Retriever, Turn

CUTS = (1, 3, 5, 10)
MEASURES = [f"{name}_{cut}" for name in ("ndcg_cut", "recall") for cut in CUTS]
HEADER = [f"{name}@{cut}" for name in ("nDCG", "R") for cut in CUTS]
DOMAINS = ("clapnq", "fiqa", "govt")
FORMS = get_args(QueryForm)
# A passage of a pool stays whole.
WHOLE = 1_000_000
# Queries that are timed alone; the machine's other work shows in fewer.
ALONE = 100
AT_ONCE = 64


@dataclass(frozen=True)
class Collection:
    """Passages, queries of each form by id, and which passages are relevant to them."""

    name: str
    documents: list[Document]
    queries: Mapping[str, Mapping[str, str]]
    relevant: Mapping[str, Mapping[str, int]]


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
    ids = dict(line[:2][::-1] for line in table(mtrag / "conversation_ids.tsv"))
    for domain in DOMAINS:
        folder = mtrag / "retrieval_tasks" / domain
        rewritten = {row["_id"]: said(row["text"]) for row in rows(folder / f"{domain}_rewrite.jsonl")}
        queries: dict[str, dict[str, str]] = {form: {} for form in FORMS}
        for query_id, rewrite in rewritten.items():
            conversation, _, number = query_id.partition("<::>")
            *history, last = turns(conversations[int(ids[conversation])]["messages"])[: int(number)]
            for form in FORMS:
                queries[form][query_id] = retrieval_query(form, history, last.query, rewrite)
        yield Collection(
            domain, documents(folder / "corpus_pooled.jsonl"), queries, qrels(folder / "qrels" / "dev.tsv")
        )
    folder = data / "beir_scifact_sub"
    claims = {row["_id"]: row["text"] for row in rows(folder / "queries.jsonl")}
    relevant = qrels(folder / "qrels" / "test.tsv")
    yield Collection("scifact", documents(folder / "corpus.jsonl"), {"last_turn": claims}, relevant)


def turns(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """The turns of a conversation; the last may have no answer."""
    texts = [str(message["text"]).strip() for message in messages]
    made = {"question_type": "", "answerability": "answerable", "reasoning": "", "consistent": True}
    return [
        Turn(turn=number, query=query, answer=texts[2 * number - 1] if 2 * number <= len(texts) else "", **made)
        for number, query in enumerate(texts[::2], start=1)
    ]


def said(text: str) -> str:
    """A query of mtRAG's without the speaker before each line."""
    return "\n".join(line.removeprefix("|user|:").strip() for line in text.splitlines())


def documents(path: Path) -> list[Document]:
    return [Document(id=row["_id"], title=row.get("title") or "", text=row["text"]) for row in rows(path)]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def qrels(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for query_id, document_id, grade in table(path):
        found.setdefault(query_id, {})[document_id] = int(grade)
    return found


def settings(retriever: str, changes: Sequence[str]) -> RetrieverSettings:
    """A retriever's settings as in `conf/retriever/`, with the changes that begin with its name or with none."""
    prefix = f"{retriever}."
    given = [f"retriever.{change.removeprefix(prefix)}" for change in changes if change.startswith(prefix)]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return load(
            compose("config", ["+corpus=sample", "+taxonomy=mixed", f"retriever={retriever}", *given])
        ).retriever


def opened(collection: Collection, chosen: RetrieverSettings, cache: Path) -> tuple[Retriever, float | None]:
    """The retriever, and how many seconds its index took: None if another retriever had made it, or an earlier run."""
    content = "".join(document.model_dump_json() for document in collection.documents)
    fingerprint = hashlib.sha256(content.encode()).hexdigest()
    library = Library.open(
        collection.name, fingerprint, lambda: collection.documents, cache, chosen.passage_tokens, chosen.overlap
    )
    before, start = set(library.folder.iterdir()), time.perf_counter()
    retriever = chosen.open(library, np.zeros(len(library), dtype=np.bool_))
    seconds = time.perf_counter() - start
    return retriever, seconds if set(library.folder.iterdir()) != before else None


async def found(retriever: Retriever, queries: Mapping[str, str], k: int) -> tuple[dict[str, list[str]], float]:
    """The ids of documents that each query finds, best first, and how many queries a second that was."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(query: str) -> list[str]:
        async with limit:
            hits = await retriever.search(query, k, "train")
        return list(dict.fromkeys(hit.passage.document_id for hit in hits))

    start = time.perf_counter()
    answers = await asyncio.gather(*map(one, queries.values()))
    return dict(zip(queries, answers, strict=True)), len(queries) / (time.perf_counter() - start)


async def alone(retriever: Retriever, queries: Sequence[str]) -> list[float]:
    """Milliseconds of each query, one after the other."""
    times = []
    for query in queries:
        start = time.perf_counter()
        await retriever.search(query, CUTS[-1], "train")
        times.append((time.perf_counter() - start) * 1000)
    return times


def measured(relevant: Mapping[str, Mapping[str, int]], answers: Mapping[str, Sequence[str]]) -> list[float]:
    """The mean of each measure over all queries that have a relevant passage; who finds nothing gets 0."""
    evaluator = pytrec_eval.RelevanceEvaluator(
        relevant, {f"{name}.{','.join(map(str, CUTS))}" for name in ("ndcg_cut", "recall")}
    )
    # Ranks in place of scores: trec_eval would put equal scores in an order of its own.
    run = {query: {d: 1 / rank for rank, d in enumerate(ids, start=1)} for query, ids in answers.items() if ids}
    each = evaluator.evaluate(run)
    asked = [query for query in answers if query in relevant]
    return [sum(each.get(query, {}).get(measure, 0.0) for query in asked) / len(asked) for measure in MEASURES]


def printed(header: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    for line in (header, ["---"] * len(header), *lines):
        print(f"| {' | '.join(line)} |")
    print()


def figures(values: Sequence[float]) -> list[str]:
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
        chosen = settings(name, [*(f"{name}.{change}" for change in cut), *given.changes])
        k = CUTS[-1] if given.passage_tokens == WHOLE else 5 * CUTS[-1]
        for pool in pools:
            if not pool.queries.keys() & set(given.forms):
                continue
            retriever, seconds = opened(pool, chosen, given.cache)
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
                    *(name, pool.name, str(len(pool.documents)), build),
                    *(f"{speed.median:.1f}", f"{speed.p95:.1f}", f"{speed.throughput:.0f}"),
                ]
            )
    for form in given.forms:
        print(f"mtRAG's pools, `{form}`:\n")
        lines = []
        for name in given.retrievers:
            each = [quality[name, form, domain] for domain in DOMAINS]
            lines += [[name, domain, *figures(values)] for domain, values in zip(DOMAINS, each, strict=True)]
            lines.append([name, "**mean**", *figures(np.mean(each, axis=0))])
        printed(["retriever", "domain", *HEADER], lines)
    if "last_turn" in given.forms:
        print("SciFact, a part:\n")
        lines = [[name, *figures(quality[name, "last_turn", "scifact"])] for name in given.retrievers]
        printed(["retriever", *HEADER], lines)
    print(f"Costs; a query alone (of {ALONE}), and with {AT_ONCE} at once:\n")
    printed(["retriever", "pool", "passages", "build s", "median ms", "p95 ms", "queries/s"], costs)


if __name__ == "__main__":
    main()
