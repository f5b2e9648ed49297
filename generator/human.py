"""The human dialogs of a data set, written as a run's dialogs are: to train on beside them, or to compare with them."""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from generator.command import GENERATOR_GROUPS, Command, run_command
from generator.common.atomic_files import atomic_write
from generator.common.console import note
from generator.config.compose import Job
from generator.config.settings import Settings, load
from generator.corpora.human import DialogCorpus
from generator.corpora.reading import documents, kept
from generator.errors import ConfigError, CorpusError, RunError
from generator.exports import dialogs_digest, write_export
from generator.output import DatasetResult, Origin, write_dataset
from generator.output.base import ExportSource
from generator.schema import Dialog, Document, Passage, SkippedRecord

COMMAND = Command(
    program="python -m generator.human",
    primary="config",
    task="generator.human:write",
    settings="generator.config.run_settings:RunSettings",
    usage=(
        "python -m generator.human corpus=NAME [setting=value ...]",
        "",
        "Writes the human dialogs of a corpus as a run's dialogs are written, with a dataset. No model is asked.",
    ),
    groups=tuple((group, title) for group, title in GENERATOR_GROUPS if group in ("corpus", "export")),
)
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
    corpus = settings.corpus
    settings = settings.model_copy(update={"run_dir": settings.run_dir or Path("outputs", f"{corpus.name}-human")})
    folder = settings.folder
    if not isinstance(corpus, DialogCorpus):
        raise ConfigError(f"corpus={corpus.name}: has no human dialogs; docs/corpora.md lists the corpora that have")
    _prepare(folder)
    before = dialogs_digest(folder)
    with atomic_write(folder / "skipped.jsonl") as skipped, atomic_write(folder / "dialogs.jsonl") as file:
        found = kept(
            corpus.dialogs(),
            corpus.name,
            corpus.strict,
            corpus.max_broken,
            lambda broken: print(broken.model_dump_json(), file=skipped),
        )
        for dialog in _each_once(dialog for _, dialog in found):
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
    for document in documents(corpus, corpus.strict, corpus.max_broken, lost.append):
        yield document, ()
    if lost:
        note(f"left out of the collection: {len(lost)} broken records, the first {lost[0].where}: {lost[0].reason}")


def _prepare(folder: Path) -> None:
    """Make the folder, or see that it has human dialogs or is empty, but for what a kill left of its first files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = {path.name for path in folder.iterdir()} <= _BEGUN
        if not ours:
            ours = (folder / "config.yaml").exists() and not (folder / "run.db").exists()
    except OSError:
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


def write(cfg: DictConfig, job: Job) -> None:
    """Write the human dialogs of a corpus; the task of `python -m generator.human`."""
    write_human(load(cfg), OmegaConf.to_yaml(cfg, resolve=True), job.command)


if __name__ == "__main__":
    sys.exit(run_command(COMMAND))
