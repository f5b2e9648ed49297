"""Measure how far a judge of MT-Bench-101 and people agree in their ratings (Bai et al. 2024, tables 5 and 9)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from generator.schema import Record

if TYPE_CHECKING:
    from judges.benchmarks.mt_bench_101.scores import DialogScore

Scale = Literal["bands", "points"]


class Agreement(Record):
    """Agreement of some raters.

    Attributes:
        raters: who they are, as in the table. The judge's rating of a dialog is the minimum or the mean of its turns';
            the majority is the most frequent rating, and where two are equally frequent there is none.
        agreement: the chance that two of them agree on a random dialog; None if there are no two, and of the judge and
            all people as raters of the same kind.
        kappa: Fleiss' kappa over the dialogs that everyone rated, of the judge and people the mean of those of the
            judge and one person; None if there are no two raters, or one category.
    """

    raters: str
    agreement: float | None
    kappa: float | None


class AgreementReport(Record):
    """Agreement among people and of the judge with them.

    Attributes:
        people: sheets.
        dialogs: those that somebody rated.
        complete: those that everybody rated, over which kappas are.
        ties: those without a majority.
    """

    scale: Scale
    people: int
    dialogs: int
    complete: int
    ties: int
    rows: tuple[Agreement, ...]


def to_category(points: float, scale: Scale) -> int:
    """Return what must be equal for ratings to agree: whole points, halves rounded up, or the number of their band."""
    whole = int(points + 0.5)
    return whole if scale == "points" else (whole - 1) // 3


def measure_ratings(
    ratings: Sequence[Mapping[str, int]], scores: Mapping[str, "DialogScore"], scale: Scale
) -> AgreementReport:
    """Return the agreement of people and judge.

    Args:
        ratings: each person's, by dialog; at least one person and one rating.
        scores: the judge's, for all of these dialogs.

    Raises:
        ConfigError: statsmodels isn't installed.
    """
    from judges.people.measures import fleiss, majority_of, pair_agreement

    votes: dict[str, dict[int, int]] = {}
    for person, rated in enumerate(ratings):
        for name, points in rated.items():
            votes.setdefault(name, {})[person] = to_category(points, scale)
    majority = {name: most for name, by in votes.items() if (most := majority_of(list(by.values()))) is not None}
    complete = [name for name, by in votes.items() if len(by) == len(ratings)]

    def judged(judge: str, value: Mapping[str, int]) -> Iterator[Agreement]:
        shares = (fmean(vote == value[name] for vote in by.values()) for name, by in votes.items())
        alone = [fleiss([[value[name], votes[name][person]] for name in complete]) for person in range(len(ratings))]
        kappa = _mean(kappa for kappa in alone if kappa is not None)
        yield Agreement(raters=f"{judge}, with people", agreement=_mean(shares), kappa=kappa)
        same = _mean(most == value[name] for name, most in majority.items())
        kappa = fleiss([[value[name], majority[name]] for name in complete if name in majority])
        yield Agreement(raters=f"{judge}, with the majority", agreement=same, kappa=kappa)
        kappa = fleiss([[value[name], *votes[name].values()] for name in complete])
        yield Agreement(raters=f"{judge}, and people together", agreement=None, kappa=kappa)

    among_people = Agreement(
        raters="people among themselves",
        agreement=pair_agreement([list(by.values()) for by in votes.values()]),
        kappa=fleiss([list(votes[name].values()) for name in complete]),
    )
    minima, means = ({name: to_category(scores[name][place], scale) for name in votes} for place in (0, 1))
    return AgreementReport(
        scale=scale,
        people=len(ratings),
        dialogs=len(votes),
        complete=len(complete),
        ties=len(votes) - len(majority),
        rows=(
            among_people,
            *judged("judge, minimum of turns", minima),
            *judged("judge, mean of turns", means),
        ),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return round(fmean(found), 4) if found else None


def print_agreement(report: AgreementReport) -> None:
    """Print the figures as a table."""
    from generator.common.console import count_noun
    from generator.output.tables import cell, print_table

    rows = [[each.raters, cell(each.agreement, "{:.1%}"), cell(each.kappa, "{:.3f}")] for each in report.rows]
    print_table(rows, ("", "agreement", "Fleiss' kappa"), right=("agreement", "Fleiss' kappa"))
    people = f"{report.people} {'person' if report.people == 1 else 'people'}"
    rated = f"{people} rated {count_noun(report.dialogs, 'dialog')}, {report.ties} of them without a majority"
    print(f"\n{rated}; kappas are over the {report.complete} that all rated.")
    print(f"Ratings agree if they {'lie in the same band' if report.scale == 'bands' else 'are the same points'}.")
