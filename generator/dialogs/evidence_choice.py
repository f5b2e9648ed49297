"""Have the model choose evidence once more, where the sentences it cited don't cover its answer."""

from collections.abc import Sequence
from itertools import pairwise

import dspy

from generator.common.language import dialog_language, languages
from generator.common.prose import told_in
from generator.common.sentences import sentences
from generator.dialogs.checks.evidence import (
    SHOWN,
    Support,
    drop_needless,
    find_evidence_language,
    find_telling,
    list_said,
    list_told,
    measure_support,
    rank_sentences,
    refuses_unread,
)
from generator.errors import Rejected
from generator.prompts.calls import call
from generator.prompts.sections import Conversation, Documents, quote
from generator.schema import Evidence, Passage, Turn

# Words that a sentence adds to a choice that covers its answer; one is often chance (“became a hit”). Beside what
# people cite for ClapNQ's answers it adds another sentence to 4 of 296 (by one word, to 9), and the one that is left
# out to 431 of 528 that the others cover (by one word, to 469).
_COMPLETES = 2
_PAIR = 2  # letters, by which words are compared where no spaces part them


async def choose_evidence(predict: dspy.Predict, documents: Documents, history: Sequence[Turn], turn: Turn) -> Turn:
    """Return a turn with the evidence for its answer: what it cites, if that covers it.

    Where nothing is cited, or what is cited tells only a part, and the best of the sentences that share most with the
    answer is the only one that tells all of it, that is the evidence: of people's answers, for 937 of 938
    (`benchmarks/evidence.py`). Else, where what is cited doesn't cover the answer, the model is asked once to choose
    among these sentences and the cited ones that share a word with it, if they cover more. Its choice counts where
    nothing is cited, and where it covers more, alone, with the sentences cited or with another of these; where there is
    neither, the best of them does, with another if they then cover it. One that covers the answer is joined only by
    what tells two words more of it. A failed call changes nothing that is cited. A title, a heading or a question is
    never evidence, and no sentence that can be spared, or that another passage has whole. What is cited in another
    language is left to the model.

    Args:
        predict: of `ChooseEvidence`.
    """
    if languages().differ or refuses_unread(turn):  # no words can be compared, or nothing is claimed
        return turn
    said, told = list_said(turn.meant, history, documents.passages), list_whole(documents.passages)
    cited = _only(told, turn.evidence, documents)

    def measure(evidence: Sequence[Evidence]) -> Support:
        return measure_support(turn.answer, said, list_told(evidence, documents.passages), len(evidence))

    def rate(evidence: Sequence[Evidence]) -> tuple[bool, float]:
        return measure(evidence)[:2]

    if (rated := rate(cited)) != (True, 1):
        texts = _once(documents, told)
        ranked, own = rank_sentences(texts, turn.answer, turn.meant), {each.text for each in cited}
        shown = [place + 1 for rank, place in enumerate(ranked) if rank < SHOWN or texts[place] in own]
        ranked = ranked[:SHOWN]
        telling = find_telling(texts, ranked, turn.answer, said) if rated[0] or not cited else None
        if telling is not None:
            cited = documents.evidence([telling + 1])
        elif not rated[0] and rate(documents.evidence(shown)) > rated and not find_evidence_language(cited):
            try:
                reply = await call(
                    predict,
                    "evidence",
                    "greedy",
                    turn.turn,
                    documents=documents,
                    dialog=Conversation(turns=tuple(history)),
                    question=turn.query,
                    answer=turn.answer,
                    sentences="\n".join(f"[{number}] {quote(texts[number - 1])}" for number in shown),
                )
                chosen = _only(told, documents.evidence(reply.evidence), documents)
            except Rejected:
                chosen = cited
            best = cited or documents.evidence(shown[:1])
            start = chosen or best
            found = measure(start)
            joined = [tuple(dict.fromkeys((*chosen, *cited)))]
            if found[:2] > rate(cited):
                each_more = (tuple(dict.fromkeys((*start, *documents.evidence([number])))) for number in shown)
                for more, rated_more in ((more, measure(more)) for more in each_more):
                    # Beside a sentence that nobody chose, only what makes it cover the answer.
                    if _completes(found, rated_more) if found.covered else chosen or rated_more.covered:
                        joined.append(more)
            cited = max(cited or chosen, chosen, *joined, best, key=rate)

    asked = list_said(turn.meant, (), documents.passages)

    def measure_whole(evidence: Sequence[Evidence]) -> Support:
        """Miss also what was said before: an answer rests on what tells that again."""
        found = measure(evidence)
        again = measure_support(turn.answer, asked, list_told(evidence, documents.passages))
        return found._replace(missing=(*found.missing, *again.missing))

    evidence = drop_needless(cited, turn.answer, turn.meant, turn.reasoning.splitlines(), measure_whole)
    return turn.model_copy(update={"evidence": evidence})


def _completes(found: Support, more: Support) -> bool:
    """Return True if a sentence that joins one's choice tells at least two words of the answer that this lacks."""
    return _count_words(found.missing) - _count_words(more.missing) >= _COMPLETES


def _count_words(terms: Sequence[str]) -> int:
    """Return how many words are missing: of pairs of letters those that overlap are of one, 起こ and こり."""
    joined = (before[1:] == pair[:1] for before, pair in pairwise(terms) if len(before) == len(pair) == _PAIR)
    return len(terms) - (0 if dialog_language().spaced else sum(joined))


def _only(told: set[str], evidence: Sequence[Evidence], documents: Documents) -> tuple[Evidence, ...]:
    """Return the evidence that is `told`, and for a sentence that its passage cuts, the whole one of another."""
    passages = {p.id: p for p in documents.passages}

    def find_whole(each: Evidence) -> Evidence | None:
        cut = passages[each.passage_id]
        first, last = cut.start + each.start, cut.start + each.end
        for number, (p, start, end) in enumerate(documents.spans, 1):
            around = p.document_id == cut.document_id and p.start + start <= first and last <= p.start + end
            if around and p.text[start:end] in told:
                return documents.evidence([number])[0]
        return None

    found = (each if each.text in told else find_whole(each) for each in evidence)
    return tuple(dict.fromkeys(each for each in found if each))


def _once(documents: Documents, told: set[str]) -> list[str]:
    """Return the sentences that are `told`, "" for others, and for those that a passage before has: they overlap."""
    texts, places = list[str](), set[tuple[str, int]]()
    for p, start, end in documents.spans:
        text, place = p.text[start:end], (p.document_id, p.start + start)
        texts.append(text if text in told and place not in places else "")
        places |= {place} if text in told else set()
    return texts


def list_whole(passages: Sequence[Passage]) -> set[str]:
    """Return the sentences of passages that tell something, but those at an edge that another passage goes beyond."""
    told = set[str]()
    for passage in passages:
        same, length = (other for other in passages if other.document_id == passage.document_id), len(passage.text)
        places = [(other.start - passage.start, other.end - passage.start) for other in same]
        cut = {
            passage.text[start:end]
            for start, end in sentences(passage.text)
            if any(first < 0 == start and end <= last for first, last in places)
            or any(first <= start and end == length < last for first, last in places)
        }
        told.update(text for text in told_in(passage) if text not in cut)
    return told
