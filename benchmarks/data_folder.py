"""Read the setting `--data` of the benchmarks."""

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path


def add_data(parser: ArgumentParser, *names: str) -> None:
    """Add `--data`: a folder that has files or folders with these names in it."""

    def check(given: str) -> Path:
        for name in names:
            if not Path(given, name).exists():
                raise ArgumentTypeError(f"{given} has no {name}; give the folder that it is in")
        return Path(given)

    parser.add_argument("--data", type=check, required=True, help=f"the folder that holds {', '.join(names)}")
