"""Write a sample for people to judge: as sheets, and as a Label Studio project.

Nothing in these files tells where an item comes from; the key does.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from generator.common.atomic_files import atomic_write
from generator.errors import ConfigError, RunError, describe
from judges.benchmarks.sheets import write_sheet
from judges.people.sample import Drawn, Key, shown_history
from taxonomy import Criteria, Criterion

# The cell of a criterion that isn't about the item of its row.
NOT_ASKED = "n/a"
# What a cell of Excel holds; it cuts off the rest.
EXCEL = 32_767
KEY, NOTE = "key.json", "note"


def write_forms(folder: Path, key: Key, drawn: Sequence[Drawn], key_file: Path) -> list[Path]:
    """Write the key, sheets, and Label Studio's tasks with the configuration of their project; return their paths.

    A project of Label Studio asks the same of all tasks, so that there is one for turns and one for whole dialogs.

    Raises:
        ConfigError: the folder or the key is there already.
        RunError: a file can't be written.
    """
    made = [path for path in (folder, key_file) if path.is_file() or (path.is_dir() and any(path.iterdir()))]
    if made:
        raise ConfigError(f"{made[0]}: exists already, and people may be judging by it; set another output")
    try:
        for path in (folder, key_file.parent):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"output={folder}: can't be made ({describe(error)}); set another output") from error
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
            _write_text(tasks, json.dumps([{"data": _shown(each)} for each in of], indent=1, ensure_ascii=False))
            _write_text(config, labelling_configuration(key.criteria, whole))
            written += [tasks, config]
    _write_text(folder / "instructions.txt", instructions(key.criteria))
    _write_text(key_file, key.model_dump_json(indent=1))
    return [*written, folder / "instructions.txt"]


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text + "\n")


def instructions(criteria: Criteria) -> str:
    """Return what annotators read first: the instructions, and each criterion with its scale."""
    lines = [criteria.instructions, ""] if criteria.instructions else []
    for criterion in criteria.criteria:
        lines.append(f"{criterion.name} (of the {criterion.about}): {criterion.question} {_scale(criterion)}")
    return "\n".join(lines)


def _scale(criterion: Criterion) -> str:
    return ", ".join(f"{level.value} = {level.meaning}" if level.meaning else level.value for level in criterion.scale)


def _shown(drawn: Drawn) -> dict[str, str]:
    """Return what an annotator reads of an item, with its id."""
    dialog, turn = drawn.dialog, drawn.turn
    passages = dialog.passages if turn is None else dialog.grounding(turn.turn)
    lines = [f"{speaker}: {text}" for t in shown_history(drawn) for speaker, text in _said(t.query, t.answer)]
    return {
        "id": drawn.item.id,
        "passages": "\n\n".join(f"[{n}] {printable_text(p.titled)}" for n, p in enumerate(passages, start=1)),
        "dialog": printable_text("\n".join(lines)),
        "question": printable_text(turn.query) if turn else "",
        "response": printable_text(turn.answer) if turn else "",
    }


def _said(query: str, answer: str) -> Iterable[tuple[str, str]]:
    return (("User", query), ("Agent", answer))


def printable_text(text: str) -> str:
    """Return text with U+FFFD for what a terminal, a spreadsheet or XML can't show; its lines are kept."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _row(criteria: Criteria, drawn: Drawn, annotator: str) -> dict[str, str]:
    whole = drawn.turn is None
    row = {**_shown(drawn), "annotator": annotator}
    return row | {c.name: "" if (c.of == "dialog") == whole else NOT_ASKED for c in criteria.criteria}


def labelling_configuration(criteria: Criteria, whole: bool) -> str:
    """Return the configuration of a Label Studio project for the criteria of turns, or of whole dialogs, as XML."""
    view = Element("View")
    if criteria.instructions:
        SubElement(view, "Header", value=criteria.instructions, size="5")
    for name in ("passages", "dialog", *(() if whole else ("question", "response"))):
        SubElement(view, "Header", value=name.capitalize())
        # `valueType`, or a text that is an address would be fetched.
        SubElement(view, "Text", name=name, value=f"${name}", valueType="text")
    for criterion in criteria.about(whole):
        about = {"query": "question", "response": "response", "dialog": "dialog"}[criterion.about]
        SubElement(view, "Header", value=f"{criterion.name}: {criterion.question}", size="5")
        attributes = {"name": criterion.name, "toName": about, "choice": "single-radio", "required": "true"}
        choices = SubElement(view, "Choices", attributes, showInline="true")
        for level in criterion.scale:
            shown = f"{level.value} – {level.meaning}" if level.meaning else level.value
            SubElement(choices, "Choice", value=shown, alias=level.value)
    about = "dialog" if whole else "response"
    SubElement(view, "TextArea", name=NOTE, toName=about, placeholder="a note", maxSubmissions="1", rows="2")
    indent(view)
    return tostring(view, encoding="unicode")
