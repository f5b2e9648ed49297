"""Records for tests, with usual values for all fields that a test doesn't name."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generator.schema import Dialog, Evidence, Hit, Passage, Turn


def make_turn(number: int, **fields: Any) -> Turn:
    """Return a turn of an answerable question."""
    usual = {"query": f"Q{number}?", "question_type": "direct", "answerability": "answerable", "reasoning": ""}
    return Turn(**{"turn": number, "answer": f"A{number}.", "consistent": True} | usual | fields)


def make_dialog(*turns: Turn, passages: Sequence[Passage] = (), **fields: Any) -> Dialog:
    """Return a complete dialog of Algorithm 2."""
    usual = {"id": "d", "corpus": "c", "algorithm": "multi", "split": "train", "ended": "complete", "lm": "m"}
    documents = tuple(dict.fromkeys(p.document_id for p in passages)) or ("d",)
    found = {"document_ids": documents, "passages": tuple(passages), "turns": turns}
    return Dialog(**usual | found | {"prompt_version": "v", "seed": 0} | fields)


def make_passage(name: str, text: str, **fields: Any) -> Passage:
    """Return a whole document as a passage."""
    return Passage(**{"id": name, "document_id": "d", "text": text, "start": 0, "end": len(text)} | fields)


def make_hits(*passage_ids: str) -> tuple[Hit, ...]:
    """Return the hits of a search, all new."""
    return tuple(Hit(passage_id=name, score=1, rank=rank, new=True) for rank, name in enumerate(passage_ids, start=1))


def make_evidence(*passage_ids: str) -> tuple[Evidence, ...]:
    """Return evidence, the first two characters of each passage."""
    return tuple(Evidence(passage_id=name, start=0, end=2, text="Of") for name in passage_ids)


def make_evidence_of(passage: Passage, text: str) -> Evidence:
    """Return the first place of a text in a passage as evidence."""
    start = passage.text.index(text)
    return Evidence(passage_id=passage.id, start=start, end=start + len(text), text=text)


def write_json_lines(path: Path, *records: object) -> Path:
    """Write a file with a record a line, texts as they are, and return its path."""
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_dialogs(path: Path, *dialogs: Dialog) -> Path:
    """Write a file as `dialogs.jsonl` is, and return its path."""
    path.write_text("".join(f"{dialog.model_dump_json()}\n" for dialog in dialogs), encoding="utf-8")
    return path


def load_dialogs(path: Path) -> list[Dialog]:
    """Return the dialogs of a file as `dialogs.jsonl` is."""
    return [Dialog.model_validate_json(line) for line in path.read_bytes().splitlines()]
