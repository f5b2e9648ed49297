"""Read CoQA (Reddy et al. 2019), as published in v1.0: stories from five sources and conversations about them."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from generator.common.passages import passage
from generator.corpora.base import make_document
from generator.corpora.files import File
from generator.corpora.human import find_evidence, human_dialog, human_turn
from generator.corpora.json_records import convert_records, read_json_list
from generator.corpora.published import SplitCorpus
from generator.schema import Dialog, Document, Operational, SkippedRecord

# The published files and their SHA-256, as in Hugging Face's former datasets/coqa/dataset_infos.json.
PUBLISHED = {
    "train": ("coqa-train-v1.0.json", "sha256:b0fdb2bc1bd38dd3ca2ce5fa2ac3e02c6288ac914f241ac409a655ffb6619fa6"),
    "validation": ("coqa-dev-v1.0.json", "sha256:dfa367a9733ce53222918d0231d9b3bedc2b8ee831a2845f62dfc70701f2540a"),
}
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


class CoqaCorpus(SplitCorpus):
    """The stories of CoQA, and the conversation about each."""

    published = PUBLISHED

    answers: Annotated[Literal["short", "rationale"], Operational] = Field(
        description="Answers of human dialogs: `short`, in the annotator's own words, or `rationale`, the span of the "
        "story behind them. Lee et al. 2024 compare with both (section 3)."
    )

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield from convert_records(read_json_list(file, "data", "CoQA"), _Story, _document)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        for file in self.files():
            yield from convert_records(read_json_list(file, "data", "CoQA"), _Conversation, self._dialog)

    def _dialog(self, where: str, record: _Conversation) -> Dialog | SkippedRecord:
        story = _document(where, record)
        if isinstance(story, SkippedRecord):
            return story
        whole = passage(story, 0, len(story.text))
        answers = {answer.turn_id: answer for answer in record.answers}
        others = [answer for answers in record.additional_answers.values() for answer in answers]
        turns = []
        for number, question in enumerate(sorted(record.questions, key=lambda question: question.turn_id), start=1):
            answer = answers.get(question.turn_id)
            if answer is None:
                return SkippedRecord(where=where, reason=f"answers: there is none with the turn_id {question.turn_id}")
            turns.append(
                human_turn(
                    number,
                    question.input_text,
                    self._text(answer),
                    "answerable" if answer.known else "unanswerable",
                    other_answers=[self._text(other) for other in others if other.turn_id == question.turn_id],
                    evidence=find_evidence(whole, answer.span_text, answer.span_start) if answer.known else (),
                )
            )
        return human_dialog(where, self.name, story.id, "single", turns, [whole])

    def _text(self, answer: _Answer) -> str:
        if not answer.known:
            return self.no_answer
        return answer.input_text if self.answers == "short" else answer.span_text.strip()


def _document(where: str, story: _Story) -> Document | SkippedRecord:
    # The file names of the other sources aren't titles: mc160.test.41, high2342.txt.
    title = PurePosixPath(story.filename).stem.replace("_", " ") if story.source == "wikipedia" else ""
    return make_document(where, story.id, story.story, title)
