"""`python -m judges.review`: people check if the contexts of items suffice (Kuo et al. 2025, appendix A.4)."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from generator.command import Command, run_command
from generator.errors import ConfigError, CorpusError
from generator.schema import Dialog, LocalPath, OneOrMore, Record, Turn

if TYPE_CHECKING:
    from omegaconf import DictConfig

COMMAND = Command(
    program="python -m judges.review",
    primary="review",
    task="judges.review:review",
    settings="judges.review:ReviewSettings",
    usage=(
        "python -m judges.review RUN_DIR sheet=FILE.csv",
        "python -m judges.review RUN_DIR sheets=[FILE.csv,FILE.csv,...] [output=FILE.jsonl]",
        "",
        "Whether the contexts of RAD-Bench's items hold what the references say. The first form writes a sheet with",
        "every question that has a reference; each person fills in a copy of it, yes or no. The second form reads the",
        "copies, prints the agreement, and writes the items of which a majority found every turn sufficient.",
    ),
    groups=(),
    positional="run",
)
SUFFICES, JUDGE = "suffices", "sufficiency"
_ANSWERS = {"yes": True, "y": True, "1": True, "true": True, "no": False, "n": False, "0": False, "false": False}


class ReviewSettings(Record):
    """Settings of `python -m judges.review`."""

    run: LocalPath = Field(description="Run folder with items, or a file of them as `dialogs.jsonl` is.")
    sheet: LocalPath | None = Field(description="File for a new sheet to fill in, CSV; null: none.")
    sheets: Annotated[tuple[LocalPath, ...], OneOrMore] = Field(description="Filled-in sheets, one for each person.")
    output: LocalPath | None = Field(
        description="File for the items of which a majority found every turn sufficient, as `dialogs.jsonl` is; null: "
        "none."
    )


class ReviewReport(Record):
    """The findings of people.

    Attributes:
        people: sheets.
        turns, sufficient, ties: turns that somebody reviewed; those of them that a majority found sufficient, and those
            without a majority.
        items, kept: items all of whose turns with a reference are reviewed; those of them that are kept.
        agreement, kappa: the chance that two people agree on a turn, and Fleiss' kappa; None without two people.
        judge: the share of turns where the verdict of `judge=sufficiency` is the majority's; None without one.
    """

    people: int
    turns: int
    sufficient: int
    ties: int
    items: int
    kept: int
    agreement: float | None
    kappa: float | None
    judge: float | None


def review(cfg: "DictConfig", job: object) -> None:
    """Write a sheet, or print what the filled-in sheets say and write the items that stay.

    Raises:
        ConfigError: a setting is wrong, or statsmodels isn't installed.
        CorpusError, RunError: items or a sheet can't be read or written.
    """
    from generator.common.atomic_files import atomic_write
    from generator.config.parts import plain, validate
    from generator.sets import dialog_set
    from judges.benchmarks.sheets import read_sheet, write_sheet

    settings: ReviewSettings = validate(ReviewSettings, "", plain(cfg))
    if bool(settings.sheet) == bool(settings.sheets):
        raise ConfigError("sheet, sheets: give one of them: sheet=FILE writes a sheet, sheets=[FILE,…] reads them")
    if settings.output and not settings.sheets:
        raise ConfigError("output: is written from filled-in sheets; give sheets=[FILE,…]")
    items = list(dialog_set(str(settings.run), None).dialogs())
    turns = {_name(item, turn): (item, turn) for item in items for turn in _reviewed(item)}
    if not turns:
        raise CorpusError(f"run={settings.run}: no turn has its own contexts and a reference; give items of RAD-Bench")
    if settings.sheet:
        write_sheet(settings.sheet, [_row(name, *each) for name, each in turns.items()], [SUFFICES])
        print(f"{settings.sheet}: {len(turns)} turns to answer with yes or no; give each person a copy")
        return
    votes = [read_sheet(sheet, SUFFICES, parse_answer, turns) for sheet in settings.sheets]
    report, kept = count_votes(items, votes)
    if settings.output:
        with atomic_write(settings.output) as file:
            file.writelines(f"{item.model_dump_json()}\n" for item in kept)
    print_report(report)


def count_votes(items: Sequence[Dialog], votes: Sequence[Mapping[str, bool]]) -> tuple[ReviewReport, list[Dialog]]:
    """Return what people found, and the items of which a majority found every turn with a reference sufficient.

    Args:
        votes: each person's, by the name of the turn; at least one person and one vote.
    """
    from judges.people.measures import fleiss, majority_of

    by_turn: dict[str, list[bool]] = {}
    for person in votes:
        for name, vote in person.items():
            by_turn.setdefault(name, []).append(vote)
    found = {name: majority_of(each) for name, each in by_turn.items()}
    names = {item.id: [_name(item, turn) for turn in _reviewed(item)] for item in items}
    complete = [item for item in items if names[item.id] and all(name in found for name in names[item.id])]
    kept = [item for item in complete if all(found[name] for name in names[item.id])]
    judged = [
        (verdict.label == "correct") == found[name]
        for item in items
        for turn in _reviewed(item)
        if found.get(name := _name(item, turn)) is not None
        for verdict in turn.verdicts
        if verdict.judge == JUDGE and verdict.label in ("correct", "incorrect")
    ]
    pairs = [fmean(_agreements(each)) for each in by_turn.values() if len(each) > 1]
    everyone = [[int(vote) for vote in each] for each in by_turn.values() if len(each) == len(votes)]
    report = ReviewReport(
        people=len(votes),
        turns=len(found),
        sufficient=sum(each is True for each in found.values()),
        ties=sum(each is None for each in found.values()),
        items=len(complete),
        kept=len(kept),
        agreement=round(fmean(pairs), 4) if pairs else None,
        kappa=fleiss(everyone) if len(votes) > 1 else None,
        judge=round(fmean(judged), 4) if judged else None,
    )
    return report, kept


def parse_answer(text: str) -> bool:
    """Return a person's answer.

    Raises:
        ValueError: it is neither yes nor no.
    """
    if (answer := _ANSWERS.get(text.strip().casefold())) is None:
        raise ValueError("must be yes or no")
    return answer


def print_report(report: ReviewReport) -> None:
    """Print what people found."""
    from generator.output.tables import ABSENT, print_table

    def percent(value: float | None) -> str:
        return ABSENT if value is None else f"{value:.1%}"

    rows = [
        ["turns reviewed", str(report.turns)],
        ["sufficient by majority", str(report.sufficient)],
        ["without a majority", str(report.ties)],
        ["items reviewed whole", str(report.items)],
        ["items kept", str(report.kept)],
        ["agreement of two people", percent(report.agreement)],
        ["Fleiss' kappa", ABSENT if report.kappa is None else f"{report.kappa:.3f}"],
        ["judge with the majority", percent(report.judge)],
    ]
    print_table(rows, (f"{report.people} {'person' if report.people == 1 else 'people'}", ""), right=("",))


def _reviewed(item: Dialog) -> list[Turn]:
    return [turn for turn in item.turns if turn.answer and turn.hits]


def _name(item: Dialog, turn: Turn) -> str:
    return f"{item.id}/{turn.turn}"


def _row(name: str, item: Dialog, turn: Turn) -> dict[str, str]:
    return {
        "id": name,
        "scenario": item.task,
        "earlier questions": "\n".join(each.query for each in item.turns[: turn.turn - 1]),
        "question": turn.query,
        "contexts": "\n\n".join(passage.titled for passage in item.retrieved(turn.turn)),
        "reference": turn.answer,
    }


def _agreements(votes: Sequence[bool]) -> Iterable[bool]:
    return [one == other for place, one in enumerate(votes) for other in votes[place + 1 :]]


def main() -> int:
    """Run the command line and return the exit code: 0, 2 something to fix, 130 interrupted."""
    return run_command(COMMAND)


if __name__ == "__main__":
    sys.exit(main())
