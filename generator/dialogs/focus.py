"""Where a later question starts from, so that a conversation moves on to new passages (Katsis et al. 2025, section 3.2:
relevant passages are not to remain the same; their synthetic conversations had 4.6 of them, people's 16.9).
"""

from collections.abc import Sequence

from generator.common.passages import sentences
from generator.schema import Passage, Retriever, Split, Turn

FOCUS_CHARS = 300


async def fresh_start(
    retriever: Retriever, k: int, split: Split, passages: Sequence[Passage], history: Sequence[Turn], place: int
) -> str:
    """The beginning of a passage that no answer of the dialog rests on yet; empty if there is none.

    In turn, it is one that was found already, and one that is near to what was said last but wasn't found: rather of a
    document that the dialog doesn't have.

    Args:
        k: how many passages are looked at to find a neighbour.
        passages: found so far.
        place: of the turn in its plan, from 0: where a turn was lost, the next one starts elsewhere.
    """
    rested_on = {evidence.passage_id for turn in history for evidence in turn.evidence}
    unused = [p for p in passages if p.id not in rested_on]
    if place % 2 == 0 or not unused:
        known, documents = {p.id for p in passages}, {p.document_id for p in passages}
        last = history[-1]
        near_to = f"{last.retrieval_query or last.query} {last.answer}"
        found = [scored.passage for scored in await retriever.search(near_to, k, split)]
        near = [p for p in found if p.id not in known]
        near.sort(key=lambda p: p.document_id in documents)  # stable: the best first in each half
        if near:
            return _beginning(near[0])
    return _beginning(unused[place % len(unused)]) if unused else ""


def _beginning(passage: Passage) -> str:
    """Its title and first sentences, as a person would say what it is about."""
    text = ""
    for start, end in sentences(passage.text):
        if text and len(text) + end - start > FOCUS_CHARS:
            break
        text = f"{text} {passage.text[start:end]}".strip()
    return f"{passage.title}: {text}" if passage.title and not text.startswith(passage.title) else text
