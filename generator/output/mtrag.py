"""Dialogs as mtRAG's publisher lays out its own (Katsis et al. 2025), for its tools and for those made for it.

    conversations.json                                  whole conversations, with all that was retrieved
    generation_tasks/reference.jsonl                    a task a pair, with the relevant passages alone
    retrieval_tasks/<name>/<name>_lastturn.jsonl        queries of the turns that have relevant passages,
    retrieval_tasks/<name>/<name>_questions.jsonl       in three forms
    retrieval_tasks/<name>/<name>_rewrite.jsonl
    retrieval_tasks/<name>/qrels/dev.tsv
    retrieval_tasks/<name>/corpus.jsonl                 the collection, as BEIR has it

A passage is relevant to a turn if the turn's evidence is from it. `docs/export.md` says what each field is made of.
"""

import csv
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, TextIO

from generator.common.console import note
from generator.corpora.mtrag.names import NO_LABEL, SPEAKER, domain_of, format_turn_id, to_published_label
from generator.dialogs.filter import filter_pairs
from generator.errors import CorpusError
from generator.output.base import ExportSource
from generator.schema import UNLABELLED, Dialog, Document, Passage, Record, Turn


class MtragExport(Record):
    """The files of mtRAG; see `generator.output.base.Exporter`."""

    name: Literal["mtrag"]

    def write(self, material: ExportSource, folder: Path) -> None:
        """Write all files; the same dialogs and documents give the same bytes."""
        tasks, retrieval = folder / "generation_tasks", folder / "retrieval_tasks"
        tasks.mkdir()
        try:
            collections = _collections(material, retrieval, material.documents())
        except CorpusError as error:
            note(f"export=mtrag: the collections hold the passages of the dialogs alone, since {error}")
            shutil.rmtree(retrieval)
            collections = _collections(material, retrieval, ())
        with ExitStack() as stack:
            conversations = stack.enter_context(_opened(folder / "conversations.json"))
            reference = stack.enter_context(_opened(tasks / "reference.jsonl"))
            queries = {
                name: stack.enter_context(_Queries(retrieval / name, name)) for name in collections.names.values()
            }
            before = "[\n"
            for dialog in material.dialogs():
                collection = collections.of(dialog)
                size = collections.sizes[collection]
                conversations.write(before + _json(_conversation(dialog, collection, size)))
                before = ",\n"
                kept = {turn.turn for turn in filter_pairs(dialog, material.filter)[0]}
                for turn in dialog.turns:
                    if turn.turn in kept:
                        reference.write(_json(_task(dialog, turn, collection)) + "\n")
                        queries[collections.names[collection]].add(dialog, turn, material.rewritten)
            conversations.write("\n]\n")


class _Collections:
    """The collections that the dialogs are about, written while documents pass.

    Attributes:
        names: of their folders.
        sizes: how many passages they have.
    """

    def __init__(self, corpus: str, dialogs: Iterable[Dialog], folder: Path) -> None:
        self.names: dict[str, str] = {}
        self.sizes: Counter[str] = Counter()
        self._corpus, self._folder = corpus, folder
        self._files: dict[str, TextIO] = {}
        self._stack = ExitStack()
        # By document, what dialogs have of it: passage id to its span.
        self._spans: dict[str, dict[str, tuple[int, int]]] = {}
        self._ids: set[str] = set()
        for dialog in dialogs:
            self._spans.setdefault(dialog.document_ids[0], {})
            for passage in dialog.passages:
                self._spans.setdefault(passage.document_id, {})[passage.id] = (passage.start, passage.end)
                self._ids.add(passage.id)
        self._collection_of: dict[str, str] = {}
        self._written: set[tuple[str, str]] = set()

    def __enter__(self) -> "_Collections":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, dialog: Dialog) -> str:
        """The collection that a dialog is about: that of its first document."""
        return dialog.collection or self._collection_of.get(dialog.document_ids[0], self._corpus)

    def document(self, document: Document, passages: Sequence[Passage]) -> None:
        """Write the passages of a document, or what dialogs have of it, or else the whole of it."""
        collection = document.collection or self._corpus
        if document.id in self._spans:
            self._collection_of[document.id] = collection
        for passage in passages or self._pieces(document):
            self._write(collection, passage)

    def rest(self, dialogs: Iterable[Dialog]) -> None:
        """Write what dialogs rest on that their collections don't have yet, and drop collections without a dialog."""
        used = set()
        for dialog in dialogs:
            used.add(collection := self.of(dialog))
            for passage in dialog.passages:
                if (collection, passage.id) not in self._written:
                    self._write(collection, passage)
        for collection in self.names.keys() - used:
            shutil.rmtree(self._folder / self.names.pop(collection))

    def _pieces(self, document: Document) -> list[Passage]:
        spans = self._spans.get(document.id, {})
        if document.id in self._ids or not spans:
            # mtRAG's and OR-QuAC's documents are passages already.
            spans = {document.id: (0, len(document.text))}
        return [
            Passage(
                id=name,
                document_id=document.id,
                title=document.title,
                text=document.text[start:end],
                url=document.url,
                start=start,
                end=end,
            )
            for name, (start, end) in sorted(spans.items(), key=lambda item: (item[1], item[0]))
        ]

    def _write(self, collection: str, passage: Passage) -> None:
        if collection not in self._files:
            self.names[collection] = _folder_name(collection, self.names.values())
            folder = self._folder / self.names[collection]
            folder.mkdir(parents=True)
            self._files[collection] = self._stack.enter_context(_opened(folder / "corpus.jsonl"))
        record = {"_id": passage.id, "title": passage.title, "text": passage.text, "url": passage.url or ""}
        self._files[collection].write(_json(record) + "\n")
        self.sizes[collection] += 1
        if passage.id in self._ids:
            self._written.add((collection, passage.id))


def _collections(
    material: ExportSource, folder: Path, documents: Iterable[tuple[Document, Sequence[Passage]]]
) -> _Collections:
    folder.mkdir()
    with _Collections(material.corpus, material.dialogs(), folder) as collections:
        for document, passages in documents:
            collections.document(document, passages)
        collections.rest(material.dialogs())
    return collections


class _Queries:
    """The retrieval task of a collection.

    Rewrites are written for all of its queries or for none: BEIR's loader wants a query for each of the qrels, and a
    question that leans on others must not pass for one that stands alone.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._stack = ExitStack()
        self._all = self._without = 0
        (folder / "qrels").mkdir()
        self._last, self._questions, self._rewrites, qrels = (
            self._stack.enter_context(_opened(folder / file))
            for file in (f"{name}_lastturn.jsonl", f"{name}_questions.jsonl", f"{name}_rewrite.jsonl", "qrels/dev.tsv")
        )
        self._qrels = csv.writer(qrels, delimiter="\t", lineterminator="\n")
        self._qrels.writerow(("query-id", "corpus-id", "score"))

    def __enter__(self) -> "_Queries":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._without:
            path = Path(self._rewrites.name)
            path.unlink()
            note(
                f"export=mtrag: there is no {path.name}, since {self._without} of {self._all} questions have no form "
                "that stands alone (docs/export.md)"
            )

    def add(self, dialog: Dialog, turn: Turn, rewritten: bool) -> None:
        """Add a turn, unless there is nothing to be found for it."""
        relevant = [passage.id for passage in _relevant(dialog, turn)]
        if not relevant or turn.answerability not in ("answerable", "partial"):
            return
        name = format_turn_id(dialog.id, turn.turn)
        self._last.write(_query(name, [turn.query]))
        self._questions.write(_query(name, [t.query for t in dialog.turns[: turn.turn]]))
        alone = _standalone(turn, rewritten)
        self._all += 1
        self._without += not alone
        self._rewrites.write(_query(name, [alone]))
        self._qrels.writerows((name, passage_id, 1) for passage_id in relevant)


def _conversation(dialog: Dialog, collection: str, size: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for turn in dialog.turns:
        messages.append({"speaker": "user", "text": turn.query, "enrichments": _labels(turn, [NO_LABEL])})
        relevant = {passage.id for passage in _relevant(dialog, turn)}
        contexts = [_context(dialog, turn, passage, passage.id in relevant) for passage in _found(dialog, turn)]
        original = {"original_text": turn.original_answer} if turn.original_answer else {}
        messages.append({"speaker": "agent", "text": turn.answer, "contexts": contexts, **original})
    return {
        "author": dialog.lm,
        "retriever": {"collection": {"name": collection, "size": str(size)}},
        "generator": {"id": dialog.lm, "name": dialog.lm.rstrip("/").rpartition("/")[2]},
        "messages": messages,
        "status": "accepted",
    }


def _task(dialog: Dialog, turn: Turn, collection: str) -> dict[str, Any]:
    said = [(text, speaker) for t in dialog.turns for text, speaker in ((t.query, "user"), (t.answer, "agent"))]
    return {
        "conversation_id": dialog.id,
        "task_id": format_turn_id(dialog.id, turn.turn),
        "task_type": "rag",
        "turn": turn.turn,
        "Collection": collection,
        "dataset": dialog.corpus,
        "contexts": [_context(dialog, turn, passage, True) for passage in _relevant(dialog, turn)],
        "input": [{"speaker": speaker, "text": text} for text, speaker in said[: 2 * turn.turn - 1]],
        "targets": [{"speaker": "agent", "text": text} for text in (turn.answer, *turn.other_answers)],
        **_labels(turn, []),
    }


def _labels(turn: Turn, of_first: list[str]) -> dict[str, list[str]]:
    """The three dimensions; `of_first` is the multi-turn type of a first turn."""
    # A later type of Lee et al. 2024 (`correction`) says how a turn goes on, and nothing of what is asked.
    kinds = [k for k in turn.question_type.split("+") if k not in (UNLABELLED, turn.multi_turn_type)]
    later = turn.multi_turn_type.split("+") if turn.multi_turn_type else []
    return {
        "Question Type": [to_published_label(kind) for kind in kinds],
        "Multi-Turn": of_first if turn.turn == 1 else [to_published_label(kind) for kind in later],
        "Answerability": [turn.answerability.upper()],
    }


def _found(dialog: Dialog, turn: Turn) -> Iterator[Passage]:
    """What an answer could rest on: what was retrieved for it, then what it cites of earlier turns.

    If nothing was ever retrieved, all passages of the dialog.
    """
    if not any(t.hits for t in dialog.turns):
        yield from dialog.passages
        return
    by_id = {passage.id: passage for passage in dialog.passages}
    ids = [*(hit.passage_id for hit in turn.hits), *(evidence.passage_id for evidence in turn.evidence)]
    yield from (by_id[name] for name in dict.fromkeys(ids))


def _relevant(dialog: Dialog, turn: Turn) -> list[Passage]:
    cited = {evidence.passage_id for evidence in turn.evidence}
    return [passage for passage in _found(dialog, turn) if passage.id in cited]


def _context(dialog: Dialog, turn: Turn, passage: Passage, relevant: bool) -> dict[str, Any]:
    """A passage with the score of the last search that found it; 0 if there was none."""
    scores = [hit.score for t in dialog.turns[: turn.turn] for hit in t.hits if hit.passage_id == passage.id]
    return {
        "document_id": passage.id,
        "text": passage.text,
        **({"title": passage.title} if passage.title else {}),
        **({"url": passage.url} if passage.url else {}),
        "score": scores[-1] if scores else 0.0,
        "feedback": {"relevant": {dialog.lm: {"value": "yes" if relevant else "no"}}},
    }


def _standalone(turn: Turn, rewritten: bool) -> str:
    """The question in a form that stands alone; empty if there is none, since it isn't ours to make one up."""
    if rewritten and turn.retrieval_query:
        return turn.retrieval_query
    alone = turn.turn == 1 or (turn.planned is not None and turn.planned.standalone is True)
    return turn.query if alone else ""


def _query(name: str, questions: Sequence[str]) -> str:
    """A line of queries, to the byte as the publisher's."""
    record = {"_id": name, "text": "\n".join(f"{SPEAKER} {question}" for question in questions)}
    return json.dumps(record, separators=(",", ":")).replace("/", "\\/") + "\n"


def _folder_name(collection: str, taken: Collection[str]) -> str:
    """The publisher's domain of a collection, or else its name as any disk takes it."""
    try:
        name = domain_of(collection)
    except ValueError:
        name = collection
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".")[:80]
    if safe == name and name not in taken:
        return name
    return f"{safe}-{hashlib.sha256(collection.encode()).hexdigest()[:8]}"


def _opened(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
