"""Check a set of questions of a scenario before anything is searched for it (Kuo et al. 2025, figures 8 to 13).

What a program can see: a miss costs a worse candidate, a false alarm a second attempt. A scenario's own checks look for
English words, and apply to English dialogs only.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from generator.common.language import dialog_language
from generator.common.scripts import has_words, words
from generator.common.shingles import content_stems
from generator.dialogs.checks.questions import GAP, speaks_of_documents
from generator.dialogs.checks.tasks import LABEL, Fault
from generator.dialogs.dedup import Repetition
from generator.prompts.scenario_signatures import LONGEST_REQUEST
from generator.schema import Passage
from taxonomy import Scenario

# A question of a set, and the query that its context is searched with; empty where it is searched with the question.
Asked = tuple[str, str]

_FORM = (
    r"(?:summar(?:y|ies)|tables?|lists?|bullets?|bullet[ -]points?|points|overviews?|articles?|essays?"
    r"|paragraphs?|outlines?|timelines?|analys[ei]s|sections?|handouts?|briefings?|memos?|FAQs?|slides?|TL;?DR|recaps?"
)
# Forms that documents tell of, too (“what an engineering report recommended”).
_TOLD = (
    r"|reports?|posts?|briefs?|texts?|drafts?|stor(?:y|ies)|guides?|speech(?:es)?|letters?|lessons?|surveys?|reviews?"
    r"|introductions?|releases?|e-?mails?|notes"
)
_COUNT = r"(?:an?|another|one|two|three|four|five|six|seven|eight|ten|twenty|thirty|forty|fifty|\d+)"
_LENGTH = rf"{_COUNT}[ -](?:[\w-]+ )?(?:words?|sentences?|lines?|pages?)"
_TEXT = re.compile(rf"\b(?:{_FORM}{_TOLD})|facts|sum up|summari[sz]e|write|draft|compare|{_LENGTH})\b", re.IGNORECASE)
# A form of its own has an article or a number, or is “in points”; “the table”, “in your draft” is the one there is.
_THERE = r"(?!(?:the|th(?:is|at|[eo]se)|my|our|your|his|her|its|their)\b)"
_BEFORE = "".join(rf"(?<!\b{word} )" for word in ("the", "to", "of", "from", "on", "about", "after", "against"))
_OWN_FORM = re.compile(
    rf"{_BEFORE}\b(?:{_COUNT}|as|in) (?:{_THERE}[\w-]+ ){{0,2}}?{_FORM})\b"
    rf"|\b(?:write|draft|compose|make|prepare|create) (?:{_THERE}[\w-]+ ){{1,3}}?{_FORM}{_TOLD})\b",
    re.IGNORECASE,
)
# Of a text that is there, too: how long it is to be, and its layout at the end.
_LAID_OUT = re.compile(
    r"\b\d+ (?:words|sentences)\b|\b(?:as|in|into) (?:an? |\w+ )?(?:tables?|lists?|bullets?|bullet[ -]points?|points)$",
    re.IGNORECASE,
)
# What a question asks about: “what a report recommended”, up to the next comma.
_ASKED = re.compile(r"\b(?:what|how|why|who|whom|whose|which|where|when|whether|that)\b[^,.;:!?]*", re.IGNORECASE)
# Stems that requests for a plan share; the conditions are the others.
_PLAN = frozenset(
    content_stems("plan trip travel journey tour visit final now new we i us me my our need want like day")
)
# Stems about the form of a text, which requests on any subject share.
_FORM_STEMS = frozenset(
    content_stems(
        "article handout text draft paragraph word sentence point line list table summary overview report survey short "
        "long about one two three four five six begin beginning end complete expand write"
    )
)
# So many stems of an example, which neither rules nor document have, show that a question is about its subject.
_BORROWED = 4
# The share of a later question's stems that may have been there before.
_REPEATED = 0.5
# So many digits has a number that is a budget rather than a day, an age or an hour.
_AMOUNT = 3


def find_set_fault(
    asked: Sequence[Asked],
    scenario: Scenario,
    source: Passage,
    earlier: Sequence[Sequence[Asked]],
    repetition: Repetition,
) -> Fault | None:
    """Return the reason why a set of questions can't be used, with the question that shows it; or None.

    Args:
        source: the document that the questions are about.
        earlier: the sets before it, which it must not resemble.
    """
    questions = [question for question, _ in asked]
    examples = [each.question for example in scenario.examples for each in example.questions]
    others = [question for each in earlier for question, _ in each]
    topics = _example_topics(scenario) - set(content_stems(f"{source.title}\n{source.text}"))
    for place, (question, query) in enumerate(asked):
        if not has_words(question):
            return "an empty question", question
        if len(question) >= LONGEST_REQUEST - 1:  # a schema cuts what is longer, and white space may be gone
            return "a question breaks off", question
        if LABEL.search(question) or GAP.search(question):
            return "a label or a gap in a question", question
        if speaks_of_documents(question, (source,)):
            return "speaks of the documents", question
        if repetition.find(question, questions[:place]) is not None:
            return "repeats an earlier question", question
        if repetition.find(question, others) is not None:
            return "repeats a question of an earlier set", question
        if repetition.find(question, examples) is not None:
            return "copies an example", question
        if len(topics & set(content_stems(f"{question} {query}"))) >= _BORROWED:
            return "is on the topic of an example", question
    for check in scenario.checks if dialog_language().code == "en" else ():
        if fault := _CHECKS[check](questions):
            return fault
    return None


@cache
def _example_topics(scenario: Scenario) -> set[str]:
    """Return the stems of a scenario's examples that its rules don't have."""
    examples = " ".join(f"{e.source} {each.question} {each.query}" for e in scenario.examples for each in e.questions)
    rules = " ".join([scenario.outline(), *scenario.steps, *(text for each in scenario.phrasings for text in each)])
    topics = set(content_stems(examples)) - set(content_stems(rules)) - _FORM_STEMS
    return {stem for stem in topics if not stem.isdigit()}


def _form_first(questions: Sequence[str]) -> Fault | None:
    if not _TEXT.search(questions[0]):
        return "the first question asks for no text, such as a summary or a table", questions[0]
    return next((("a later question names a form", q) for q in questions[1:] if _names_form(q)), None)


def _names_form(question: str) -> bool:
    return bool(_OWN_FORM.search(_ASKED.sub("", question)) or _LAID_OUT.search(question.rstrip(" .!?")))


def _adds_conditions(questions: Sequence[str]) -> Fault | None:
    for place, question in enumerate(questions[1:], start=1):
        mine = set(content_stems(question)) - _PLAN
        before = {stem for earlier in questions[:place] for stem in content_stems(earlier)}
        if not mine - before:
            return "a later question adds no condition", question
        if len(mine & before) > _REPEATED * len(mine):
            return "a later question repeats conditions", question
        if {word for word in words(question) if word.isdigit() and len(word) >= _AMOUNT} & before:
            return "a later question repeats a number", question
    return None


_CHECKS: dict[str, Callable[[Sequence[str]], Fault | None]] = {
    "form-first": _form_first,
    "adds-conditions": _adds_conditions,
}
