"""Scores of MT-Bench-101 (Bai et al. 2024, section 3.4): by task, ability and tier, and the tables of them."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import Field

from generator.output.tables import ABSENT, print_table
from generator.schema import Record
from judges.benchmarks.scores import DIGITS, Rated, Score, TurnScore, count_reasons, mean_score, score_turns, sort_tasks
from taxonomy import Task

# Columns of the table: for each context, and for all of them.
_HEADS = ("score", "95% interval", "mean")
_COUNTS = ("dialogs", "unscored")
# The order of the paper's tables; a user's own tasks follow.
ORDER = ("CM", "SI", "AR", "TS", "CC", "CR", "FR", "SC", "SA", "MR", "GR", "IC", "PI")


class GroupScore(Score):
    """The score of a task, of an ability or of a tier."""

    mean: float | None = Field(description="The score with the mean of a dialog's turns in place of the minimum.")
    dialogs: int = Field(description="All of its dialogs.")
    unscored: int = Field(description="Those with an unjudged turn; they are in neither score nor mean.")


class MtBenchScores(Record):
    """Scores of a model's answers.

    A dialog is the minimum of its judged turns, a task the mean of its dialogs, everything else the mean of its tasks.
    A dialog with an unjudged turn is in no score, and a task without a scored dialog in no mean.
    """

    average: Score
    tasks: Mapping[str, GroupScore]
    abilities: Mapping[str, GroupScore]
    tiers: Mapping[str, GroupScore]
    mean: Score = Field(description="The average with the mean of a dialog's turns in place of the minimum.")
    turns: Mapping[str, Mapping[str, TurnScore]] = Field(description="By task and number of the turn.")
    judged: int = Field(description="Turns with a score.")
    unjudged: int
    reasons: Mapping[str, int] = Field(description="Why turns have no score.")

    @classmethod
    def read(cls, scores: Mapping[str, Any]) -> "MtBenchScores":
        """Return the scores that `scores.json` has, beside other facts."""
        return cls.model_validate({name: scores[name] for name in cls.model_fields})


class DialogScore(NamedTuple):
    """The minimum and the mean of a dialog's judged turns."""

    minimum: float
    mean: float


def dialog_score(turns: Sequence[Rated]) -> DialogScore | None:
    """Return the score of a dialog from its rated turns; None if there are none, or one of them has no score."""
    scores = [turn.score for turn in turns if turn.score is not None]
    return DialogScore(min(scores), fmean(scores)) if scores and len(scores) == len(turns) else None


def score_dialogs(rated: Sequence[Rated], tasks: Mapping[str, Task], seed: int = 0) -> MtBenchScores:
    """Return the scores of the rated turns.

    Turns before their task's `judged_from` are left out. One that is missing before a rated one is unjudged.

    Args:
        tasks: by name, at least those of the turns.
        seed: of the intervals.
    """
    judged = [turn for turn in rated if turn.turn >= tasks[turn.task].judged_from]
    items: dict[str, dict[str, list[Rated]]] = {name: {} for name in sort_tasks({turn.task for turn in judged}, ORDER)}
    for turn in judged:
        items[turn.task].setdefault(turn.item, []).append(turn)
    for name, found in items.items():
        for item, turns in found.items():
            numbers = {turn.turn for turn in turns}
            lost = set(range(tasks[name].judged_from, max(numbers))) - numbers
            turns += [Rated(task=name, item=item, turn=n, score=None, reason="missing turn") for n in sorted(lost)]
    judged = [turn for found in items.values() for turns in found.values() for turn in turns]
    dialogs = {name: list(map(dialog_score, found.values())) for name, found in items.items()}

    def score(names: Sequence[str], value: Callable[[DialogScore], float]) -> Score:
        return mean_score([[[value(dialog)] for dialog in dialogs[name] if dialog] for name in names], seed)

    def group(names: Sequence[str]) -> GroupScore:
        means = [fmean(each) for name in names if (each := [dialog.mean for dialog in dialogs[name] if dialog])]
        found = [dialog for name in names for dialog in dialogs[name]]
        return GroupScore(
            **score(names, lambda dialog: dialog.minimum).model_dump(),
            mean=round(fmean(means), DIGITS) if means else None,
            dialogs=len(found),
            unscored=found.count(None),
        )

    def groups(of: Callable[[Task], str]) -> dict[str, GroupScore]:
        names = dict.fromkeys(of(tasks[name]) for name in items)
        return {group_name: group([name for name in items if of(tasks[name]) == group_name]) for group_name in names}

    by_turn = score_turns(judged)
    reasons = count_reasons(judged)
    return MtBenchScores(
        average=score(list(items), lambda dialog: dialog.minimum),
        tasks={name: group([name]) for name in items},
        abilities=groups(lambda task: task.ability),
        tiers=groups(lambda task: task.tier),
        mean=score(list(items), lambda dialog: dialog.mean),
        turns={name: by_turn[name] for name in items},
        judged=len(judged) - sum(reasons.values()),
        unjudged=sum(reasons.values()),
        reasons=reasons,
    )


def print_scores(scores: Mapping[str, MtBenchScores], tasks: Mapping[str, Task]) -> None:
    """Print the tables: scores by tier, ability and task, and scores by turn.

    Args:
        scores: of each context, `golden` or `own`; several stand side by side.
        tasks: by name, at least those of the scores.
    """
    contexts, several = list(scores.values()), len(scores) > 1
    names = sort_tasks({name for found in contexts for name in found.tasks}, ORDER)
    rows = [_row("average", [_average(found) for found in contexts])]
    for tier in dict.fromkeys(tasks[name].tier for name in names):
        rows.append(_row(tier, [found.tiers.get(tier) for found in contexts]))
        inside = [name for name in names if tasks[name].tier == tier]
        for ability in dict.fromkeys(tasks[name].ability for name in inside):
            rows.append(_row(f"· {ability}", [found.abilities.get(ability) for found in contexts]))
            for name in (name for name in inside if tasks[name].ability == ability):
                label = f"· · {name}" if several else f"· · {name} {tasks[name].title}"
                rows.append(_row(label, [found.tasks.get(name) for found in contexts]))
    heads = [f"{context}\n{head}" if several else head for context in scores for head in _HEADS[: _width(contexts)]]
    print_table(rows, ["", *heads, *_COUNTS], right=[*heads, *_COUNTS])
    print()
    last = max((int(turn) for found in contexts for turns in found.turns.values() for turn in turns), default=0)
    numbers = [str(turn) for turn in range(1, last + 1)]
    rows = [
        [f"{name} {context}" if several else name, *(_turn_cell(found.turns.get(name, {}).get(n)) for n in numbers)]
        for name in names
        for context, found in scores.items()
    ]
    heads = [f"turn {number}" for number in numbers]
    print_table(rows, ["score (judged)", *heads], right=heads)


def _average(scores: MtBenchScores) -> GroupScore:
    return GroupScore(
        **scores.average.model_dump(),
        mean=scores.mean.score,
        dialogs=sum(task.dialogs for task in scores.tasks.values()),
        unscored=sum(task.unscored for task in scores.tasks.values()),
    )


def _row(label: str, each: Sequence[GroupScore | None]) -> list[str]:
    cells = [cell for score in each for cell in _cells(score)[: _width(each)]]
    dialogs = dict.fromkeys(str(score.dialogs) if score else ABSENT for score in each)  # mostly the same ones
    unscored = [str(score.unscored) if score else ABSENT for score in each]
    return [label, *cells, ", ".join(dialogs), ", ".join(unscored)]


def _width(contexts: Sequence[object]) -> int:
    """Return how many columns a context has: with several, the mean has no room in a terminal of 80."""
    return len(_HEADS) if len(contexts) == 1 else len(_HEADS) - 1


def _cells(score: GroupScore | None) -> list[str]:
    if score is None or score.score is None:
        return [ABSENT] * len(_HEADS)
    interval = ABSENT if score.low is None else f"{score.low:.2f}{ABSENT}{score.high:.2f}"
    return [f"{score.score:.2f}", interval, f"{score.mean:.2f}"]


def _turn_cell(turn: TurnScore | None) -> str:
    return f"{turn.score:.2f} ({turn.judged})" if turn and turn.score is not None else ABSENT
