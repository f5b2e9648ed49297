"""The files of a run folder and of a folder of human dialogs, each replaced as a whole.

A run's files are derived from its store, those of human dialogs from the corpus.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from generator.common.atomic_files import atomic_replace, atomic_write, digest, write_lines, write_text
from generator.common.console import note
from generator.config.settings import Settings, exporters
from generator.corpora.base import CorpusSettings
from generator.corpora.human import DialogCorpus
from generator.corpora.library import Library, split_key
from generator.dialogs.columns import rank_turns
from generator.dialogs.filter import check_columns, filter_pairs
from generator.errors import CorpusError, RunError
from generator.execution.store import Store
from generator.output.base import Exporter, ExportSource
from generator.output.card import DatasetInfo, Origin
from generator.output.chat import rows
from generator.output.dataset import write_dataset
from generator.output.summary import HumanSummary, Summary, summarise
from generator.report_sets import write_run_report
from generator.retrievers.bm25 import PassagePool
from generator.schema import Algorithm, Dialog, Document, Drop, Passage, SkippedRecord
from taxonomy import Taxonomy

_ALGORITHMS: Mapping[Algorithm, str] = {
    "single": "1 (single document) of Lee et al. (2024)",
    "multi": "2 (multiple documents) of Lee et al. (2024)",
    "whole": "a whole dialog in one call, as Bai et al. (2024)",
    "progressive": "three questions that build on each other, as Kuo et al. (2025)",
}


def write_results(
    settings: Settings,
    taxonomy: Taxonomy,
    library: Library,
    store: Store,
    skipped: Path,
    prompt_version: str,
) -> Summary:
    """Write what a run has so far: dialogs, drops, skipped documents, summary, dataset, export, report.

    Args:
        library: the documents of the run, for the export.
        skipped: the list of unreadable documents, one JSON object a line; absent if all could be read.

    Raises:
        RunError, ExportError: the folder can't be written; the previous files are still complete.
    """
    folder = settings.folder
    before = _dialogs_digest(folder)
    write_lines(folder / "dialogs.jsonl", store.dialogs())
    write_lines(folder / "drops.jsonl", store.drops())
    lines = skipped.read_text(encoding="utf-8") if skipped.exists() else ""
    if lines:
        write_text(folder / "skipped.jsonl", lines)
    summary = summarise(store, taxonomy, settings.judge.filter, lines.count("\n"), settings.wanted)
    write_text(folder / "summary.json", summary.model_dump_json(indent=2) + "\n")
    if summary.pairs:
        write_dataset(store.dialogs(), folder / "dataset", _info(settings, library, summary, store, prompt_version))
    else:
        shutil.rmtree(folder / "dataset", ignore_errors=True)
    if summary.accepted:  # an item need not have a pair
        _write_export(settings.exporter, _source(settings, library, store), folder, before)
    else:
        _remove_exports(folder)
    write_run_report(folder)
    return summary


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
    folder = settings.run_dir or Path("outputs", f"{corpus.name}-human")
    _prepare_human(folder)
    before = _dialogs_digest(folder)
    skipped: list[SkippedRecord] = []
    drops: list[Drop] = []
    ids: set[str] = set()
    pairs = 0
    pool = PassagePool(dialog for dialog in corpus.dialogs() if isinstance(dialog, Dialog))
    with atomic_write(folder / "dialogs.jsonl") as file:
        for dialog in corpus.readable(corpus.dialogs(), skipped.append):
            if dialog.id in ids:
                raise CorpusError(f"corpus.path: two dialogs have the id {dialog.id!r}; name only one file with them")
            ids.add(dialog.id)
            ranked = asyncio.run(rank_turns(_in_split(dialog, settings), pool))
            pairs += len(rows(ranked, settings.judge.filter))
            drops += filter_pairs(ranked, settings.judge.filter)[1]
            file.write(ranked.model_dump_json() + "\n")
        # The first file in place: `_prepare_human` knows the folder by it if anything fails from here on.
        summary = HumanSummary(human=len(ids), pairs=pairs, skipped=len(skipped))
        write_text(folder / "summary.json", summary.model_dump_json(indent=2) + "\n")
    write_lines(folder / "drops.jsonl", drops)
    if skipped:
        write_lines(folder / "skipped.jsonl", skipped)
    else:
        (folder / "skipped.jsonl").unlink(missing_ok=True)
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
    if pairs:
        write_dataset(_read_dialogs(folder), folder / "dataset", origin)
    else:
        shutil.rmtree(folder / "dataset", ignore_errors=True)
    source = ExportSource(
        corpus=corpus.name,
        dialogs=lambda: _read_dialogs(folder),
        documents=lambda: _whole_documents(corpus),
        filter=origin.filter,
        rewritten=True,
    )
    _write_export(settings.exporter, source, folder, before)
    write_run_report(folder)
    print(f"human dialogs: {summary.human}, with {summary.pairs} context-response pairs", flush=True)
    print(f"folder: {folder}", flush=True)


def _dialogs_digest(folder: Path) -> str | None:
    """Return a hash of a folder's dialogs; None if it has none."""
    try:
        return digest(folder / "dialogs.jsonl")
    except OSError:
        return None


def _write_export(exporter: Exporter | None, source: ExportSource, folder: Path, before: str | None) -> None:
    """Write the chosen export, and remove others that were made of other dialogs.

    Args:
        before: the `_dialogs_digest` from before the dialogs were written.

    Raises:
        ExportError: the folder can't be written; the previous export is still complete.
    """
    if _dialogs_digest(folder) != before:
        _remove_exports(folder, exporter.name if exporter else None)
    if exporter is not None:
        with atomic_replace(folder / exporter.name, f"the export {exporter.name}") as new:
            exporter.write(source, new)


def _remove_exports(folder: Path, but: str | None = None) -> None:
    for name in exporters():
        if name != but:
            shutil.rmtree(folder / name, ignore_errors=True)


def _source(settings: Settings, library: Library, store: Store) -> ExportSource:
    algorithm = settings.algorithm

    def read() -> Iterator[tuple[Document, list[Passage]]]:
        found = library.documents()
        if not algorithm.searches:  # then dialogs rest on whole documents
            found = ((document, []) for document, _ in found)
        return _with_collections(settings.corpus, found)

    return ExportSource(
        corpus=settings.corpus.name,
        dialogs=store.dialogs,
        documents=read,
        filter=settings.judge.filter,
        rewritten=algorithm.name == "multi" and settings.retriever.query == "rewrite",
    )


def _with_collections(
    corpus: CorpusSettings, found: Iterator[tuple[Document, list[Passage]]]
) -> Iterator[tuple[Document, list[Passage]]]:
    """Yield the documents with their collections, which the library doesn't store: read again from the corpus."""
    again = (document for document in corpus.read() if isinstance(document, Document))
    first = next(again, None)
    if first is None or not first.collection:  # then no document of this corpus has one
        yield from found
        return
    collections = {document.id: document.collection for document in chain([first], again)}
    for document, passages in found:
        yield document.model_copy(update={"collection": collections.get(document.id, "")}), passages


def _whole_documents(corpus: DialogCorpus) -> Iterator[tuple[Document, tuple[Passage, ...]]]:
    """Yield the documents, uncut as people saw them; report how many records are broken."""
    broken: list[SkippedRecord] = []
    for document in corpus.readable(corpus.read(), broken.append):
        yield document, ()
    if broken:
        note(
            f"left out of the collection: {len(broken)} broken records, the first {broken[0].where}: {broken[0].reason}"
        )


def _info(settings: Settings, library: Library, summary: Summary, store: Store, prompt_version: str) -> DatasetInfo:
    corpus, judge, retriever = settings.corpus, settings.judge, settings.retriever
    name = type(retriever).__name__.removesuffix("Settings").lower()
    judge_model = f" ({(judge.lm or settings.lm).model})" if judge.asks_model else ""
    models = [("wrote the dialogs", settings.lm.model)]
    models += [(f"wrote too, as {setting}", endpoint.model) for setting, endpoint in settings.others.items()]
    if judge.lm and judge.asks_model:
        models.append(("judged the answers", judge.lm.model))
    return DatasetInfo(
        name=settings.folder.name,
        command=store.command,
        corpus=corpus.name,
        licence=corpus.licence,
        source=corpus.source,
        language=settings.dialog.language or library.language.code,
        filter=judge.filter,
        algorithm=settings.algorithm.name,
        topics=corpus.topics,
        settings={
            "corpus": f"{corpus.name}, {corpus.licence}, {corpus.source}",
            "algorithm": _ALGORITHMS[settings.algorithm.name],
            "taxonomy": settings.taxonomy.name,
            **({} if settings.user.name == "default" else {"users": settings.user.name}),
            "model": settings.lm.model,
            **({"model of the users": settings.user.lm.model} if settings.user.lm else {}),
            "retriever": f"{name}, k={retriever.k}, query={retriever.query}" if settings.algorithm.searches else "none",
            "judge": ", ".join([f"{judge.name}{judge_model}", *judge.companions]),
            "filter": judge.filter,
            "near-duplicates": f"threshold {settings.dedup.threshold:g}"
            if settings.dedup.between_dialogs
            else "not looked for between dialogs",
            "seed": str(settings.seed),
            "prompt version": prompt_version,
        },
        attempted=summary.attempted,
        shares=(
            *summary.tasks.items(),
            *summary.question_types.items(),
            *summary.multi_turn_types.items(),
            *summary.standalone.items(),
            *summary.answerability.items(),
        ),
        dropped={
            "dialog": summary.dropped,
            "turn": summary.dropped_turns,
            "pair": summary.dropped_pairs,
            "candidate": summary.dropped_candidates,
        },
        models=tuple(models),
        toy=settings.lm.is_bundled,
    )


def _prepare_human(folder: Path) -> None:
    """Create the folder, or check that it is empty or holds human dialogs, complete or not.

    `human` in its `summary.json` tells; unfinished files alone are what an interruption left.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if all(path.name.endswith(".unfinished") for path in folder.iterdir()):
            return
        if "human" in json.loads((folder / "summary.json").read_text(encoding="utf-8")):
            return
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
