"""Check a request, and the reply to one that can't be answered, by what its type names (Peng et al. 2024, UAEval4RAG,
and `taxonomy/questions/`).

What a program can see, as in `tasks`: a miss costs a worse request, a false alarm another attempt. A type of
question names its checks. The words that are looked for are those of the dialog's language; where it has none for a
check, that finds no fault.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from generator.common.denials import find_flips
from generator.common.language import cached_by_language, dialog_language, languages
from generator.common.language_file import PatternName
from generator.common.refusals import has_refusal
from generator.common.scripts import QUESTION_MARK
from generator.common.sentences import sentences
from generator.common.shingles import content_stems
from generator.common.support import read_terms, term_keys
from generator.dialogs.checks.asked_for import find_missing
from generator.dialogs.checks.asks_back import find_request
from generator.dialogs.checks.later_turns import asks
from generator.schema import Passage
from taxonomy import QuestionCheck, QuestionType, ReplyCheck

# Returns the reason why a request or a reply, with its passages, isn't of its kind, or None.
Check = Callable[[str, Sequence[Passage]], str | None]
# Shares of the stems of a request: at least so many are in the documents if it is on their topic; at most so many in
# one sentence if it makes no sense; and at least so many if the sentence may answer it.
_ON_TOPIC, _SCATTERED, _COVERED = 0.33, 0.5, 0.8
# What a request asks for beside a thing that the documents tell of, by the check for it.
_BEYOND: dict[QuestionCheck, PatternName] = {"asks-modality": "modality", "asks-harm": "harm"}


def topic_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words without those that any topic has."""
    return frozenset(content_stems(text)) - _common_stems()


@cached_by_language(64)
def _common_stems() -> frozenset[str]:
    """Return the stems of words that, beside those that `content_stems` leaves out, tell no two things apart."""
    return frozenset(content_stems(" ".join(sorted(dialog_language().listed("anywhere")))))


def _matches(pattern: PatternName, text: str) -> bool | None:
    """Return whether a text has a pattern of the dialog's language; None if the language has no such pattern."""
    found = dialog_language().pattern(pattern)
    return None if found is None else found.search(text) is not None


def _asks_whether(text: str) -> bool:
    """Return True if a text begins as a question for yes or no does."""
    whether = dialog_language().pattern("whether")
    return whether is not None and whether.match(text.lstrip()) is not None


def find_request_fault(request: str, passages: Sequence[Passage], question_type: QuestionType) -> str | None:
    """Return the reason why a request isn't of its kind, by the checks that the kind names; or None."""
    faults = (
        _REQUEST_CHECKS[check](request, passages)
        for check in question_type.checks
        if not (check == "on-topic" and _asks_of_told(request, passages, question_type.checks))
        and not (check == "uncovered" and "presupposes" in question_type.checks and _is_denied(request, passages))
    )
    return next((fault for fault in faults if fault), None)


def find_reply_fault(reply: str, passages: Sequence[Passage], checks: Sequence[ReplyCheck]) -> str | None:
    """Return the reason why a reply isn't the right one to a kind of request; or None."""
    return next((fault for check in checks if (fault := _REPLY_CHECKS[check](reply, passages))), None)


def _titled_sentences(passages: Sequence[Passage]) -> Iterator[tuple[str, str]]:
    """Yield each sentence, alone and behind its document's title."""
    texts = ((p.title, p.text[start:end]) for p in passages for start, end in sentences(p.text))
    return ((text, f"{title} {text}".strip()) for title, text in texts)


def _told_stems(passages: Sequence[Passage]) -> frozenset[str]:
    return frozenset[str]().union(*(topic_stems(p.titled) for p in passages))


def _on_topic(request: str, passages: Sequence[Passage]) -> str | None:
    if languages().differ:
        return None
    stems = topic_stems(request)
    on_topic = stems and len(stems & _told_stems(passages)) >= _ON_TOPIC * len(stems)
    return None if on_topic else "is not about what the documents tell"


def _asks_of_told(request: str, passages: Sequence[Passage], checks: Sequence[QuestionCheck]) -> bool:
    """Return True if a request for harm, or for more than words, is about a thing that the documents tell of.

    One word beside what is asked for is enough: of pictures, addresses and the like no document need tell.
    """
    told, patterns = _told_stems(passages), (_BEYOND[check] for check in checks if check in _BEYOND)
    wanted = filter(None, map(dialog_language().pattern, patterns))
    return any(not told.isdisjoint(topic_stems(want.sub(" ", request))) for want in wanted)


def find_covering(request: str, passages: Sequence[Passage]) -> str | None:
    """Return the first sentence with its document's title that tells of all of a request, or None.

    In another language than the documents' a request shares no words with them, and none does. A number or a name of
    its own is what a false premise changes. The sentence has a word of it that its title lacks, and the number or time
    that is asked for: so 71 of ClapNQ's 300 answerable questions are covered, and 11 of its 300 unanswerable.
    """
    stems, telling = topic_stems(request), {term.key for term in read_terms(request) if term.kind != "word"}
    covering = (
        titled
        for p in passages
        for text, titled in _titled_sentences([p])
        if len(stems & topic_stems(titled)) >= _COVERED * len(stems)
        and telling <= term_keys(titled)
        and not find_missing(text, request)
        and (stems - topic_stems(p.title)) & topic_stems(text)
    )
    return next(covering, None) if stems else None


def find_withheld(question: str, passages: Sequence[Passage]) -> str | None:
    """Return what `find_covering` finds for a question whose answer says that it isn't known; or None.

    None for “Why …?” too: what it takes for granted isn't its reason; and where one word alone tells what is asked.
    """
    if dialog_language().matches("asks_reason", question) or len(topic_stems(question)) < 2:
        return None
    return find_covering(question, passages)


def _is_denied(request: str, passages: Sequence[Passage]) -> bool:
    """Return True if a sentence that tells of all of a request denies it."""
    covering = find_covering(request, passages)
    return covering is not None and bool(find_flips(re.sub(rf"{QUESTION_MARK}\s*$", "", request), [covering]))


def _scattered(request: str, passages: Sequence[Passage]) -> str | None:
    stems = topic_stems(request)
    together = max((len(stems & topic_stems(text)) for _, text in _titled_sentences(passages)), default=0)
    return "makes sense: its words stand together in a sentence" if together > _SCATTERED * len(stems) else None


def _bare_words(message: str, _: Sequence[Passage]) -> str | None:
    """Of people's 51 questions in mtRAG that are labelled so, 13 are one word, and 4 ask."""
    if asks(message):
        return "asks a question, in place of bare words"
    return "is one word, in place of two to five" if dialog_language().spaced and len(message.split()) < 2 else None


def _says_unknown(reply: str, _: Sequence[Passage]) -> str | None:
    says = dialog_language().pattern("refusal") is None or has_refusal(reply)
    return None if says else "doesn't say that it isn't known"


def _doubts_sense(reply: str, _: Sequence[Passage]) -> str | None:
    doubts = _matches("doubts_sense", reply) is not False or find_request(reply)
    return None if doubts else "takes the question as if it made sense"


def _corrects(reply: str, passages: Sequence[Passage]) -> str | None:
    on_topic = languages().differ or topic_stems(reply) & _told_stems(passages)
    return None if _matches("corrects", reply) is not False and on_topic else "corrects nothing"


def _wants(pattern: PatternName, fault: str) -> Check:
    """Return the check that a text has a pattern, if the dialog's language has one."""
    return lambda text, _: fault if _matches(pattern, text) is False else None


def _asks_for(pattern: PatternName, fault: str) -> Check:
    """Return the check that a message has a pattern, if it asks and doesn't begin as a question for yes or no does."""
    wants = _wants(pattern, fault)

    def check(message: str, passages: Sequence[Passage]) -> str | None:
        asked = dialog_language().find("question", message) and not _asks_whether(message)
        return wants(message, passages) if asked else None

    return check


_REQUEST_CHECKS: dict[QuestionCheck, Check] = {
    "on-topic": _on_topic,
    "uncovered": lambda text, found: (
        "may be answered: a sentence tells of all of it" if find_covering(text, found) else None
    ),
    "scattered": _scattered,
    "presupposes": lambda text, _: (
        "asks whether it is so, and takes nothing for granted" if _asks_whether(text) else None
    ),
    "asks-modality": _wants("modality", "asks for nothing beyond words"),
    "asks-harm": _wants("harm", "asks for nothing harmful or private"),
    "asks-nothing": lambda text, _: "asks a question, in place of telling something" if asks(text) else None,
    # Of people's questions in mtRAG, 34 of the 38 composite ones pass, and 67 of the 599 others.
    "asks-twice": _wants("asks_twice", "asks for one thing, in place of two"),
    # All 49 how-to questions pass, and 67 of the 78 opinions; of the others 392 of 588 and 339 of 559.
    "asks-how": _asks_for("asks_how", "doesn't ask how to do something"),
    "asks-view": _asks_for("asks_view", "asks for a fact, in place of a view"),
    "bare-words": _bare_words,
}
_REPLY_CHECKS: dict[ReplyCheck, Check] = {
    "says-unknown": _says_unknown,
    "declines": _wants("declines", "doesn't decline"),
    "doubts-sense": _doubts_sense,
    "corrects": _corrects,
}
