"""Find what an answer claims beside saying, in English, that something isn't known; no model is asked.

In mtRAG's human conversations all but a few unanswerable turns consist of such clauses (`benchmarks/evidence.py`).
"""

import re

_NOT = r"(?:not|n[’']t|cannot|never|unable to)"
_KNOWN = (
    r"(?:known?|information|informed|details?|data|answers?|find|found|tell|say|sure|certain|aware|provided?|confirm"
    r"|determine|specifics?|records?|help|see|anything|familiar|idea|knowledge|access|mention(?:ed)?|evidence|exact"
    r"|numbers?|figures?)"
)
# Not "available", "included" and the like: “The pass isn't available on Sundays” is a claim.
_TOLD = r"(?:known|mentioned|specified|stated|clear|disclosed|described|documented|indicated|detailed)"
_TELLS = r"(?:provide|include|contain|mention|say|specify|state|give|tell|indicate|cover|address|discuss|describe|list)"
_REFUSAL = re.compile(
    rf"\b(?:I|we)\b(?:[’'](?:m|re))?(?: \w+){{0,2}}?(?: ?{_NOT}|\w+n[’']t| lack| afraid)\b(?! only\b)"
    rf"[^,;]*?\b{_KNOWN}\b"
    rf"|\b(?:I|we|there)(?: \w+)? (?:no|little|nothing)\b[^,;]*?\b{_KNOWN}\b"
    rf"|\b(?:is|are|was|were|been|has|have)(?:n[’']t| not)(?: been)?(?: \w+ly)? {_TOLD}\b"
    rf"|\b(?:documents?|passages?|text|context|sources?|information)\b[^,;]{{0,30}}{_NOT} {_TELLS}\b"
    rf"|{_NOT} (?:\w+ )?{_TELLS} (?:any|specific|further|more)\b"
    r"|\b(?:unknown|unclear|unspecified|no ?(?:one|body) knows|nothing is (?:known|said)|no (?:\w+ )?(?:documents?"
    r"|information|details?|data)(?: \w+)? (?:found|available|on|about))\b"
    r"|\b(?:sorry|apologi[sz]e|unfortunately)\b[^,;.]*$",
    re.IGNORECASE,
)
# A clause after or before a refusal may claim something.
_CONCESSION = re.compile(r"\b((?:al|even )?though\b[^,.]*|while\b[^,.]*),\s*", re.IGNORECASE)
_CLAUSE = re.compile(r"(?<=[.!?;:])\s+|\n+|,? \b(?:but|however)\b,? ?", re.IGNORECASE)


def drop_refusals(answer: str) -> str:
    """Return an answer without the clauses that say in English that something isn't known."""
    return " ".join(clause for clause in _clauses(answer) if not _REFUSAL.search(clause))


def has_refusal(answer: str) -> bool:
    """Return true if a clause of an answer says in English that something isn't known."""
    return any(_REFUSAL.search(clause) for clause in _clauses(answer))


def _clauses(answer: str) -> list[str]:
    return _CLAUSE.split(_CONCESSION.sub(r"\1. ", answer))
