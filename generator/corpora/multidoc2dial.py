"""MultiDoc2Dial (Feng et al. 2021) and Doc2Dial (Feng et al. 2020): pages of four offices and dialogs about them.

Every published version is told by its shape: MultiDoc2Dial's, Doc2Dial's v0.9 and v1.0.1, and the test files of the
DialDoc21 shared task, which have neither references nor dialogue acts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from generator.common.passages import passage
from generator.corpora.base import located
from generator.corpora.fetching import fetched
from generator.corpora.files import File, files
from generator.corpora.human import DialogCorpus, dialog, turn
from generator.corpora.json_file import parsed, whole
from generator.errors import CorpusError
from generator.schema import Address, Answerability, Dialog, Document, Evidence, OneOrMore, Passage, SkippedRecord

# The published archives and their SHA-256, as in Hugging Face's former dataset_infos.json of both.
PUBLISHED = MappingProxyType(
    {
        "multidoc2dial": (
            "multidoc2dial/file/multidoc2dial.zip",
            "sha256:a8051237dd3be50d81c06aca82ed5171716922e35f44bfa5b9c024f090903419",
        ),
        "doc2dial": (
            "file/doc2dial_v1.0.1.zip",
            "sha256:c764d86628431fc1e54819d687a36f1d00b7ee95b8db2b3a7454149673ca4c17",
        ),
    }
)
_DOCUMENTS, _DIALOGS = "doc_data", "dial_data"
# What a dialogue file's name says about its split; `testdev` is a part of the test set.
_SPLITS = (("test", "test"), ("train", "train"), ("validation", "validation"), ("dev", "validation"))
# `respond_no_solution`, and `respond/no_solution` in v0.9.
_NO_SOLUTION = "no_solution"
# v0.9 refers by this label to the heading above a span, too; later versions don't.
_HEADING = ["reference"]
_VERSION = re.compile(r"#\d+\Z")


class _Text(BaseModel):
    title: str = ""
    doc_text: str


class _Span(BaseModel):
    start_sp: int = Field(ge=0)
    end_sp: int


class _Page(_Text):
    spans: dict[str, _Span]


class _Reference(BaseModel):
    span: str = Field(validation_alias=AliasChoices("id_sp", "sp_id"))
    labels: Annotated[frozenset[str], OneOrMore] = Field(validation_alias="label")
    doc_id: str | None = None


def _listed(references: object) -> object:
    """v0.9's references, labels by span, as the list of spans with labels that they are in later versions."""
    if isinstance(references, dict):
        return [{"id_sp": span, "label": labels} for span, labels in references.items() if labels != _HEADING]
    return references


class _Utterance(BaseModel):
    role: Literal["user", "agent"]
    utterance: str
    da: str = ""
    references: Annotated[list[_Reference], BeforeValidator(_listed)] = Field(
        default=[], validation_alias=AliasChoices("references", "reference")
    )


class _Dialogue(BaseModel):
    dial_id: str
    doc_id: str | None = None
    turns: list[_Utterance]


class _Known(NamedTuple):
    """A document that dialogs can refer to: where its spans are, and all of it."""

    spans: Mapping[str, _Span]
    whole: Passage


class MultiDoc2DialCorpus(DialogCorpus):
    """The pages that the dialogs are about, and the dialogs.

    Attributes:
        path: a folder or a zip archive with the files of one version, as published; None: `version` is fetched.
        version: what is fetched; `doc2dial` is v1.0.1.
        split: of which dialogue files dialogs are read, as their names say; None: of all. Documents are not split.
            `validation` and `test` are what systems are tested on: training on them spoils that test.
        domain: whose pages and dialogs are read; None: all.
        cache_dir: keeps what was fetched.
        base_url: where the archives are published.
    """

    beside_documents: ClassVar[frozenset[str]] = frozenset({"split"})

    path: str | None
    version: Literal["multidoc2dial", "doc2dial"]
    split: Literal["train", "validation", "test"] | None
    domain: Literal["dmv", "ssa", "studentaid", "va"] | None
    cache_dir: str = Field(min_length=1)
    base_url: Address

    def files(self) -> list[File]:
        path = self.path
        if path is None:
            path = fetched(self.base_url, *PUBLISHED[self.version], self.cache_dir)
        return files(path, (".json", ".json.gz"))

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        kind, domains = _content(file)
        if kind == _DOCUMENTS:
            for where, name, item in self._items(file, kind, domains):
                found = parsed(_Text, where, item)
                yield found if isinstance(found, SkippedRecord) else _document(where, name, found)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        documents: dict[str, _Known | SkippedRecord] = {}
        told: list[File] = []
        for file in self.files():
            kind, domains = _content(file)
            if kind == _DIALOGS:
                told.append(file)
                continue
            for where, name, item in self._items(file, kind, domains):
                documents[name] = _known(where, name, item)
        chosen = [file for file in told if self.split is None or _split(file) in (self.split, None)]
        if not chosen:
            names = ", ".join(PurePosixPath(file.name).name for file in told) or "no dialogue file at all"
            raise CorpusError(f"corpus.split={self.split}: no dialogue file is of this split; found {names}")
        for file in chosen:
            kind, domains = _content(file)
            for where, key, item in self._items(file, kind, domains):
                found = parsed(_Dialogue, where, item)
                yield found if isinstance(found, SkippedRecord) else self._dialog(where, key, found, documents)

    def _items(self, file: File, kind: str, domains: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        """Place, document id and content of each document or dialog; MultiDoc2Dial's dialogs have "" as the id."""
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
        self, where: str, key: str, told: _Dialogue, documents: Mapping[str, _Known | SkippedRecord]
    ) -> Dialog | SkippedRecord:
        """The dialog `told`; `key` is the document that it is listed under, if it is Doc2Dial's."""
        # In v0.9 a dialog's own `doc_id` and its key can differ; the document goes by one of them.
        own = told.doc_id if told.doc_id and told.doc_id in documents else key
        exchanges = _exchanges(told.turns)
        cited = [place for asked, answered in exchanges for place in _cited(asked + answered, own)]
        used: dict[str, _Known] = {}
        for name in dict.fromkeys([own] * bool(key) + [name for name, _ in cited]):
            known = documents.get(name)
            if known is None:
                return SkippedRecord(where=where, reason=f"its document {name!r} isn't at hand")
            if isinstance(known, SkippedRecord):
                return SkippedRecord(where=where, reason=f"its document {name!r} can't be read: {known.reason}")
            used[name] = known
        for name, span in cited:
            if span not in used[name].spans:
                return SkippedRecord(where=where, reason=f"references: its document {name!r} has no span {span!r}")
        turns = []
        for number, (asked, answered) in enumerate(exchanges, start=1):
            answerability = _answerability(answered)
            spans = _cited(answered, own) if answerability == "answerable" else []
            evidence = [
                found
                for name in dict.fromkeys(name for name, _ in spans)
                for found in _evidence(used[name], [span for place, span in spans if place == name])
            ]
            turns.append(turn(number, _joined(asked), _joined(answered), answerability, evidence=evidence))
        passages = [known.whole for known in used.values()]
        return dialog(where, self.name, told.dial_id, "single" if key else "multi", turns, passages)


def _content(file: File) -> tuple[str, Mapping[str, Any]]:
    """What a file holds, `_DOCUMENTS` or `_DIALOGS`, and that by domain.

    Raises:
        CorpusError: it holds neither.
    """
    content = whole(file)
    if isinstance(content, dict):
        kind = next((key for key in (_DOCUMENTS, _DIALOGS) if key in content), None)
        domains = content[kind] if kind else content  # a file of DialDoc21 can have the domains at its top
        shape = dict if kind == _DOCUMENTS or kind is None else (dict, list)
        if isinstance(domains, dict) and domains and all(isinstance(members, shape) for members in domains.values()):
            return kind or _DIALOGS, domains
    raise CorpusError(f"{file.where}: it holds neither {_DOCUMENTS} nor {_DIALOGS}, as MultiDoc2Dial's own files do")


def _split(file: File) -> str | None:
    name = PurePosixPath(file.name).name.lower()
    return next((split for word, split in _SPLITS if word in name), None)


def _document(where: str, name: str, page: _Text) -> Document | SkippedRecord:
    return located(where, name, page.doc_text, _VERSION.sub("", page.title))


def _known(where: str, name: str, item: object) -> _Known | SkippedRecord:
    page = parsed(_Page, where, item)
    if isinstance(page, SkippedRecord):
        return page
    document = _document(where, name, page)
    if isinstance(document, SkippedRecord):
        return document
    return _Known(page.spans, passage(document, 0, len(document.text)))


def _exchanges(turns: Sequence[_Utterance]) -> list[tuple[list[_Utterance], list[_Utterance]]]:
    """What the user said in a row and what the agent then said, from the user's first word to the agent's last."""
    runs = [(role, list(run)) for role, run in groupby(turns, key=lambda said: said.role)]
    if runs and runs[0][0] == "agent":
        runs = runs[1:]
    return [(asked, answered) for (_, asked), (_, answered) in zip(runs[::2], runs[1::2], strict=False)]


def _cited(utterances: Sequence[_Utterance], own: str) -> list[tuple[str, str]]:
    """The document and the span of each reference; one that names no document is to `own`."""
    return [(ref.doc_id or own, ref.span) for said in utterances for ref in said.references]


def _joined(utterances: Sequence[_Utterance]) -> str:
    return " ".join(said.utterance.strip() for said in utterances)


def _answerability(answered: Sequence[_Utterance]) -> Answerability:
    nothing = any(said.da.endswith(_NO_SOLUTION) for said in answered)
    solved = any("solution" in ref.labels for said in answered for ref in said.references)
    return "unanswerable" if nothing and not solved else "answerable"


def _evidence(known: _Known, spans: Sequence[str]) -> Iterator[Evidence]:
    """The text of the spans in its order, those that touch as one, without white space around it."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((known.spans[name].start_sp, known.spans[name].end_sp) for name in spans):
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    for start, end in merged:
        text = known.whole.text[start:end]
        start += len(text) - len(text.lstrip())
        if text := text.strip():
            yield Evidence(passage_id=known.whole.id, start=start, end=start + len(text), text=text)
