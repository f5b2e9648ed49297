"""People's marks on dialogs, as the report saves them: keep or reject, criteria, a note; see `docs/report.md`."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from generator.dialogs.filter import PERSON, Filter, filter_pairs
from generator.errors import ConfigError, describe
from generator.schema import Dialog, Drop, Id, Record, Text, Turn, Verdict


class Mark(Record):
    """One person's mark on a pair, or on a whole dialog.

    Attributes:
        turn: of the pair; None: the mark is of the dialog, and of all its pairs without a mark of their own.
        keep: whether the pair is good enough; None: the person hasn't said.
        criteria: the value given, by the name of the criterion.
    """

    dialog_id: Id
    turn: int | None = Field(default=None, ge=1)
    keep: bool | None = None
    criteria: Mapping[str, Text] = {}
    note: Text = ""


class Marks(Record):
    """The marks of one person on one run.

    Attributes:
        run: the `fingerprint` of the run.
        annotator: the name of the judge that the marks become, after `human:`.
    """

    run: str
    annotator: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]
    marks: tuple[Mark, ...]

    @model_validator(mode="after")
    def _once(self) -> "Marks":
        seen = set()
        for mark in self.marks:
            if (mark.dialog_id, mark.turn) in seen:
                raise ValueError(f"dialog {mark.dialog_id}, turn {mark.turn}: is marked twice; leave one")
            seen.add((mark.dialog_id, mark.turn))
        return self


def fingerprint(first: Dialog | None) -> str:
    """Return what tells a run from others: a hash of its first dialog without verdicts, 16 hexadecimal digits.

    A run that is continued or judged again keeps it. None: of a run without a dialog.
    """
    if first is None:
        return "0" * 16
    bare = first.model_copy(update={"turns": tuple(t.model_copy(update={"verdicts": ()}) for t in first.turns)})
    return hashlib.sha256(bare.model_dump_json().encode()).hexdigest()[:16]


def read_marks(path: Path, setting: str = "marks") -> Marks:
    """Return the marks of a file.

    Raises:
        ConfigError: there is none, or it isn't one that the report saved.
    """
    try:
        return Marks.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{setting}={path}: can't be read ({describe(error)}); give a file of marks") from error
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise ConfigError(
            f"{setting}={path}: not a complete file of marks: {where}{': ' if where else ''}{problem['msg']}; save it "
            "from the report again"
        ) from error


def human_verdicts(annotator: str, mark: Mark) -> tuple[Verdict, ...]:
    """Return the verdicts that a mark is: one that decides whether the pair is kept, if it says so, and its criteria.

    Those of criteria are of the judge `human:<annotator>:<criterion>`, and decide nothing.
    """
    judge = f"{PERSON}{annotator}"
    label = "correct" if mark.keep else "incorrect"
    keep = [] if mark.keep is None else [Verdict(judge=judge, label=label, explanation=mark.note, model="")]
    criteria = (
        Verdict(judge=f"{judge}:{name}", label=value, explanation=mark.note, model="", decides=False)
        for name, value in sorted(mark.criteria.items())
    )
    return (*keep, *criteria)


def apply_marks(
    marks: Marks, dialogs: Iterable[Dialog], keep: Filter, where: str
) -> dict[str, tuple[Dialog, list[Drop]]]:
    """Return the marked dialogs by id, each with its person's verdicts and the drops of its pairs.

    An earlier verdict of the same person on a marked pair is replaced; without a new one it is taken back.

    Args:
        keep: the pairs to keep, as in `judge.filter`.
        where: of the marks, for messages.

    Raises:
        ConfigError: the marks are of other dialogs.
    """
    by_dialog: dict[str, dict[int | None, Mark]] = {}
    for mark in marks.marks:
        by_dialog.setdefault(mark.dialog_id, {})[mark.turn] = mark
    first, marked = None, {}
    for dialog in dialogs:
        first = first or dialog
        if of_dialog := by_dialog.get(dialog.id):
            own = {turn.turn for turn in dialog.own_turns}
            if missing := of_dialog.keys() - own - {None}:
                raise ConfigError(f"{where}: dialog {dialog.id} has no turn {missing.pop()}; {_OTHER}")
            whole = of_dialog.get(None)
            if whole is not None:  # its criteria are about the dialog, and verdicts about turns
                whole = whole.model_copy(update={"criteria": {}}) if whole.keep is not None else None
            turns = tuple(
                _with_verdicts(t, marks.annotator, of_dialog.get(t.turn, whole)) if t.turn in own else t
                for t in dialog.turns
            )
            new = dialog.model_copy(update={"turns": turns})
            marked[dialog.id] = new, filter_pairs(new, keep)[1]
    if marks.run != fingerprint(first):
        raise ConfigError(f"{where}: marks of another run ({marks.run}; this one is {fingerprint(first)}); {_OTHER}")
    if unknown := next((each for each in by_dialog if each not in marked), None):
        raise ConfigError(f"{where}: this run has no dialog {unknown}; {_OTHER}")
    return marked


_OTHER = "give the marks that were saved from this run's report.html"


def _with_verdicts(turn: Turn, annotator: str, mark: Mark | None) -> Turn:
    if mark is None:
        return turn
    judge = f"{PERSON}{annotator}"
    others = tuple(v for v in turn.verdicts if v.judge != judge and not v.judge.startswith(f"{judge}:"))
    return turn.model_copy(update={"verdicts": (*others, *human_verdicts(annotator, mark))})
