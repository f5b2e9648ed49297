"""Measure how far a judge of MT-Bench-101 and people agree in their ratings (Bai et al. 2024, tables 5 and 9)."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from generator.schema import Record

if TYPE_CHECKING:
    from judges.benchmarks.mt_bench_101.scores import DialogScore

Scale = Literal["bands", "points"]


class Agreement(Record):
    """Agreement of two kinds of raters.

    Attributes:
        agreement: the chance that two different raters, one of each kind, agree on a random dialog; None if there are
            no two.
        kappa: Fleiss' kappa over the dialogs that everyone rated; None if there are no two raters, or one category.
    """

    agreement: float | None
    kappa: float | None


class AgreementWithPeople(Record):
    """Agreement of a judge with people.

    Attributes:
        people: with each person; the kappa is the mean of those of the judge and one person.
        majority: with the most frequent rating of a dialog; where two are equally frequent there is none.
        kappa: of the judge and all people as raters of the same kind.
    """

    people: Agreement
    majority: Agreement
    kappa: float | None


class AgreementReport(Record):
    """Agreement among people and of the judge with them, by the minimum and by the mean of a dialog's turns.

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
    among_people: Agreement
    minimum: AgreementWithPeople
    mean: AgreementWithPeople


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

    def judged(value: Mapping[str, int]) -> AgreementWithPeople:
        alone = [fleiss([[value[name], votes[name][person]] for name in complete]) for person in range(len(ratings))]
        known = [kappa for kappa in alone if kappa is not None]
        return AgreementWithPeople(
            people=Agreement(
                agreement=_mean(fmean(vote == value[name] for vote in by.values()) for name, by in votes.items()),
                kappa=_mean(known),
            ),
            majority=Agreement(
                agreement=_mean(most == value[name] for name, most in majority.items()),
                kappa=fleiss([[value[name], majority[name]] for name in complete if name in majority]),
            ),
            kappa=fleiss([[value[name], *votes[name].values()] for name in complete]),
        )

    return AgreementReport(
        scale=scale,
        people=len(ratings),
        dialogs=len(votes),
        complete=len(complete),
        ties=len(votes) - len(majority),
        among_people=Agreement(
            agreement=pair_agreement([list(by.values()) for by in votes.values()]),
            kappa=fleiss([list(votes[name].values()) for name in complete]),
        ),
        minimum=judged({name: to_category(scores[name].minimum, scale) for name in votes}),
        mean=judged({name: to_category(scores[name].mean, scale) for name in votes}),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return round(fmean(found), 4) if found else None


def print_agreement(report: AgreementReport) -> None:
    """Print the figures as a table."""
    from generator.output.tables import cell, print_table

    def row(label: str, agreement: float | None, kappa: float | None) -> list[str]:
        return [label, cell(agreement, "{:.1%}"), cell(kappa, "{:.3f}")]

    rows = [row("people among themselves", report.among_people.agreement, report.among_people.kappa)]
    for name, judge in (("minimum", report.minimum), ("mean", report.mean)):
        rows += [
            row(f"judge, {name} of turns, with people", judge.people.agreement, judge.people.kappa),
            row(f"judge, {name} of turns, with the majority", judge.majority.agreement, judge.majority.kappa),
            row(f"judge, {name} of turns, and people together", None, judge.kappa),
        ]
    print_table(rows, ("", "agreement", "Fleiss' kappa"), right=("agreement", "Fleiss' kappa"))
    rated = f"{report.people} people rated {report.dialogs} dialogs, {report.ties} of them without a majority"
    print(f"\n{rated}; kappas are over the {report.complete} that all rated.")
    print(f"Ratings agree if they {'lie in the same band' if report.scale == 'bands' else 'are the same points'}.")
