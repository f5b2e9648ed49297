"""Find what an answer claims beside saying that something isn't known, by the patterns of its language.

In mtRAG's human conversations all but a few unanswerable turns consist of such clauses (`benchmarks/evidence.py`).
"""

from generator.common.language import cached_by_language, dialog_language
from generator.common.scripts import has_words
from generator.common.sentences import sentences


def drop_refusals(answer: str) -> str:
    """Return an answer without the clauses that say that something isn't known, or who may know."""
    answer = drop_referrals(answer)
    clauses = _clauses(answer)
    kept = [clause for clause in clauses if not _refuses(clause)]
    return " ".join(kept) if len(kept) < len(clauses) else answer


def drop_closings(answer: str) -> str:
    """Return an answer without its sentences of courtesy (“I hope this helps!”) and disclaimers (“As an AI, …”).

    Phrases that tell nothing (“of course”) go, too, unless there is nothing else.
    """
    language = dialog_language()
    if disclaimer := language.pattern("disclaimer", answer):
        answer = disclaimer.sub("", answer)
    if (filler := language.pattern("filler", answer)) and has_words(told := filler.sub("", answer)):
        answer = told
    for start, end in reversed(list(sentences(answer, language.code))):
        if language.matches("closing", answer[start:end]):
            answer = answer[:start] + answer[end:]
    return answer


def drop_referrals(answer: str) -> str:
    """Return an answer with a refusal without the sentences that send the user elsewhere; others as they are.

    One with a number tells it: “You can visit from 2 pm to 4 pm.”
    """
    clauses, matches = _clauses(answer), dialog_language().matches
    kept = [
        clause
        for clause in clauses
        if not matches("referral", clause) or any(map(str.isdigit, clause)) or _refuses(clause)
    ]
    return " ".join(kept) if len(kept) < len(clauses) and any(map(_refuses, kept)) else answer


def has_refusal(answer: str) -> bool:
    """Return true if a clause of an answer says that something isn't known."""
    return any(map(_refuses, _clauses(answer)))


@cached_by_language(1024)  # each check and judge asks of the same clauses
def _refuses(clause: str) -> bool:
    condition = dialog_language().pattern("condition", clause)
    return dialog_language().matches("refusal", condition.sub("", clause) if condition else clause)


@cached_by_language(64)  # those of one answer
def _clauses(answer: str) -> tuple[str, ...]:
    pattern = dialog_language().pattern
    if concession := pattern("concession", answer):
        answer = concession.sub(r"\1. ", answer)
    return tuple(clause.split(answer)) if (clause := pattern("clause", answer)) else (answer,)
