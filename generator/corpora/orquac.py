"""OR-QuAC (Qu et al. 2020): QuAC's dialogs with rewritten questions, on eleven million passages of Wikipedia."""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from generator.corpora.base import located
from generator.corpora.fetching import fetched
from generator.corpora.files import File, files
from generator.corpora.human import DialogCorpus, dialog, span, turn
from generator.corpora.json_file import parsed, whole
from generator.corpora.json_lines import lines
from generator.errors import CorpusError
from generator.schema import Address, Dialog, Document, Evidence, Hit, Passage, SkippedRecord, Turn

# Where below `base_url` the files are, and their MD5.
_COLLECTION = ("all_blocks.txt.gz", "md5:1095a3408690e7bbe4d8a87a2bae6356")
_QRELS = "qrels.txt.gz"
PUBLISHED = MappingProxyType(
    {
        "train": ("preprocessed/train.txt", "md5:7513a9ef12d8b7a4471166dc4fef77b7"),
        "validation": ("preprocessed/dev.txt", "md5:7765658995cc9ffd5eb39a400d814b20"),
        "test": ("preprocessed/test.txt", "md5:0cf3a755f06297b9c02e7db45f8dc8be"),
    }
)
_NO_ANSWER = "CANNOTANSWER"

_Text = Annotated[str, Field(pattern=r"\S")]
_Relevant = TypeAdapter(dict[str, dict[str, int]])


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


class OrquacCorpus(DialogCorpus):
    """OR-QuAC's collection, a document a passage, and its dialogs.

    Attributes:
        path: a folder with the publisher's files at any depth, or the collection (all_blocks.txt) alone; None: they
            are fetched, the collection once something asks for documents.
        split: which dialogs. `validation` and `test` are what systems are tested on: training on them spoils that test.
        cache_dir: keeps what was fetched.
        base_url: where the files are published.
        no_answer: what the agent of a human dialog says where OR-QuAC has `CANNOTANSWER`.
    """

    beside_documents: ClassVar[frozenset[str]] = frozenset({"split", "no_answer"})

    path: str | None
    split: Literal["train", "validation", "test"]
    cache_dir: str = Field(min_length=1)
    base_url: Address
    no_answer: str = Field(min_length=1)

    def files(self) -> list[File]:
        path = self.path
        if path is None:
            path = fetched(self.base_url, *_COLLECTION, self.cache_dir, "5.1 GB")
        return files(path, ("all_blocks.txt", "all_blocks.txt.gz"))[:1]  # not also the other, where both are kept

    def records(self, file: File) -> Iterator[Document | SkippedRecord]:
        for number, line in lines(file):
            where = f"{file.where}:{number}"
            found = parsed(_Block, where, line)
            yield found if isinstance(found, SkippedRecord) else located(where, found.id, found.text, found.title or "")

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        questions, qrels = self._dialog_files()
        relevant = _relevant(qrels) if qrels else {}
        name, place, asked = "", "", list[_Question]()
        for number, line in lines(questions):
            where = f"{questions.where}:{number}"
            found = parsed(_Question, where, line)
            if isinstance(found, SkippedRecord):
                yield found
                continue
            dialog_name, _, index = found.qid.rpartition("_q#")
            if dialog_name != name:
                if asked:
                    yield self._dialog(place, name, asked, relevant)
                name, place, asked = dialog_name, where, []
            if int(index) == len(asked):
                asked.append(found)
            else:
                yield SkippedRecord(where=where, reason=f"qid: {name}_q#{len(asked)} isn't before it")
        if asked:
            yield self._dialog(place, name, asked, relevant)

    def _dialog_files(self) -> tuple[File, File | None]:
        """The questions of `split`, and which passages are relevant to them if that is there."""
        published, checksum = PUBLISHED[self.split]
        wanted = published.rpartition("/")[2]
        if self.path is None:
            paths = (
                fetched(self.base_url, published, checksum, self.cache_dir),
                fetched(self.base_url, _QRELS, None, self.cache_dir),
            )
            questions, qrels = (File(Path(path).name, Path(path)) for path in paths)
            return questions, qrels
        found: dict[str, File] = {}
        for file in files(self.path, (".txt", ".txt.gz"), single=False):
            found.setdefault(file.name.rpartition("/")[2].removesuffix(".gz"), file)
        if wanted not in found:
            raise CorpusError(
                f"corpus.path={self.path}: no {wanted} is in there; put {self.base_url}/{published} into it"
            )
        return found[wanted], found.get("qrels.txt")

    def _dialog(
        self, where: str, name: str, asked: list[_Question], relevant: dict[str, dict[str, int]]
    ) -> Dialog | SkippedRecord:
        passages: dict[str, Passage] = {}  # by their texts: several questions rest on one
        turns: list[Turn] = []
        for number, question in enumerate(asked, start=1):
            hits: list[Hit] = []
            evidence: list[Evidence] = []
            answerable = question.answer.text != _NO_ANSWER
            ids = [passage_id for passage_id, label in relevant.get(question.qid, {}).items() if label > 0]
            for rank, text in enumerate(question.positives, start=1):
                new = text not in passages
                if new:
                    used = {piece.id for piece in passages.values()}
                    known = len(ids) == len(question.positives) == 1 and ids[0] not in used
                    passages[text] = _passage(ids[0] if known else f"{question.qid}:{rank}", text)
                piece = passages[text]
                hits.append(Hit(passage_id=piece.id, score=1, rank=rank, new=new))
                if answerable:
                    evidence.extend(span(piece, question.answer.text, question.answer.answer_start))
            turns.append(
                turn(
                    number,
                    question.question,
                    question.answer.text if answerable else self.no_answer,
                    "answerable" if answerable else "unanswerable",
                    rewrite=question.rewrite,
                    hits=hits,
                    evidence=evidence,
                )
            )
        return dialog(where, self.name, name, "multi", turns, list(passages.values()))


def _passage(name: str, text: str) -> Passage:
    return Passage(id=name, document_id=name, text=text, start=0, end=len(text))


def _relevant(file: File) -> dict[str, dict[str, int]]:
    try:
        return _Relevant.validate_python(whole(file))
    except ValidationError as error:
        mistake = error.errors()[0]
        raise CorpusError(
            f"{file.where}: not one JSON object of questions and their passages: {mistake['msg']}"
        ) from error
