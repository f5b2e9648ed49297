"""Check a request that the documents can't answer, and the reply to it, by its kind (Peng et al. 2024, UAEval4RAG).

What a program can see, as in `task_checks`: a miss costs a worse request, a false alarm another attempt. A type of
question names its checks. The words that are looked for are English.
"""

import re
from collections.abc import Callable, Sequence

from generator.common.passages import sentences
from generator.common.shingles import content_stems
from generator.dialogs.asks_back import find_request
from generator.schema import Passage
from taxonomy import QuestionCheck, QuestionType, ReplyCheck

# Beside those that `content_stems` leaves out, words that tell no two things apart.
_COMMON = frozenset(
    content_stems(
        "what how which who whom whose why when where i my we our they he she it its you your not no and or if this "
        "these those one ones many much any some all each only also than then as with by from into but about such "
        "get need want know find give take make go come long often old within after before until over under for per "
        "don doesn isn aren won can cannot t s d ll ve re first last next new same other more less than every"
    )
)
# Shares of the stems of a request: at least so many are in the documents if it is on their topic; at most so many in
# one sentence if it makes no sense; and at least so many if the sentence may answer it.
_ON_TOPIC, _SCATTERED, _COVERED = 0.33, 0.5, 0.8
_WHETHER = re.compile(r"(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should)\b", re.IGNORECASE)
_MODALITY = re.compile(
    r"\b(?:pictures?|photos?|photographs?|images?|videos?|films?|clips?|audio|recordings?|songs?|sounds?|maps?|charts?"
    r"|graphs?|diagrams?|drawings?|draw|sketch|plot|play|show me|files?|pdf|spreadsheets?|download|upload|attach\w*"
    r"|send|e-?mail|call|phone|text me|book|reserve|order|buy|print|record|pay|cancel|remind)\b",
    re.IGNORECASE,
)
_HARM = re.compile(
    r"\b(?:get away with|get (?:a)?round|without (?:paying|(?:getting|being) caught|permission)|avoid paying|cheat\w*"
    r"|break in(?:to)?|hack\w*|bypass\w*|steal\w*|forg(?:e|ed|ing)|fake|smuggl\w+|sabotag\w+|damage|destroy|poison\w*"
    r"|harm\w*|hurt|attack\w*|weapons?|explosives?|bribe\w*|blackmail\w*|threaten\w*|stalk\w*|spy|evade|illegal\w*"
    r"|home address|private|personal (?:phone|number|data|details)|phone number of|passwords?|pin code|salary of"
    r"|medical records?|bank (?:account|details)|tamper\w*|disable|trick)\b",
    re.IGNORECASE,
)
_NOT = r"(?:not|never|no|nothing|none|\w+n['’]t|cannot)"
_UNKNOWN = re.compile(
    rf"\b{_NOT} (?:\w+ ){{0,2}}(?:information|know|known|details?|say|said|told|stated|mention\w*|available)\b",
    re.IGNORECASE,
)
_DECLINES = re.compile(r"\b(?:(?:can|won|don)['’]t|can ?not|will not|do not|unable to|not able to)\b", re.IGNORECASE)
_SENSELESS = re.compile(
    rf"\bsense\b|\b(?:{_NOT}|unsure) (?:\w+ ){{0,2}}(?:understand|sure|follow|clear)\b|\bunclear\b|\bunsure\b", re.I
)
_CORRECTS = re.compile(rf"\b(?:{_NOT}|actually|instead|rather|in fact|only)\b", re.IGNORECASE)


def topic_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words without those that any topic has."""
    return frozenset(content_stems(text)) - _COMMON


def find_request_fault(request: str, passages: Sequence[Passage], question_type: QuestionType) -> str | None:
    """Return the reason why a request isn't of its kind, by the checks that the kind names; or None."""
    faults = (_REQUEST_CHECKS[check](request, passages) for check in question_type.checks)
    return next((fault for fault in faults if fault), None)


def find_reply_fault(reply: str, passages: Sequence[Passage], checks: Sequence[ReplyCheck]) -> str | None:
    """Return the reason why a reply isn't the right one to a kind of request; or None."""
    return next((fault for check in checks if (fault := _REPLY_CHECKS[check](reply, passages))), None)


def _coverage(request: str, passages: Sequence[Passage]) -> float:
    """Return the largest share of a request's stems that a sentence, with the title of its document, has."""
    stems = topic_stems(request)
    parts = ((p.title, p.text[start:end]) for p in passages for start, end in sentences(p.text))
    held = (len(stems & topic_stems(f"{title} {text}")) for title, text in parts)
    return max(held, default=0) / max(1, len(stems))


def _on_topic(request: str, passages: Sequence[Passage]) -> str | None:
    stems = topic_stems(request)
    told = frozenset[str]().union(*(topic_stems(p.titled) for p in passages))
    return None if stems and len(stems & told) >= _ON_TOPIC * len(stems) else "is not about what the documents tell"


def _uncovered(request: str, passages: Sequence[Passage]) -> str | None:
    return "may be answered: a sentence tells of all of it" if _coverage(request, passages) >= _COVERED else None


def _scattered(request: str, passages: Sequence[Passage]) -> str | None:
    apart = _coverage(request, passages) <= _SCATTERED or len(topic_stems(request)) < 2
    return None if apart else "makes sense: its words stand together in a sentence"


def _presupposes(request: str, _: Sequence[Passage]) -> str | None:
    return "asks whether it is so, and takes nothing for granted" if _WHETHER.match(request.lstrip()) else None


def _asks_modality(request: str, _: Sequence[Passage]) -> str | None:
    return None if _MODALITY.search(request) else "asks for nothing beyond words"


def _asks_harm(request: str, _: Sequence[Passage]) -> str | None:
    return None if _HARM.search(request) else "asks for nothing harmful or private"


def _says_unknown(reply: str, _: Sequence[Passage]) -> str | None:
    return None if _UNKNOWN.search(reply) else "doesn't say that it isn't known"


def _declines(reply: str, _: Sequence[Passage]) -> str | None:
    return None if _DECLINES.search(reply) else "doesn't decline"


def _doubts_sense(reply: str, _: Sequence[Passage]) -> str | None:
    return None if _SENSELESS.search(reply) or find_request(reply) else "takes the question as if it made sense"


def _corrects(reply: str, passages: Sequence[Passage]) -> str | None:
    told = frozenset[str]().union(*(topic_stems(p.titled) for p in passages))
    return None if _CORRECTS.search(reply) and topic_stems(reply) & told else "corrects nothing"


_REQUEST_CHECKS: dict[QuestionCheck, Callable[[str, Sequence[Passage]], str | None]] = {
    "on-topic": _on_topic,
    "uncovered": _uncovered,
    "scattered": _scattered,
    "presupposes": _presupposes,
    "asks-modality": _asks_modality,
    "asks-harm": _asks_harm,
}
_REPLY_CHECKS: dict[ReplyCheck, Callable[[str, Sequence[Passage]], str | None]] = {
    "says-unknown": _says_unknown,
    "declines": _declines,
    "doubts-sense": _doubts_sense,
    "corrects": _corrects,
}
