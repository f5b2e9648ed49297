"""SQuAD (Rajpurkar et al. 2016, 2018): paragraphs of Wikipedia articles and questions, as published; v1.1 and v2.0."""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from generator.common.passages import passage
from generator.corpora.base import located
from generator.corpora.files import File
from generator.corpora.human import dialog, span, turn
from generator.corpora.json_file import items, parsed
from generator.corpora.published import PublishedCorpus
from generator.schema import Dialog, Document, Passage, SkippedRecord

# The published files of v2.0 and their SHA-256, as in Hugging Face's former datasets/squad_v2/dataset_infos.json.
PUBLISHED = MappingProxyType(
    {
        "train": ("train-v2.0.json", "sha256:68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002"),
        "validation": ("dev-v2.0.json", "sha256:80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8"),
    }
)


class _Article(BaseModel):
    title: str
    paragraphs: list[Any]


class _Paragraph(BaseModel):
    context: str


class _Asked(_Paragraph):
    qas: list[Any]


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    id: str
    question: str
    answers: list[_Answer]
    is_impossible: bool = False  # v1.1 has only what can be answered
    orig_answer: None = None  # QuAC's layout is this one, but for what it says of its answers


class SquadCorpus(PublishedCorpus):
    """The paragraphs of SQuAD; each question about one is a dialog of one turn.

    A paragraph's id is its article's title and its place in there, from 0: `Normans:3`.

    Attributes:
        no_answer: what the agent of a human dialog says to a question that can't be answered.
    """

    published = PUBLISHED
    beside_documents: ClassVar[frozenset[str]] = frozenset({"no_answer"})

    no_answer: str = Field(min_length=1)

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for where, title, number, item in _paragraphs(file):
            found = parsed(_Paragraph, where, item)
            yield found if isinstance(found, SkippedRecord) else _document(where, title, number, found)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        for file in self.files():
            for where, title, number, item in _paragraphs(file):
                found = parsed(_Asked, where, item)
                if isinstance(found, SkippedRecord):
                    yield found
                    continue
                document = _document(where, title, number, found)
                if isinstance(document, SkippedRecord):
                    yield document
                    continue
                whole = passage(document, 0, len(document.text))
                for place, question in enumerate(found.qas):
                    yield self._dialog(f"{where}.qas[{place}]", question, whole)

    def _dialog(self, where: str, item: object, whole: Passage) -> Dialog | SkippedRecord:
        asked = parsed(_Question, where, item)
        if isinstance(asked, SkippedRecord):
            return asked
        if asked.is_impossible:
            turns = [turn(1, asked.question, self.no_answer, "unanswerable")]
        elif asked.answers:
            first, *others = asked.answers
            evidence = span(whole, first.text, first.answer_start)
            other_answers = [other.text for other in others]
            turns = [turn(1, asked.question, first.text, other_answers=other_answers, evidence=evidence)]
        else:
            return SkippedRecord(where=where, reason="answers: there is none, and is_impossible isn't true")
        return dialog(where, self.name, asked.id, "single", turns, [whole])


def _paragraphs(file: File) -> Iterator[tuple[str, str, int, Any]]:
    """Place, title, number and content of each paragraph; of an article that can't be read why it can't."""
    for place, article in items(file, "data", "SQuAD"):
        found = parsed(_Article, place, article)
        if isinstance(found, SkippedRecord):
            yield place, "", 0, found
            continue
        for number, item in enumerate(found.paragraphs):
            yield f"{place}.paragraphs[{number}]", found.title, number, item


def _document(where: str, title: str, number: int, paragraph: _Paragraph) -> Document | SkippedRecord:
    return located(where, f"{title}:{number}", paragraph.context, title.replace("_", " "))
