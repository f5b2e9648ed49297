"""Read SQuAD (Rajpurkar et al. 2016, 2018), as published in v1.1 and v2.0: paragraphs of Wikipedia and questions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic import BaseModel

from generator.common.passages import passage
from generator.corpora.base import make_document
from generator.corpora.files import File
from generator.corpora.human import find_evidence, human_dialog, human_turn
from generator.corpora.json_records import convert_records, read_json_list, validate_record
from generator.corpora.published import SplitCorpus
from generator.schema import Dialog, Document, Passage, SkippedRecord

# The published files of v2.0 and their SHA-256, as in Hugging Face's former datasets/squad_v2/dataset_infos.json.
PUBLISHED = {
    "train": ("train-v2.0.json", "sha256:68dcfbb971bd3e96d5b46c7177b16c1a4e7d4bdef19fb204502738552dede002"),
    "validation": ("dev-v2.0.json", "sha256:80a5225e94905956a6446d296ca1093975c4d3b3260f1d6c8f68bc2ab77182d8"),
}


class Answer(BaseModel):
    text: str
    answer_start: int


class _Article(BaseModel):
    title: str
    section_title: str = ""  # of QuAC
    paragraphs: list[Any]


class _Context(BaseModel):
    title: str
    number: int
    context: str


class _Questions(_Context):
    qas: list[Any]


class _Question(BaseModel):
    id: str
    question: str
    answers: list[Answer]
    is_impossible: bool = False  # v1.1 has answerable questions only
    orig_answer: None = None  # of QuAC, whose layout is otherwise this one


class SquadCorpus(SplitCorpus):
    """The paragraphs of SQuAD; each question about one is a dialog of one turn.

    A paragraph's id is its article's title and its number in there, from 0: `Normans:3`.
    """

    published = PUBLISHED

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield from convert_records(read_paragraphs(file, "SQuAD"), _Context, _document)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        for file in self.files():
            for found in convert_records(read_paragraphs(file, "SQuAD"), _Questions, self._paragraph):
                yield from [found] if isinstance(found, SkippedRecord) else found

    def _paragraph(self, where: str, record: _Questions) -> Iterator[Dialog | SkippedRecord] | SkippedRecord:
        document = _document(where, record)
        if isinstance(document, SkippedRecord):
            return document
        items = ((f"{where}.qas[{number}]", item) for number, item in enumerate(record.qas))
        return convert_records(items, _Question, partial(self._dialog, passage(document, 0, len(document.text))))

    def _dialog(self, whole: Passage, where: str, record: _Question) -> Dialog | SkippedRecord:
        if record.is_impossible:
            turn = human_turn(1, record.question, self.no_answer, "unanswerable")
        elif record.answers:
            first, *others = record.answers
            turn = human_turn(
                1,
                record.question,
                first.text,
                other_answers=[other.text for other in others],
                evidence=find_evidence(whole, first.text, first.answer_start),
            )
        else:
            return SkippedRecord(where=where, reason="answers: there is none, and is_impossible isn't true")
        return human_dialog(where, self.name, record.id, "single", [turn], [whole])


def read_paragraphs(file: File, format_name: str) -> Iterator[tuple[str, Any]]:
    """Yield place and content of each paragraph of a file in the layout of SQuAD, which QuAC has too.

    The content comes with `title` and `section_title` of its article, and with its `number` in there, from 0.
    """
    for place, item in read_json_list(file, "data", format_name):
        article = validate_record(_Article, place, item)
        if isinstance(article, SkippedRecord):
            yield place, article
            continue
        for number, content in enumerate(article.paragraphs):
            own = {"title": article.title, "section_title": article.section_title, "number": number}
            yield f"{place}.paragraphs[{number}]", content | own if isinstance(content, dict) else content


def _document(where: str, record: _Context) -> Document | SkippedRecord:
    return make_document(where, f"{record.title}:{record.number}", record.context, record.title.replace("_", " "))
