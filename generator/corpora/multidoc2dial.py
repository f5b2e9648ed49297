"""Read MultiDoc2Dial (Feng et al. 2021) and Doc2Dial (Feng et al. 2020): pages of four offices and dialogs about them.

Every published version is recognised by its shape: MultiDoc2Dial's, Doc2Dial's v0.9 and v1.0.1, and the test files of
the DialDoc21 shared task, which have neither references nor dialogue acts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from generator.common.passages import passage
from generator.corpora.base import make_document
from generator.corpora.files import File, list_files
from generator.corpora.human import human_dialog, human_turn
from generator.corpora.json_records import read_json, validate_record
from generator.corpora.published import PublishedCorpus
from generator.errors import CorpusError, MissingSplit
from generator.schema import Answerability, Dialog, Document, Evidence, OneOrMore, Passage, SkippedRecord

# The published archives and their SHA-256, as in Hugging Face's former dataset_infos.json of both.
PUBLISHED = {
    "multidoc2dial": (
        "multidoc2dial/file/multidoc2dial.zip",
        "sha256:a8051237dd3be50d81c06aca82ed5171716922e35f44bfa5b9c024f090903419",
    ),
    "doc2dial": ("file/doc2dial_v1.0.1.zip", "sha256:c764d86628431fc1e54819d687a36f1d00b7ee95b8db2b3a7454149673ca4c17"),
}
_DOCUMENTS, _DIALOGS = "doc_data", "dial_data"
# The word in a dialogue file's name that names its split; `testdev` is a part of the test set.
_SPLITS = (("test", "test"), ("train", "train"), ("validation", "validation"), ("dev", "validation"))
# `respond_no_solution`, and `respond/no_solution` in v0.9.
_NO_SOLUTION = "no_solution"
# The label of v0.9 for the heading above a span; later versions have no such references.
_HEADING = ["reference"]
_VERSION = re.compile(r"#\d+\Z")


class _Text(BaseModel):
    title: str = ""
    doc_text: str


class _Span(BaseModel):
    start_sp: int = Field(ge=0)
    end_sp: int


class _PageRecord(_Text):
    spans: dict[str, _Span]


class _Reference(BaseModel):
    span: str = Field(validation_alias=AliasChoices("id_sp", "sp_id"))
    labels: Annotated[frozenset[str], OneOrMore] = Field(validation_alias="label")
    doc_id: str | None = None


def _as_list(references: object) -> object:
    """Return v0.9's references, labels by span, in the form of later versions, a list of spans with labels."""
    if isinstance(references, dict):
        return [{"id_sp": span, "label": labels} for span, labels in references.items() if labels != _HEADING]
    return references


class _Utterance(BaseModel):
    role: Literal["user", "agent"]
    utterance: str
    da: str = ""
    references: Annotated[list[_Reference], BeforeValidator(_as_list)] = Field(
        default=[], validation_alias=AliasChoices("references", "reference")
    )


class _Dialogue(BaseModel):
    dial_id: str
    doc_id: str | None = None
    turns: list[_Utterance]


class _Page(NamedTuple):
    """A document that dialogs can refer to, and the places of its spans."""

    spans: Mapping[str, _Span]
    whole: Passage


class MultiDoc2DialCorpus(PublishedCorpus):
    """The pages that the dialogs are about, and the dialogs."""

    beside_documents: ClassVar[frozenset[str]] = frozenset({"split"})

    version: Literal["multidoc2dial", "doc2dial"] = Field(
        description="Data set to download: `multidoc2dial`, or `doc2dial` (v1.0.1)."
    )
    split: Literal["train", "validation", "test"] | None = Field(
        description="Split of the human dialogs, as the names of their files tell: `train`, or `validation` or `test`, "
        "which systems are tested on, so don't train on them; null: all. The documents are the same."
    )
    domain: Literal["dmv", "ssa", "studentaid", "va"] | None = Field(
        description="Domain to read: `dmv`, `ssa`, `studentaid` or `va`; null: all."
    )

    def files(self) -> list[File]:
        path = self.fetch(*PUBLISHED[self.version]) if self.path is None else self.path
        return list_files(path, (".json", ".json.gz"))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        kind, domains = _read_domains(file)
        if kind == _DOCUMENTS:
            for where, document_id, item in self._items(file, kind, domains):
                page = validate_record(_Text, where, item)
                yield page if isinstance(page, SkippedRecord) else _document(where, document_id, page)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        documents: dict[str, _Page | SkippedRecord] = {}
        dialog_files: list[File] = []
        for file in self.files():
            kind, domains = _read_domains(file)
            if kind == _DIALOGS:
                dialog_files.append(file)
                continue
            for where, document_id, item in self._items(file, kind, domains):
                documents[document_id] = _read_page(where, document_id, item)
        chosen = [file for file in dialog_files if self.split is None or _split(file) in (self.split, None)]
        if not chosen:
            names = ", ".join(PurePosixPath(file.name).name for file in dialog_files) or "only documents"
            missing = f"corpus.split={self.split}: no dialogue file of this split"
            missing = missing if self.split else f"corpus {self.name}: no dialogue file"
            raise MissingSplit(f"{missing}; found {names}; put the publisher's file into corpus.path")
        for file in chosen:
            kind, domains = _read_domains(file)
            for where, key, item in self._items(file, kind, domains):
                record = validate_record(_Dialogue, where, item)
                yield record if isinstance(record, SkippedRecord) else self._dialog(where, key, record, documents)

    def _items(self, file: File, kind: str, domains: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        """Yield place, document id and content of each document or dialog; the id is "" for MultiDoc2Dial's dialogs."""
        for domain, members in domains.items():
            if self.domain not in (None, domain):
                continue
            where = f"{file.where}: {domain}"
            if isinstance(members, list):
                yield from ((f"{where}[{number}]", "", item) for number, item in enumerate(members))
            elif kind == _DOCUMENTS:
                yield from ((f"{where}.{name}", name, item) for name, item in members.items())
            else:
                for name, dialogs in members.items():
                    for number, item in enumerate(dialogs if isinstance(dialogs, list) else [dialogs]):
                        yield f"{where}.{name}[{number}]", name, item

    def _dialog(
        self, where: str, key: str, record: _Dialogue, documents: Mapping[str, _Page | SkippedRecord]
    ) -> Dialog | SkippedRecord:
        """Return the dialog; `key` is the document that it is listed under in Doc2Dial."""
        # In v0.9 a dialog's own `doc_id` and its key can differ; one of them is the document's.
        own = record.doc_id if record.doc_id and record.doc_id in documents else key
        exchanges = _exchanges(record.turns)
        cited = [place for user, agent in exchanges for place in _cited(user + agent, own)]
        used: dict[str, _Page] = {}
        for name in dict.fromkeys([own] * bool(key) + [name for name, _ in cited]):
            document = documents.get(name)
            if document is None:
                return SkippedRecord(where=where, reason=f"its document {name!r} is missing")
            if isinstance(document, SkippedRecord):
                return SkippedRecord(where=where, reason=f"its document {name!r} can't be read: {document.reason}")
            used[name] = document
        for name, span in cited:
            if span not in used[name].spans:
                return SkippedRecord(where=where, reason=f"references: its document {name!r} has no span {span!r}")
        turns = []
        for number, (user, agent) in enumerate(exchanges, start=1):
            answerability = _answerability(agent)
            spans = _cited(agent, own) if answerability == "answerable" else []
            evidence = [
                sentence
                for name in dict.fromkeys(name for name, _ in spans)
                for sentence in _evidence(used[name], [span for place, span in spans if place == name])
            ]
            turns.append(human_turn(number, _join(user), _join(agent), answerability, evidence=evidence))
        passages = [document.whole for document in used.values()]
        return human_dialog(where, self.name, record.dial_id, "single" if key else "multi", turns, passages)


def _read_domains(file: File) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of a file, `_DOCUMENTS` or `_DIALOGS`, and its content by domain.

    Raises:
        CorpusError: it holds neither.
    """
    content = read_json(file)
    if isinstance(content, dict):
        kind = next((key for key in (_DOCUMENTS, _DIALOGS) if key in content), None)
        domains = content[kind] if kind else content  # a file of DialDoc21 can have the domains at its top
        shape = dict if kind == _DOCUMENTS or kind is None else (dict, list)
        if isinstance(domains, dict) and domains and all(isinstance(members, shape) for members in domains.values()):
            return kind or _DIALOGS, domains
    raise CorpusError(
        f"{file.where}: has neither {_DOCUMENTS} nor {_DIALOGS}, so it isn't MultiDoc2Dial's own format; "
        "give the publisher's files and no others"
    )


def _split(file: File) -> str | None:
    name = PurePosixPath(file.name).name.lower()
    return next((split for word, split in _SPLITS if word in name), None)


def _document(where: str, document_id: str, page: _Text) -> Document | SkippedRecord:
    return make_document(where, document_id, page.doc_text, _VERSION.sub("", page.title))


def _read_page(where: str, document_id: str, item: object) -> _Page | SkippedRecord:
    page = validate_record(_PageRecord, where, item)
    if isinstance(page, SkippedRecord):
        return page
    document = _document(where, document_id, page)
    if isinstance(document, SkippedRecord):
        return document
    return _Page(page.spans, passage(document, 0, len(document.text)))


def _exchanges(turns: Sequence[_Utterance]) -> list[tuple[list[_Utterance], list[_Utterance]]]:
    """Return the user's utterances in a row with the agent's after them, from the first user's to the last agent's."""
    runs = [(role, list(run)) for role, run in groupby(turns, key=lambda utterance: utterance.role)]
    if runs and runs[0][0] == "agent":
        runs = runs[1:]
    return [(user, agent) for (_, user), (_, agent) in zip(runs[::2], runs[1::2], strict=False)]


def _cited(utterances: Sequence[_Utterance], own: str) -> list[tuple[str, str]]:
    """Return the document and the span of each reference; one that names no document is to `own`."""
    return [(ref.doc_id or own, ref.span) for utterance in utterances for ref in utterance.references]


def _join(utterances: Sequence[_Utterance]) -> str:
    return " ".join(utterance.utterance.strip() for utterance in utterances)


def _answerability(agent: Sequence[_Utterance]) -> Answerability:
    unsolved = any(utterance.da.endswith(_NO_SOLUTION) for utterance in agent)
    solved = any("solution" in ref.labels for utterance in agent for ref in utterance.references)
    return "unanswerable" if unsolved and not solved else "answerable"


def _evidence(document: _Page, spans: Sequence[str]) -> Iterator[Evidence]:
    """Yield the spans in the order of the text, those that touch as one, without white space around them."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((document.spans[name].start_sp, document.spans[name].end_sp) for name in spans):
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    for start, end in merged:
        text = document.whole.text[start:end]
        start += len(text) - len(text.lstrip())
        if text := text.strip():
            yield Evidence(passage_id=document.whole.id, start=start, end=start + len(text), text=text)
