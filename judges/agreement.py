"""`python -m judges.agreement`: agreement of a judge of MT-Bench-101 with people; see `docs/mt_bench_101.md`.

A sheet to fill in is drawn from a run of `python -m judges.evaluate`, and read back with the ratings of each person
(Bai et al. 2024, section 4.5, tables 5 and 9).
"""

import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from generator.command import Command, run_command, with_settings
from generator.errors import ConfigError, CorpusError
from generator.schema import Dialog, LocalPath, OneOrMore, Record
from judges.people.ratings import Scale, measure_ratings, print_agreement

if TYPE_CHECKING:
    from judges.benchmarks.mt_bench_101.scores import DialogScore
    from taxonomy import Task

COMMAND = Command(
    program="python -m judges.agreement",
    primary="agreement",
    task="judges.agreement:agree",
    settings="judges.agreement:AgreementSettings",
    usage=(
        "python -m judges.agreement RUN_DIR sheet=FILE.csv [items=100] [seed=0]",
        "python -m judges.agreement RUN_DIR sheets=[FILE.csv,FILE.csv,...] [output=FILE.json]",
        "",
        "How far a judge of MT-Bench-101 agrees with people. The first form writes a sheet with dialogs of a run of",
        "python -m judges.evaluate; each person fills in a copy of it, one rating from 1 to 10 a dialog. The second",
        "form reads the copies, and prints agreement and Fleiss' kappa as in tables 5 and 9 of Bai et al. 2024.",
    ),
    groups=(),
    positional="run",
)
RATING = "rating"


class AgreementSettings(Record):
    run: LocalPath = Field(description="Run folder of `python -m judges.evaluate`.")
    sheet: LocalPath | None = Field(description="File for a new sheet to fill in, CSV; null: none.")
    items: int = Field(ge=1, description="Dialogs of a new sheet, drawn evenly from the tasks.")
    seed: int = Field(description="Of the draw.")
    sheets: Annotated[tuple[LocalPath, ...], OneOrMore] = Field(description="Filled-in sheets, one for each person.")
    scale: Scale = Field(
        description="Ratings agree if they lie in the same band of 1-3, 4-6, 7-9, 10 (bands), or only if they are the "
        "same points, rounded (points)."
    )
    tasks: LocalPath | None = Field(description="Folder of your own tasks, added to ours; null: none.")
    output: LocalPath | None = Field(description="File for the figures of filled-in sheets, JSON; null: none.")


@with_settings(AgreementSettings)
def agree(settings: AgreementSettings) -> None:
    """Write a sheet, or print the agreement of those that are filled in.

    Raises:
        ConfigError: a setting is wrong, or statsmodels isn't installed.
        CorpusError, RunError: the run or a sheet can't be read or written, or is of other tasks.
        TaxonomyError: a task file can't be used.
    """
    from generator.common.atomic_files import write_text
    from generator.common.console import count_noun
    from judges.base import BEST
    from judges.sheets import read_sheet, write_sheet
    from taxonomy import Criterion, read_tasks

    if bool(settings.sheet) == bool(settings.sheets):
        raise ConfigError("sheet, sheets: give one of them: sheet=FILE writes a sheet, sheets=[FILE,…] reads them")
    tasks = read_tasks(settings.tasks)
    dialogs = read_judged(settings.run, tasks)
    if settings.sheet:
        drawn = draw_dialogs([dialog for dialog, _ in dialogs], settings.items, settings.seed)
        write_sheet(settings.sheet, [sheet_row(dialog, tasks[dialog.task]) for dialog in drawn], [RATING])
        print(f"{settings.sheet}: {count_noun(len(drawn), 'dialog')} to rate from 1 to 10; give each person a copy")
        return
    scores = {dialog.id: score for dialog, score in dialogs}
    points = Criterion.model_validate({"name": RATING, "question": "How good?", "scale": list(range(1, BEST + 1))})
    ratings = [read_sheet(sheet, RATING, lambda text: points.parse(text) + 1, scores) for sheet in settings.sheets]
    report = measure_ratings(ratings, scores, settings.scale)
    if settings.output:
        write_text(settings.output, report.model_dump_json(indent=1) + "\n")
    print_agreement(report)


def read_judged(run: Path, tasks: Mapping[str, "Task"]) -> list[tuple[Dialog, "DialogScore"]]:
    """Return the dialogs of a run whose turns are all judged, with their scores; of two contexts the golden one.

    Raises:
        CorpusError, RunError: they can't be read, there are none, or the task of one isn't in `tasks`.
    """
    from generator.sets import dialog_set
    from judges.benchmarks.mt_bench_101.scores import dialog_score
    from judges.benchmarks.scores import rated_turns

    dialogs = list(dialog_set(str(run)).dialogs())
    golden = [dialog for dialog in dialogs if dialog.context == "golden"]
    found = []
    for dialog in golden or dialogs:
        if dialog.task not in tasks:
            raise CorpusError(
                f"run={run}: dialog {dialog.id} has no task of MT-Bench-101 ({dialog.task!r}); give a run of python -m "
                "judges.evaluate on mt_bench_101, and tasks=FOLDER if its tasks are your own"
            )
        first = tasks[dialog.task].judged_from
        if score := dialog_score([turn for turn in rated_turns(dialog) if turn.turn >= first]):
            found.append((dialog, score))
    if not found:
        raise CorpusError(f"run={run}: has no dialog with a score; give a run folder of python -m judges.evaluate")
    return found


def draw_dialogs(dialogs: Sequence[Dialog], items: int, seed: int) -> list[Dialog]:
    """Return `items` dialogs, or all if there are fewer: equally many of each task, as far as it has them."""
    from judges.benchmarks.mt_bench_101.scores import ORDER
    from judges.benchmarks.scores import sort_tasks

    chance = random.Random(seed)
    drawn = []
    order = sort_tasks({dialog.task for dialog in dialogs}, ORDER)
    for task in order:
        members = [dialog for dialog in dialogs if dialog.task == task]
        drawn += [(rank, chance.random(), dialog) for rank, dialog in enumerate(chance.sample(members, len(members)))]
    chosen = [dialog for _, _, dialog in sorted(drawn, key=lambda each: each[:2])[:items]]
    return sorted(chosen, key=lambda dialog: order.index(dialog.task))


def sheet_row(dialog: Dialog, task: "Task") -> dict[str, str]:
    """Return the row of a dialog: what to judge by, and the dialog with the answers to judge marked."""
    return {
        "id": dialog.id,
        "task": task.name,
        "title": task.title,
        "criteria": task.rubric(),
        "dialog": "\n\n".join(_lines(dialog, task)),
    }


def _lines(dialog: Dialog, task: "Task") -> Iterable[str]:
    for passage in dialog.passages:
        yield f"DOCUMENT: {passage.title}\n{passage.text}"
    for turn in dialog.turns:
        yield f"USER: {turn.query}"
        if not turn.verdicts or turn.turn < task.judged_from:
            yield f"AGENT: {turn.answer}"
            continue
        yield f">>> TO RATE: {turn.answer}"
        for golden in turn.other_answers[:1]:
            if task.reference:
                yield f"(REFERENCE: {golden})"
            elif dialog.context == "golden" and turn is not dialog.turns[-1]:
                yield f"(THE DIALOG GOES ON WITH THIS ANSWER: {golden})"


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
