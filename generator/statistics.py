"""`python -m generator.statistics`: dialogs in numbers, several sets side by side; see `docs/statistics.md`."""

import argparse
import os
import sys
from pathlib import Path

from generator.common.terminal import Parser, exit_code, run_quietly
from generator.errors import ConfigError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0, 2 for an error that the user can fix, 130 if interrupted."""
    return run_quietly(lambda: exit_code(lambda: _compare(_parser().parse_args(arguments))))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m generator.statistics",
        description="Dialogs in numbers, a column for each set: sizes, lengths, passages, variety, question types, "
        "answerability, verdicts, and the achieved and target shares of a run. docs/statistics.md defines each figure.",
        epilog="Unreadable records are counted, and the first is named. Exit code 2: an error that you can fix.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a run folder; a file such as its dialogs.jsonl, plain or gzipped; or human dialogs in "
        "their publisher's format",
    )
    parser.add_argument("--corpus", metavar="NAME", help="the format of human dialogs, as in conf/corpus/NAME.yaml")
    parser.add_argument(
        "--set", metavar="SETTING=VALUE", action="append", default=[], help="a setting of that corpus; can be repeated"
    )
    parser.add_argument(
        "--dialogs",
        metavar="N",
        type=int,
        help="count only the first N of each set: distinct-n and repeated questions depend on the size, as memory does",
    )
    parser.add_argument(
        "--format", choices=("terminal", "csv", "markdown"), default="terminal", help="(default: terminal)"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the table to a file")
    return parser


def _compare(options: argparse.Namespace) -> None:
    if options.set and options.corpus is None:
        raise ConfigError(f"--set {options.set[0]}: needs --corpus NAME, the corpus that it is a setting of")
    for change in options.set:
        name, equals, _ = change.partition("=")
        if not equals or not name or name == "path":
            raise ConfigError(f"--set {change}: must be SETTING=VALUE, and not the path")
    if options.dialogs is not None and options.dialogs < 1:
        raise ConfigError(f"--dialogs {options.dialogs}: must be 1 or more")

    # Imported here, so that --help is there at once.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or LiteLLM tries the network at import
    from rich.console import Console

    from generator.common.atomic_files import atomic_write
    from generator.config.settings import near_duplicates
    from generator.output.stats.comparison import comparison, count, distinct_names
    from generator.sets import dialog_set

    sets = [dialog_set(path, options.corpus, options.set) for path in options.paths]
    columns = [
        count(name, dialogs.dialogs(options.dialogs), near_duplicates(), dialogs.targets, dialogs.dialogs_wanted)
        for name, dialogs in zip(distinct_names(options.paths), sets, strict=True)
    ]
    if options.output is not None:
        with atomic_write(options.output) as file:
            file.write(comparison(columns, options.format))
        return
    console = Console() if sys.stdout.isatty() else None
    sys.stdout.write(comparison(columns, options.format, console))


if __name__ == "__main__":
    sys.exit(main())
