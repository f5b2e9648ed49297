"""Choose where a later question starts from, so that a conversation moves on to new passages.

Katsis et al. 2025, section 3.2: relevant passages are not to remain the same; their synthetic conversations had 4.6
unique ones, people's 16.9. Of people's later turns, 6% rest on the text of earlier passages alone.
"""

import re
from collections.abc import Iterable, Sequence

from generator.common.language import languages
from generator.common.prose import is_menu, prose, told_in
from generator.common.sentences import is_heading, sentences
from generator.common.support import read_terms
from generator.common.units import kind_of_unit
from generator.dialogs.evidence_choice import list_whole
from generator.schema import Passage, Retriever, Split, Turn

FOCUS_CHARS = 300
# How much lower than the best score that of a hit may be, as a share of it.
_FAR = 2 / 3
# Of the content words of the last question and answer, a third are in a passage about the same, four at most: of the
# passages that people move on to (mtRAG) 83% have as many, of others 10%; three 90% and 20%.
_COMMON, _SHARE = 4, 3
_TELLING = 3  # content words that a sentence has which tells something
_END = re.compile(r"[.!?…:;。！？؟।][\"'”’»“›)\]]*\Z")


async def choose_focus(
    retriever: Retriever, k: int, split: Split, passages: Sequence[Passage], history: Sequence[Turn], place: int
) -> str:
    """Return the beginning of a passage that no answer of the dialog rests on yet; empty if there is none.

    Alternately, it is a passage that was retrieved for the last question, and one near the last answer that wasn't
    retrieved: preferably of a document that the dialog doesn't have. What a search of a few documents brings last, with
    less than a third of the score of its first or hardly a word of the last question and answer, is about something
    else; a page's menu is about nothing.

    Args:
        k: the number of passages searched for a near one.
        passages: retrieved so far.
        place: the turn's place in its plan, from 0: after a skipped turn, the next one starts elsewhere.
    """
    used = {evidence.passage_id for turn in history for evidence in turn.evidence}
    hits = next((turn.hits for turn in reversed(history) if turn.hits), ())
    near_hits = {hit.passage_id for hit in hits if _is_near(hit.score, hits[0].score)}
    last = history[-1]
    said = f"{last.retrieval_query or last.query} {last.answer}"
    content = _list_content(said)

    def is_about_it(passage: Passage) -> bool:
        least = 0 if languages().differ else min(_COMMON, -(-len(content) // _SHARE))
        tells = not all(is_menu(passage.text[start:end]) for start, end in sentences(passage.text))
        return tells and len(content & _list_content(passage.titled)) >= least

    unused = [p for p in passages if p.id not in used and (p.id in near_hits or not hits) and is_about_it(p)]
    if place % 2 == 0 or not unused:
        known, documents = {p.text_key for p in passages}, {p.document_id for p in passages}
        results = await retriever.search(said, k, split)
        new = (scored for scored in results if scored.passage.text_key not in known)
        near = [s.passage for s in new if _is_near(s.score, results[0].score) and is_about_it(s.passage)]
        near.sort(key=lambda p: p.document_id in documents)  # stable: best first among either
        if near:
            return _beginning(near[0])
    return _beginning(unused[place % len(unused)]) if unused else ""


def find_next_sentence(passages: Sequence[Passage], history: Sequence[Turn], place: int) -> str:
    """Return the sentence after the last evidence that no answer of the dialog rests on; empty if there is none.

    It is of a document that answers rest on, so that the dialog keeps its subject; before any does, of the first. What
    tells nothing, is cut at the edge of a passage, is code, or has too few content words to be asked for is left out.

    Args:
        passages: retrieved so far.
        place: the turn's place in its plan, from 0: after a skipped turn, the sentence is one further on.
    """
    evidence = [each for turn in history for each in turn.evidence]
    cited, used = {each.passage_id for each in evidence}, {each.text for each in evidence}
    documents = {p.document_id for p in passages if p.id in cited} or {p.document_id for p in passages[:1]}
    # Of passages that overlap, a sentence stands where it stands first.
    texts = list(dict.fromkeys(text for p in passages if p.document_id in documents for text in told_in(p)))
    asked = {
        p.text[start:end] for p in passages for start, end in prose(p.text) if not _is_cut(p, start, end)
    } & list_whole(passages)
    last = max((number for number, text in enumerate(texts, 1) if text in used), default=0)
    free = [text for text in texts[last:] + texts[:last] if text in asked and text not in used]
    free = [text for text in free if len(read_terms(text)) >= _TELLING]
    return free[(place - len(history)) % len(free)] if free else ""


def count_new_passages(passages: Iterable[Passage], history: Sequence[Turn], turn: Turn) -> int | None:
    """Return how many passages a later turn's evidence is in that no earlier turn's is in, nor in one with shared text.

    None for the first turn, and without evidence.

    Args:
        passages: one that isn't among them shares no text with others.
    """
    if not history or not turn.evidence:
        return None
    places = {passage.id: (passage.document_id, passage.start, passage.text) for passage in passages}

    def find(turns: Sequence[Turn]) -> set[tuple[str, int, str]]:
        cited = (evidence.passage_id for each in turns for evidence in each.evidence)
        return {places.get(name, (name, 0, name)) for name in cited}

    used = find(history)
    return sum(not any(_share_text(each, other) for other in used) for each in find([turn]))


def _list_content(text: str) -> set[str]:
    """Return the content words of a text but units, which anything is measured by."""
    return {term.key for term in read_terms(text) if term.kind != "number" and not kind_of_unit(term.text)}


def _is_near(score: float, best: float) -> bool:
    return best - score <= _FAR * abs(best)


def _share_text(one: tuple[str, int, str], other: tuple[str, int, str]) -> bool:
    """Compare two passages, each as document, start and text, where their offsets overlap.

    Of passages that a search of one's own has edited, the offsets aren't those in the document.
    """
    start = max(one[1], other[1])
    end = min(place + len(text) for _, place, text in (one, other))
    parts = {text[start - place : end - place] for _, place, text in (one, other)}
    return one[0] == other[0] and start < end and len(parts) == 1


def _is_cut(passage: Passage, start: int, end: int) -> bool:
    """Return True for a sentence at a passage's edge that begins in lower case, or ends without a mark."""
    text = passage.text
    begins = not passage.start or start > 0 or not text[start].islower()
    return not begins or (end == len(text) and not _END.search(text))


def _beginning(passage: Passage) -> str:
    """Return a passage's title and first whole sentences, up to `FOCUS_CHARS` characters."""
    text = heading = ""  # a heading is of what follows
    first, *others = prose(passage.text)
    # A window of a document mostly begins inside a sentence.
    for start, end in others if others and passage.start else (first, *others):
        sentence = f"{heading} {passage.text[start:end]}".strip()
        if text and len(text) + len(sentence) > FOCUS_CHARS:
            break
        heading = sentence if is_heading(passage.text[start:end]) else ""
        text = text if heading else f"{text} {sentence}".strip()
    return text if text.startswith(passage.title) else put_title(passage.title, text)


def put_title(title: str, text: str) -> str:
    """Return a text behind the title of its document, either of which may be empty."""
    return ": ".join(filter(None, (title.rstrip("."), text)))
