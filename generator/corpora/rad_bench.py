"""Read the questions of RAD-Bench (Kuo et al. 2025): three a dialog, each with contexts and a reference answer."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, Field

from generator.corpora.files import File, list_files
from generator.corpora.human import BenchmarkCorpus, find_evidence, human_dialog, human_turn
from generator.corpora.json_records import convert_records, read_json_lines, validate_record
from generator.errors import CorpusError
from generator.schema import Dialog, Evidence, Hit, Passage, SkippedRecord, Turn

# A question's id names aspect and scenario, such as RS_academic_00.
QUESTION_ID = re.compile(r"([A-Z]{2})_([a-z0-9-]+)_\d+")
REFERENCES = "reference_answer"


def _to_text(value: object) -> object:
    """Return a context of named parts, or a list of knowledge points, as text, a line each; an empty one for null."""
    if isinstance(value, dict):
        value = [f"{name}: {part}" for name, part in value.items()]
    return "\n".join(map(str, value)) if isinstance(value, list) else value or ""


_Text = Annotated[str, BeforeValidator(_to_text)]
_Texts = Annotated[list[_Text], BeforeValidator(lambda value: value if isinstance(value, list) else [value])]


class _Item(BaseModel):
    question_id: str
    category: str = ""
    turns: list[str] = Field(min_length=1)
    contexts: list[_Texts]
    references: list[_Text] | None = None
    evidence_text: list[_Texts] = []


class Choice(BaseModel):
    """A model's answers to the questions of a dialog."""

    turns: list[_Text]


class AnswerLine(BaseModel):
    """A line of the publisher's answers, reference answers among them."""

    question_id: str
    choices: list[Choice] = Field(min_length=1)


class RadBenchCorpus(BenchmarkCorpus):
    """The published questions, or those that `export=rad_bench` wrote; answers are the references.

    A turn's contexts are its hits. `evidence_text` is its evidence where it stands in them word by word, else in
    `other_answers`.
    """

    published: ClassVar[str] = "question.jsonl"

    def files(self) -> list[File]:
        return [file for files in self._files() for file in files]

    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        questions, answers = self._files()
        references: dict[str, Sequence[str]] = {}
        for file in answers:
            for where, record in read_json_lines(file):
                line = validate_record(AnswerLine, where, record)
                if isinstance(line, SkippedRecord):
                    yield line
                    continue
                if line.question_id in references:
                    raise CorpusError(f"{where}: the reference answers of {line.question_id} are there twice")
                references[line.question_id] = line.choices[0].turns
        for file in questions:
            yield from convert_records(read_json_lines(file), _Item, partial(self._dialog, references))

    def _files(self) -> tuple[list[File], list[File]]:
        """Return the files with questions, and those with reference answers.

        Raises:
            CorpusError: there are no questions.
        """
        found = super().files()
        answers = [file for file in found if REFERENCES in PurePosixPath(file.name).parts]
        if len(found) == 1 and not answers:
            beside = Path(found[0].where).with_name(REFERENCES)
            return found, list_files(str(beside), (".jsonl", ".jsonl.gz")) if beside.is_dir() else []
        questions = [file for file in found if PurePosixPath(file.name).name.startswith("question")]
        if not questions:
            raise CorpusError(f"{self.path}: has no question.jsonl; name the file with the questions")
        return questions, answers

    def _dialog(self, answers: Mapping[str, Sequence[str]], where: str, item: _Item) -> Dialog | SkippedRecord:
        references = item.references if item.references is not None else answers.get(item.question_id)
        if references is None:
            reason = f"references: there are none, here or in {REFERENCES}/*.jsonl beside the file"
            return SkippedRecord(where=where, reason=reason)
        count = len(item.turns)
        evidence = item.evidence_text or [[]] * count
        for name, each in (("contexts", item.contexts), ("references", references), ("evidence_text", evidence)):
            if len(each) != count:
                return SkippedRecord(where=where, reason=f"{name}: has {len(each)} for {count} turns")
        named = QUESTION_ID.fullmatch(item.question_id)
        task = named[2] if named else item.category.lower()
        passages: dict[str, Passage] = {}
        turns: list[Turn] = []
        for number in range(1, count + 1):
            hits: list[Hit] = []
            for text in dict.fromkeys(filter(str.strip, item.contexts[number - 1])):
                new = text not in passages
                name = f"{item.question_id}/{len(passages) + 1}"
                found = passages.setdefault(text, Passage(id=name, document_id=name, text=text, start=0, end=len(text)))
                hits.append(Hit(passage_id=found.id, score=0, rank=len(hits) + 1, new=new))
            here = [p for p in passages.values() if p.id in {hit.passage_id for hit in hits}]
            quotes = [text for text in evidence[number - 1] if text.strip()]
            spans = [span for text in quotes for span in _find(here, text)]
            verbatim = {span.text for span in spans}
            turns.append(
                human_turn(
                    number,
                    item.turns[number - 1],
                    references[number - 1],
                    other_answers=[text for text in quotes if text.strip() not in verbatim],
                    hits=hits,
                    evidence=spans,
                    question_type=task,
                    multi_turn_type=task if number > 1 else None,
                )
            )
        return human_dialog(
            where,
            self.name,
            item.question_id,
            "progressive",
            turns,
            list(passages.values()),
            task=task,
            references=True,
        )


def _find(passages: Sequence[Passage], text: str) -> tuple[Evidence, ...]:
    return next(filter(None, (find_evidence(passage, text, 0) for passage in passages)), ())
