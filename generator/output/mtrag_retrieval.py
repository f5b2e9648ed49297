"""The retrieval tasks of mtRAG (Katsis et al. 2025): a folder for each collection, in BEIR's format.

<name>/<name>_lastturn.jsonl        queries of the turns with relevant passages, in three forms
<name>/<name>_questions.jsonl
<name>/<name>_rewrite.jsonl
<name>/qrels/dev.tsv
<name>/corpus.jsonl                 the passages of the collection
"""

import csv
import hashlib
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from generator.common.console import note
from generator.common.passages import passage as cut_passage
from generator.corpora.mtrag.names import SPEAKER, domain_of, format_turn_id
from generator.errors import ExportError
from generator.output.base import ExportSource, open_text, to_json
from generator.schema import Dialog, Document, Evidence, Passage, Turn


class Collections(ExitStack):
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
        # By document, the sentences of its evidence, with their offsets; hashes of the texts of the cited passages.
        self._sentences: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
        self._texts: set[int] = set()
        # Ids of the passages that hold one of these, by collection and sentence or hash.
        self._holders: defaultdict[tuple[str | int, ...], list[str]] = defaultdict(list)
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
            for sentence, passage in _evidence(dialog, *dialog.turns):
                self._sentences[passage.document_id].add((passage.start + sentence.start, sentence.text))
                self._texts.add(hash(passage.text_key))
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

    def relevant(self, dialog: Dialog, turn: Turn) -> dict[str, None]:
        """Return the ids of the passages that hold a sentence of a turn's evidence, the order that of the evidence.

        Passages of a document overlap, so a sentence may be in two; documents have copies.
        """
        collection = self.collection_of(dialog)
        names = list[str]()
        for sentence, passage in _evidence(dialog, turn):
            place = passage.document_id, passage.start + sentence.start, sentence.text
            for key in (place, (hash(passage.text_key),)):
                names += self._holders.get((collection, *key), ())
        return dict.fromkeys(names)

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
            self._files[collection] = self.enter_context(open_text(folder / "corpus.jsonl"))
        return self._files[collection]

    def _write(self, collection: str, passage: Passage) -> None:
        record = {"_id": passage.id, "title": passage.title, "text": passage.text, "url": passage.url or ""}
        self._file(collection).write(to_json(record) + "\n")
        self.sizes[collection] += 1
        for start, text in self._sentences.get(passage.document_id, ()):
            if start >= passage.start and passage.text.startswith(text, start - passage.start):
                self._holders[collection, passage.document_id, start, text].append(passage.id)
        if (key := hash(passage.text_key)) in self._texts:
            self._holders[collection, key].append(passage.id)
        if passage.id in self._ids:
            self._written.add((collection, passage.id))


def _evidence(dialog: Dialog, *turns: Turn) -> Iterator[tuple[Evidence, Passage]]:
    """Yield the evidence of turns, each sentence with the passage that it was taken from."""
    by_id = {passage.id: passage for passage in dialog.passages}
    return ((sentence, by_id[sentence.passage_id]) for turn in turns for sentence in turn.evidence)


def write_collections(
    source: ExportSource, folder: Path, documents: Iterable[tuple[Document, Sequence[Passage]]]
) -> Collections:
    """Return the collections that the dialogs are about, written into a new folder.

    Args:
        documents: each with its passages; without any it is searched as a whole.

    Raises:
        CorpusError: the documents can't be read.
        ExportError: a dialog rests on no document.
    """
    folder.mkdir()
    with Collections(source.corpus, source.dialogs(), folder) as collections:
        for document, passages in documents:
            collections.add(document, passages)
        collections.add_missing(source.dialogs())
    return collections


class RetrievalTask(ExitStack):
    """The queries of a collection, and the passages that are relevant to them.

    Rewrites are written for all of its queries or for none: BEIR's loader needs a query for each of the qrels, and a
    question that depends on earlier turns is not a rewrite.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__()
        self.callback(self._check_rewrites)  # once the files are closed
        self._all = self._without = 0
        (folder / "qrels").mkdir()
        self._last, self._questions, self._rewrites, qrels = (
            self.enter_context(open_text(folder / file))
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

    def add(self, dialog: Dialog, turn: Turn, relevant: Collection[str], rewritten: bool) -> None:
        """Add a turn if it is answerable or partial and has relevant passages.

        Args:
            relevant: their ids.
            rewritten: its `retrieval_query` is a standalone form of its question.
        """
        if not relevant or turn.answerability not in ("answerable", "partial"):
            return
        name = format_turn_id(dialog.id, turn.turn)
        self._last.write(_query(name, [turn.query]))
        self._questions.write(_query(name, [t.query for t in dialog.turns[: turn.turn]]))
        alone = _standalone(turn, rewritten)
        self._all += 1
        self._without += not alone
        self._rewrites.write(_query(name, [alone]))
        self._qrels.writerows((name, passage, 1) for passage in relevant)


def _standalone(turn: Turn, rewritten: bool) -> str:
    """Return the standalone form of a question; empty if there is none."""
    if rewritten and turn.retrieval_query:
        return turn.meant if turn.retrieval_query == turn.query else turn.retrieval_query
    alone = turn.turn == 1 or (turn.planned is not None and turn.planned.standalone is True)
    return turn.meant if alone else ""


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
