"""Find the reference answer to a question of a scenario (Kuo et al. 2025, appendix A.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import dspy

from generator.common.scripts import has_words
from generator.common.sentences import sentences
from generator.common.shingles import content_stems
from generator.dialogs.evidence_choice import list_whole
from generator.errors import Rejected
from generator.prompts.calls import call
from generator.prompts.message_text import on_one_line
from generator.prompts.sections import Documents
from generator.schema import Evidence, Passage

# The share of a plan's stems from which it only says again what was asked.
_ECHO = 0.7


@dataclass(frozen=True)
class Reference:
    """A reference answer, the sentences that it rests on, and how it came about."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    reasoning: str = ""


async def find_reference(
    kind: Literal["points", "target", "evidence", "plan"],
    predict: dspy.Predict,
    questions: Sequence[str],
    place: int,
    contexts: Documents,
    source: Passage,
) -> Reference:
    """Return the reference to the question at `place` (from 0) of a set.

    Args:
        predict: asks for a reference of the kind.
        contexts: what was found for the question.
        source: the document that the set is about.

    Raises:
        Rejected: the reply can't be used.
    """
    documents = contexts
    if kind == "target":
        documents = Documents(passages=(source,))
    elif kind == "evidence":
        documents = _leave_out_cut(contexts, source)
    earlier = "\n".join(f"{n}. {text}" for n, text in enumerate(questions[:place], 1))
    inputs = {"documents": documents, "earlier": earlier, "question": questions[place]}
    reply = await call(predict, "reference", "greedy", place + 1, **inputs)
    match kind:
        case "points":
            numbers = [number for point in reply.points for number in point.evidence]
            text = "\n".join(dict.fromkeys(f"- {on_one_line(point.text)}" for point in reply.points))
            reference = Reference(text, contexts.evidence(numbers))
        case "target":
            spans = documents.evidence(sorted(set(reply.evidence)))
            placed = tuple(_in_context(span, source, contexts.passages) for span in spans)
            reference = Reference(_join(spans, source.text), placed, reply.explanation)
        case "evidence":
            by_id = {passage.id: passage for passage in documents.passages}
            names = [passage.document_id for passage in documents.passages]
            told = [(by_id[span.passage_id], span) for span in documents.evidence(reply.evidence)]
            told.sort(key=lambda each: (names.index(each[0].document_id), each[0].start + each[1].start))
            spans = tuple(_in_context(span, passage, contexts.passages) for passage, span in told)
            reference = Reference("\n".join(span.text for span in spans), spans, reply.explanation)
        case "plan":
            reference = Reference(reply.answer.strip(), contexts.evidence(reply.evidence), reply.explanation)
    if not has_words(reference.text):
        raise Rejected("reference", "empty reference", questions[place])
    stems, asked = set(content_stems(reference.text)), set(content_stems("\n".join(questions)))
    if kind == "plan" and len(stems & asked) > _ECHO * len(stems):
        raise Rejected("reference", "repeats the questions", reference.text)
    return reference


def _leave_out_cut(contexts: Documents, source: Passage) -> Documents:
    """Return contexts without the sentences that the ends of passages cut; as they are if they have no others."""
    told, parts = list_whole((*contexts.passages, source)), list[Passage]()
    for passage in contexts.passages:
        if whole := [span for span in sentences(passage.text) if passage.text[slice(*span)] in told]:
            start, end = whole[0][0], whole[-1][1]
            place = {"start": passage.start + start, "end": passage.start + end}
            parts.append(passage.model_copy(update={"text": passage.text[start:end], **place}))
    return Documents(passages=tuple(parts)) if parts else contexts


def _in_context(span: Evidence, source: Passage, contexts: Sequence[Passage]) -> Evidence:
    """Return a span of a part of a document as one of the first passage that holds it, if one does."""
    for passage in contexts:
        start = span.start + source.start - passage.start
        end = start + len(span.text)
        # A search on a server may return another text of the document.
        if passage.document_id == source.document_id and start >= 0 and passage.text[start:end] == span.text:
            return span.model_copy(update={"passage_id": passage.id, "start": start, "end": end})
    return span


def _join(spans: Sequence[Evidence], text: str) -> str:
    """Return the text that sentences in their order cover: verbatim where they are neighbours, else line by line."""
    parts: list[tuple[int, int]] = []
    for span in spans:
        if parts and not text[parts[-1][1] : span.start].strip():
            parts[-1] = (parts[-1][0], span.end)
        else:
            parts.append((span.start, span.end))
    return "\n".join(text[start:end] for start, end in parts)
