"""The files of a run folder, all derived from its store, each replaced as a whole."""

import json
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from generator.common.atomic_files import atomic_write
from generator.config.settings import Settings
from generator.corpora.library import Library
from generator.errors import CorpusError
from generator.execution.store import Store
from generator.exports import dialogs_digest, remove_exports, write_export
from generator.models.embedded import EmbeddedEndpoint
from generator.output import DatasetInfo, DropCount, Share, write_dataset
from generator.output.base import ExportSource
from generator.output.summary import SCOPES, Summary, summarise
from generator.schema import Corpus, Document, Passage
from taxonomy import Taxonomy


def write_results(
    settings: Settings,
    taxonomy: Taxonomy,
    library: Library,
    store: Store,
    skipped: Path,
    prompt_version: str,
) -> Summary:
    """Write what a run has so far: dialogs, drops, skipped documents, summary, dataset, export.

    Args:
        library: the documents of the run, for the export.
        skipped: the list of documents that couldn't be read, one JSON object a line; not there if all could.

    Raises:
        RunError, ExportError: the folder can't be written; the files that were there are still whole.
    """
    folder = settings.folder
    before = dialogs_digest(folder)
    with atomic_write(folder / "dialogs.jsonl") as file:
        file.writelines(f"{dialog.model_dump_json()}\n" for dialog in store.dialogs())
    with atomic_write(folder / "drops.jsonl") as file:
        file.writelines(f"{drop.model_dump_json()}\n" for drop in store.drops())
    lines = skipped.read_text(encoding="utf-8") if skipped.exists() else ""
    if lines:
        with atomic_write(folder / "skipped.jsonl") as file:
            file.write(lines)
    summary = summarise(store, taxonomy, settings.judge.filter, lines.count("\n"), settings.wanted)
    with atomic_write(folder / "summary.json") as file:
        file.write(json.dumps(summary.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n")
    if summary.pairs:
        write_dataset(store.dialogs(), folder / "dataset", _info(settings, summary, store, prompt_version))
        write_export(settings, _material(settings, library, store), before)
    else:
        shutil.rmtree(folder / "dataset", ignore_errors=True)
        remove_exports(folder)
    return summary


def _material(settings: Settings, library: Library, store: Store) -> ExportSource:
    multi = settings.algorithm.name == "multi"

    def documents() -> Iterator[tuple[Document, list[Passage]]]:
        # Algorithm 1 searches nothing: its dialogs rest on whole documents.
        found = library.documents()
        return _collected(settings.corpus, found if multi else ((document, []) for document, _ in found))

    return ExportSource(
        corpus=settings.corpus.name,
        dialogs=store.dialogs,
        documents=documents,
        filter=settings.judge.filter,
        rewritten=multi and settings.retriever.query == "rewrite",
    )


def _collected(
    corpus: Corpus, documents: Iterator[tuple[Document, list[Passage]]]
) -> Iterator[tuple[Document, list[Passage]]]:
    """The documents with their collections, which the library doesn't keep: read again, in the same order.

    Only if the first one has any: the library's documents are those of the corpus without what is broken.

    Raises:
        CorpusError: they aren't any more.
    """
    changed = CorpusError(f"corpus {corpus.name}: its documents changed while the run went on")
    read = (document for document in corpus.read() if isinstance(document, Document))
    first = next(read, None)
    if first is None:
        raise changed
    if not first.collection:
        yield from documents
        return
    again = chain([first], read)
    for document, passages in documents:
        same = next((other for other in again if other.id == document.id), None)
        if same is None:
            raise changed
        yield document.model_copy(update={"collection": same.collection}), passages


def _info(settings: Settings, summary: Summary, store: Store, prompt_version: str) -> DatasetInfo:
    corpus, judge = settings.corpus, settings.judge
    planned = (summary.question_types, summary.multi_turn_types, summary.answerability)
    shares = ((name, share.target, share.achieved) for shares in planned for name, share in shares.items())
    counts = (
        (scope, stage, why, n) for scope in SCOPES for stage, s in store.dropped(scope).items() for why, n in s.items()
    )
    retriever = type(settings.retriever).__module__.rpartition(".")[2]
    return DatasetInfo(
        name=settings.folder.name,
        command=store.command,
        corpus=corpus.name,
        licence=corpus.licence,
        source=corpus.source,
        language=corpus.language,
        algorithm=settings.algorithm.name,
        taxonomy=settings.taxonomy.name,
        lm=settings.lm.model,
        retriever=f"{retriever}, k={settings.retriever.k}, query={settings.retriever.query}"
        if settings.algorithm.name == "multi"
        else "none",
        judge=judge.name,
        judge_lm=(judge.lm or settings.lm).model if judge.asks_model else "",
        filter=judge.filter,
        dedup=f"threshold {settings.dedup.threshold:g}" if settings.dedup.between_dialogs else "none between dialogs",
        seed=settings.seed,
        prompt_version=prompt_version,
        attempted=summary.attempted,
        question_types=tuple(Share(name=name, target=target, achieved=achieved) for name, target, achieved in shares),
        dropped=tuple(DropCount(scope=scope, stage=stage, reason=why, count=n) for scope, stage, why, n in counts),
        toy=isinstance(settings.lm, EmbeddedEndpoint) and settings.lm.path is None,
    )
