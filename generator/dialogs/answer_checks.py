"""Check an answer before it is kept: it must answer, be new, and say nothing of documents.

What a program can see, in English: a miss costs a call of the judge, a false alarm a second attempt. How often people's
own answers fail a check is measured by `benchmarks/evidence.py`.
"""

import re
from collections.abc import Sequence

from generator.common.refusals import drop_refusals
from generator.common.shingles import content_stems, words
from generator.common.support import shares_nothing
from generator.dialogs.checks import OFF_SUBJECT, SCAFFOLDING, said_in
from generator.dialogs.dedup import Repetition
from generator.schema import Passage, Turn

# What only an agent says of its documents; `SCAFFOLDING` is what nobody says.
_WHICH = r"(?:the|this|these|those|your|our|both|all|any|provided|given)"
_ORDER = r"(?:(?:first|second|third|last|other|same|two|three|provided|given|above|supplied|available|numbered) )*"
_NOUN = r"(?:documents?|passages?|texts?|excerpts?|contexts?|sentences?|paragraphs?)"
_OWN = r"(?! (?:of|for|that|which|who|you|I|he|she|it|they|we)\b)"
_NOT = r"(?:(?:also|only|both|all|do|does|did|not|never|don[’']t|doesn[’']t|didn[’']t|cannot|can[’']t) )*"
_SAY = (
    r"(?:say|tell|mention|state|describe|indicate|suggest|explain|discuss|imply|specify|specifie|refer|talk|give|provide"
    r"|offer|cover|address|addresse|list|note|detail|contain|include|confirm|clarify|clarifie|answer)"
)
_SPEAKS_OF_DOCUMENTS = re.compile(
    rf"\b(?:according to|based (?:up)?on|as (?:\w+ )?(?:in|by)|from|per|in) {_WHICH} {_ORDER}{_NOUN}\b{_OWN}"
    rf"|\b{_WHICH} {_ORDER}{_NOUN} {_NOT}{_SAY}s?\b"
    rf"|\b{_WHICH} (?:provided|given|supplied|available) (?:information|sources?|articles?)\b{_OWN}",
    re.IGNORECASE,
)

# Sentences that announce an answer or offer one; an answer made of nothing else is none.
_ANNOUNCEMENT = re.compile(
    r"\b(?:(?:sure|certainly|of course|absolutely|okay|ok|(?:good|great) question|thanks?(?: you)?)[\s,.!:–-]+)*"
    r"(?:here (?:is|are|you go)\b|here[’']s\b|let me\b|(?:how|what) (?:can|may) I (?:help|assist|do)\b"
    r"|(?:I|we)(?:[’'](?:d|ll|m)| would| will| can| could| am)? ?(?:be )?(?:(?:happy|glad) to )?"
    r"(?:help|assist|answer)\b)[^.!?:\d]{0,60}[\s.!?:…]*",
    re.IGNORECASE,
)

# Questions that a part of their own words can't answer, unless they offer it.
_OPEN = re.compile(r"\W*(?:who|what|when|where|why|how)\b(?!.*\bor\b)", re.IGNORECASE | re.DOTALL)

# Shorter answers may well be the same: “Yes, it does.”, “In May 1983.”
_LEAST_STEMS = 5


def find_answer_fault(
    answer: str, question: str, history: Sequence[Turn], repetition: Repetition, passages: Sequence[Passage] = ()
) -> str | None:
    """Return the reason why an answer to the question after `history` can't be used, or None.

    What stands behind its first colon is for the next prompt alone.
    An honest “I don't have information on …” passes.
    """
    if not any(c.isalnum() for c in answer):
        return "empty answer"
    if spoken := SCAFFOLDING.search(answer) or _SPEAKS_OF_DOCUMENTS.search(answer):
        return f"speaks of the documents: say the fact itself, without “{spoken.group()}”"
    if not _says_something(answer, question):
        return "answers nothing"
    told = drop_refusals(answer)  # what isn't known may be said twice
    if len(content_stems(told)) >= _LEAST_STEMS and repetition.find(answer, [turn.answer for turn in history]):
        return "repeats an earlier answer"
    if passages and shares_nothing(told, [*(p.titled for p in passages), question, *said_in(history)]):
        return OFF_SUBJECT
    return None


def _says_something(answer: str, question: str) -> bool:
    """Return False for an announcement, and for the question's own words where it asks for others."""
    rest = _ANNOUNCEMENT.sub("", answer)
    if not any(c.isalnum() for c in rest) or words(answer) == words(question):
        return False
    return not _OPEN.match(question) or not set(content_stems(answer)) <= set(content_stems(question))
