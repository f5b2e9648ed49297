"""`python -m judges.retrieval`: Recall and nDCG on retrieval tasks in mtRAG's layout; see `docs/metrics.md`."""

import argparse
import os
import sys
from pathlib import Path

from generator.common.terminal import Parser, exit_code, run_quietly
from generator.errors import ConfigError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code: 0, 2 for an error that the user can fix, 130 interrupted."""
    return run_quietly(lambda: exit_code(lambda: _command(_parser().parse_args(arguments))))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m judges.retrieval",
        description="Recall and nDCG at 1, 3, 5 and 10 on retrieval tasks in mtRAG's layout: overall, by turn, "
        "standalone or not, by collection. docs/metrics.md defines the figures.",
        epilog="Queries without a relevant passage are counted and left out. Exit code 2: an error that you can fix.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=Path,
        help="with <collection>/<collection>_lastturn.jsonl, _questions.jsonl, _rewrite.jsonl, <collection>/qrels/ "
        "and, to be searched, <collection>/corpus*.jsonl",
    )
    parser.add_argument("--retriever", choices=("bm25", "dense", "hybrid"), help="(default: bm25)")
    parser.add_argument(
        "--set",
        metavar="SETTING=VALUE",
        action="append",
        default=[],
        help="a setting of the retriever, as in conf/retriever/; can be repeated",
    )
    parser.add_argument("--queries", choices=("lastturn", "questions", "rewrite"), help="(default: all that exist)")
    parser.add_argument("--run", metavar="FILE", type=Path, help="evaluate these rankings instead, in TREC's format")
    parser.add_argument("--split", metavar="NAME", help="of the qrels (default: dev, or the only one)")
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
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the table to this file")
    return parser


def _command(given: argparse.Namespace) -> None:
    if given.run and (given.retriever or given.queries or given.set):
        raise ConfigError("--run: evaluates existing rankings; leave out --retriever, --queries and --set")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or DSPy and LiteLLM try the network at import
    # Imports that take seconds come here, so that --help is quick.
    from rich.console import Console

    from generator.common.atomic_files import atomic_write
    from judges.benchmarks.mtrag.retrieval import evaluate_retriever, evaluate_run
    from judges.benchmarks.mtrag.retrieval_table import table

    if given.run:
        rows = evaluate_run(given.folder, given.split, given.run)
    else:
        retriever = given.retriever or "bm25"
        rows = evaluate_retriever(given.folder, given.split, retriever, given.set, given.queries, given.cache)
    if given.output is not None:
        with atomic_write(given.output) as file:
            file.write(table(rows, given.format))
        return
    console = Console() if sys.stdout.isatty() else None
    sys.stdout.write(table(rows, given.format, console))


if __name__ == "__main__":
    sys.exit(main())
