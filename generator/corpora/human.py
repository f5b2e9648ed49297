"""Build the records of human dialogs, the same ones as of generated dialogs.

So both are exported, counted and trained on in the same way. What is not recorded of human dialogs is empty: no
reasoning, no verdicts, no cost; `lm` is `human`.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, NoReturn

from pydantic import Field
from pydantic_core import PydanticSerializationError

from generator.corpora.base import FileCorpus
from generator.corpora.files import DataPath, File, list_files
from generator.errors import CorpusError
from generator.schema import (
    TASK,
    UNLABELLED,
    Algorithm,
    Answerability,
    Dialog,
    Evidence,
    Hit,
    Operational,
    Passage,
    SkippedRecord,
    Turn,
)

HUMAN = "human"


class DialogCorpus(FileCorpus):
    """A corpus whose publisher has human dialogs about its documents, too."""

    @abstractmethod
    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        """Yield the human dialogs, as a stream in a stable order; all of the split `train`.

        Raises:
            CorpusError: they can't be read, or there are none.
        """


class BenchmarkCorpus(DialogCorpus):
    """A benchmark: dialogs to evaluate models on, and no documents to generate from."""

    # The name of the publisher's file, for messages.
    published: ClassVar[str]

    path: Annotated[DataPath, Operational] = Field(
        description="The publisher's file, or a folder with it, as in docs/corpora.md; it isn't downloaded."
    )

    def files(self) -> list[File]:
        if not self.path:
            raise CorpusError(f"corpus.path is empty; give the publisher's {self.published}; it isn't downloaded")
        return list_files(self.path, (".jsonl", ".jsonl.gz"))

    def records(self, file: File) -> NoReturn:
        """Raise CorpusError: there are no documents."""
        raise CorpusError(f"corpus={self.name}: has dialogs and no documents; choose another corpus to generate from")


def human_turn(
    number: int,
    query: str,
    answer: str,
    answerability: Answerability = "answerable",
    *,
    other_answers: Sequence[str] = (),
    original_answer: str = "",
    rewrite: str = "",
    hits: Sequence[Hit] = (),
    evidence: Sequence[Evidence] = (),
    question_type: str = UNLABELLED,
    multi_turn_type: str | None = None,
) -> Turn:
    """Return a turn of a human dialog.

    Args:
        original_answer: a model's answer that an annotator edited.
        rewrite: the query in a standalone form, if there is one.
    """
    return Turn(
        turn=number,
        query=query,
        question_type=question_type,
        multi_turn_type=multi_turn_type,
        answerability=answerability,
        retrieval_query=rewrite,
        hits=tuple(hits),
        reasoning="",
        answer=answer,
        other_answers=tuple(dict.fromkeys(other for other in other_answers if other != answer)),
        original_answer=original_answer,
        consistent=True,
        evidence=tuple(evidence),
    )


def human_dialog(
    where: str,
    corpus: str,
    dialog_id: str,
    algorithm: Algorithm,
    turns: Sequence[Turn],
    passages: Sequence[Passage],
    collection: str = "",
    *,
    model: str = HUMAN,
    task: str = "",
    references: bool = False,
    last_only: bool = False,
) -> Dialog | SkippedRecord:
    """Return a human dialog, or the reason why there is none.

    Args:
        where: for a record that can't be read, as in `SkippedRecord`.
        algorithm: the one that would generate such a dialog: `single` if one document is known from the start, `whole`
            if it may have none.
        model: writer of the last answer, where the turns before were given as a task.
        task: the benchmark's task that it belongs to.
        references: answers are references, which a question may have none of.
        last_only: the turns before the last were given as a task, as they are to a model; it may have no passage,
            and an empty answer.
    """
    if not turns:
        return SkippedRecord(where=where, reason="it has no question with an answer")
    if not passages and not last_only and algorithm != "whole":
        return SkippedRecord(where=where, reason="it has no document")
    for number, turn in enumerate(turns, start=1):
        if not turn.query.strip() or not (turn.answer.strip() or references or last_only):
            return SkippedRecord(where=where, reason=f"turn {number} has an empty question or answer")
    dialog = Dialog(
        id=dialog_id,
        corpus=corpus,
        collection=collection,
        algorithm=algorithm,
        split="train",
        document_ids=tuple(dict.fromkeys(p.document_id for p in passages)),
        turns=tuple(turns),
        passages=tuple(passages),
        ended=TASK if last_only else "complete",
        task=task,
        lm=model,
        prompt_version="",
        seed=0,
    )
    try:
        dialog.model_dump_json()
    except PydanticSerializationError:  # JSON's `\ud800` gives lone surrogates, which no file can hold
        return SkippedRecord(where=where, reason="not valid Unicode (surrogates not allowed)")
    return dialog


def find_evidence(passage: Passage, text: str, start: int) -> tuple[Evidence, ...]:
    """Return the occurrence of `text` in the passage that is nearest to `start`; none if the text isn't there.

    Offsets in published data are wrong now and then.
    """
    text = text.strip()
    places = passage.text.rfind(text, 0, start + len(text) + 1), passage.text.find(text, start)
    found = [place for place in places if place >= 0]
    if not text or not found:
        return ()
    nearest = min(found, key=lambda place: abs(place - start))
    return (Evidence(passage_id=passage.id, start=nearest, end=nearest + len(text), text=text),)
