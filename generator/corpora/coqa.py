"""CoQA (Reddy et al. 2019): stories from five sources and conversations about them, as its authors publish v1.0."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from generator.common.passages import passage
from generator.corpora.base import located
from generator.corpora.files import File
from generator.corpora.human import dialog, span, turn
from generator.corpora.json_file import items, parsed
from generator.corpora.published import PublishedCorpus
from generator.schema import Dialog, Document, SkippedRecord

# The published files and their SHA-256, as in Hugging Face's former datasets/coqa/dataset_infos.json.
PUBLISHED = MappingProxyType(
    {
        "train": ("coqa-train-v1.0.json", "sha256:b0fdb2bc1bd38dd3ca2ce5fa2ac3e02c6288ac914f241ac409a655ffb6619fa6"),
        "validation": ("coqa-dev-v1.0.json", "sha256:dfa367a9733ce53222918d0231d9b3bedc2b8ee831a2845f62dfc70701f2540a"),
    }
)
_UNKNOWN = "unknown"


class _Story(BaseModel):
    id: str
    source: str = ""
    filename: str = ""
    story: str


class _Question(BaseModel):
    turn_id: int
    input_text: str


class _Answer(BaseModel):
    turn_id: int
    input_text: str
    span_text: str
    span_start: int

    @property
    def known(self) -> bool:
        return self.span_start >= 0 and self.input_text.strip().lower() != _UNKNOWN


class _Conversation(_Story):
    questions: list[_Question]
    answers: list[_Answer]
    additional_answers: dict[str, list[_Answer]] = {}


class CoqaCorpus(PublishedCorpus):
    """The stories of CoQA, and the conversation about each.

    Attributes:
        answers: what the agent of a human dialog says: the answer that people gave in their own words (`short`), or
            the piece of the story that they gave it for. Lee et al. 2024 compare with both (section 3).
        no_answer: what it says where CoQA has `unknown`.
    """

    published = PUBLISHED
    beside_documents: ClassVar[frozenset[str]] = frozenset({"answers", "no_answer"})

    answers: Literal["short", "rationale"]
    no_answer: str = Field(min_length=1)

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for where, item in items(file, "data", "CoQA"):
            found = parsed(_Story, where, item)
            yield found if isinstance(found, SkippedRecord) else _document(where, found)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        for file in self.files():
            for where, item in items(file, "data", "CoQA"):
                found = parsed(_Conversation, where, item)
                yield found if isinstance(found, SkippedRecord) else self._dialog(where, found)

    def _dialog(self, where: str, conversation: _Conversation) -> Dialog | SkippedRecord:
        story = _document(where, conversation)
        if isinstance(story, SkippedRecord):
            return story
        whole = passage(story, 0, len(story.text))
        answers = {answer.turn_id: answer for answer in conversation.answers}
        others = [answer for several in conversation.additional_answers.values() for answer in several]
        turns = []
        for number, asked in enumerate(sorted(conversation.questions, key=lambda asked: asked.turn_id), start=1):
            answer = answers.get(asked.turn_id)
            if answer is None:
                return SkippedRecord(where=where, reason=f"answers: there is none with the turn_id {asked.turn_id}")
            turns.append(
                turn(
                    number,
                    asked.input_text,
                    self._said(answer),
                    "answerable" if answer.known else "unanswerable",
                    other_answers=[self._said(other) for other in others if other.turn_id == asked.turn_id],
                    evidence=span(whole, answer.span_text, answer.span_start) if answer.known else (),
                )
            )
        return dialog(where, self.name, story.id, "single", turns, [whole])

    def _said(self, answer: _Answer) -> str:
        if not answer.known:
            return self.no_answer
        return answer.input_text if self.answers == "short" else answer.span_text.strip()


def _document(where: str, story: _Story) -> Document | SkippedRecord:
    # Of the other sources, a file's name says nothing about the story: mc160.test.41, high2342.txt.
    title = PurePosixPath(story.filename).stem.replace("_", " ") if story.source == "wikipedia" else ""
    return located(where, story.id, story.story, title)
