"""Ask a later question as one does in the middle of a conversation: what was just named is “it”.

Some of people's questions can't be understood without the dialog (`taxonomy.non_standalone`). A small model names
everything in full, so a pronoun is put in afterwards. The question in full is then the rewritten one. In English alone.
"""

import re
from collections.abc import Sequence
from itertools import takewhile

from generator.common.language import IN_ENGLISH, dialog_language, languages
from generator.dialogs.checks.later_turns import content_of, refers_back
from generator.dialogs.checks.questions import find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.prompt import Documents
from generator.schema import Turn
from taxonomy import QuestionType

_WORD = re.compile(r"[\w-]+(?:['’]\w+|(?<=s)['’](?!\w))?")
_GENITIVE = re.compile(r"(?:['’]s|(?<=s)['’])$")
_BEFORE_SUBJECT = set("do does did can could will would should may might must has have had".split())
_BE = set("is are was were".split())
_ARTICLES, _JOINS, _GOES_ON = {"a", "an", "the"}, {"and", "between", "or"}, {"behind", "of"}
# Before these and a noun, no phrase begins with the noun.
_QUALIFY = set("my your our any no every each all first last next other same such another more".split())
_NOT_IN_NAME = set("i you we he she it they them this that these those which who what than".split())
_OWNED = re.compile(r"\bthe ((?:[\w-]+ ){1,3}?)of $")
_PLACE = re.compile(r"\b(?:in|at) $")
# Each as subject, as object, and before what is owned.
_IT, _THEY, _HE, _SHE = ("it", "it", "its"), ("they", "them", "their"), ("he", "him", "his"), ("she", "her", "her")


def refer(
    question: str,
    documents: Documents,
    history: Sequence[Turn],
    question_type: QuestionType,
    repetition: Repetition,
) -> str:
    """Return a later question with a pronoun, or as it is: where it has one, or no name of the last turn to replace.

    What takes up the last turn, or has a reply of its own, stays as it is.
    """
    takes_up = question_type.part_taken_up in ("question", "answer")
    if takes_up or question_type.reply or languages() != IN_ENGLISH or refers_back(question):
        return question
    last = history[-1]
    asked = last.clean_query or last.query
    start, end = find_named(question, f"{asked} {last.answer}")
    told = " ".join([asked, last.answer, *(each.text for each in last.evidence)])
    said = put_pronoun(question, start, end, told)
    sound = refers_back(said) and not find_fault(said, documents, history, question_type, repetition)
    return said if sound else question


def put_pronoun(question: str, start: int, end: int, told: str) -> str:
    """Return a question with a pronoun in place of `question[start:end]`, or as it is where none is sure to be right.

    Args:
        told: what tells whether a name is a person's, by “he” or “she” behind it.
    """
    before, named, after = question[:start], question[start:end], question[end:]
    pronouns = _choose_pronouns(_GENITIVE.sub("", named), told) if named else None
    if pronouns is None:
        return question
    subject, as_object, own = pronouns
    if _GENITIVE.search(named):
        return f"{before}{own}{after}"
    if owned := _OWNED.search(before):
        return f"{before[: owned.start()]}{own} {owned[1].rstrip()}{after}"
    if pronouns in (_IT, _THEY) and not named.split()[-1].islower() and (place := _PLACE.search(before)):
        return f"{before[: place.start()]}there{after}"
    follows, goes_on = _spoken(before)[-1], _spoken(after)[:1]
    is_subject = (follows in _BEFORE_SUBJECT | _BE and goes_on) or not _BE.isdisjoint(goes_on)
    return f"{before}{subject if is_subject else as_object}{after}"


def _choose_pronouns(named: str, told: str) -> tuple[str, str, str] | None:
    """Return the pronouns that stand for a phrase; None if it may be a person of whom nothing tells which."""
    language, words = dialog_language(), named.split()
    begun = words[words[0].lower() in _ARTICLES :]
    head = ([*takewhile(content_of, begun)] or begun)[-1]  # “the fee for dogs”
    is_common = head.islower() or words != begun
    if is_common and language.matches("plural", head):
        return _THEY
    if head.islower():
        return None if language.matches("person", head) else _IT
    if not re.search(r"\b(?:he|she|his|hers?|him)\b", told, re.IGNORECASE):
        return _IT
    # “Clara Schumann taught in Frankfurt. She …”: no other name stands between.
    behind = re.compile(rf"\b{re.escape(head)}\b[^A-Z]{{0,100}}?\b([Hh]e|[Hh]is|[Ss]he|[Hh]er)\b")
    found = {pronoun.lower() in ("he", "his") for pronoun in behind.findall(told)}
    return None if len(found) != 1 else _HE if found == {True} else _SHE


def find_named(question: str, told: str) -> tuple[int, int]:
    """Return the span of the longest phrase of a question that was just told and isn't all of its content; or (0, 0).

    It begins with an article or behind a function word, and not within a name (“Bank of China”). It ends with the
    question, with a genitive (“the tower's height”), before a function word that doesn't continue it, or before the
    verb (“When did the Roman Empire end?”) if it was told as a whole.
    """
    said, words = list(_WORD.finditer(question)), _spoken(question)
    tells = [bool(content_of(word)) for word in words]

    def name(first: int, last: int) -> list[str]:
        return words[first + (words[first] in _ARTICLES) : last]

    def begins(first: int) -> bool:
        before = words[first - 1]
        in_name = before == "of" and said[max(0, first - 2)][0][0].isupper()
        is_verb = before == "to" and said[first][0].islower() and words[first] not in _ARTICLES
        free = not (in_name or is_verb or before in _ARTICLES | _JOINS | _QUALIFY)
        return free and (words[first] in _ARTICLES or (tells[first] and not tells[first - 1]))

    def ends(first: int, last: int) -> bool:
        if not tells[last - 1]:
            return False
        if last == len(words) or _GENITIVE.search(said[last - 1][0]):
            return True
        goes_on = tells[last] or words[last] in _JOINS | _GOES_ON
        return not goes_on or (words[first - 1] in _BEFORE_SUBJECT and is_whole(first, last))

    def is_whole(first: int, last: int) -> bool:  # nothing that was told makes it longer (“cotton” – “cotton gin”)
        named = name(first, last)
        return (len(named) > 1 or said[last - 1][0][0].isupper()) and _is_told_alone(named, told)

    def is_named(first: int, last: int) -> bool:
        phrase = question[said[first].start() : said[last - 1].end()]
        if re.search(r"[,;:()]", phrase) or not _NOT_IN_NAME.isdisjoint(words[first:last]):
            return False
        is_noun = last - first > 1 or not phrase.islower() or (last == len(words) and words[first - 1] != "to")
        spoken = " ".join(name(first, last))
        return is_noun and f" {spoken} " in known and bool(content_of(question) - content_of(phrase))

    known = f" {' '.join(_spoken(told))} "
    places = ((first, last) for first in range(1, len(words)) for last in range(first + 1, len(words) + 1))
    found = [(first, last) for first, last in places if begins(first) and ends(first, last) and is_named(first, last)]
    first, last = max(found, key=lambda place: place[1] - place[0], default=(0, 0))
    return (said[first].start(), said[last - 1].end()) if last else (0, 0)


def _is_told_alone(name: list[str], told: str) -> bool:
    """Return true if a name was told before a function word, with a genitive, or at the end of a clause."""
    said, words = list(_WORD.finditer(told)), _spoken(told)
    for last in range(len(name), len(words) + 1):
        if words[last - len(name) : last] == name:
            behind = told[said[last - 1].end() :].lstrip()[:1]
            if not behind.isalnum() or _GENITIVE.search(said[last - 1][0]) or not content_of(words[last]):
                return True
    return False


def _spoken(text: str) -> list[str]:
    return [_GENITIVE.sub("", word[0].lower()) for word in _WORD.finditer(text)]
