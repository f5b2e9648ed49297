"""`python -m judges.review`: people check if the contexts of items suffice (Kuo et al. 2025, appendix A.4)."""

import sys
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Annotated

from pydantic import Field

from generator.command import Command, run_command, with_settings
from generator.errors import ConfigError, CorpusError
from generator.schema import Dialog, LocalPath, OneOrMore, Record, Turn

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


class ReviewSettings(Record):
    run: LocalPath = Field(description="Run folder with items, or a file of them as `dialogs.jsonl` is.")
    sheet: LocalPath | None = Field(description="File for a new sheet to fill in, CSV; null: none.")
    sheets: Annotated[tuple[LocalPath, ...], OneOrMore] = Field(description="Filled-in sheets, one for each person.")
    output: LocalPath | None = Field(
        description="File for the items of which a majority found every turn sufficient, as `dialogs.jsonl` is; null: "
        "none."
    )


@with_settings(ReviewSettings)
def review(settings: ReviewSettings) -> None:
    """Write a sheet, or print what the filled-in sheets say and write the items that stay.

    Raises:
        ConfigError: a setting is wrong, or statsmodels isn't installed.
        CorpusError, RunError: items or a sheet can't be read or written.
    """
    from generator.common.atomic_files import write_lines
    from generator.common.console import count_noun
    from generator.output.tables import print_table
    from generator.sets import dialog_set
    from judges.sheets import read_sheet, write_sheet
    from taxonomy import Criterion

    if bool(settings.sheet) == bool(settings.sheets):
        raise ConfigError("sheet, sheets: give one of them: sheet=FILE writes a sheet, sheets=[FILE,…] reads them")
    if settings.output and not settings.sheets:
        raise ConfigError("output: is written from filled-in sheets; give sheets=[FILE,…]")
    items = list(dialog_set(str(settings.run)).dialogs())
    turns = {_name(item, turn): (item, turn) for item in items for turn in _list_reviewed(item)}
    if not turns:
        raise CorpusError(f"run={settings.run}: no turn has its own contexts and a reference; give items of RAD-Bench")
    if settings.sheet:
        write_sheet(settings.sheet, [_row(name, *each) for name, each in turns.items()], [SUFFICES])
        print(f"{settings.sheet}: {count_noun(len(turns), 'turn')} to answer with yes or no; give each person a copy")
        return
    answer = Criterion(name=SUFFICES, question="Do the contexts hold what the reference says?").parse
    rows, kept = count_votes(items, [read_sheet(sheet, SUFFICES, answer, turns) for sheet in settings.sheets])
    if settings.output:
        write_lines(settings.output, kept)
    people = len(settings.sheets)
    print_table(rows, (f"{people} {'person' if people == 1 else 'people'}", ""), right=("",))


def count_votes(
    items: Sequence[Dialog], votes: Sequence[Mapping[str, int]]
) -> tuple[list[tuple[str, str]], list[Dialog]]:
    """Return what people found as rows of a table, and the items of which a majority found every turn sufficient.

    An item counts once all of its turns with a reference are reviewed.

    Args:
        votes: each person's, 1 for yes and 0 for no, by the name of the turn; at least one person and one vote.

    Raises:
        ConfigError: statsmodels isn't installed.
    """
    from generator.output.tables import cell
    from judges.people.measures import fleiss, majority_of, pair_agreement

    by_turn: dict[str, list[int]] = {}
    for person in votes:
        for name, vote in person.items():
            by_turn.setdefault(name, []).append(vote)
    found = {name: majority_of(each) for name, each in by_turn.items()}
    names = {item.id: [_name(item, turn) for turn in _list_reviewed(item)] for item in items}
    complete = [item for item in items if names[item.id] and all(name in found for name in names[item.id])]
    kept = [item for item in complete if all(found[name] for name in names[item.id])]
    judged = [
        (verdict.label == "correct") == found[name]
        for item in items
        for turn in _list_reviewed(item)
        if found.get(name := _name(item, turn)) is not None
        for verdict in turn.verdicts
        if verdict.judge == JUDGE and verdict.label in ("correct", "incorrect")
    ]
    kappa = fleiss([each for each in by_turn.values() if len(each) == len(votes)])

    majorities = list(found.values())
    return [
        ("turns reviewed", str(len(found))),
        ("sufficient by majority", str(majorities.count(1))),
        ("without a majority", str(majorities.count(None))),
        ("items reviewed whole", str(len(complete))),
        ("items kept", str(len(kept))),
        ("agreement of two people", cell(pair_agreement(by_turn.values()), "{:.1%}")),
        ("Fleiss' kappa", cell(kappa, "{:.3f}")),
        ("judge with the majority", cell(fmean(judged) if judged else None, "{:.1%}")),
    ], kept


def _list_reviewed(item: Dialog) -> list[Turn]:
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


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
