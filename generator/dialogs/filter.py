"""Decide which context-response pairs of a judged dialog are kept (Lee et al. 2024, section 2.5); only here."""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from math import inf
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import AfterValidator

from generator.dialogs.columns import (
    LABELS,
    NEEDS_DOCUMENTS,
    NUMBERS,
    PERSON,
    Difficulty,
    VerdictLabel,
    deciding_verdict,
    is_doubt,
    is_person,
)
from generator.errors import ConfigError
from generator.schema import Answerability, Dialog, Drop, Judge, Label, Turn

_MODES = ("pairs", "prefix", "dialog", "verified")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_CONDITION = re.compile(r"(human:[\w.@+-]+(?::\w+)?|\w+) ?(<=|>=|!=|<|>|=) ?([^<>=!].*)")
# The labels of columns that have no others.
_VALUES = {
    "difficulty": get_args(Difficulty),
    "answerability": get_args(Answerability),
    NEEDS_DOCUMENTS: ("yes", "no"),
    "verdict": get_args(VerdictLabel),
}


class Condition(NamedTuple):
    """A condition on a column of a pair, a number or a label; `text` is the condition as it was given."""

    text: str
    column: str
    operator: str
    value: str | float

    def holds(self, dialog: Dialog, turn: Turn) -> bool:
        """Return whether the column meets the condition; one that the pair doesn't have does.

        Of a judge's verdict the score is compared with numbers, and the label with labels.
        """
        verdict = next((v for v in reversed(turn.verdicts) if v.judge == self.column), None)
        if isinstance(self.value, float):
            number = NUMBERS[self.column](dialog, turn) if self.column in NUMBERS else verdict and verdict.score
            return number is None or _OPERATORS[self.operator](number, self.value)
        label = LABELS[self.column](dialog, turn) if self.column in LABELS else verdict.label if verdict else None
        return label is None or (self.value in label.split("+")) == (self.operator == "=")


@lru_cache
def parse_filter(text: str) -> tuple[str, tuple[Condition, ...]]:
    """Return the mode of a filter, such as `prefix and overlap<0.6 and difficulty!=easy`, and its conditions.

    Raises:
        ValueError: it is none.
    """
    mode, conditions = "pairs", []
    for place, part in enumerate(re.split(" and ", " ".join(text.split()), flags=re.IGNORECASE)):
        if not place and part in _MODES:
            mode = part
        elif found := _CONDITION.fullmatch(part):
            column, compare, value = found.groups()
            number = re.fullmatch(r"-?(?:\d+\.?|\d*\.\d+)", value) is not None
            if not number and compare not in ("=", "!="):
                raise ValueError(f"“{part}”: {compare} needs a number; labels take = or !=, and “and” joins conditions")
            conditions.append(Condition(part, column, compare, float(value) if number else value))
        else:
            modes = "" if place else f"{', '.join(_MODES)}, or "
            raise ValueError(f"“{part}” must be {modes}a condition such as overlap<0.6; “and” joins conditions")
    return mode, tuple(conditions)


def loses_unjudged(keep: str, judge: Judge) -> bool:
    """Return whether a filter leaves out the pairs that a judge fails on."""
    mode, conditions = parse_filter(keep)
    labels = [each for each in conditions if each.column in ("verdict", judge.name) and isinstance(each.value, str)]
    wanted = any((each.value == "unjudged") != (each.operator == "=") for each in labels)
    return wanted or (mode == "verified" and judge.decides)


def _check(text: str) -> str:
    parse_filter(text)
    return text


Filter = Annotated[str, AfterValidator(_check)]


class KnownJudge(NamedTuple):
    """A judge, as far as a filter must know it; see `generator.schema.Judge`."""

    name: str
    decides: bool
    best: float | None


def list_judges(turns: Iterable[Turn]) -> list[KnownJudge]:
    """Return the judges whose verdicts turns have; what their highest score is isn't known."""
    verdicts = {(v.judge, v.decides, v.score is not None) for turn in turns for v in turn.verdicts}
    return [KnownJudge(name, decides, inf if scores else None) for name, decides, scores in sorted(verdicts)]


def check_columns(
    keep: Filter,
    judges: Collection[Judge | KnownJudge],
    labels: Mapping[str, Collection[str]] | None = None,
    ranked: bool = True,
    setting: str = "judge.filter",
) -> None:
    """Check that a run has the columns of a filter, and the labels that they are compared with.

    Args:
        labels: those that the run's turns can get, by column; what isn't there may have any.
        ranked: whether it ranks evidence.

    Raises:
        ConfigError: it has one of them not, compares a label with a number, or a number with one that it never is.
    """
    known_labels: dict[str, Collection[str]] = {
        **_VALUES,
        **(labels or {}),
        **{judge.name: get_args(Label) for judge in judges if judge.decides},
    }
    if not any(judge.decides for judge in judges):
        known_labels["verdict"] = ("none",)
    numbers = {name: inf for name in NUMBERS if ranked or not name.startswith("rank_")} | {"overlap": 1}
    numbers |= {judge.name: judge.best for judge in judges if judge.best is not None}
    labelled = [*(name for name in LABELS if name != NEEDS_DOCUMENTS), *(judge.name for judge in judges)]
    for condition in parse_filter(keep)[1]:
        if condition.column.startswith(PERSON):  # people judge a run when it is there
            continue
        kind, known = ("numbers", numbers) if isinstance(condition.value, float) else ("labels", labelled)
        if condition.column not in known:
            asks = condition.column == NEEDS_DOCUMENTS and labels is not None  # what exists can't be asked
            asked = "; add needs_documents to taxonomy.measure" if asks else ""
            raise ConfigError(
                f"{setting}: {condition.text}: {condition.column} is none of the {kind} that this run has: "
                f"{', '.join(known)}{asked}"
            )
        if isinstance(condition.value, float) and condition.value > (most := numbers[condition.column]):
            raise ConfigError(f"{setting}: {condition.text}: {condition.column} is {most:g} at most; give less")
        values = known_labels.get(condition.column, ()) if kind == "labels" else ()
        if values and condition.value not in values:
            raise ConfigError(
                f"{setting}: {condition.text}: {condition.value} is no label of {condition.column}; give one of "
                f"{', '.join(sorted(values))}"
            )


def filter_pairs(dialog: Dialog, keep: Filter) -> tuple[list[Turn], list[Drop]]:
    """Return the turns whose pairs are kept, and a drop for each of the others; a task has the pair of its last turn.

    Args:
        keep: `pairs` removes a pair judged incorrect (the paper), `prefix` also those after it, `dialog` all pairs of
            a dialog with an incorrect one. A pair without a verdict, or that the judge failed on, is not incorrect,
            but with `verified` a dialog is also removed for a pair that the judge failed on. Each condition that
            follows removes the pairs that don't meet it, and no others: earlier turns stay in the context.

    What a person rejected, and what goes with it, is dropped at the stage `human`.
    """
    kept, drops = [], []
    mode, conditions = parse_filter(keep)
    failing = {"incorrect", "unjudged"} if mode == "verified" else {"incorrect"}
    decided = {turn.turn: deciding_verdict(turn) for turn in dialog.own_turns}
    incorrect = [turn for turn, v in decided.items() if v and v.label in failing and not is_doubt(v)]
    for turn in dialog.own_turns:
        rejected = turn.turn in incorrect
        cause = decided[turn.turn if rejected or not incorrect else incorrect[0]]
        stage = "human" if is_person(cause) else "judge"
        if rejected and cause:
            failure = "judged incorrect" if cause.label == "incorrect" else "not judged"
            reason = "rejected" if stage == "human" else f"{failure} by {cause.judge}"
        elif mode == "prefix" and incorrect and turn.turn > incorrect[0]:
            reason = "follows an incorrect answer"
        elif mode in ("dialog", "verified") and incorrect:
            reason = "in a dialog with an incorrect answer"
        elif failed := next((each for each in conditions if not each.holds(dialog, turn)), None):
            stage, reason = "filter", f"doesn't meet {failed.text}"
        else:
            kept.append(turn)
            continue
        drops.append(
            Drop(dialog_id=dialog.id, scope="pair", turn=turn.turn, stage=stage, reason=reason, text=turn.answer)
        )
    return kept, drops
