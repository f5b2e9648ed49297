"""`python -m judges.retrieval`: Recall and nDCG on retrieval tasks in mtRAG's layout; see `docs/metrics.md`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from generator.common.atomic_files import digest
from generator.common.terminal import Parser, ended, run_quietly
from generator.errors import ConfigError, CorpusError

if TYPE_CHECKING:  # what takes seconds to import is imported when it is needed, so that --help is there at once
    from generator.retrievers.base import RetrieverSettings
    from generator.schema import Document, Retriever
    from judges.benchmarks.mtrag.retrieval_table import Row
    from judges.benchmarks.mtrag.retrieval_tasks import Collection, Form
    from judges.metrics.ranking import Scores

# A passage of a collection stays whole.
WHOLE = 1_000_000
# Queries that are asked at the same time.
AT_ONCE = 64
RETRIEVERS = ("bm25", "dense", "hybrid")
_DEPTH = 10
_FIXED = ("k", "query", "passage_tokens", "overlap")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 2 something to mend, 130 interrupted."""
    return run_quietly(lambda: ended(lambda: _command(_parser().parse_args(arguments))))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m judges.retrieval",
        description="Recall and nDCG at 1, 3, 5 and 10 on retrieval tasks in mtRAG's layout: overall, by turn, "
        "standalone or not, by collection. docs/metrics.md says what each figure is.",
        epilog="Queries without a relevant passage are counted and left out. Exit code 2: there is something to mend.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=Path,
        help="with <collection>/<collection>_lastturn.jsonl, _questions.jsonl, _rewrite.jsonl, <collection>/qrels/ "
        "and, to be searched, <collection>/corpus*.jsonl",
    )
    parser.add_argument("--retriever", choices=RETRIEVERS, help="who searches (default: bm25)")
    parser.add_argument(
        "--set",
        metavar="SETTING=VALUE",
        action="append",
        default=[],
        help="a setting of the retriever, as in conf/retriever/; can be repeated",
    )
    parser.add_argument("--queries", choices=("lastturn", "questions", "rewrite"), help="(default: all that are there)")
    parser.add_argument("--run", metavar="FILE", type=Path, help="rankings that are there already, in TREC's form")
    parser.add_argument("--split", metavar="NAME", help="of the judgements (default: dev, or the only one there)")
    parser.add_argument(
        "--cache",
        metavar="FOLDER",
        type=Path,
        default=Path("outputs/.cache"),
        help="for indexes (default: %(default)s)",
    )
    parser.add_argument(
        "--format", choices=("terminal", "markdown", "csv", "json"), default="terminal", help="(default: terminal)"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the table there")
    return parser


def _command(given: argparse.Namespace) -> None:
    if given.run and (given.retriever or given.queries or given.set):
        raise ConfigError("--run: its rankings are there already; leave out --retriever, --queries and --set")
    for change in given.set:
        if change.partition("=")[0] in _FIXED:
            raise ConfigError(f"--set {change}: passages stay whole, and the first {_DEPTH} count; leave it out")

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or DSPy and LiteLLM try the network at import
    from rich.console import Console

    from generator.common.atomic_files import atomic_write
    from generator.common.console import note
    from judges.benchmarks.mtrag.retrieval_table import table
    from judges.benchmarks.mtrag.retrieval_tasks import collections, run

    pools = collections(given.folder, given.split)
    for pool in pools:
        if unjudged := len(pool.asked) - len(pool.relevant):
            note(f"{pool.name}: {unjudged} of {len(pool.asked)} queries have no relevant passage and don't count")
        if pool.unasked:
            note(f"{pool.name}: {pool.unasked} queries of the judgements are in no file of queries and don't count")
    if given.run:
        rows = list(_rows(given.run.name, pools, run(given.run)))
    else:
        rows = _searched(pools, given.retriever or RETRIEVERS[0], given.set, given.queries, given.cache)
    if given.output is not None:
        with atomic_write(given.output) as file:
            file.write(table(rows, given.format))
        return
    console = Console() if sys.stdout.isatty() else None
    sys.stdout.write(table(rows, given.format, console))


def _searched(
    pools: "Sequence[Collection]", retriever: str, changes: Sequence[str], form: "Form | None", cache: Path
) -> "list[Row]":
    from judges.benchmarks.mtrag.retrieval_tasks import FORMS, documents
    from judges.metrics.ranking import scores

    forms = [form] if form else [form for form in FORMS if any(form in pool.queries for pool in pools)]
    for pool in pools:
        if pool.corpus is None:
            raise CorpusError(
                f"{pool.name}: there are no passages to search; put its corpus.jsonl there, or give --run FILE"
            )
        if missing := [form for form in forms if form not in pool.queries]:
            raise CorpusError(f"{pool.name}: there is no {pool.name}_{missing[0]}.jsonl; choose others with --queries")
    chosen = settings(retriever, [f"passage_tokens={WHOLE}", "overlap=0", *changes])
    found: dict[Form, dict[str, dict[str, float]]] = {form: {} for form in forms}
    for pool in pools:
        corpus = cast(Path, pool.corpus)
        searching = opened(pool.name, partial(documents, corpus), hashed(corpus), chosen, cache)
        for form in forms:
            asked = {query: text for query, text in pool.queries[form].items() if query in pool.relevant}
            rankings = asyncio.run(ranked(searching, asked, _DEPTH))
            found[form] |= {query: scores(ranking) for query, ranking in rankings.items()}
    return [row for form in forms for row in _rows(f"{retriever}, {form}", pools, found[form])]


def settings(retriever: str, changes: Sequence[str]) -> "RetrieverSettings":
    """A retriever's settings as in `conf/retriever/`, with changes, each a `setting=value`.

    Raises:
        ConfigError: there is no such setting, or a value is wrong.
    """
    from generator.config.choices import compose_choice
    from generator.config.parts import build_choice

    return cast("RetrieverSettings", build_choice("retriever", compose_choice("retriever", retriever, changes)))


def hashed(path: Path) -> str:
    """A hash of a file's content.

    Raises:
        CorpusError: it can't be read.
    """
    try:
        return digest(path)
    except OSError as error:
        raise CorpusError(f"{path}: can't be read: {error.strerror}") from error


def opened(
    name: str, documents: "Callable[[], Iterator[Document]]", fingerprint: str, chosen: "RetrieverSettings", cache: Path
) -> "Retriever":
    """The retriever over some passages, with its index built if it isn't in `cache` yet.

    Args:
        documents: reads the passages; called only to build.
        fingerprint: equal ones mean equal passages.
    """
    import numpy as np

    from generator.corpora.library import Library

    library = Library.open(name, fingerprint, documents, cache, chosen.passage_tokens, chosen.overlap)
    return chosen.open(library, np.zeros(len(library), dtype=np.bool_))


async def ranked(retriever: "Retriever", queries: Mapping[str, str], k: int) -> dict[str, list[str]]:
    """The ids of the documents that each query finds among the best `k` passages, best first."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(query: str) -> list[str]:
        async with limit:
            hits = await retriever.search(query, k, "train")
        return list(dict.fromkeys(hit.passage.document_id for hit in hits))

    answers = await asyncio.gather(*map(one, queries.values()))
    return dict(zip(queries, answers, strict=True))


def _rows(ranking: str, pools: "Sequence[Collection]", found: "Scores") -> "Iterator[Row]":
    """The rows of one ranking."""
    from generator.common.console import note
    from judges.benchmarks.mtrag.retrieval_table import Row
    from judges.benchmarks.mtrag.retrieval_tasks import turn
    from judges.metrics.ranking import figures, mean

    where = {query: pool for pool in pools for query in pool.relevant}
    each = {query: of for pool in pools for query, of in figures(pool.relevant, found).items()}
    if unranked := len(each.keys() - found.keys()):
        note(f"{ranking}: has nothing for {unranked} of {len(each)} queries; they count as 0")
    if others := len(found.keys() - each.keys()):
        note(f"{ranking}: {others} of {len(found)} queries are others than the tasks'; they don't count")

    later = {query: where[query].standalone(query) for query in each if turn(query) > 1}
    subsets: list[tuple[str, str, Iterable[str]]] = [
        ("", "all", each),
        ("turn", "first", each.keys() - later.keys()),
        ("turn", "later", later),
        *(
            ("standalone, later turns", subset, [query for query, standalone in later.items() if standalone is said])
            for subset, said in (("rewrite says the same", True), ("rewrite differs", False))
        ),
        *(("collection", pool.name, [query for query in each if where[query] is pool]) for pool in pools),
    ]
    for by, subset, chosen in subsets:
        # In one order, so that sums are the same to the last bit.
        yield Row(ranking, by, subset, mean(each[query] for query in sorted(chosen)))


if __name__ == "__main__":
    sys.exit(main())
