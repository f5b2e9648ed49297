"""`python -m judges.retrieval`: Recall and nDCG on retrieval tasks in mtRAG's layout; see `docs/metrics.md`."""

import argparse
import asyncio
import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from generator.errors import ConfigError, CorpusError
from generator.program import Parser, ended, unheard

if TYPE_CHECKING:  # what takes seconds to import is imported when it is needed, so that --help is there at once
    from rich.console import Console

    from generator.retrievers.base import RetrieverSettings
    from generator.schema import Document, Retriever
    from judges.ranking import Figures, Scores
    from judges.retrieval_tasks import Collection, Form

# A passage of a collection stays whole.
WHOLE = 1_000_000
# Queries that are asked at the same time.
AT_ONCE = 64
RETRIEVERS = ("bm25", "dense", "hybrid")
_DEPTH = 10
_FIXED = ("k", "query", "passage_tokens", "overlap")
_ABSENT = "–"


class Row(NamedTuple):
    """The figures of some of the queries, as in table 4 of Katsis et al. 2025.

    Attributes:
        ranking: whose: a retriever and the form of its queries, or a file.
        by: what the queries are told apart by; empty: they are all.
        figures: None if there are no such queries.
    """

    ranking: str
    by: str
    subset: str
    figures: "Figures | None"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 2 something to mend, 130 interrupted."""
    return unheard(lambda: ended(lambda: _command(_parser().parse_args(arguments))))


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

    from generator.files import written
    from generator.notes import note
    from judges.retrieval_tasks import collections, run

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
        with written(given.output) as file:
            file.write(table(rows, given.format))
        return
    console = Console() if sys.stdout.isatty() else None
    sys.stdout.write(table(rows, given.format, console))


def _searched(
    pools: "Sequence[Collection]", retriever: str, changes: Sequence[str], form: "Form | None", cache: Path
) -> list[Row]:
    from judges.ranking import scores
    from judges.retrieval_tasks import FORMS, documents

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
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from generator.__main__ import CONF
    from generator.advice import of_hydra
    from generator.config import load

    given = [f"retriever.{change}" for change in changes]
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            composed = compose("config", ["+corpus=sample", "+taxonomy=mixed", f"retriever={retriever}", *given])
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(of_hydra(error)) from error
    return load(composed).retriever


def hashed(path: Path) -> str:
    """A hash of a file's content.

    Raises:
        CorpusError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
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

    from generator.library import Library

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


def _rows(ranking: str, pools: "Sequence[Collection]", found: "Scores") -> Iterator[Row]:
    """The rows of one ranking."""
    from generator.notes import note
    from judges.ranking import figures, mean
    from judges.retrieval_tasks import turn

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


def table(rows: Sequence[Row], form: str, console: "Console | None" = None) -> str:
    """The table as text that ends in a line break: for a terminal, as `markdown`, `csv` or `json`.

    Args:
        console: the terminal that it is for, with its width and styles; None: as wide as it needs, and plain.
    """
    if form == "json":
        return json.dumps([_object(row) for row in rows], ensure_ascii=False, indent=1) + "\n"
    if form == "csv":
        return _csv(rows)
    return _markdown(rows) if form == "markdown" else _terminal(rows, console)


def _header() -> list[str]:
    from judges.ranking import CUTS

    return ["queries", *(f"{name}@{cut}" for name in ("R", "nDCG") for cut in CUTS)]


def _object(row: Row) -> dict[str, object]:
    from judges.ranking import CUTS

    figures = row.figures
    return {
        "ranking": row.ranking,
        "by": row.by or None,
        "subset": row.subset,
        "queries": figures.number if figures else 0,
        "recall": dict(zip(CUTS, figures.recall, strict=True)) if figures else None,
        "ndcg": dict(zip(CUTS, figures.ndcg, strict=True)) if figures else None,
    }


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = _header()
    writer.writerow(["ranking", "by", "subset", *header])
    for row in rows:
        values = [round(value, 6) for value in (*row.figures.recall, *row.figures.ndcg)] if row.figures else []
        empty = [""] * (len(header) - 1 - len(values))
        writer.writerow([row.ranking, row.by, row.subset, row.figures.number if row.figures else 0, *values, *empty])
    return text.getvalue()


def _cells(row: Row) -> list[str]:
    if row.figures is None:
        return ["0", *([_ABSENT] * (len(_header()) - 1))]
    return [f"{row.figures.number:,}", *(f"{value:.3f}" for value in (*row.figures.recall, *row.figures.ndcg))]


def _sections(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each ranking and what they are told apart by."""
    sections: dict[str, list[Row]] = {}
    for row in rows:
        sections.setdefault(f"{row.ranking}: by {row.by}" if row.by else row.ranking, []).append(row)
    yield from sections.items()


def _markdown(rows: Sequence[Row]) -> str:
    from generator.export import markdown

    header = _header()
    lines: list[list[str]] = []
    for title, members in _sections(rows):
        lines.append([f"**{markdown.line(title)}**", *([""] * len(header))])
        lines += [[markdown.line(row.subset), *_cells(row)] for row in members]
    return markdown.table(["", *header], lines) + "\n"


def _terminal(rows: Sequence[Row], console: "Console | None") -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False)
    shown.add_column("", overflow="fold")
    for name in _header():
        shown.add_column(name, justify="right", no_wrap=True)
    for title, members in _sections(rows):
        shown.add_row(Text(title, style="bold"))
        for row in members:
            shown.add_row(Text(f"  {row.subset}"), *_cells(row))
    printer = console or Console(file=io.StringIO(), width=10_000)
    with printer.capture() as text:
        printer.print(shown, highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in text.get().splitlines())


if __name__ == "__main__":
    sys.exit(main())
