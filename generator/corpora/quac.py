"""QuAC (Choi et al. 2018): sections of Wikipedia articles and dialogs about them, as its authors publish v0.2."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from generator.common.passages import passage
from generator.corpora.base import located
from generator.corpora.files import File, files
from generator.corpora.human import dialog, span, turn
from generator.corpora.json_file import items, parsed
from generator.corpora.published import PublishedCorpus
from generator.schema import Dialog, Document, SkippedRecord

# The published files and their SHA-256, as in ParlAI (parlai/tasks/quac/build.py) and in Hugging Face's former
# datasets/quac/dataset_infos.json.
PUBLISHED = MappingProxyType(
    {
        "train": ("train_v0.2.json", "sha256:ff5cca5a2e4b4d1cb5b5ced68b9fce88394ef6d93117426d6d4baafbcc05c56a"),
        "validation": ("val_v0.2.json", "sha256:09e622916280ba04c9352acb1bc5bbe80f11a2598f6f34e934c51d9e6570f378"),
    }
)
# Ends every paragraph, so that "no answer" can be a span of the text like any other answer.
_NO_ANSWER = "CANNOTANSWER"


class _Article(BaseModel):
    title: str
    section_title: str = ""
    paragraphs: list[Any]


class _Paragraph(BaseModel):
    id: str
    context: str


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    question: str
    orig_answer: _Answer
    answers: list[_Answer] = []


class _Conversation(_Paragraph):
    qas: list[_Question]


class _Rewrite(BaseModel):
    """A record of CANARD (Elgohary et al. 2019)."""

    dialog: str = Field(validation_alias="QuAC_dialog_id")
    number: int = Field(validation_alias="Question_no")
    question: str = Field(validation_alias="Question")
    rewrite: str = Field(validation_alias="Rewrite")


class QuacCorpus(PublishedCorpus):
    """The sections that QuAC's dialogs are about, and the dialogs.

    QuAC repeats a section for each dialog about it. Here it is one document, with the id of the first of them: as
    several, its text would be retrieved as often, and could lie in `train` and in `validation`.

    Attributes:
        no_answer: what the agent of a human dialog says where QuAC has `CANNOTANSWER`.
        rewrites: a file of CANARD's, or a folder of them, which has QuAC's questions in a form that stands alone.
    """

    published = PUBLISHED
    beside_documents: ClassVar[frozenset[str]] = frozenset({"no_answer", "rewrites"})

    no_answer: str = Field(min_length=1)
    rewrites: str | None

    def read(self) -> Iterator[Document | SkippedRecord]:
        sections: set[int] = set()
        for found in super().read():
            if isinstance(found, Document):
                section = hash((found.title, found.text))
                if section in sections:
                    continue
                sections.add(section)
            yield found

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for where, title, item in _paragraphs(file):
            found = parsed(_Paragraph, where, item)
            yield found if isinstance(found, SkippedRecord) else _section(where, title, found)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        first: dict[int, str] = {}
        rewrites: dict[tuple[str, int], tuple[str, _Rewrite]] = {}
        for where, rewrite in self._rewritten():
            if isinstance(rewrite, SkippedRecord):
                yield rewrite
            else:
                rewrites[rewrite.dialog, rewrite.number] = where, rewrite
        for file in self.files():
            for where, title, item in _paragraphs(file):
                conversation = parsed(_Conversation, where, item)
                if isinstance(conversation, SkippedRecord):
                    yield conversation
                    continue
                section = _section(where, title, conversation)
                if isinstance(section, SkippedRecord):
                    yield section
                    continue
                name = first.setdefault(hash((section.title, section.text)), section.id)
                texts: dict[int, str] = {}
                for number, asked in enumerate(conversation.qas, start=1):
                    if (conversation.id, number) in rewrites:
                        place, rewrite = rewrites[conversation.id, number]
                        if rewrite.question.split() == asked.question.split():
                            texts[number] = rewrite.rewrite
                        else:
                            yield SkippedRecord(
                                where=place, reason=f"Question: isn't question {number} of {conversation.id}"
                            )
                yield self._dialog(where, conversation, section.model_copy(update={"id": name}), texts)

    def _rewritten(self) -> Iterator[tuple[str, _Rewrite | SkippedRecord]]:
        if self.rewrites is None:
            return
        for file in files(self.rewrites, ("train.json", "dev.json", "test.json"), setting="corpus.rewrites"):
            for where, item in items(file, "", "CANARD"):
                yield where, parsed(_Rewrite, where, item)

    def _dialog(
        self, where: str, conversation: _Conversation, section: Document, rewrites: Mapping[int, str]
    ) -> Dialog | SkippedRecord:
        """The dialog; `rewrites` are texts of its questions by their number from 1."""
        whole = passage(section, 0, len(section.text))
        turns = []
        for number, asked in enumerate(conversation.qas, start=1):
            said = asked.orig_answer
            answerable = said.text != _NO_ANSWER
            others = [other.text for other in asked.answers if other.text != said.text]
            turns.append(
                turn(
                    number,
                    asked.question,
                    said.text if answerable else self.no_answer,
                    "answerable" if answerable else "unanswerable",
                    other_answers=[self.no_answer if other == _NO_ANSWER else other for other in others],
                    rewrite=rewrites.get(number, ""),
                    evidence=span(whole, said.text, said.answer_start) if answerable else (),
                )
            )
        return dialog(where, self.name, conversation.id, "single", turns, [whole])


def _paragraphs(file: File) -> Iterator[tuple[str, str, Any]]:
    """Place, title and content of each paragraph; of an article that can't be read why it can't."""
    for place, article in items(file, "data", "QuAC"):
        found = parsed(_Article, place, article)
        if isinstance(found, SkippedRecord):
            yield place, "", found
            continue
        title = ": ".join(filter(None, (found.title, found.section_title)))
        for number, item in enumerate(found.paragraphs):
            yield f"{place}.paragraphs[{number}]", title, item


def _section(where: str, title: str, paragraph: _Paragraph) -> Document | SkippedRecord:
    return located(where, paragraph.id, paragraph.context.removesuffix(_NO_ANSWER).rstrip(), title)
