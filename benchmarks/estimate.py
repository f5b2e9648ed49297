"""How near `python -m generator.estimate` comes, by finished runs: every few dialogs in a row stand for the preview.

    uv run python -m benchmarks.estimate RUN [RUN ...] [--preview 5]

Each run is forecast from so many of its dialogs, as if nothing of it were made, and compared with what it took.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from omegaconf import DictConfig, OmegaConf

from benchmarks.command_line import errors_on_one_line
from generator.config.settings import load
from generator.estimation.forecast import Size, Sizes, forecast
from generator.execution.history import History, read_history
from generator.output.markdown import table
from generator.run import Run
from generator.schema import add_up

FIGURES = ("calls", "prompt tokens", "of them computed", "completion tokens")


class Shifted:
    """The sizes of a run's plans, counted from another plan than the first."""

    def __init__(self, sizes: Sequence[Mapping[str, Size]], first: int) -> None:
        self.sizes, self.first = sizes, first

    def of_plans(self, numbers: Sequence[int]) -> list[Mapping[str, Size]]:
        return [self.sizes[(self.first + number) % len(self.sizes)] for number in numbers]


def compare(folder: Path, preview: int) -> tuple[list[list[float]], list[list[bool]]]:
    """Return the relative error of each preview's forecast, and whether the interval holds what the run took."""
    settings = load(cast(DictConfig, OmegaConf.load(folder / "config.yaml")))
    run = read_history(folder)
    with settings.executor.open() as executor:
        sizes = Sizes(Run(settings, "", "", executor).components).of_plans(range(len(run.plans)))
    total = run.total
    taken = (total.calls, total.prompt, total.prompt - total.cached, total.completion)
    errors, held = [], []
    for first in range(0, len(run.plans) - preview + 1, preview):
        plans = run.plans[first : first + preview]
        usage = add_up(spent for plan in plans for spent in plan.usage.items())
        measured = History(plans=plans, usage=usage, seconds=1, identity={})
        own, theirs = (cast(Sizes, Shifted(sizes, start)) for start in (0, first))
        # A run that stopped at max_attempts took so many attempts, whatever was accepted.
        wanted = run.accepted if run.accepted >= settings.wanted else settings.wanted
        most = len(run.plans) if wanted > run.accepted else 10 * wanted
        found = forecast(own, None, measured, theirs, wanted, most)
        calls, prompt, cached, completion = (found.draws[:, each].sum(axis=1) for each in range(4))
        ranges = [found.range(draws) for draws in (calls, prompt, prompt - cached, completion)]
        errors.append([each.value / real - 1 for each, real in zip(ranges, taken, strict=True)])
        held.append([(each.low or 0) <= real <= (each.high or 0) for each, real in zip(ranges, taken, strict=True)])
    return errors, held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--preview", type=int, default=5)
    given = parser.parse_args()
    with errors_on_one_line():
        compared = [compare(run, given.preview) for run in given.runs]
    errors = np.abs([error for each, _ in compared for error in each])
    held = np.array([inside for _, each in compared for inside in each])
    print(f"{len(errors)} previews of {given.preview} dialogs in {len(compared)} runs\n")
    rows = [
        [name, *(f"{share:.0%}" for share in (np.median(error), (error <= 0.25).mean(), inside.mean()))]
        for name, error, inside in zip(FIGURES, errors.T, held.T, strict=True)
    ]
    print(table(["", "median error", "within 25%", "in the interval"], rows))


if __name__ == "__main__":
    main()
