"""Shorten the passages of a context-response pair around its evidence, for models that are small or slow."""

from collections.abc import Sequence

from generator.common.passages import TOKEN
from generator.schema import Evidence, Passage


def excerpts(passages: Sequence[Passage], evidence: Sequence[Evidence], tokens: int | None) -> list[Passage]:
    """Return the passages with at most `tokens` words and punctuation marks together, around their evidence.

    A passage with evidence keeps it, or the first part of it where it doesn't fit, with as much before as after it
    where there is as much; the others are filled up from their beginnings, in order. A passage of which nothing remains
    is left out. None keeps all of them.
    """
    if tokens is None:
        return list(passages)
    marked = {one.passage_id for one in evidence}
    left, found = tokens, dict[str, Passage]()
    for passage in sorted(passages, key=lambda one: one.id not in marked):  # stable
        others = sum(one.id in marked and one.id not in found for one in passages)
        budget = left // others if passage.id in marked else left
        spans = [match.span() for match in TOKEN.finditer(passage.text)]
        inside = [
            number
            for number, (start, end) in enumerate(spans)
            if any(one.passage_id == passage.id and start < one.end and end > one.start for one in evidence)
        ]
        middle = (inside[0] + inside[-1] + 1) // 2 if inside else 0
        first = max(0, min(middle - budget // 2, inside[0] if inside else 0, len(spans) - budget))
        if kept := spans[first : first + budget]:
            start, end = kept[0][0], kept[-1][1]
            update = {"text": passage.text[start:end], "start": passage.start + start, "end": passage.start + end}
            found[passage.id] = passage.model_copy(update=update)
            left -= len(kept)
    return [found[one.id] for one in passages if one.id in found]
