"""The files of a run folder, derived from its store; each is replaced as a whole."""

import shutil
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, get_args

from generator.common.atomic_files import atomic_replace, atomic_write, digest, write_lines, write_text
from generator.config.settings import Settings, exporters
from generator.corpora.base import CorpusSettings
from generator.corpora.library import Library
from generator.execution.store import Store
from generator.output.base import Exporter, ExportSource
from generator.output.card import DatasetInfo
from generator.output.dataset import write_dataset
from generator.output.summary import Summary, summarise
from generator.report_sets import write_run_report
from generator.schema import Algorithm, Document, Passage, Scope

if TYPE_CHECKING:
    from generator.components import Components

_ALGORITHMS: Mapping[Algorithm, str] = {
    "single": "1 (single document) of Lee et al. (2024)",
    "multi": "2 (multiple documents) of Lee et al. (2024)",
    "whole": "a whole dialog in one call, as Bai et al. (2024)",
    "progressive": "three questions that build on each other, as Kuo et al. (2025)",
}


def write_results(components: "Components", store: Store, skipped: Path) -> Summary:
    """Write what a run has so far: dialogs, drops, skipped documents, summary, dataset, export, report.

    Args:
        skipped: the list of unreadable documents, one JSON object a line; absent if all could be read.

    Raises:
        RunError, ExportError: the folder can't be written; the previous files are still complete.
    """
    settings = components.settings
    folder = settings.folder
    with atomic_write(folder / "dialogs.jsonl") as file:
        file.writelines(f"{dialog.model_dump_json()}\n" for dialog in store.dialogs())
        remove_old_exports(folder, file, settings.exporter)
    write_lines(folder / "drops.jsonl", store.drops())
    lines = skipped.read_text(encoding="utf-8") if skipped.exists() else ""
    if lines:
        write_text(folder / "skipped.jsonl", lines)
    summary = summarise(store, components.taxonomy, settings.judge.filter, lines.count("\n"), settings.wanted)
    write_text(folder / "summary.json", summary.model_dump_json(indent=2) + "\n")
    if summary.pairs:
        write_dataset(store.dialogs(), folder / "dataset", _info(components, summary, store))
    else:
        shutil.rmtree(folder / "dataset", ignore_errors=True)
    if summary.accepted:  # an item need not have a pair
        write_export(settings.exporter, _source(settings, components.library, store), folder)
    else:
        _remove_exports(folder)
    write_run_report(folder)
    return summary


def remove_old_exports(folder: Path, file: TextIO, exporter: Exporter | None) -> None:
    """Remove the exports of a folder, but the chosen one, if they were made of other dialogs than those in `file`.

    Args:
        file: about to replace the folder's dialogs; once it has, nothing would tell.
    """
    file.flush()
    before = folder / "dialogs.jsonl"
    if not before.is_file() or digest(before) != digest(Path(file.name)):
        _remove_exports(folder, exporter.name if exporter else None)


def write_export(exporter: Exporter | None, source: ExportSource, folder: Path) -> None:
    """Write the chosen export.

    Raises:
        ExportError: the folder can't be written; the previous export is still complete.
    """
    if exporter is not None:
        with atomic_replace(folder / exporter.name, f"the export {exporter.name}") as new:
            exporter.write(source, new)


def _remove_exports(folder: Path, but: str | None = None) -> None:
    found = {each.name for each in folder.iterdir() if each.is_dir()} - {"dataset", but}
    for name in found.intersection(exporters() if found else ()):  # composing all takes a third of a second
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


def _info(components: "Components", summary: Summary, store: Store) -> DatasetInfo:
    settings = components.settings
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
        language=settings.dialog.language or components.library.language.code,
        filter=judge.filter,
        algorithm=settings.algorithm.name,
        topics=corpus.topics,
        settings={
            "corpus": f"{corpus.name}, licence {corpus.licence}, source {corpus.source}",
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
            "prompt version": components.prompt_version,
        },
        attempted=summary.attempted,
        shares=(
            *summary.tasks.items(),
            *summary.question_types.items(),
            *summary.multi_turn_types.items(),
            *summary.standalone.items(),
            *summary.answerability.items(),
        ),
        dropped={scope: store.dropped(scope) for scope in get_args(Scope)},
        models=tuple(models),
        toy=settings.lm.is_bundled,
    )
