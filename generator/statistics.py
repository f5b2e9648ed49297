"""`python -m generator.statistics`: dialogs in numbers, several sets side by side; see `docs/statistics.md`."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from generator.common.terminal import Parser, exit_code, run_quietly
from generator.errors import ConfigError, CorpusError

if TYPE_CHECKING:  # what takes seconds to import is imported when it is needed, so that --help is there at once
    from generator.output.stats.comparison import Column
    from generator.sets import DialogSet

_NOTED = 10_000


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 2 something to mend, 130 interrupted."""
    return run_quietly(lambda: exit_code(lambda: _command(_parser().parse_args(arguments))))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m generator.statistics",
        description="Dialogs in numbers, a column for each set: sizes, lengths, passages, variety, question types, "
        "answerability, verdicts, and what a run achieved of its targets. docs/statistics.md says what each figure is.",
        epilog="Records that can't be read are counted, the first is named. Exit code 2: there is something to mend.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a run folder; a file as its dialogs.jsonl, plain or gzipped; or the conversations of people in a file "
        "or folder as their publisher has them",
    )
    parser.add_argument(
        "--corpus",
        metavar="NAME",
        help="how to read what is no run folder, as in conf/corpus/NAME.yaml (default: found)",
    )
    parser.add_argument(
        "--set", metavar="SETTING=VALUE", action="append", default=[], help="a setting of that corpus; can be repeated"
    )
    parser.add_argument(
        "--dialogs",
        metavar="N",
        type=int,
        help="the first N of each set alone: distinct-n and repeated questions depend on the size, and memory does",
    )
    parser.add_argument(
        "--format", choices=("terminal", "csv", "markdown"), default="terminal", help="(default: terminal)"
    )
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the table there")
    return parser


def _command(given: argparse.Namespace) -> None:
    if given.set and given.corpus is None:
        raise ConfigError(f"--set {given.set[0]}: needs the corpus that it is a setting of; give --corpus NAME")
    for change in given.set:
        name, equals, _ = change.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set {change}: a setting is given as SETTING=VALUE")
        if name == "path":
            raise ConfigError(f"--set {change}: give the path by itself, without --set")
    if given.dialogs is not None and given.dialogs < 1:
        raise ConfigError(f"--dialogs {given.dialogs}: must be 1 or more")

    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or DSPy and LiteLLM try the network at import
    from rich.console import Console

    from generator.common.atomic_files import atomic_write
    from generator.output.stats.comparison import comparison
    from generator.sets import dialog_set

    sets = [dialog_set(path, given.corpus, given.set) for path in given.paths]
    columns = [_counted(of, name, given.dialogs) for of, name in zip(sets, _names(given.paths), strict=True)]
    if given.output is not None:
        with atomic_write(given.output) as file:
            file.write(comparison(columns, given.format))
        return
    console = Console() if sys.stdout.isatty() else None
    sys.stdout.write(comparison(columns, given.format, console))


def _names(paths: list[str]) -> list[str]:
    """What the sets are called: the last part of their paths, or as much as it takes to tell them apart."""
    full = [os.fsencode(Path(path).absolute()).decode("utf-8", "replace") for path in paths]
    resolved = [Path(os.path.normpath(path)) for path in full]
    for length in range(1, max(len(path.parts) for path in resolved) + 1):
        names = [str(Path(*path.parts[-length:])) for path in resolved]
        if len(set(names)) == len(set(resolved)):
            break
    return names


def _counted(of: "DialogSet", name: str, limit: int | None) -> "Column":
    from generator.common.console import note
    from generator.config.settings import near_duplicates
    from generator.output.stats.comparison import Column, Target
    from generator.output.stats.statistics import Tally
    from generator.output.stats.variety import VarietyTally
    from generator.schema import SkippedRecord

    tally, variety = Tally(), VarietyTally(near_duplicates())
    dialogs = broken = 0
    first: SkippedRecord | None = None
    for record in of.records():
        if isinstance(record, SkippedRecord):
            first = first or record
            broken += 1
            continue
        tally.add(record)
        variety.add(record)
        dialogs += 1
        if dialogs == limit:
            break
        if dialogs % _NOTED == 0:
            note(f"{of.path}: {dialogs} dialogs")
    if first is not None:
        message = (
            f"{of.path}: {broken} of {dialogs + broken} records can't be read, the first: {first.where}: {first.reason}"
        )
        if not dialogs:
            raise CorpusError(message)
        note(message)
    if not dialogs:
        raise CorpusError(f"{of.path}: holds no dialogs" + (": the run has accepted none" if of.dialogs_wanted else ""))
    return Column(
        name=name,
        statistics=tally.statistics(),
        variety=variety.variety(),
        targets=tuple(Target(name=kind, stage=stage, share=share) for (stage, kind), share in of.targets.items()),
        dialogs_wanted=of.dialogs_wanted,
    )


if __name__ == "__main__":
    sys.exit(main())
