"""What a question must be before it is answered: whole, new, and in a user's own words."""

import re
from collections.abc import Sequence
from functools import lru_cache

from generator.common.shingles import content_stems
from generator.dialogs.dedup import Repetition
from generator.dialogs.prompt import Documents
from generator.schema import Turn
from taxonomy import QuestionType

# Phrases by which a question shows that its author had the documents before them. "The passage of the bill", "the
# documents I must bring", "in the context of the war" are a user's own, so nouns alone don't tell: it takes a word that
# points at our material, and none after it that says whose it is. What slips through costs a worse question, what is
# wrongly caught a second attempt.
_THE = r"(?:the|this|these|those|your|our)"
_NOUN = r"(?:documents?|passages?|texts?|excerpts?|articles?|paragraphs?|contexts?|sentences?|information)"
_PART = r"(?:documents?|passages?|texts?|excerpts?|paragraphs?|sentences?)"
_SAY = r"(?:say|tell|mention|state|describe|indicate|suggest|explain|discuss|imply|specify|refer|talk|give)"
_OWN = r"(?! (?:of|for|I|he|she|it|they|we|you|that|which|who)\b)"
SCAFFOLDING = re.compile(
    rf"\b(?:the|these) passages?\b(?! (?:of|through|from|to|between|time)\b)|\bthis (?:passage|excerpt)\b"
    rf"|\b(?:the|this|these|those|in|on|to|from) (?:provided|given|above|following|numbered|supplied) {_NOUN}\b"
    rf"|\b(?:according to|based on|(?:mentioned|stated|described|discussed|listed|given) in|from|per) "
    rf"{_THE} {_NOUN}\b{_OWN}"
    rf"|\bin {_THE} (?:(?:two|three|four|first|second|last|same|other) )?{_PART}\b{_OWN}|\bin the context(?=[,.?!]|$)"
    rf"|\b{_THE} {_NOUN} (?:also |only |not )?{_SAY}s?\b"
    rf"|\b(?:sentences?|passages?|documents?|paragraphs?) ?(?:#|no\.? ?|number )?\d+\b(?! of\b)|\[\d+\]",
    re.IGNORECASE,
)

UNFINISHED = "is only the beginning of a question"

# Where a phrasing leaves a gap for what the question is about, small models copy the gap.
GAP = re.compile(r"(?:^|\s)(?:…|\.{3})(?:\s|$)")


def fault(
    question: str, documents: Documents, history: Sequence[Turn], kind: QuestionType, repetition: Repetition
) -> str | None:
    """Why a question can't be used, or None."""
    if not any(c.isalnum() for c in question):
        return "no question"
    if GAP.search(question):
        return "leaves the gap of a phrasing"
    if _is_beginning(question, kind):
        return UNFINISHED
    if SCAFFOLDING.search(question):
        return "speaks of the documents"
    asked = [turn.query for turn in history]
    if any(repetition.earlier(text, asked) is not None for text in (question, _unopened(question, kind))):
        return "repeats an earlier question"
    if repetition.earlier(question, [example.question for example in kind.examples]) is not None:
        return "copies an example"
    borrowed = _borrowed(question, kind)
    if len(borrowed) >= 2 and len(borrowed - _known(documents, history)) >= 2:
        return "is on the topic of an example"
    return None


def _is_beginning(question: str, kind: QuestionType) -> bool:
    """Whether a question is a phrasing of its kind up to the gap, and no more."""
    said = question.casefold().strip(" …?.,:")
    return any(
        said == phrasing.partition("…")[0].casefold().strip(" ,") for phrasing in kind.phrasings if "…" in phrasing
    )


def _unopened(question: str, kind: QuestionType) -> str:
    """A question without a beginning of its kind: “No, I meant”, and the same again, is no new question."""
    said = question.casefold()
    return next((question[len(words) :] for words in kind.beginnings() if said.startswith(words.casefold())), question)


def _borrowed(question: str, kind: QuestionType) -> set[str]:
    """Stems that a question shares with what the examples of its kind are about."""
    examples = [said for e in kind.examples for pair in e.dialog for said in (pair.user, pair.agent, e.question)]
    return set(content_stems(question)) & set(content_stems(" ".join(examples))) - set(
        content_stems(" ".join(kind.phrasings))
    )


def _known(documents: Documents, history: Sequence[Turn]) -> set[str]:
    """The stems of everything that a dialog is about."""
    said = " ".join(text for turn in history for text in (turn.query, turn.answer))
    return set(content_stems(said)).union(*(_stems(text) for p in documents.passages for text in (p.title, p.text)))


@lru_cache(maxsize=4096)  # every question of a dialog is held against the same passages
def _stems(text: str) -> frozenset[str]:
    return frozenset(content_stems(text))
