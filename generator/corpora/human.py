"""The conversations that people led about a corpus, as the records that generated dialogs are too.

So both are exported, counted and trained on in the same way. What people didn't write down is empty: no reasoning, no
verdicts, no cost; `lm` is `human`.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

from pydantic_core import PydanticSerializationError

from generator.corpora.base import CONTROL, CONTROLLED, FileCorpus
from generator.schema import UNLABELLED, Algorithm, Answerability, Dialog, Evidence, Hit, Passage, SkippedRecord, Turn

HUMAN = "human"


class DialogCorpus(FileCorpus):
    """A corpus whose publisher has conversations of people about its documents, too."""

    @abstractmethod
    def dialogs(self) -> Iterator[Dialog | SkippedRecord]:
        """The conversations, as a stream in a stable order; all of the split `train`.

        Raises:
            CorpusError: they can't be read, or there are none.
        """


def turn(
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
    """A turn that people made; `rewrite` is the query in a form that stands alone, if there is one.

    `original_answer` is a model's answer that people made theirs of.
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


def dialog(
    where: str,
    corpus: str,
    name: str,
    algorithm: Algorithm,
    turns: Sequence[Turn],
    passages: Sequence[Passage],
    collection: str = "",
) -> Dialog | SkippedRecord:
    """The dialog with the id `name`, or why there is none.

    Args:
        where: for a record that can't be one, as in `SkippedRecord`.
        algorithm: how such a dialog would be generated: `single` if one document is known from the start.
    """
    if not turns:
        return SkippedRecord(where=where, reason="it has no question with an answer")
    if not passages:
        return SkippedRecord(where=where, reason="it has no document")
    if any(CONTROL.search(other) for other in (name, *(passage.id for passage in passages))):
        return SkippedRecord(where=where, reason=CONTROLLED)
    for number, said in enumerate(turns, start=1):
        if not said.query.strip() or not said.answer.strip():
            return SkippedRecord(where=where, reason=f"turn {number} has an empty question or answer")
    made = Dialog(
        id=name,
        corpus=corpus,
        collection=collection,
        algorithm=algorithm,
        split="train",
        document_ids=tuple(dict.fromkeys(p.document_id for p in passages)),
        turns=tuple(turns),
        passages=tuple(passages),
        ended="complete",
        lm=HUMAN,
        prompt_version="",
        seed=0,
    )
    return writable(where, made)


def writable(where: str, made: Dialog) -> Dialog | SkippedRecord:
    """The dialog, or why no file can hold it: JSON's `\\ud800` gives halves of characters, in any of its texts."""
    try:
        made.model_dump_json()
    except PydanticSerializationError:
        return SkippedRecord(where=where, reason="not valid Unicode (surrogates not allowed)")
    return made


def span(passage: Passage, text: str, start: int) -> tuple[Evidence, ...]:
    """The evidence `text`, which should begin at `start` of the passage; else where it is nearest to there.

    Offsets in published data are wrong now and then. A text that isn't there at all gives no evidence.
    """
    text = text.strip()
    places = passage.text.rfind(text, 0, start + len(text) + 1), passage.text.find(text, start)
    found = [place for place in places if place >= 0]
    if not text or not found:
        return ()
    nearest = min(found, key=lambda place: abs(place - start))
    return (Evidence(passage_id=passage.id, start=nearest, end=nearest + len(text), text=text),)
