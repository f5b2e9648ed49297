"""Read QuAC (Choi et al. 2018), as published in v0.2: sections of Wikipedia articles and dialogs about them."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated

from pydantic import BaseModel, Field

from generator.common.passages import passage
from generator.corpora.base import make_document
from generator.corpora.files import DataPath, File, list_files
from generator.corpora.human import find_evidence, human_dialog, human_turn
from generator.corpora.json_records import convert_records, read_json_list, validate_record
from generator.corpora.published import SplitCorpus
from generator.corpora.squad import Answer, read_paragraphs
from generator.schema import Dialog, Document, Operational, SkippedRecord

# The published files and their SHA-256, as in ParlAI (parlai/tasks/quac/build.py) and in Hugging Face's former
# datasets/quac/dataset_infos.json.
PUBLISHED = {
    "train": ("train_v0.2.json", "sha256:ff5cca5a2e4b4d1cb5b5ced68b9fce88394ef6d93117426d6d4baafbcc05c56a"),
    "validation": ("val_v0.2.json", "sha256:09e622916280ba04c9352acb1bc5bbe80f11a2598f6f34e934c51d9e6570f378"),
}
# Ends every paragraph, so that "no answer" can be a span of the text like any other answer.
_NO_ANSWER = "CANNOTANSWER"


class _Section(BaseModel):
    title: str
    section_title: str
    id: str
    context: str


class _Question(BaseModel):
    question: str
    orig_answer: Answer
    answers: list[Answer] = []


class _Conversation(_Section):
    qas: list[_Question]


class _Rewrite(BaseModel):
    """A record of CANARD (Elgohary et al. 2019)."""

    dialog: str = Field(validation_alias="QuAC_dialog_id")
    number: int = Field(validation_alias="Question_no")
    question: str = Field(validation_alias="Question")
    rewrite: str = Field(validation_alias="Rewrite")


class QuacCorpus(SplitCorpus):
    """The sections that QuAC's dialogs are about, and the dialogs.

    QuAC repeats a section for each dialog about it. Here it is one document, with the id of the first of them: as
    several, its text would be retrieved as often, and could lie in `train` and in `validation`.
    """

    published = PUBLISHED

    rewrites: Annotated[DataPath | None, Operational] = Field(
        description="File or folder of CANARD (train.json, dev.json, test.json), whose standalone questions become the "
        "`retrieval_query` of human dialogs; null: none."
    )

    def read(self) -> Iterator[Document | SkippedRecord]:
        seen: set[int] = set()
        for record in super().read():
            if isinstance(record, Document):
                section = hash((record.title, record.text))
                if section in seen:
                    continue
                seen.add(section)
            yield record

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield from convert_records(read_paragraphs(file, "QuAC"), _Section, _document)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        first_ids: dict[int, str] = {}
        rewrites: dict[tuple[str, int], tuple[str, _Rewrite]] = {}
        for where, rewrite in self._rewrites():
            if isinstance(rewrite, SkippedRecord):
                yield rewrite
            else:
                rewrites[rewrite.dialog, rewrite.number] = where, rewrite
        make = partial(self._dialog, first_ids, rewrites)
        for file in self.files():
            for found in convert_records(read_paragraphs(file, "QuAC"), _Conversation, make):
                yield from [found] if isinstance(found, SkippedRecord) else found

    def _rewrites(self) -> Iterator[tuple[str, _Rewrite | SkippedRecord]]:
        if self.rewrites is None:
            return
        for file in list_files(self.rewrites, ("train.json", "dev.json", "test.json"), setting="corpus.rewrites"):
            for where, item in read_json_list(file, "", "CANARD"):
                yield where, validate_record(_Rewrite, where, item)

    def _dialog(
        self,
        first_ids: dict[int, str],
        rewrites: Mapping[tuple[str, int], tuple[str, _Rewrite]],
        where: str,
        record: _Conversation,
    ) -> Iterator[Dialog | SkippedRecord]:
        """Yield the dialog, after the rewrites that aren't of its questions; `first_ids` are those of the sections."""
        section = _document(where, record)
        if isinstance(section, SkippedRecord):
            yield section
            return
        first_id = first_ids.setdefault(hash((section.title, section.text)), section.id)
        whole = passage(section.model_copy(update={"id": first_id}), 0, len(section.text))
        turns = []
        for number, question in enumerate(record.qas, start=1):
            answer = question.orig_answer
            answerable = answer.text != _NO_ANSWER
            others = [other.text for other in question.answers]
            place, rewrite = rewrites.get((record.id, number), ("", None))
            if rewrite and rewrite.question.split() != question.question.split():
                yield SkippedRecord(where=place, reason=f"Question: isn't question {number} of {record.id}")
                rewrite = None
            turns.append(
                human_turn(
                    number,
                    question.question,
                    answer.text if answerable else self.no_answer,
                    "answerable" if answerable else "unanswerable",
                    other_answers=[self.no_answer if other == _NO_ANSWER else other for other in others],
                    rewrite=rewrite.rewrite if rewrite else "",
                    evidence=find_evidence(whole, answer.text, answer.answer_start) if answerable else (),
                )
            )
        yield human_dialog(where, self.name, record.id, "single", turns, [whole])


def _document(where: str, record: _Section) -> Document | SkippedRecord:
    title = ": ".join(filter(None, (record.title, record.section_title)))
    return make_document(where, record.id, record.context.removesuffix(_NO_ANSWER).rstrip(), title)
