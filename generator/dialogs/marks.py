"""People's marks on dialogs, as the report saves them: keep or reject, criteria, a note; see `docs/report.md`."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, model_validator

from generator.common.console import count_noun
from generator.dialogs.columns import PERSON, is_person
from generator.dialogs.filter import Filter, filter_pairs
from generator.errors import ConfigError, describe
from generator.schema import Dialog, Drop, Id, Record, Text, Verdict


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
        annotator: the name of the judge that the marks become, after `human:`; empty in a file that asks for marks.
    """

    run: str
    annotator: Annotated[str, Field(pattern=r"^[\w.@+-]*$")]
    marks: tuple[Mark, ...]

    @property
    def bare_notes(self) -> list[str]:
        """The notes of marks that say nothing else."""
        return [mark.note for mark in self.marks if mark.keep is None and not mark.criteria]

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
        problem = f"not a complete file of marks: {describe(error)}; save it from the report again"
        raise ConfigError(f"{setting}={path}: {problem}") from error


def human_verdicts(annotator: str, mark: Mark, decides: bool = True) -> Iterator[Verdict]:
    """Yield the verdicts that a mark is: whether the pair is kept, if it says so, and one for each criterion.

    Those of criteria are of the judge `human:<annotator>:<criterion>`, and decide nothing; numbers are scores, too.

    Args:
        decides: whether keeping or rejecting decides.
    """
    judge = f"{PERSON}{annotator}"
    if mark.keep is not None:
        label = "correct" if mark.keep else "incorrect"
        yield Verdict(judge=judge, label=label, explanation=mark.note, model="", decides=decides)
    for name, value in sorted(mark.criteria.items()):
        score = float(value) if _NUMBER.fullmatch(value) else None
        yield Verdict(judge=f"{judge}:{name}", label=value, explanation=mark.note, model="", score=score, decides=False)


def count_bare_notes(where: object, notes: Iterable[str], say: Callable[[str], None]) -> None:
    """Say how many notes come without a judgement and so are left out, if there are any."""
    if count := sum(map(bool, notes)):
        say(f"{where}: left out {count_noun(count, 'note')} without keep, reject or a criterion")


Marked = dict[str, tuple[Dialog, list[Drop]]]


def apply_marks(marks: Marks, dialogs: Iterable[Dialog], keep: Filter, where: str) -> Marked:
    """Return the marked dialogs by id, each with its person's verdicts and the drops of its pairs.

    An earlier verdict of the same person on a marked pair is replaced; without a new one it is taken back. A mark on a
    dialog is one on each of its pairs; whether a pair is kept, its own mark says first.

    Args:
        keep: the pairs to keep, as in `judge.filter`.
        where: of the marks, for messages.

    Raises:
        ConfigError: the marks are of other dialogs.
    """
    if not marks.annotator:
        raise ConfigError(f"{where}: has no annotator; give your name in the report, and save again")
    by_dialog: dict[str, dict[int | None, Mark]] = {}
    for mark in marks.marks:
        by_dialog.setdefault(mark.dialog_id, {})[mark.turn] = mark
    first, marked = None, {}
    for dialog in dialogs:
        first = first or dialog
        if of_dialog := by_dialog.get(dialog.id):
            if missing := of_dialog.keys() - {turn.turn for turn in dialog.own_turns} - {None}:
                raise ConfigError(f"{where}: dialog {dialog.id} has no turn {missing.pop()}; {_OTHER}")
            verdicts = {
                turn.turn: _verdicts(marks.annotator, of_dialog.get(turn.turn), of_dialog.get(None))
                for turn in dialog.own_turns
                if of_dialog.keys() & {turn.turn, None}
            }
            marked[dialog.id] = _judge(dialog, verdicts, f"{PERSON}{marks.annotator}:", keep)
    if marks.run != fingerprint(first):
        raise ConfigError(f"{where}: marks of another run ({marks.run}; this one is {fingerprint(first)}); {_OTHER}")
    if unknown := next((each for each in by_dialog if each not in marked), None):
        raise ConfigError(f"{where}: this run has no dialog {unknown}; {_OTHER}")
    return marked


def apply_judged(folder: Path, dialogs: Iterable[Dialog], keep: Filter, where: str) -> Marked:
    """Return a run's dialogs with people's verdicts from a folder of `python -m judges.human read`, as `apply_marks`.

    Raises:
        ConfigError: the folder has other dialogs, or can't be read.
    """
    marked: Marked = {}
    own = iter(dialogs)
    try:
        with (folder / "dialogs.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                judged, dialog = Dialog.model_validate_json(line), next(own, None)
                if fingerprint(judged) != fingerprint(dialog) or dialog is None:
                    raise ConfigError(f"{where}: dialog {judged.id} is of another run; give what people judged of this")
                said = {turn.turn: list(filter(is_person, turn.verdicts)) for turn in judged.own_turns}
                if any(said.values()):
                    marked[dialog.id] = _judge(dialog, said, PERSON, keep)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: its dialogs.jsonl can't be read ({describe(error)}); {_JUDGED}") from error
    if not marked:
        raise ConfigError(f"{where}: its dialogs have no verdict of a person; {_JUDGED}")
    return marked


_JUDGED = "give marks, or a folder of judges.human read"
_OTHER = "give the marks that were saved from this run's report.html"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def _verdicts(annotator: str, own: Mark | None, whole: Mark | None) -> list[Verdict]:
    """Return a person's verdicts on a turn, by its own mark and the one on its dialog."""
    if own and whole and own.keep is not None:
        whole = whole.model_copy(update={"keep": None})
    return [verdict for mark in (own, whole) if mark for verdict in human_verdicts(annotator, mark)]


def _judge(
    dialog: Dialog, verdicts: Mapping[int, Sequence[Verdict]], judges: str, keep: Filter
) -> tuple[Dialog, list[Drop]]:
    """Return a dialog with verdicts in place of those whose judge, and a colon, begin so; and its pairs' drops."""
    turns = []
    for turn in dialog.turns:
        if turn.turn in verdicts:
            others = [v for v in turn.verdicts if not f"{v.judge}:".startswith(judges)]
            turn = turn.model_copy(update={"verdicts": (*others, *verdicts[turn.turn])})
        turns.append(turn)
    new = dialog.model_copy(update={"turns": tuple(turns)})
    return new, filter_pairs(new, keep)[1]
