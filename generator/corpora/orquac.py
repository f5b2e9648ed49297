"""Read OR-QuAC (Qu et al. 2020): QuAC's dialogs with rewritten questions, on eleven million passages of Wikipedia."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from generator.corpora.base import make_document
from generator.corpora.files import File, list_files, local_file
from generator.corpora.human import find_evidence, human_dialog, human_turn
from generator.corpora.json_records import convert_records, read_json, read_json_lines, validate_record
from generator.corpora.published import PublishedCorpus
from generator.errors import CorpusError, MissingSplit
from generator.schema import Dialog, Document, Evidence, Hit, Operational, Passage, SkippedRecord, Turn

# Where below `base_url` the files are, and their MD5.
_COLLECTION = ("all_blocks.txt.gz", "md5:1095a3408690e7bbe4d8a87a2bae6356")
_QRELS = "qrels.txt.gz"
PUBLISHED = {
    "train": ("preprocessed/train.txt", "md5:7513a9ef12d8b7a4471166dc4fef77b7"),
    "validation": ("preprocessed/dev.txt", "md5:7765658995cc9ffd5eb39a400d814b20"),
    "test": ("preprocessed/test.txt", "md5:0cf3a755f06297b9c02e7db45f8dc8be"),
}
_NO_ANSWER = "CANNOTANSWER"

_Text = Annotated[str, Field(pattern=r"\S")]
_Qrels = TypeAdapter(dict[str, dict[str, int]])


class _Block(BaseModel):
    id: str
    text: str
    title: str | None = None


class _Answer(BaseModel):
    text: _Text
    answer_start: int


class _Question(BaseModel):
    qid: str = Field(pattern=r".+_q#\d+")
    question: _Text
    rewrite: str = ""
    answer: _Answer
    evidences: list[_Text]
    retrieval_labels: list[int]

    @property
    def positives(self) -> list[str]:
        return [text for text, label in zip(self.evidences, self.retrieval_labels, strict=False) if label > 0]


class OrquacCorpus(PublishedCorpus):
    """OR-QuAC's collection, a document a passage, and its dialogs.

    `path` can be the collection (all_blocks.txt) alone. The collection is downloaded only when documents are read.
    """

    beside_documents: ClassVar[frozenset[str]] = frozenset({"split"})

    split: Literal["train", "validation", "test"] = Field(
        description="Split of the human dialogs: `train`, or `validation` or `test`, which systems are tested on, so "
        "don't train on them. The documents are the same."
    )
    no_answer: Annotated[str, Operational] = Field(
        min_length=1, description="Answer in human dialogs where OR-QuAC has `CANNOTANSWER`."
    )

    def files(self) -> list[File]:
        path = self.fetch(*_COLLECTION, size="5.1 GB") if self.path is None else self.path
        return list_files(path, ("all_blocks.txt", "all_blocks.txt.gz"))[:1]  # one, where both are kept

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        yield from convert_records(read_json_lines(file), _Block, _document)

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        file, qrels = self._dialog_files()
        relevant = _read_qrels(qrels) if qrels else {}
        dialog_id, place, questions = "", "", list[_Question]()
        for where, line in read_json_lines(file):
            record = validate_record(_Question, where, line)
            if isinstance(record, SkippedRecord):
                yield record
                continue
            own_id, _, index = record.qid.rpartition("_q#")
            if own_id != dialog_id:
                if questions:
                    yield self._dialog(place, dialog_id, questions, relevant)
                dialog_id, place, questions = own_id, where, []
            if int(index) == len(questions):
                questions.append(record)
            else:
                yield SkippedRecord(where=where, reason=f"qid: {dialog_id}_q#{len(questions)} isn't before it")
        if questions:
            yield self._dialog(place, dialog_id, questions, relevant)

    def _dialog_files(self) -> tuple[File, File | None]:
        """Return the file with the questions of `split`, and the one with the qrels if there is one."""
        published, checksum = PUBLISHED[self.split]
        wanted = published.rpartition("/")[2]
        if self.path is None:
            questions, qrels = (self.fetch(*file) for file in ((published, checksum), (_QRELS, None)))
            return local_file(Path(questions)), local_file(Path(qrels))
        found: dict[str, File] = {}
        for file in list_files(self.path, (".txt", ".txt.gz"), single=False):
            found.setdefault(file.name.rpartition("/")[2].removesuffix(".gz"), file)
        if wanted not in found:
            raise MissingSplit(f"corpus.path={self.path}: has no {wanted}; put {self.base_url}/{published} into it")
        return found[wanted], found.get("qrels.txt")

    def _dialog(
        self, where: str, dialog_id: str, questions: list[_Question], relevant: dict[str, dict[str, int]]
    ) -> Dialog | SkippedRecord:
        passages: dict[str, Passage] = {}  # by text: several questions can have the same one
        turns: list[Turn] = []
        for number, question in enumerate(questions, start=1):
            hits: list[Hit] = []
            evidence: list[Evidence] = []
            answerable = question.answer.text != _NO_ANSWER
            ids = [passage_id for passage_id, label in relevant.get(question.qid, {}).items() if label > 0]
            for rank, text in enumerate(question.positives, start=1):
                new = text not in passages
                if new:
                    used = {passage.id for passage in passages.values()}
                    known = len(ids) == len(question.positives) == 1 and ids[0] not in used
                    name = ids[0] if known else f"{question.qid}:{rank}"
                    passages[text] = Passage(id=name, document_id=name, text=text, start=0, end=len(text))
                passage = passages[text]
                hits.append(Hit(passage_id=passage.id, score=1, rank=rank, new=new))
                if answerable:
                    evidence.extend(find_evidence(passage, question.answer.text, question.answer.answer_start))
            turns.append(
                human_turn(
                    number,
                    question.question,
                    question.answer.text if answerable else self.no_answer,
                    "answerable" if answerable else "unanswerable",
                    rewrite=question.rewrite,
                    hits=hits,
                    evidence=evidence,
                )
            )
        return human_dialog(where, self.name, dialog_id, "multi", turns, list(passages.values()))


def _document(where: str, block: _Block) -> Document | SkippedRecord:
    return make_document(where, block.id, block.text, block.title or "")


def _read_qrels(file: File) -> dict[str, dict[str, int]]:
    try:
        return _Qrels.validate_python(read_json(file))
    except ValidationError as error:
        fault = error.errors()[0]["msg"]
        raise CorpusError(f"{file.where}: not qrels, a JSON object of questions and their passages: {fault}") from error
