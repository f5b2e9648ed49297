"""The files of a folder of human dialogs, derived from their corpus; each is replaced as a whole."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from filelock import AcquireReturnProxy

from generator.common.atomic_files import LOCK, atomic_write, lock_folder, write_lines, write_text
from generator.common.concurrency import run_async
from generator.common.console import count_noun, counted, note
from generator.config.settings import Settings
from generator.corpora.human import DialogCorpus
from generator.corpora.library import split_key
from generator.dialogs.columns import rank_turns
from generator.dialogs.filter import check_columns, filter_pairs
from generator.errors import CorpusError, RunError
from generator.output.base import ExportSource
from generator.output.card import Origin
from generator.output.chat import kept_turns
from generator.output.dataset import write_dataset
from generator.output.summary import HumanSummary
from generator.report_sets import write_run_report
from generator.results import remove_old_exports, write_export
from generator.retrievers.bm25 import PassagePool
from generator.schema import Dialog, Document, Drop, Passage, SkippedRecord
from generator.sets import note_skipped


def human_folder(settings: Settings) -> Path:
    """Return the folder of a corpus's human dialogs."""
    return settings.run_dir or Path("outputs", f"{settings.corpus.name}-human")


def write_human(settings: Settings, corpus: DialogCorpus, configuration: str, command: str) -> None:
    """Write the human dialogs of a corpus as those of a run are written, for training or for comparison.

    The folder (`run_dir`, by default `outputs/<corpus>-human`) gets `summary.json`, `dialogs.jsonl`, `drops.jsonl`,
    `skipped.jsonl` if records were broken, `config.yaml`, `dataset/`, and the chosen export. No model is called. After
    a failure or an interruption the same command completes the folder.

    Args:
        corpus: of the settings.
        configuration: the settings as YAML.
        command: the command line, for the data card.

    Raises:
        CorpusError: they can't be read, or two have the same id.
        RunError, ExportError: the folder holds something else, or can't be written.
    """
    check_columns(settings.judge.filter, ())
    folder = human_folder(settings)
    with _prepare(folder):
        _write_files(settings, corpus, folder, configuration, command)


def _write_files(settings: Settings, corpus: DialogCorpus, folder: Path, configuration: str, command: str) -> None:
    summary = _write_dialogs(settings, corpus, folder)
    write_text(folder / "config.yaml", configuration)
    origin = Origin(
        name=folder.name,
        command=command,
        corpus=corpus.name,
        licence=corpus.licence,
        source=corpus.source,
        language=corpus.language,
        filter=settings.judge.filter,
    )
    if summary.pairs:
        write_dataset(_read_dialogs(folder), folder / "dataset", origin)
    else:
        shutil.rmtree(folder / "dataset", ignore_errors=True)
        if settings.judge.filter != "pairs":
            note(f"judge.filter={settings.judge.filter}: no pair meets it; drops.jsonl has them with their reasons")
    source = ExportSource(
        corpus=corpus.name,
        dialogs=lambda: _read_dialogs(folder),
        documents=lambda: _whole_documents(corpus),
        filter=origin.filter,
        rewritten=True,
    )
    write_export(settings.exporter, source, folder)
    write_run_report(folder)
    print(f"human dialogs: {summary.human}, with {summary.pairs} context-response pairs", flush=True)
    print(f"folder: {folder}", flush=True)


def _write_dialogs(settings: Settings, corpus: DialogCorpus, folder: Path) -> HumanSummary:
    """Write dialogs, summary, drops and skipped records; return the summary."""
    skipped, drops, ids, pairs = list[SkippedRecord](), list[Drop](), set[str](), 0
    read = counted(corpus.dialogs(), "reading dialogs")
    pool = PassagePool(dialog for dialog in read if isinstance(dialog, Dialog))
    with atomic_write(folder / "dialogs.jsonl") as file:
        for dialog in counted(corpus.readable(corpus.dialogs(), skipped.append), "ranking the evidence of dialogs"):
            if dialog.id in ids:
                raise CorpusError(
                    f"corpus.path: two dialogs have the id {dialog.id!r}; remove one, or name one of the "
                    "files that they are in"
                )
            ids.add(dialog.id)
            ranked = run_async(rank_turns(_in_split(dialog, settings), pool))
            pairs += len(kept_turns(ranked, settings.judge.filter))
            drops += filter_pairs(ranked, settings.judge.filter)[1]
            file.write(ranked.model_dump_json() + "\n")
        remove_old_exports(folder, file, settings.exporter)
        # The first file in place: `_prepare` knows the folder by it if anything fails from here on.
        summary = HumanSummary(human=len(ids), pairs=pairs, skipped=len(skipped))
        write_text(folder / "summary.json", summary.model_dump_json(indent=2) + "\n")
    write_lines(folder / "drops.jsonl", drops)
    note_skipped(f"corpus={corpus.name}", skipped, len(ids), none="")
    if skipped:
        write_lines(folder / "skipped.jsonl", skipped)
    else:
        (folder / "skipped.jsonl").unlink(missing_ok=True)
    return summary


def _prepare(folder: Path) -> AcquireReturnProxy:
    """Create the folder, or check that it is empty or holds human dialogs, complete or not; return the lock on it.

    `human` in its `summary.json` tells; unfinished files alone are what an interruption left.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = all(path.name == LOCK or path.name.endswith(".unfinished") for path in folder.iterdir())
        if empty or "human" in json.loads((folder / "summary.json").read_text(encoding="utf-8")):
            return lock_folder(folder)
    except (OSError, ValueError, TypeError):
        pass
    raise RunError(f"run_dir={folder}: holds something else, or can't be written; set another run_dir")


def _in_split(dialog: Dialog, settings: Settings) -> Dialog:
    """Return the dialog in its split; dialogs that begin with the same document are in the same one."""
    first = next(iter(dialog.document_ids), dialog.id)
    held_out = split_key(f"{settings.seed}/{first}") < settings.validation * 2**64
    return dialog.model_copy(update={"split": "validation"}) if held_out else dialog


def _read_dialogs(folder: Path) -> Iterator[Dialog]:
    with (folder / "dialogs.jsonl").open(encoding="utf-8") as lines:
        yield from map(Dialog.model_validate_json, lines)


def _whole_documents(corpus: DialogCorpus) -> Iterator[tuple[Document, tuple[Passage, ...]]]:
    """Yield the documents, uncut as people saw them; report how many records are broken."""
    broken: list[SkippedRecord] = []
    for document in corpus.readable(corpus.read(), broken.append):
        yield document, ()
    if broken:
        records = count_noun(len(broken), "broken record")
        note(f"left out of the collection: {records}, the first {broken[0].where}: {broken[0].reason}")
