"""The settings of a fine-tuning, and the context-response pairs that it learns from."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig
from pydantic import BaseModel, Field, field_validator
from pydantic_core import to_jsonable_python

from generator.common.atomic_files import LOCK
from generator.common.console import note
from generator.config.parts import build_choice, identify, plain, validate
from generator.corpora.json_records import require_record
from generator.dialogs.filter import check_columns, list_judges, parse_filter
from generator.errors import ConfigError, CorpusError, describe
from generator.output.chat import kept_turns, to_messages
from generator.output.excerpts import excerpts
from generator.schema import Dialog, Message
from generator.sets import dialog_set, stem
from generator.training.settings import FinetuneSettings, Student


class Finetuning(FinetuneSettings):
    """All settings of `python -m generator.finetune`."""

    student: Student

    @property
    def folder(self) -> Path:
        """The folder of the adapter."""
        if self.run_dir is not None:
            return self.run_dir
        names = "+".join(re.sub(r"\W+", "_", stem(Path(path.partition(":")[2] or path))) for path in self.data)
        return Path("outputs/students") / f"{self.student.name}-{names}-{self.seed}"


class _Row(BaseModel):
    messages: list[Message] = Field(min_length=2)
    document_ids: list[str] | None = None

    @field_validator("messages")
    @classmethod
    def _answered(cls, messages: list[Message]) -> list[Message]:
        if messages[-1].role != "assistant":
            raise ValueError("the last isn't the assistant's")
        return messages


class Pair(NamedTuple):
    """A context-response pair.

    Attributes:
        messages: the chat, `role` and `content`; the last one is the response.
        documents: those of its dialog, the one that it began with first; the dialog's id if it has none.
        texts: what its passages say, as hashes: publishers have several ids for one passage.
        validation: whether its dialog is of the validation split.
    """

    messages: list[dict[str, str]]
    documents: tuple[str, ...]
    texts: tuple[str, ...]
    validation: bool


def load_finetuning(cfg: DictConfig) -> Finetuning:
    """Return the settings of a composed configuration.

    Raises:
        ConfigError: one of them is wrong.
    """
    data = plain(cfg)
    data["student"] = build_choice("student", data.get("student"))
    settings = validate(Finetuning, data)
    if settings.student.batch % settings.student.at_once:
        raise ConfigError(f"student.at_once={settings.student.at_once}: must divide student.batch")
    return settings


def identify_training(settings: Finetuning, read: Sequence[Sequence[Pair]]) -> dict[str, Any]:
    """Return what decides the student, by name: settings, and what the data hold."""
    content = hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]
    return {**to_jsonable_python(dict(identify("", settings))), "data (content)": content}


def read_pairs(settings: Finetuning) -> list[list[Pair]]:
    """Return the pairs of each of `data`.

    Raises:
        ConfigError: none of them has a column of `keep`, or a setting is for runs alone.
        CorpusError, RunError: the data can't be read.
    """
    for path in filter(_is_dataset, settings.data):
        if settings.keep and parse_filter(settings.keep) != ("pairs", ()):
            raise ConfigError(
                f"keep={settings.keep}: {path} is a dataset, whose rows aren't filtered; give the run folder, or "
                "keep=pairs"
            )
        if settings.passage_tokens is not None:
            raise ConfigError(f"passage_tokens: {path} is a dataset, whose passages are whole; give the run folder")
    if settings.keep and parse_filter(settings.keep)[1]:
        dialogs = (dialog for path in settings.data for dialog in dialog_set(path).dialogs())
        judges = list_judges(turn for dialog in dialogs for turn in dialog.own_turns)
        check_columns(settings.keep, judges, setting="keep")
    return [list(_read(path, settings)) for path in settings.data]


def _read(path: str, settings: Finetuning) -> Iterator[Pair]:
    if not _is_dataset(path):
        for dialog in dialog_set(path).dialogs():
            if dialog.context is not None:
                raise ConfigError(f"data={path}: a model's answers to a benchmark; give runs or human dialogs")
            yield from _pairs(dialog, settings)
        return
    from datasets import Dataset, load_dataset, load_from_disk

    try:
        saved = any((Path(path) / name).exists() for name in ("state.json", "dataset_dict.json"))
        splits = (load_from_disk if saved else load_dataset)(path)
        splits = {"train": splits} if isinstance(splits, Dataset) else splits
    except Exception as error:  # whatever datasets, pyarrow or the hub raise
        why = "it has no rows" if isinstance(error, StopIteration) else describe(error)  # of an empty file
        raise CorpusError(f"data={path}: can't be read as a dataset: {why}") from error
    if splits.keys() - {"train", "validation"}:
        uses = (f"{split} ({len(rows)} pairs) is {_use(split)}" for split, rows in splits.items())
        note(f"data={path}: {', '.join(uses)}")
    for split, rows in splits.items():
        if _use(split) == "left out":
            continue
        for number, row in enumerate(rows, start=1):
            wanted = "give a dataset of this project, or human dialogs as NAME:PATH, such as quac:FOLDER"
            pair = require_record(_Row, f"data={path}: row {number} of {split}", row, wanted)
            messages = [message.model_dump() for message in pair.messages]
            documents = tuple(pair.document_ids or ()) or (f"{path} {split} {number}",)
            yield Pair(messages, documents, (), _use(split) == "validated with")


def _use(split: str) -> str:
    """Return what a dataset's split is for, by the beginning of its name, as of `test_sft`."""
    if split.startswith("test"):
        return "left out"
    return "validated with" if split.startswith("validation") else "learned from"


def _is_dataset(path: str) -> bool:
    folder = Path(path)
    if folder.is_dir():
        return not any((folder / name).exists() for name in ("dialogs.jsonl", "run.db"))
    return not folder.exists() and re.fullmatch(r"(?!outputs/|\.\.?/)[\w.-]+/[\w.-]+", path) is not None


def _pairs(dialog: Dialog, settings: Finetuning) -> Iterator[Pair]:
    for turn in kept_turns(dialog, settings.keep):
        grounding = dialog.grounding(turn.turn)
        passages = excerpts(grounding, turn.evidence, settings.passage_tokens)
        chat = to_messages(dialog.turns[: turn.turn], passages, dialog.algorithm)
        messages = [m.model_dump() for m in chat]
        messages[-1]["content"] = messages[-1]["content"].strip()  # white space before it merges with the prompt's end
        texts = tuple(hashlib.sha256(" ".join(p.text.split()).encode()).hexdigest()[:16] for p in grounding)
        yield Pair(messages, dialog.document_ids or (dialog.id,), texts, dialog.split == "validation")


def has_training(folder: Path, identity: Mapping[str, Any], fresh: bool = False) -> bool:
    """Return whether a folder holds this training, begun or finished; False if it is to be emptied.

    Raises:
        ConfigError: it holds another one, or other files.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"run_dir={folder}: is not a folder; set another run_dir")
    file = folder / "student.json"
    if not file.exists():
        if folder.exists() and any(path.name != LOCK for path in folder.iterdir()):
            raise ConfigError(f"run_dir={folder}: is not the folder of a student, and holds files; set another run_dir")
        return False
    before = json.loads(file.read_text(encoding="utf-8"))["settings"]
    changed = sorted(name for name in identity if before.get(name) != identity[name])
    if changed and not fresh:
        named = [name for name in changed if "(content)" not in name] or changed
        raise ConfigError(
            f"run_dir={folder}: holds a training with another {', '.join(named)}; set another run_dir, or fresh=true"
        )
    return not fresh
