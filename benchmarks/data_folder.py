"""Read the setting `--data` of the benchmarks."""

import argparse
from collections.abc import Callable
from pathlib import Path


def data_folder(*names: str) -> Callable[[str], Path]:
    """Return the type of an argument of argparse: a folder that has files or folders with these names in it."""

    def check(given: str) -> Path:
        for name in names:
            if not Path(given, name).exists():
                raise argparse.ArgumentTypeError(f"{given} has no {name}; give the folder that it is in")
        return Path(given)

    return check
