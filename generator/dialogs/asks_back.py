"""Find where a response asks the user back: for what it needs to know before, or beside, an answer.

A clarification response asks to choose among readings or to name what is missing, as a question or as a request
(Rosenthal et al. 2026, section 3.1 and figure 6). Offers ("Do you have any other question?", "Would you like to know
more?") are none. The words are English; `benchmarks/asks_back.py` compares with people's labels.
"""

import re

from generator.common.passages import sentences

_MEANT = (
    r"(?:are|were) you (?:asking|referring|talking|speaking|thinking|inquiring|enquiring|interested|in the mood)"
    r"|(?:do|did) you (?:\w+ )?(?:mean|refer|ask|inquire|prefer|prioritize|have in mind)"
)
_WANTED = r"(?:would you (?:like|prefer)|(?:do|did) you (?:want|wish|need)|are you (?:looking|trying|hoping))"
_WHICH = r"(?:which|what|whose|where|when|how (?:many|much|long|old|often))"
_TELL = r"(?:tell|specify|clarify|elaborate|describe|narrow|mention|name|provide|share|give|inform|be more)"
_ASKS = re.compile(
    rf"\b(?:{_MEANT})\b|\b(?:can|could|would|will) you (?:please )?{_TELL}\b|\bmay i (?:know|ask)\b"
    rf"|\b{_WHICH}\b[^?]*\b(?:you|your)\b|\bwhich (?:one|ones|of (?:these|those|them))\b"
    rf"|\b{_WANTED}\b[^?]*\b(?:or|one of|any one)\b",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    rf"\b(?:please|kindly) {_TELL} (?:me|us|more|which|what|whether|the|a|any|your)\b"
    r"|\blet me know (?:which|what|whether|if you mean)\b",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"\b(?:anything|what) else\b|\b(?:other|more|further|additional) questions?\b|\bhelp you with\b", re.I
)
_SPACE = re.compile(r"\s+")


def find_request(response: str) -> str:
    """Return the first sentence of a response that asks the user back; empty if none does."""
    for start, end in sentences(response):
        sentence = _SPACE.sub(" ", response[start:end]).strip()
        if _OFFERS.search(sentence):
            continue
        if ("?" in sentence and _ASKS.search(sentence)) or _REQUESTS.search(sentence):
            return sentence
    return ""
