"""Measure from a question and its answer how much of the question was answered, without a model.

Katsis et al. 2025 (section 3.1) label a turn by whether the passages hold the answer, a part of it, or nothing. A
writing model's own word for that is no measure: small ones call nearly every answer partial. What its answer says is
one: a part is missing where the answer says so. Figures are in `docs/taxonomy.md` (`benchmarks/answerability.py`).
"""

from generator.common.language import dialog_language
from generator.common.refusals import drop_refusals, has_refusal
from generator.common.sentences import sentences
from generator.common.support import read_terms, term_keys
from generator.dialogs.checks.later_turns import content_of
from generator.schema import Answerability

# Content words that the question lacks, with which an answer that begins with what isn't known gives a part.
_PART = 3


def measure_answerability(query: str, answer: str, own: Answerability) -> Answerability:
    """Return `answerable`, `partial` or `unanswerable`: what the answer gives beside what it says isn't known.

    A part is a yes or no, a number, a name or content words that the question lacks: one before what isn't known, else
    three.

    Args:
        own: the writing model's label, which stays where the dialog's language has no patterns of refusals, and where
            the texts aren't in it.
    """
    language = dialog_language()
    if not language.pattern("refusal") or not language.is_in(f"{query} {answer}"):
        return own
    if not has_refusal(answer):
        return "answerable"
    rest, asked = drop_refusals(answer), term_keys(query)
    decides = language.begins_with("affirms", rest) or (language.begins_with("denies", rest) and content_of(rest))
    telling = decides or any(term.kind != "word" and term.key not in asked for term in read_terms(rest))
    least = _PART if begins_with_refusal(answer) else 1
    return "partial" if telling or len(content_of(rest) - content_of(query)) >= least else "unanswerable"


def begins_with_refusal(answer: str) -> bool:
    """Return True if the first sentence of an answer says what isn't known."""
    return any(has_refusal(answer[start:end]) for start, end in sentences(answer)[:1])
