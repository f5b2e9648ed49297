"""Check that a later question goes on with its dialog as its type says (Lee et al. 2024, section 2.1).

A correction takes up the question before, a clarification the answer, a follow-up neither; no question asks the same
again, or leaves the dialog where no switch was planned. All of it compares stems of content words, with lists of
English words, so dialogs in other languages aren't checked.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from generator.common.shingles import FUNCTION_WORDS, content_stems, is_english, words
from generator.dialogs.prompt import Documents
from generator.schema import Turn
from taxonomy import QuestionType

_QUESTION_WORDS = frozenset(words("what who whom whose when where why how which whether"))
_AUXILIARIES = frozenset(
    words(
        "is are was were am do does did has have had can could will would should may might must "
        "isn aren wasn weren don doesn didn hasn haven can couldn won wouldn shouldn"
    )
)
# With one of these a question leans on what was said, or asks for more of it.
_POINTING = frozenset(
    words(
        "it its he him his she her hers they them their theirs this that these those one ones there then here same "
        "such other others else another more too also either both neither first second third last next latter former"
    )
)
# Words that carry neither a subject nor a reference to one.
_LIGHT = frozenset(
    words(
        "about ok okay well yes no not oh exactly really actually just then now please know want wanted mean means "
        "meant meaning ask asked asking say saying sorry mistake question but if or i my we our you your with by "
        "from as s t m d re ve ll happen happened"
    )
)
_COMMON = _QUESTION_WORDS | _AUXILIARIES | _POINTING | _LIGHT | FUNCTION_WORDS

# A question is the same again behind any of these.
_OPENER = re.compile(
    r"(?:\W*(?:what about|how about|and|so|but|then|ok|okay|no|yes|oh|well|sorry|please|my mistake|i (?:mean|meant)"
    r"|i was asking(?: about)?|i wanted to know|(?:can|could) you tell me|tell me)\b)+\W*",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\bI (?:meant?|was asking|was talking)\b|\bnot (?:what I (?:asked|meant)|my question)\b|^\W*my mistake\b",
    re.IGNORECASE,
)
_CLARIFIES = re.compile(
    r"\b(?:do|did) you mean\b|\byou (?:mean|said|mentioned)\b|\bare you saying\b|^\W*what do you mean\b"
    r"|\b(?:does|did|do|would) (?:that|this|it|they|those) mean\b|\bwhat (?:exactly )?(?:does|do|did) .{1,60} mean\b",
    re.IGNORECASE,
)
_REJECTS = re.compile(r"\b(?:not|instead of|rather than)\b(.*)", re.IGNORECASE)
# "Is there a fee?" asks to confirm what the last answer said, "Can you tell me the fee?" doesn't.
_REQUEST = re.compile(r"\b(?:can|could|would|will|please) (?:you|i)\b", re.IGNORECASE)

REPEATS = "repeats an earlier question"
LEAVES = "leaves the subject of the dialog"


def find_later_fault(
    question: str, documents: Documents, history: Sequence[Turn], question_type: QuestionType, focus: str
) -> str | None:
    """Return the reason why a later question doesn't go on with its dialog, or None.

    Args:
        documents: the passages retrieved so far.
        history: the turns so far, at least one.
        focus: what the question was to touch on; a question that does so stays in the dialog.
    """
    if not is_english(" ".join([question, *(turn.query for turn in history)])):
        return None
    if any(_is_same(question, turn.query, question_type.part_taken_up == "question") for turn in history):
        return REPEATS
    last = next((turn for turn in reversed(history) if turn.answerability != "conversational"), history[-1])
    content, known = content_of(question), _known_stems(documents, history, focus)
    match question_type.part_taken_up:
        case "question" if not _takes_up_question(question, content, last, known):
            return "takes up nothing of the last question"
        case "answer" if not (content & content_of(last.answer) or _points(question)):
            return "takes up nothing of the last answer"
        case "neither" if fault := _find_old_matter(question, content, last):
            return fault
    leaves = len(content) >= 2 and content.isdisjoint(known) and _asks(question) and not _points(question)
    return LEAVES if leaves and not question_type.stands_alone else None


@lru_cache(maxsize=4096)  # all questions of a dialog are compared with the same passages
def content_of(text: str) -> frozenset[str]:
    """Return the stems of the words that carry what a text is about."""
    return frozenset(content_stems(text)) - _stop_stems()


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem for word in _COMMON for stem in content_stems(word))


def _is_same(question: str, earlier: str, narrows: bool) -> bool:
    """Return true if a question asks nothing that an earlier one didn't.

    Both have the same question words, unless the new one has none at all (“What about the fee?”), and refer to the same
    things; the new one's content is that of the earlier, or a part of at least two words.

    Args:
        narrows: a part of the earlier question is a new one: “No, I meant the fee of the repair.”
    """
    new, old = (_OPENER.match(text) for text in (question, earlier))
    question, earlier = (text[match.end() :] if match else text for text, match in ((question, new), (earlier, old)))
    mine, theirs = content_of(question), content_of(earlier)
    asked, before = ([w for w in words(text) if w in _QUESTION_WORDS] for text in (question, earlier))
    refers, referred = (_POINTING.intersection(words(text)) for text in (question, earlier))
    open_ended = bool(new) and not asked and _AUXILIARIES.isdisjoint(words(question)[:1])
    part = len(mine) >= 2 and mine < theirs and not narrows
    return (mine == theirs or part) and bool(mine) and refers == referred and (asked == before or open_ended)


def _takes_up_question(question: str, content: frozenset[str], last: Turn, known: frozenset[str]) -> bool:
    """Return true if a question corrects the last one.

    It names what was asked for, or what the answer had wrong (“children, not adults”), or only the thing that was
    meant, one of the dialog (“No, I meant the ferry”).
    """
    rejected = content_of(" ".join(_REJECTS.findall(question)))
    named = content & content_of(last.query) or rejected & content_of(last.answer)
    return bool(named) or not content or (not _asks(question) and not content.isdisjoint(known))


def _find_old_matter(question: str, content: frozenset[str], last: Turn) -> str | None:
    """Return the reason why a question asks for nothing new."""
    if _CORRECTS.search(question):
        return "corrects the last question in place of asking for something new"
    if _CLARIFIES.search(question):
        return "asks what the last answer means in place of something new"
    spoken = [word for word in words(question) if word not in ("so", "and", "ok", "but", "oh")]
    confirms = (
        bool(spoken)
        and spoken[0] in _AUXILIARIES
        and len(content) >= 2
        and content <= content_of(last.answer)
        and not _REQUEST.search(question)
        and not {"or", "other", "else", "another", "more", *_QUESTION_WORDS}.intersection(spoken)
    )
    return "asks for what the last answer told" if confirms else None


def _asks(question: str) -> bool:
    """Return true if a message asks, and doesn't just tell."""
    return "?" in question or not (_QUESTION_WORDS | _AUXILIARIES).isdisjoint(words(question)[:1])


def _points(question: str) -> bool:
    """Return true if a question refers to what was said."""
    return not _POINTING.isdisjoint(words(question))


def _known_stems(documents: Documents, history: Sequence[Turn], focus: str) -> frozenset[str]:
    """Return the stems of the dialog, of the documents that its answers rest on, and of `focus`.

    Other documents were retrieved without being of use: a question on them changes the subject. Before any answer rests
    on one, all count.
    """
    cited = {evidence.passage_id for turn in history for evidence in turn.evidence}
    used = {p.document_id for p in documents.passages if p.id in cited}
    passages = [p for p in documents.passages if p.document_id in used or not used]
    said = (text for turn in history for text in (turn.query, turn.answer))
    return frozenset[str]().union(*map(content_of, [focus, *said, *(p.titled for p in passages)]))
