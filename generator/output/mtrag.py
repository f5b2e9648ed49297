"""Dialogs in the files of mtRAG (Katsis et al. 2025), for its tools and for those made for it.

    conversations.json                                  whole conversations, with all retrieved passages
    generation_tasks/reference.jsonl                    a task for each pair, by default with the relevant passages
    retrieval_tasks/<name>/<name>_lastturn.jsonl        queries of the turns with relevant passages,
    retrieval_tasks/<name>/<name>_questions.jsonl       in three forms
    retrieval_tasks/<name>/<name>_rewrite.jsonl
    retrieval_tasks/<name>/qrels/dev.tsv
    retrieval_tasks/<name>/corpus.jsonl                 the collection in BEIR's format

A passage is relevant to a turn if the turn's evidence is from it. `docs/export.md` describes each field.
"""

import csv
import hashlib
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TextIO

from pydantic import Field

from generator.common.console import note
from generator.common.passages import passage as cut_passage
from generator.corpora.mtrag.names import NO_LABEL, SPEAKER, domain_of, format_turn_id, to_published_label
from generator.dialogs.filter import filter_pairs
from generator.errors import CorpusError, ExportError
from generator.output.base import ExportSource
from generator.schema import TASK, UNLABELLED, Dialog, Document, Operational, Passage, Record, Turn

Contexts = Literal["relevant", "retrieved"]
Tasks = Literal["all", "one"]


class MtragExport(Record):
    """Writes the files of mtRAG; see `generator.output.base.Exporter`."""

    name: ClassVar[str] = "mtrag"

    contexts: Annotated[Contexts, Operational] = Field(
        default="relevant",
        description="Passages of a generation task: `relevant`, as published, where unanswerable questions have none, "
        "so that an empty context tells them; `retrieved`: what else the search found, too, as many for every task.",
    )

    tasks: Annotated[Tasks, Operational] = Field(
        default="all",
        description="Turns of a conversation that are tasks: `all`; `one`, drawn by its id from those after the first, "
        "as MTRAG-UN has them.",
    )

    def write(self, source: ExportSource, folder: Path) -> None:
        """Write all files; the same dialogs and documents give the same bytes."""
        tasks, retrieval = folder / "generation_tasks", folder / "retrieval_tasks"
        tasks.mkdir()
        try:
            collections = _write_collections(source, retrieval, source.documents())
        except CorpusError as error:
            note(f"export=mtrag: the collections hold only the passages of the dialogs, because {error}")
            shutil.rmtree(retrieval)
            collections = _write_collections(source, retrieval, ())
        with ExitStack() as stack:
            conversations = stack.enter_context(_open_text(folder / "conversations.json"))
            reference = stack.enter_context(_open_text(tasks / "reference.jsonl"))
            queries = {
                name: stack.enter_context(_RetrievalTask(retrieval / name, name)) for name in collections.names.values()
            }
            before = "[\n"
            shown = _Contexts(self.contexts, source)
            for dialog in source.dialogs():
                collection = collections.collection_of(dialog)
                if dialog.ended != TASK:  # whose turns before the last have neither labels nor passages
                    size = collections.sizes[collection]
                    conversations.write(before + _json(_conversation(dialog, collection, size)))
                    before = ",\n"
                turns = filter_pairs(dialog, source.filter)[0]
                if self.tasks == "one":
                    turns = random.Random(dialog.id).choices([turn for turn in turns if turn.turn > 1] or turns)
                for turn in turns:
                    if (contexts := shown.of(dialog, turn)) is not None:
                        reference.write(_json(_task(dialog, turn, collection, contexts)) + "\n")
                        queries[collections.names[collection]].add(dialog, turn, source.rewritten)
            conversations.write("\n]\n")
        if before == "[\n":
            (folder / "conversations.json").unlink()
        shown.report()


class _Contexts:
    """Chooses the passages of generation tasks, and counts the tasks whose passages tell that they are unanswerable."""

    def __init__(self, contexts: Contexts, source: ExportSource) -> None:
        self._contexts = contexts
        self._answered = self._empty = self._fillable = self._contradicted = 0
        # Of every task alike, so that the number of passages tells nothing: what a search returns, as a rule.
        searches = Counter(len(t.hits) for d in source.dialogs() for t in d.turns if t.hits)
        self._count = max(searches, key=lambda count: (searches[count], count), default=0)

    def of(self, dialog: Dialog, turn: Turn) -> list[Passage] | None:
        """Return the passages of a turn's task; None if it can't be one, since its passages answer what they shouldn't.

        With `retrieved` they are the relevant ones, filled up with the best other hits of the turn and of those before
        it, all in this order. The judge `answerability` was shown these, so that none of them answers an unanswerable
        question that it found unanswerable.
        """
        chosen = _relevant(dialog, turn)
        found = list(_candidates(dialog, *dialog.turns[turn.turn - 1 :: -1]))
        unanswerable = turn.answerability == "unanswerable"
        if self._contexts == "retrieved":
            measured = {verdict.label for verdict in turn.verdicts if verdict.judge == "answerability"}
            if unanswerable and measured & {"answerable", "partial"}:
                self._contradicted += 1
                return None
            others = [passage for passage in found if passage not in chosen]
            wanted = chosen + others[: max(0, self._count - len(chosen))] if self._count else found
            chosen = [passage for passage in found if passage in wanted]
        self._answered += bool(chosen) and not unanswerable
        if unanswerable and not chosen:
            self._empty += 1
            self._fillable += bool(found)
        return chosen

    def report(self) -> None:
        """Report unanswerable tasks that have no passage beside others that have some, and those left out."""
        if self._empty and self._answered:
            note(
                f"export=mtrag: {self._empty} unanswerable tasks have no passage, which tells what they are; "
                + (
                    f"export.contexts=retrieved gives {self._fillable} of them what the search found"
                    if self._fillable
                    else "none was retrieved for them"
                )
            )
        if self._contradicted:
            note(
                f"export=mtrag: left out {self._contradicted} unanswerable tasks that the judge answerability found "
                "answerable; export.contexts=relevant keeps them"
            )


class _Collections(ExitStack):
    """The collections that the dialogs are about, written while the documents are read.

    Attributes:
        names: folder names by collection.
        sizes: numbers of passages by collection.
    """

    def __init__(self, corpus: str, dialogs: Iterable[Dialog], folder: Path) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self.sizes: Counter[str] = Counter()
        self._corpus, self._folder = corpus, folder
        self._files: dict[str, TextIO] = {}
        # By document, the passages that dialogs have of it: id to span.
        self._spans: dict[str, dict[str, tuple[int, int]]] = {}
        self._ids: set[str] = set()
        for dialog in dialogs:
            if not (dialog.passages or dialog.collection):
                raise ExportError(
                    f"export=mtrag: the dialog {dialog.id} rests on no document; choose another export, or none"
                )
            for name in dialog.document_ids[:1]:
                self._spans.setdefault(name, {})
            for passage in dialog.passages:
                self._spans.setdefault(passage.document_id, {})[passage.id] = (passage.start, passage.end)
                self._ids.add(passage.id)
        self._collection_of: dict[str, str] = {}
        self._written: set[tuple[str, str]] = set()

    def collection_of(self, dialog: Dialog) -> str:
        """Return the collection that a dialog is about: that of its first document."""
        return dialog.collection or self._collection_of.get(dialog.document_ids[0], self._corpus)

    def add(self, document: Document, passages: Sequence[Passage]) -> None:
        """Write the passages of a document; without any those that dialogs have of it, or else the whole document."""
        collection = document.collection or self._corpus
        if document.id in self._spans:
            self._collection_of[document.id] = collection
        for passage in passages or self._pieces(document):
            self._write(collection, passage)

    def add_missing(self, dialogs: Iterable[Dialog]) -> None:
        """Write the passages of dialogs that are still missing, and remove collections without a dialog."""
        used = set()
        for dialog in dialogs:
            used.add(collection := self.collection_of(dialog))
            self._file(collection)  # the tasks about it may all be unanswerable, without a passage
            for passage in dialog.passages:
                if (collection, passage.id) not in self._written:
                    self._write(collection, passage)
        for collection in self.names.keys() - used:
            shutil.rmtree(self._folder / self.names.pop(collection))

    def _pieces(self, document: Document) -> list[Passage]:
        spans = self._spans.get(document.id, {})
        if document.id in self._ids or not spans:
            # The documents of mtRAG and OR-QuAC are passages already.
            spans = {document.id: (0, len(document.text))}
        ordered = sorted(spans.items(), key=lambda item: (item[1], item[0]))
        return [cut_passage(document, start, end, name) for name, (start, end) in ordered]

    def _file(self, collection: str) -> TextIO:
        if collection not in self._files:
            self.names[collection] = _folder_name(collection, self.names.values())
            folder = self._folder / self.names[collection]
            folder.mkdir(parents=True)
            self._files[collection] = self.enter_context(_open_text(folder / "corpus.jsonl"))
        return self._files[collection]

    def _write(self, collection: str, passage: Passage) -> None:
        record = {"_id": passage.id, "title": passage.title, "text": passage.text, "url": passage.url or ""}
        self._file(collection).write(_json(record) + "\n")
        self.sizes[collection] += 1
        if passage.id in self._ids:
            self._written.add((collection, passage.id))


def _write_collections(
    source: ExportSource, folder: Path, documents: Iterable[tuple[Document, Sequence[Passage]]]
) -> _Collections:
    folder.mkdir()
    with _Collections(source.corpus, source.dialogs(), folder) as collections:
        for document, passages in documents:
            collections.add(document, passages)
        collections.add_missing(source.dialogs())
    return collections


class _RetrievalTask(ExitStack):
    """The retrieval task of a collection.

    Rewrites are written for all of its queries or for none: BEIR's loader needs a query for each of the qrels, and a
    question that depends on earlier turns is not a rewrite.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__()
        self.callback(self._check_rewrites)  # once the files are closed
        self._all = self._without = 0
        (folder / "qrels").mkdir()
        self._last, self._questions, self._rewrites, qrels = (
            self.enter_context(_open_text(folder / file))
            for file in (f"{name}_lastturn.jsonl", f"{name}_questions.jsonl", f"{name}_rewrite.jsonl", "qrels/dev.tsv")
        )
        self._qrels = csv.writer(qrels, delimiter="\t", lineterminator="\n")
        self._qrels.writerow(("query-id", "corpus-id", "score"))

    def _check_rewrites(self) -> None:
        if self._without:
            path = Path(self._rewrites.name)
            path.unlink()
            note(
                f"export=mtrag: {path.name} is not written, because {self._without} of {self._all} questions have no "
                "standalone form (docs/export.md)"
            )

    def add(self, dialog: Dialog, turn: Turn, rewritten: bool) -> None:
        """Add a turn if it is answerable or partial and has relevant passages."""
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
        contexts = [_context(dialog, turn, passage) for passage in _candidates(dialog, turn)]
        original = {"original_text": turn.original_answer} if turn.original_answer else {}
        messages.append({"speaker": "agent", "text": turn.answer, "contexts": contexts, **original})
    return {
        "author": dialog.lm,
        "retriever": {"collection": {"name": collection, "size": str(size)}},
        "generator": {"id": dialog.lm, "name": dialog.lm.rstrip("/").rpartition("/")[2]},
        "messages": messages,
        "status": "accepted",
    }


def _task(dialog: Dialog, turn: Turn, collection: str, passages: Sequence[Passage]) -> dict[str, Any]:
    contexts = [_context(dialog, turn, passage) for passage in passages]
    labels: dict[str, Any] = {"turn": turn.turn, **_labels(turn, [])}
    if dialog.ended == TASK:  # as MTRAG-UN writes them
        labels |= {"turn": str(turn.turn), "Multi-Turn": labels["Multi-Turn"] or [NO_LABEL]}
        labels["answerability"] = labels.pop("Answerability")
        if not any(context["score"] for context in contexts) and _cited(turn).issuperset(p.id for p in passages):
            contexts = [{k: v for k, v in c.items() if k not in ("score", "feedback")} for c in contexts]
    messages = [
        {"speaker": speaker, "text": text}
        for t in dialog.turns
        for speaker, text in (("user", t.query), ("agent", t.answer))
    ]
    return {
        "conversation_id": dialog.id,
        "task_id": format_turn_id(dialog.id, turn.turn),
        "task_type": "rag",
        "Collection": collection,
        "dataset": dialog.corpus,
        "contexts": contexts,
        "input": messages[: 2 * turn.turn - 1],
        "targets": [{"speaker": "agent", "text": text} for text in (turn.answer, *turn.other_answers)],
        **labels,
    }


def _labels(turn: Turn, of_first: list[str]) -> dict[str, list[str]]:
    """Return the three dimensions of a turn; `of_first` is the multi-turn type of a first turn."""
    # The later types of Lee et al. 2024 (`correction`) are multi-turn types; they don't describe the question.
    types = [name for name in turn.question_type.split("+") if name not in (UNLABELLED, turn.multi_turn_type)]
    later = turn.multi_turn_type.split("+") if turn.multi_turn_type else []
    return {
        "Question Type": [to_published_label(name) for name in types],
        "Multi-Turn": of_first if turn.turn == 1 else [to_published_label(name) for name in later],
        "Answerability": [turn.answerability.upper()],
    }


def _candidates(dialog: Dialog, turn: Turn, *before: Turn) -> Iterator[Passage]:
    """Yield the passages retrieved for a turn, then those that it cites from earlier turns, then those of `before`.

    In a dialog without retrieval these are all its passages.
    """
    if not any(t.hits for t in dialog.turns):
        yield from dialog.passages
        return
    by_id = {passage.id: passage for passage in dialog.passages}
    ids = [*(hit.passage_id for hit in turn.hits), *(evidence.passage_id for evidence in turn.evidence)]
    ids += [hit.passage_id for earlier in before for hit in earlier.hits]
    yield from (by_id[name] for name in dict.fromkeys(ids))


def _relevant(dialog: Dialog, turn: Turn) -> list[Passage]:
    return [passage for passage in _candidates(dialog, turn) if passage.id in _cited(turn)]


def _cited(turn: Turn) -> set[str]:
    return {evidence.passage_id for evidence in turn.evidence}


def _context(dialog: Dialog, turn: Turn, passage: Passage) -> dict[str, Any]:
    """Return a passage with the score of the last search that found it; 0 without one."""
    scores = [hit.score for t in dialog.turns[: turn.turn] for hit in t.hits if hit.passage_id == passage.id]
    return {
        "document_id": passage.id,
        "text": passage.text,
        **({"title": passage.title} if passage.title else {}),
        **({"url": passage.url} if passage.url else {}),
        "score": scores[-1] if scores else 0.0,
        "feedback": {"relevant": {dialog.lm: {"value": "yes" if passage.id in _cited(turn) else "no"}}},
    }


def _standalone(turn: Turn, rewritten: bool) -> str:
    """Return the standalone form of a question; empty if there is none."""
    if rewritten and turn.retrieval_query:
        return turn.retrieval_query
    alone = turn.turn == 1 or (turn.planned is not None and turn.planned.standalone is True)
    return turn.query if alone else ""


def _query(name: str, questions: Sequence[str]) -> str:
    """Return a line of a query file, byte for byte as the publisher writes it."""
    record = {"_id": name, "text": "\n".join(f"{SPEAKER} {question}" for question in questions)}
    return json.dumps(record, separators=(",", ":")).replace("/", "\\/") + "\n"


def _folder_name(collection: str, taken: Collection[str]) -> str:
    """Return the publisher's domain of a collection, or else its name as a portable file name."""
    try:
        name = domain_of(collection)
    except ValueError:
        name = collection
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).lstrip(".")[:80]
    if safe == name and name not in taken:
        return name
    return f"{safe}-{hashlib.sha256(collection.encode()).hexdigest()[:8]}"


def _open_text(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
