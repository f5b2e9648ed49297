"""The human dialogs of a data set, written as a run's dialogs are: to train on beside them, or to compare with them."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from generator.common.atomic_files import atomic_write
from generator.common.console import note
from generator.config.settings import Settings
from generator.corpora.base import read_documents, skip_broken
from generator.corpora.human import DialogCorpus
from generator.errors import YAML_SLIPS, ConfigError, CorpusError, RunError
from generator.exports import dialogs_digest, write_export
from generator.output import DatasetResult, Origin, write_dataset
from generator.output.base import ExportSource
from generator.schema import Dialog, Document, Passage, SkippedRecord

# What is written before there is a config.yaml.
_BEGUN = frozenset(f".{name}.unfinished" for name in ("config.yaml", "dialogs.jsonl", "skipped.jsonl"))


def write_human(settings: Settings, configuration: str, command: str) -> int:
    """Write a folder with `dialogs.jsonl`, `dataset/`, `summary.json`, `config.yaml`, the export if one is chosen, and
    `skipped.jsonl` if records were broken. No model is asked. Returns 0.

    After a failure at any of these the same command writes them all.

    Raises:
        ConfigError: the corpus has no human dialogs.
        CorpusError: they can't be read, or two have the same id.
        RunError, ExportError: the folder holds something else, or can't be written.
    """
    corpus, folder = settings.corpus, settings.folder
    if not isinstance(corpus, DialogCorpus):
        raise ConfigError(
            f"human=true: corpus={settings.documents.name} has no dialogs of people; docs/corpora.md says which have"
        )
    _prepare(folder)
    before = dialogs_digest(folder)
    with atomic_write(folder / "skipped.jsonl") as skipped, atomic_write(folder / "dialogs.jsonl") as file:
        found = skip_broken(
            corpus.dialogs(),
            corpus.name,
            corpus.strict,
            corpus.max_broken,
            lambda broken: print(broken.model_dump_json(), file=skipped),
        )
        for dialog in _each_once(found):
            file.write(_split(dialog, settings).model_dump_json() + "\n")
        # The first in its place: by it the same command knows the folder if anything fails from here on.
        with atomic_write(folder / "config.yaml") as stored:
            stored.write(configuration)
    if not (folder / "skipped.jsonl").stat().st_size:
        (folder / "skipped.jsonl").unlink()
    origin = Origin(
        name=folder.name,
        command=command,
        corpus=corpus.name,
        licence=corpus.licence,
        source=corpus.source,
        language=corpus.language,
    )
    made = write_dataset(_read(folder), folder / "dataset", origin)
    material = ExportSource(
        corpus=corpus.name,
        dialogs=lambda: _read(folder),
        documents=lambda: _documents(corpus),
        filter=settings.judge.filter,
        rewritten=True,
    )
    write_export(settings, material, before)
    with atomic_write(folder / "summary.json") as file:
        file.write(json.dumps(_summary(folder, made), indent=2) + "\n")
    total = made.statistics.total.dialogs
    print(f"human dialogs: {total}, with {made.train + made.validation} context-response pairs", flush=True)
    print(f"folder: {folder}", flush=True)
    return 0


def _documents(corpus: DialogCorpus) -> Iterator[tuple[Document, tuple[Passage, ...]]]:
    """The documents, of which people see the whole; what is broken of them is told."""
    lost: list[SkippedRecord] = []
    for document in read_documents(corpus, corpus.strict, corpus.max_broken, lost.append):
        yield document, ()
    if lost:
        note(f"left out of the collection: {len(lost)} broken records, the first {lost[0].where}: {lost[0].reason}")


def _prepare(folder: Path) -> None:
    """Make the folder, or see that it has human dialogs or is empty, but for what a kill left of its first files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = {path.name for path in folder.iterdir()} <= _BEGUN
        if not ours:
            stored = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
            ours = isinstance(stored, dict) and stored.get("human") is True
    except (OSError, yaml.YAMLError, *YAML_SLIPS):
        ours = False
    if not ours:
        raise RunError(f"{folder}: holds something else, or can't be written; give another run_dir=…")


def _each_once(dialogs: Iterator[Dialog]) -> Iterator[Dialog]:
    ids: set[str] = set()
    for dialog in dialogs:
        if dialog.id in ids:
            raise CorpusError(f"two human dialogs have the id {dialog.id!r}; give corpus.path only one file of them")
        ids.add(dialog.id)
        yield dialog


def _split(dialog: Dialog, settings: Settings) -> Dialog:
    """The dialog in its split: dialogs that begin with the same document are in the same one."""
    digest = hashlib.sha256(f"{settings.seed}/{dialog.document_ids[0]}".encode()).digest()
    held = int.from_bytes(digest[:8]) < settings.validation * 2**64
    return dialog.model_copy(update={"split": "validation"}) if held else dialog


def _read(folder: Path) -> Iterator[Dialog]:
    with (folder / "dialogs.jsonl").open(encoding="utf-8") as lines:
        yield from map(Dialog.model_validate_json, lines)


def _summary(folder: Path, made: DatasetResult) -> dict[str, object]:
    skipped = folder / "skipped.jsonl"
    lines = skipped.read_text(encoding="utf-8").count("\n") if skipped.exists() else 0
    return {"human": made.statistics.total.dialogs, "pairs": made.train + made.validation, "skipped": lines}
