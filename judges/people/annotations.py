"""Read what people judged: sheets, exports of Label Studio, marks of the report, mtRAG's human evaluations."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from generator.common.console import count_noun
from generator.corpora.files import local_file
from generator.corpora.json_records import read_json, require_record
from generator.corpora.mtrag.forms import Evaluation
from generator.corpora.mtrag.names import format_turn_id
from generator.dialogs.marks import Mark, count_bare_notes, read_marks
from generator.errors import CorpusError
from generator.schema import Record
from judges.people.forms import NOT_ASKED, NOTE
from judges.people.sample import Item, Key
from judges.sheets import ID, read_rows
from taxonomy import Criterion

# The criterion of a report's marks that says whether a pair stays, and the name that stands for all annotators.
KEEP, ALL = "keep", "all"
KEPT = Criterion(name="kept", adjective="kept", question="Is the pair kept?", decides=True)
# Metrics of mtRAG's human evaluations that no person gave.
_COMPUTED = ("system", "composite")
_AS_JSON = "export from Label Studio as JSON"
PUBLISHED = "published"


class Annotation(NamedTuple):
    """One annotator's judgement of an item: places on the scales of criteria, which may be some of those asked."""

    item: Item
    annotator: str
    places: Mapping[str, int]
    note: str
    where: str


class Effort(Record):
    """The work of an annotator: items judged, of those the half-judged ones, and items of theirs that aren't judged.

    `missing` is None where nobody said who is to judge what.
    """

    annotator: str
    items: int
    half: int
    missing: int | None


class _Value(BaseModel):
    choices: list[str] = []
    text: list[str] | str = []


class _Result(BaseModel):
    from_name: str
    value: _Value = _Value()


class _Completed(BaseModel):
    completed_by: int | dict[str, Any] | None = None
    result: list[_Result] = []
    was_cancelled: bool = False

    @property
    def annotator(self) -> str:
        """The e-mail address of the annotator if the export has it, else the number."""
        by = self.completed_by
        return str(by.get("email") or by.get("id")) if isinstance(by, dict) else str(by)


class _Task(BaseModel):
    id: int | str = ""
    data: dict[str, Any]
    annotations: list[_Completed]


class _Given(BaseModel):
    value: Any = None


class _Evaluation(Evaluation):
    annotations: dict[str, dict[str, _Given]]


class Items:
    """The items of a key, as the files of annotators name them."""

    def __init__(self, key: Key) -> None:
        self.criteria = key.criteria.by_name() | {KEEP: KEPT}
        self._by_id = {item.id: item for item in key.items}
        self._responses = {item.dialog: item for item in key.items if item.turn is not None}
        self._key = key

    @cached_property
    def _marked(self) -> dict[str, dict[tuple[str, int | None], Item]]:
        """The items by the run that marks are of, dialog and turn, as the report names them."""
        runs = self._key.runs
        marked: dict[str, dict[tuple[str, int | None], Item]] = {run: {} for run in runs}
        for item in self._key.items:
            sample = (self._key.report, item.id.partition("-")[0])
            run, dialog = sample if self._key.report else (runs[item.source], item.dialog)
            marked[run][dialog, item.turn] = item
        return marked

    def find(self, name: str, where: str) -> Item:
        """Return the item with this id; a spreadsheet may have put an apostrophe before it."""
        found = self._by_id.get(name) or self._by_id.get(name.removeprefix("'"))
        if found is None:
            raise CorpusError(f"{where}: the id {name!r} is not in the sample; give the key that belongs to it (key=…)")
        return found

    def response(self, dialog: str, where: str) -> Item:
        """Return the turn to judge of the dialog with this id, as it has in its set."""
        if dialog not in self._responses:
            raise CorpusError(f"{where}: the response {dialog!r} is not in the input")
        return self._responses[dialog]

    def marked(self, run: str, mark: Mark, where: str) -> Item:
        """Return what a mark of the report is about: of a sample, or of a run as it is."""
        if run not in self._marked:
            known = ", ".join(self._marked)
            raise CorpusError(f"{where}: marks of another run ({run}; known are {known}); give the report's own")
        item = self._marked[run].get((mark.dialog_id, mark.turn))
        if item is None:
            what = f"turn {mark.turn} of dialog" if mark.turn else "dialog"
            raise CorpusError(f"{where}: {what} {mark.dialog_id} isn't there to be marked; remove the mark")
        return item

    def place(self, criterion: str, value: str, where: str) -> int:
        """Return the place of a value on the scale of a criterion."""
        if criterion not in self.criteria:
            raise CorpusError(f"{where}: unknown criterion {criterion!r}; the sample has {', '.join(self.criteria)}")
        try:
            return self.criteria[criterion].parse(value)
        except ValueError as error:
            raise CorpusError(f"{where}: {criterion} {value!r} {error}") from None


def read_annotations(
    paths: Sequence[Path], key: Key, names: Mapping[str, str]
) -> tuple[list[Annotation], list[Effort], list[str]]:
    """Return what people judged, what each of them did, and what else is to be said.

    Args:
        names: names of annotators in place of those in the files.

    Raises:
        CorpusError: a file can't be read, or names an id, criterion, value or annotator that there isn't; or somebody
            judged an item twice.
    """
    items, asked = Items(key), _name_criteria(key)
    found: list[Annotation] = []
    said, called = list[str](), dict[str, None]()
    for path in paths:
        for each in _read(path, items, said):
            called[each.annotator] = None
            name = re.sub(r"[^\w.@+-]+", "_", names.get(each.annotator, each.annotator))
            if name in ("", "_", ALL, "None"):
                wrong = "has no annotator" if name != ALL else f"the annotator {ALL!r} stands for all of them"
                raise CorpusError(f"{each.where}: {wrong}; give a name: names={each.annotator or '?'}:ann")
            if key.annotators and name not in key.annotators:
                known = ", ".join(key.annotators)
                raise CorpusError(
                    f"{each.where}: unknown annotator {name!r}; the sample is for {known}; "
                    f"names={each.annotator}:{key.annotators[0]} gives the right name"
                )
            if other := each.places.keys() - asked[each.item.turn is None] - {KEEP}:
                what = "a whole dialog" if each.item.turn is None else "a turn"
                raise CorpusError(f"{each.where}: {', '.join(sorted(other))}: not asked of {what}; leave it empty")
            found.append(each._replace(annotator=name))
    if unused := names.keys() - called.keys():
        said.append(f"names: nobody is called {', '.join(sorted(unused))}; the files have {', '.join(called)}")
    if not found:
        raise CorpusError(f"{', '.join(map(str, paths))}: nothing is filled in yet")
    first: dict[tuple[str, str], Annotation] = {}
    for each in found:
        earlier = first.setdefault((each.item.id, each.annotator), each)
        if earlier is not each:
            files = {one.where.rpartition(": ")[0] for one in (earlier, each)}
            fix = "remove one of them"
            if len(files) > 1:  # such as ann/sheet.csv and ben/sheet.csv
                fix = "if they are two people's, name each in a column annotator, or the file after each; else give one"
            raise CorpusError(f"{each.where}: {each.annotator} judged {each.item.id} already ({earlier.where}); {fix}")
    return found, _efforts(found, key), said


def _name_criteria(key: Key) -> dict[bool, set[str]]:
    """Return the names of the criteria of whole dialogs, and of turns."""
    return {whole: {criterion.name for criterion in key.criteria.about(whole)} for whole in (False, True)}


def _efforts(annotations: Sequence[Annotation], key: Key) -> list[Effort]:
    asked = _name_criteria(key)
    own: dict[str, set[str]] = {name: set() for name in key.annotators}
    for item in key.items:
        for name in item.annotators:
            own[name].add(item.id)
    efforts = []
    for name in sorted({*own, *(each.annotator for each in annotations)}):
        theirs = [each for each in annotations if each.annotator == name]
        half = sum(bool(asked[each.item.turn is None] - set(each.places)) for each in theirs)
        missing = len(own[name] - {each.item.id for each in theirs}) if own else None
        efforts.append(Effort(annotator=name, items=len(theirs), half=half, missing=missing))
    return efforts


def _read(path: Path, items: Items, said: list[str]) -> Iterator[Annotation]:
    if path.suffix.lower() != ".json":
        yield from _read_sheet(path, items, said)
        return
    content = read_json(local_file(path))
    if _has_evaluations(content):
        yield from _read_evaluations(path, content, items)
    elif isinstance(content, dict) and "marks" in content:
        yield from _read_marks(path, items, said)
    elif isinstance(content, list):
        yield from _read_export(path, content, items, said)
    else:
        raise CorpusError(f"{path}: is no export of Label Studio (format JSON), marks of the report, or evaluations")


def _read_sheet(path: Path, items: Items, said: list[str]) -> Iterator[Annotation]:
    rows = read_rows(path, (ID,))
    if not rows:
        return
    asked = [name for name in items.criteria if name != KEEP]
    columns = list(rows[0][1])
    if "annotation_id" in columns:
        raise CorpusError(f"{path}: {_AS_JSON}")
    if not (there := [name for name in asked if name in columns]):
        raise CorpusError(f"{path}: has no column of a criterion; the sample has {', '.join(asked)}")
    shown = (ID, "annotator", "passages", "dialog", "question", "response", NOTE)
    if other := [name for name in columns if name not in (*asked, *shown)]:
        said.append(f"{path}: left out, since they are no criterion: {', '.join(other)}")
    stem = path.stem.removeprefix("sheet-").removeprefix("sheet_")
    alone = list[str]()
    for number, row in rows:
        where = f"{path}: row {number}"
        cells = {name: row[name] for name in there if row[name] and row[name].casefold() != NOT_ASKED}
        if not row[ID] and not cells:
            continue
        item = items.find(row[ID], where)
        if cells:
            places = {name: items.place(name, cell, where) for name, cell in cells.items()}
            yield Annotation(item, row.get("annotator") or stem, places, row.get(NOTE, ""), where)
        else:
            alone.append(row.get(NOTE, ""))
    count_bare_notes(path, alone, said.append)


def _read_export(path: Path, content: list[Any], items: Items, said: list[str]) -> Iterator[Annotation]:
    """Yield the annotations of Label Studio's export `JSON`; skipped and empty ones are counted."""
    skipped, alone = 0, list[str]()
    for place, node in enumerate(content):
        where = f"{path}: [{place}]"
        task = require_record(_Task, where, node, _AS_JSON)
        item = items.find(str(task.data.get(ID, "")), where)
        for each in task.annotations:
            given = {result.from_name: result.value for result in each.result if result.from_name != NOTE}
            places = {n: items.place(n, v.choices[0], where) for n, v in given.items() if v.choices}
            notes = [result.value.text for result in each.result if result.from_name == NOTE]
            note = "\n".join(text for of in notes for text in ([of] if isinstance(of, str) else of))
            if each.was_cancelled or not places:
                skipped += 1
                alone.append(note)
                continue
            yield Annotation(item, each.annotator, places, note, where)
    if skipped:
        said.append(f"{path}: {count_noun(skipped, 'annotation')} skipped or empty, not counted")
    count_bare_notes(path, alone, said.append)


def _read_marks(path: Path, items: Items, said: list[str]) -> Iterator[Annotation]:
    marks = read_marks(path, "annotations")
    for place, mark in enumerate(marks.marks):
        where = f"{path}: marks[{place}]"
        given = {**mark.criteria, **({} if mark.keep is None else {KEEP: "yes" if mark.keep else "no"})}
        if given:
            places = {name: items.place(name, value, where) for name, value in given.items()}
            yield Annotation(items.marked(marks.run, mark, where), marks.annotator, places, mark.note, where)
    count_bare_notes(path, marks.bare_notes, said.append)


def _has_evaluations(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("evaluations"), list)


def _read_evaluations(path: Path, content: Any, items: Items) -> Iterator[Annotation]:
    """Yield the ratings of mtRAG's human evaluations; criteria that aren't asked for are left out."""
    for where, dialog, metrics in _evaluations(path, content):
        by: dict[str, dict[str, int]] = {}
        for criterion in items.criteria.keys() & metrics.keys():
            for name, given in metrics[criterion].items():
                if name not in _COMPUTED:
                    by.setdefault(name, {})[criterion] = items.place(criterion, str(given.value), where)
        for name, places in by.items():
            yield Annotation(items.response(dialog, where), name, places, "", where)


def _evaluations(path: Path, content: Any) -> Iterator[tuple[str, str, dict[str, dict[str, _Given]]]]:
    """Yield the place of each evaluation, the id of its dialog, and what was given by metric and by whom."""
    for place, node in enumerate(content["evaluations"]):
        where = f"{path}: evaluations[{place}]"
        found = require_record(_Evaluation, where, node, "expected an evaluation of mtRAG")
        yield where, f"{format_turn_id(*found.task_id)}/{found.model}", found.annotations


def published_scores(path: Path) -> dict[str, dict[str, float]]:
    """Return the scores that mtRAG's authors computed, by dialog and name of the metric; none of other files."""
    found: dict[str, dict[str, float]] = {}
    if path.suffix.lower() == ".json" and _has_evaluations(content := read_json(local_file(path))):
        for _, dialog, metrics in _evaluations(path, content):
            for name, given in metrics.items():
                for by in _COMPUTED:
                    if by in given and isinstance(value := given[by].value, int | float):
                        found.setdefault(dialog, {})[f"{PUBLISHED}:{name}"] = float(value)
    return found
