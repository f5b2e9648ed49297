"""Check a dialog of a task before it is judged: its form, and what its task asks of it (Bai et al. 2024, section 3.2).

What a program can see: a miss costs a call of the judge, a false alarm a second attempt. A task's own checks look for
English words, and apply to English dialogs only.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from generator.common.language import dialog_language
from generator.common.numerals import find_numerals
from generator.common.scripts import has_question_mark, has_words, words
from generator.common.shingles import content_stems
from generator.dialogs.checks.answers import find_answer_fault
from generator.dialogs.checks.questions import (
    COPIED,
    NAMELESS,
    OFF_SUBJECT,
    copies_documents,
    is_nameless,
    is_off_subject,
    speaks_of_documents,
)
from generator.dialogs.checks.requests import find_withheld
from generator.dialogs.dedup import Repetition
from generator.schema import Passage, Turn
from taxonomy import Task

# The reason why a dialog can't be used, a short phrase that groups like cases, and the message that shows it.
Fault = tuple[str, str]

_ROLE = r"(?:the )?(?:user|agent|human|assistant|(?:chat|ro)?bot|customer|ai)"
_SAYS = r"(?:asks|says|types|writes|adds|answers|replies|responds|explains|admits)"
# “Turn 2: …”, “User: …”, and “Step 2: …”, unless it is a list of steps.
LABEL = re.compile(
    rf"^\W*(?:(?:turn|round) ?\d+|{_ROLE}(?: {_SAYS})?)\W{{0,3}}:|\A\W*step ?\d+\W{{0,3}}:(?![\s\S]*\bstep ?\d)",
    re.IGNORECASE | re.MULTILINE,
)
_POINTING = frozenset(
    words(
        "it its itself that this these those there then they them their theirs he him his she her hers one ones such "
        "same both each either neither former latter first second third last other another else so earlier before "
        "mentioned said"
    )
)
_DOUBTS = frozenset(
    words(
        "wrong incorrect mistake mistaken error right sure certain correct actually but no not disagree doubt think "
        "thought heard read believe believed really isn aren doesn don wasn can cannot couldn shouldn check again must "
        "should surely strange odd though however another otherwise different told says said swear swears remember"
    )
)
_CORRECTS = frozenset(
    words(
        "not no wrong mistake mistaken incorrect error sorry apologies apologize apologise actually rather instead "
        "correct correction isn wasn weren doesn didn"
    )
)
# Beside those that `content_stems` leaves out, the words that questions on any topic share.
_COMMON = frozenset(content_stems("what how which who whom whose why when where i my we our they he she you your not"))
# Shares from which texts belong together, chosen on the 1,388 published dialogs. Of the stems of a question, those of
# the first: 82 of 83 second questions of TS are below. Of the stems of an answer, those of an earlier one: 99.7% of the
# later answers of CR and FR are above, and 13% of unrelated ones. Of the words of two questions, those in both.
_SAME_TOPIC, _REWRITTEN, _ALIKE = 0.2, 0.1, 0.3
UNPLANNED = "says that it isn't known, where the plan wants an answer"
_NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d+/[1-9]\d*|(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)(?!\d)")


class Written(NamedTuple):
    """A dialog as it was written: the messages of User and Agent, and what the writer fixed before, where it did.

    `subject` is what it was to be about, in the words of its prompt.
    """

    users: Sequence[str]
    agents: Sequence[str]
    result: str = ""
    mistake: str = ""
    subject: str = ""


def find_dialog_fault(written: Written, task: Task, repetition: Repetition, grounded: bool) -> Fault | None:
    """Return the reason why a dialog can't be used, with the message that shows it; or None.

    Args:
        grounded: it rests on documents, so nobody may speak of them.
    """
    if fault := _find_form_fault(written, task, repetition, grounded):
        return fault
    english = dialog_language().code == "en"
    for check in task.checks if english else ():
        if fault := _CHECKS[check](written, repetition):
            return fault
    first, last = written.agents[0], written.agents[-1]
    if task.result and not holds(last, written.result):
        return "the last answer lacks the result", last
    if task.result and "disputes" in task.checks and holds(first, written.result) == bool(task.mistake):
        return f"the first answer {'has' if task.mistake else 'lacks'} the result", first
    if task.mistake:
        told = next((user for user in written.users[1:] if holds(user, written.result)), None)
        if told and set(words(written.result)) - _DOUBTS:  # where it is “no”, a doubt may have the word
            return "the User gives the right answer", told
        if not holds(first, written.mistake):
            return "the first answer lacks the mistake", first
        if english and holds(last, written.mistake) and not _CORRECTS & set(words(last)):
            return "the last answer keeps the mistake", last
    return None


def find_turn_fault(turns: Sequence[Turn], passages: Sequence[Passage]) -> Fault | None:
    """Return why the question or the answer of the last of `turns` can't be used, as in other dialogs; or None.

    What is planned to be unanswerable has no answer, and nothing else; it is on the topic, and no sentence tells it.
    """
    *history, turn = turns
    if not history and is_nameless(turn.query):
        return NAMELESS, turn.query
    if copies_documents(turn.query, passages):
        return COPIED, turn.query
    unknown, planned = turn.answerability == "unanswerable", turn.planned and turn.planned.answerability
    if planned == "unanswerable" and not unknown:
        return "tells something, where the plan wants that it isn't known", turn.answer
    if planned == "answerable" and unknown:
        return UNPLANNED, turn.answer
    if unknown and is_off_subject(turn.query, passages, history):
        return OFF_SUBJECT, turn.query
    if unknown and find_withheld(turn.query, passages):
        return "says that it isn't known, and a sentence tells of all of it", turn.query
    fault = find_answer_fault(turn.answer, turn.query, history, passages)
    return (fault.partition(": ")[0], turn.answer) if fault else None


def holds(answer: str, wanted: str) -> bool:
    """Return whether an answer holds a result: its numbers as numbers, or without any its words by their stems."""
    if numbers := _numbers(wanted):
        return numbers <= _numbers(answer)
    return set(content_stems(wanted)) <= set(content_stems(answer))


def _numbers(text: str) -> set[Fraction]:
    found = {Fraction(match.replace(",", "").replace("−", "-")) for match in _NUMBER.findall(text)}
    return found | {Fraction(each.digits) for each in find_numerals(words(text)) if not each.ordinal}


def _find_form_fault(written: Written, task: Task, repetition: Repetition, grounded: bool) -> Fault | None:
    examples = [pair for example in task.examples for pair in example.dialog]
    seen: set[tuple[str, ...]] = set()
    for message in (text for pair in zip(written.users, written.agents, strict=True) for text in pair):
        if not has_words(message):
            return "an empty message", message
        if LABEL.search(message):
            return "a role or step label in a message", message
        if grounded and speaks_of_documents(message):
            return "speaks of the documents", message
        if (said := tuple(words(message))) in seen:
            return "repeats a message", message
        seen.add(said)
    language = dialog_language()
    for user in written.users:
        if language.matches("disclaimer", user) or language.matches("offers_help", user):
            return "the User speaks as the Agent", user
    if repetition.find(written.users[0], [pair.user for pair in examples]) is not None:
        return "copies an example", written.users[0]
    answers = {tuple(words(pair.agent)) for pair in examples}
    if copied := next((agent for agent in written.agents if tuple(words(agent)) in answers), None):
        return "copies an example", copied
    first, subject = (" ".join(words(text)) for text in (written.users[0], written.subject))
    if first in subject and repetition.find(written.users[0], [written.subject]) is not None:
        return "copies the subject", written.users[0]
    return None


def _answers_ask(written: Written, _: Repetition) -> Fault | None:
    return next((("an answer asks nothing back", a) for a in written.agents[:-1] if not _asks(a)), None)


def _first_answer_asks(written: Written, _: Repetition) -> Fault | None:
    return None if _asks(written.agents[0]) else ("the first answer asks nothing back", written.agents[0])


def _refers_back(written: Written, _: Repetition) -> Fault | None:
    plain = (user for user in written.users[1:] if not _POINTING & set(words(user)))
    return next((("a later question points at nothing said before", user) for user in plain), None)


def _returns(written: Written, _: Repetition) -> Fault | None:
    first = _topic(f"{written.users[0]} {written.agents[0]}")
    last = _topic(written.users[-1])
    between: set[str] = set()
    for user, agent in list(zip(written.users, written.agents, strict=True))[1:-1]:
        between |= _topic(f"{user} {agent}")
        asked = _topic(user)
        if len(asked & _topic(written.users[0])) > _SAME_TOPIC * len(asked):
            return "the topic does not change", user
    if len(last & first) <= len(last & between):
        return "the last question does not return to the first topic", written.users[-1]
    return None


def _looks_alike(written: Written, _: Repetition) -> Fault | None:
    for before, user in pairwise(written.users):
        one, other = set(words(before)), set(words(user))
        if len(one & other) < _ALIKE * len(one | other) and not _topic(before) & _topic(user):
            return "a later question does not look like the one before", user
    return None


def _disputes(written: Written, repetition: Repetition) -> Fault | None:
    for user in written.users[1:2]:
        if repetition.find(user, written.users[:1]) is not None:
            return "the User asks again", user
        if not _asks(user) and not _DOUBTS & set(words(user)):
            return "the User does not dispute the answer", user
    return None


def _rewrites(written: Written, _: Repetition) -> Fault | None:
    stems = [_topic(agent) for agent in written.agents]
    for place, mine in enumerate(stems[1:], start=1):
        if all(len(mine & other) < _REWRITTEN * min(len(mine), len(other)) for other in stems[:place]):
            return "a later answer does not rewrite an earlier one", written.agents[place]
    return None


def _asks(text: str) -> bool:
    return has_question_mark(text) or "please" in words(text)


def _topic(text: str) -> set[str]:
    return set(content_stems(text)) - _COMMON


_CHECKS: dict[str, Callable[[Written, Repetition], Fault | None]] = {
    "answers-ask": _answers_ask,
    "first-answer-asks": _first_answer_asks,
    "refers-back": _refers_back,
    "returns": _returns,
    "look-alike": _looks_alike,
    "disputes": _disputes,
    "rewrites": _rewrites,
}
