"""Write a sample for people to judge: as sheets, as a Label Studio project, and as a report to mark.

Nothing in these files tells where an item comes from; the key does.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from unicodedata import category
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from generator.common.atomic_files import make_folder, write_lines, write_text
from generator.dialogs.marks import Mark, Marks, fingerprint
from generator.errors import ConfigError
from generator.output.html.page import write_report
from generator.report_sets import report_set
from generator.schema import TASK, UNLABELLED, Dialog, Hit, Turn
from judges.people.sample import Drawn, Key
from judges.sheets import write_sheet
from taxonomy import Criteria, Criterion

# The cell of a criterion that isn't about the item of its row.
NOT_ASKED = "n/a"
NOTE = "note"
# Marks that no font draws: two join letters or not, as in Hindi, Persian and emoji, and one is where a word may be cut.
_SHOWN = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{SOFT HYPHEN}"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def write_forms(folder: Path, key: Key, drawn: Sequence[Drawn], key_file: Path) -> list[Path]:
    """Write the key and what people are given; return the paths of the latter.

    A project of Label Studio asks the same of all tasks, so that there is one for turns and one for whole dialogs.

    Raises:
        ConfigError: the folder or the key is there already.
        RunError: a file can't be written.
    """
    made = [path for path in (folder, key_file) if path.is_file() or (path.is_dir() and any(path.iterdir()))]
    if made:
        raise ConfigError(f"{made[0]}: exists already, and people may be judging by it; set another output")
    try:
        return _write(folder, key, drawn, key_file)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)  # or the same command would find it made
        raise


def _write(folder: Path, key: Key, drawn: Sequence[Drawn], key_file: Path) -> list[Path]:
    make_folder(folder, "output")
    make_folder(key_file.parent, "key")
    written = []
    for annotator in key.annotators or ("",):
        own = [each for each in drawn if not annotator or annotator in each.item.annotators]
        if own:
            path = folder / (f"sheet-{annotator}.csv" if annotator else "sheet.csv")
            write_sheet(path, [_row(key.criteria, each, annotator) for each in own], [NOTE])
            written.append(path)
    for whole, name in ((False, "turns"), (True, "dialogs")):
        of = [each for each in drawn if (each.turn is None) == whole]
        if of:
            tasks, config = folder / f"label_studio_{name}.json", folder / f"label_studio_{name}.xml"
            write_text(tasks, json.dumps([{"data": _show(each)} for each in of], indent=1, ensure_ascii=False) + "\n")
            write_text(config, labelling_configuration(key.criteria, whole) + "\n")
            written += [tasks, config]
    report, files = _write_report(folder, key, drawn)
    written += files
    write_text(folder / "instructions.txt", instructions(key.criteria) + "\n")
    write_text(key_file, key.model_copy(update={"report": report}).model_dump_json(indent=1) + "\n")
    return [*written, folder / "instructions.txt"]


def _write_report(folder: Path, key: Key, drawn: Sequence[Drawn]) -> tuple[str, list[Path]]:
    """Write the sample as a set of dialogs, marks to fill in, and the report; return what marks name, and the paths."""
    shown = list({_blind_id(each): blind_dialog(each) for each in drawn}.values())
    marks = Marks(
        run=fingerprint(shown[0]),
        annotator="",
        marks=tuple(Mark(dialog_id=_blind_id(each), turn=each.turn and each.turn.turn) for each in drawn),
    )
    dialogs, empty, report = folder / "dialogs.jsonl", folder / "marks.json", folder / "report.html"
    write_lines(dialogs, shown)
    write_text(empty, marks.model_dump_json(indent=1) + "\n")
    write_report(report, [report_set(str(dialogs), name="sample")], key.criteria, marks)
    return marks.run, [dialogs, empty, report]


def _blind_id(drawn: Drawn) -> str:
    """Return the id of the dialog of an item: those of its turns begin with it, if it is judged as a whole."""
    return drawn.item.id.partition("-")[0]


def blind_dialog(drawn: Drawn) -> Dialog:
    """Return the dialog of an item, of a pair up to it, with nothing that tells where it comes from."""
    dialog, turn = drawn.dialog, drawn.turn
    pair = turn is not None and "-" not in drawn.item.id
    turns = dialog.turns[: turn.turn] if pair and turn is not None else dialog.turns
    passages = dialog.grounding(turns[-1].turn)
    names = {passage.id: f"p{number}" for number, passage in enumerate(passages, start=1)}
    documents = {passage.document_id: "" for passage in passages}
    documents = {name: f"d{number}" for number, name in enumerate(documents, start=1)}
    bare = [
        Turn(
            turn=t.turn,
            query=t.query,
            question_type=UNLABELLED,
            answerability="answerable",
            hits=tuple(
                Hit(passage_id=names[hit.passage_id], score=0, rank=hit.rank, new=hit.new)
                for hit in t.hits
                if hit.passage_id in names
            ),
            reasoning="",
            answer=t.answer,
            consistent=True,
        )
        for t in turns
    ]
    return Dialog(
        id=_blind_id(drawn),
        corpus="sample",
        algorithm="multi",
        split="train",
        document_ids=tuple(documents.values()),
        turns=tuple(bare),
        passages=tuple(
            p.model_copy(update={"id": names[p.id], "document_id": documents[p.document_id], "url": None})
            for p in passages
        ),
        ended=TASK if pair else "complete",
        lm="",
        prompt_version="",
        seed=0,
    )


def instructions(criteria: Criteria) -> str:
    """Return what annotators read first: the instructions, and each criterion with its scale."""
    lines = [criteria.instructions, ""] if criteria.instructions else []
    for criterion in criteria.criteria:
        lines.append(f"{criterion.name} (of the {criterion.about}): {criterion.question} {_scale(criterion)}")
    lines += [
        "",
        f"In a sheet, write one of these values into the column of each criterion, and leave {NOT_ASKED} where it is. "
        f"The column {NOTE} is for what you want to say. Save the sheet as CSV in UTF-8.",
    ]
    return "\n".join(lines)


def _scale(criterion: Criterion) -> str:
    return ", ".join(f"{level.value} = {level.meaning}" if level.meaning else level.value for level in criterion.scale)


def _show(drawn: Drawn) -> dict[str, str]:
    """Return what an annotator reads of an item, with its id."""
    dialog, turn = drawn.dialog, drawn.turn
    passages = dialog.passages if turn is None else dialog.grounding(turn.turn)
    history = dialog.turns if turn is None else dialog.turns[: turn.turn - 1]
    lines = [f"User: {t.query}\nAgent: {t.answer}" for t in history]
    return {
        "id": drawn.item.id,
        "passages": "\n\n".join(f"[{n}] {printable_text(p.titled)}" for n, p in enumerate(passages, start=1)),
        "dialog": printable_text("\n".join(lines)),
        "question": printable_text(turn.query) if turn else "",
        "response": printable_text(turn.answer) if turn else "",
    }


def printable_text(text: str) -> str:
    """Return text with U+FFFD for what a terminal, a spreadsheet or XML can't show; its lines and blanks are kept."""
    lines = "\n".join(text.splitlines())
    return "".join(c if c.isprintable() or c in _SHOWN or category(c) == "Zs" else _UNKNOWN for c in lines)


def _row(criteria: Criteria, drawn: Drawn, annotator: str) -> dict[str, str]:
    whole = drawn.turn is None
    row = {**_show(drawn), "annotator": annotator}
    return row | {c.name: "" if (c.about == "dialog") == whole else NOT_ASKED for c in criteria.criteria}


def labelling_configuration(criteria: Criteria, whole: bool) -> str:
    """Return the configuration of a Label Studio project for the criteria of turns, or of whole dialogs, as XML."""
    view = Element("View")
    if criteria.instructions:
        SubElement(view, "Header", value=criteria.instructions, style="font-size: 1em; font-weight: normal")
    # Passages at the left, and what is judged beside them.
    columns = SubElement(view, "View", style="display: grid; grid-template-columns: 1fr 1fr; gap: 1em")
    left = SubElement(columns, "View", style="max-height: 85vh; overflow: auto")
    right = SubElement(columns, "View", style="max-height: 85vh; overflow: auto")
    for name in ("passages", "dialog", *(() if whole else ("question", "response"))):
        column = left if name == "passages" else right
        SubElement(column, "Header", value=name.capitalize(), size="5")
        # `valueType`, or a text that is an address would be fetched.
        SubElement(column, "Text", name=name, value=f"${name}", valueType="text")
    for criterion in criteria.about(whole):
        about = {"query": "question", "response": "response", "dialog": "dialog"}[criterion.about]
        SubElement(right, "Header", value=f"{criterion.name}: {criterion.question}", size="5")
        attributes = {"name": criterion.name, "toName": about, "choice": "single-radio", "required": "true"}
        choices = SubElement(right, "Choices", attributes, showInline="true")
        for level in criterion.scale:
            shown = f"{level.value} – {level.meaning}" if level.meaning else level.value
            SubElement(choices, "Choice", value=shown, alias=level.value)
    about = "dialog" if whole else "response"
    SubElement(right, "TextArea", name=NOTE, toName=about, placeholder="a note", maxSubmissions="1", rows="2")
    indent(view)
    return tostring(view, encoding="unicode")
