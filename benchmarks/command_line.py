"""The command lines of the benchmarks: their setting `--data`, and errors on one line."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generator.errors import GroundedDialogsError


def add_data(parser: ArgumentParser, *names: str) -> None:
    """Add `--data`: a folder that has files or folders with these names in it."""

    def check(given: str) -> Path:
        for name in names:
            if not Path(given, name).exists():
                raise ArgumentTypeError(f"{given} has no {name}; give the folder that it is in")
        return Path(given)

    parser.add_argument("--data", type=check, required=True, help=f"the folder that holds {', '.join(names)}")


@contextmanager
def errors_on_one_line() -> Iterator[None]:
    """End the process with exit code 2 and the message of what a user can fix."""
    try:
        yield
    except (GroundedDialogsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
