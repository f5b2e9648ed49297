"""Ask a later question as one does in the middle of a conversation: what was just named is “it”.

Some of people's questions can't be understood without the dialog (`taxonomy.non_standalone`). A small model names
everything in full, so a pronoun is put in afterwards. The question in full is then the rewritten one. In English alone.
"""

import re
from collections.abc import Sequence

from generator.common.language import IN_ENGLISH, dialog_language, languages
from generator.dialogs.checks.later_turns import content_of, leans, refers_back
from generator.dialogs.checks.questions import find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.phrases import ARTICLES, GENITIVE, HAVE, Words, find_named, spoken
from generator.prompts.sections import Documents
from generator.schema import Turn
from taxonomy import QuestionType

# Before “of” and what is no owner.
_PART = set("most all some many much any none half part parts because instead outside".split())
# Not behind what has a verb: “Does the form list names of …”.
_OWNED = re.compile(
    r"(?<!\bdo )(?<!\bdoes )(?<!\bdid )(?<!\bcan )(?<!\bwill )"
    r"\bthe ((?:(?!(?:in|for|on|with|to|by|from|at|or)\b)[\w-]+ ){1,3}?)of $",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"\b((?:come|drive|fly|go|get|move|relocate|return|travel|walk)\w* (?=to )|(?=in |at ))(?:in|at|to) $"
)
# Each as subject, as object, and before what is owned.
_IT, _THEY, _HE, _SHE = ("it", "it", "its"), ("they", "them", "their"), ("he", "him", "his"), ("she", "her", "her")
# Verbs that no singular pronoun stands before, and those that “they” doesn't.
_DISAGREES = frozenset({"are", "were"}), frozenset({"is", "was", "has", "does"})


class Leaning:
    """Counts the turns that were planned to lean on the dialog and don't: later questions lean in their place.

    Args:
        ahead: those to come count from the start, since a model that is asked in plain words doesn't follow that plan.
    """

    def __init__(self, question_types: Sequence[QuestionType], ahead: bool) -> None:
        self._planned = [
            each.dimensions.standalone is False and each.part_taken_up not in ("question", "answer")
            for each in question_types
        ]
        self._ahead, self._owed = ahead, sum(self._planned) if ahead else 0

    def is_due(self, question_type: QuestionType, place: int) -> bool:
        """Return True if the question at a place, from 0, is to lean, and needn't name what it is about."""
        return not question_type.dimensions.new_topic and self._count(place) > 0

    def settle(self, turn: Turn, place: int) -> None:
        """Note the turn that came of a place."""
        counts = self._planned[place] or turn.multi_turn_type != "clarification"
        self._owed = max(0, self._count(place) - (leans(turn) and counts))

    def _count(self, place: int) -> int:
        return self._owed + (self._planned[place] and not self._ahead)


def refer(
    question: str,
    documents: Documents,
    history: Sequence[Turn],
    question_type: QuestionType,
    repetition: Repetition,
) -> str:
    """Return a later question with a pronoun, or as it is: where it has one, or no name of the last turn to replace.

    What takes up the last turn, tells something of the user's, or has a reply of its own, stays as it is.
    """
    if question_type.goes_back or question_type.reply or languages() != IN_ENGLISH or refers_back(question):
        return question
    last = history[-1]
    asked = last.meant
    told = " ".join([asked, last.answer, *(each.text for each in last.evidence)])
    said = (put_pronoun(question, *place, told) for place in find_named(question, f"{asked} {last.answer}"))
    sound = (each for each in said if refers_back(each))
    referring = next(sound, question)
    return question if find_fault(referring, documents, history, question_type, repetition) else referring


def put_pronoun(question: str, start: int, end: int, told: str) -> str:
    """Return a question with a pronoun in place of `question[start:end]`, or as it is where none is sure to be right.

    Args:
        told: what tells whether a name is a person's or one of several, by “he”, “she” or “are” beside it.
    """
    before, named, after = question[:start], GENITIVE.sub("", question[start:end]), question[end:]
    follows, goes_on = spoken(before)[-1], spoken(after)[:1]
    is_owner = end - start > len(named)
    pronouns = _choose_pronouns(named, question, "" if is_owner else follows, told)
    language = dialog_language()
    again = re.search(rf"\b{re.escape(named)}\b", f"{before}\n{after}", re.IGNORECASE)
    if pronouns is None or again or follows == "not" or language.matches("particle", before):
        return question
    subject, as_object, own = pronouns
    if is_owner:
        return f"{before}{own}{after}"
    if follows == "of" and spoken(before)[-2] not in _PART:
        owned = _OWNED.search(before)
        if not owned or language.matches("unowned", owned[1].rstrip()):  # “which versions of it”
            return question
        own = own.capitalize() if owned[0][0].isupper() else own
        return f"{before[: owned.start()]}{own} {owned[1].rstrip()}{after}"
    if pronouns in (_IT, _THEY) and (place := _PLACE.search(before)):
        is_name = named.split()[0] not in ARTICLES and not named.split()[-1].islower()
        if language.matches("place", f"{question} {told}" if is_name else named):
            begins = before[: place.start()]
            return question if begins.endswith("there ") else f"{begins}{place[1]}there{after}"
        if is_name or follows == "at":
            return question
    auxiliary, prepositions = Words(question).auxiliary, language.listed("preposition")
    if follows in HAVE:
        is_subject = any(language.matches("participle", word) for word in goes_on)
    else:
        is_subject = follows in auxiliary or (follows not in prepositions and not auxiliary.isdisjoint(goes_on))
    if is_subject and not _DISAGREES[pronouns == _THEY].isdisjoint(goes_on):  # “50 euros is”, “the staff are”
        return question
    return f"{before}{subject if is_subject else as_object}{after}"


def _choose_pronouns(named: str, question: str, follows: str, told: str) -> tuple[str, str, str] | None:
    """Return the pronouns that stand for a phrase; None if it may be a person of whom nothing tells which.

    Args:
        follows: the word that it stands behind, which may be its verb.
    """
    if named.islower():  # as told: “marie curie”
        said = rf"\b{re.escape(named)}\b"
        forms = re.findall(said if question.islower() else rf"(?<=[a-z,] ){said}", told, re.IGNORECASE)
        if question.islower() or not re.search(said, told):
            named = (forms or [named])[-1]
    language, article = dialog_language(), named.split()[0].lower() in ARTICLES
    name = " ".join(named.split()[article:])
    head, number = Words(name).head, _find_number(name, follows, told)
    is_name, ends_so = not (head.islower() or article), language.matches("plural", head)
    if number != "one" and (number == "many" or (ends_so and not is_name)):
        gerund = name.split()[0].endswith("ing") and " " in name
        return None if gerund and not number else _THEY
    if "and" in name.split() and not number:  # “research and development”, “Romeo and Juliet”
        return None
    if not is_name:
        return None if language.matches("person", head) else _IT
    found = _find_genders(name.split()[-1], told)
    if not (ends_so and not number) and _is_thing(name, f"{question}\n{told}"):  # and not “Goldman Sachs”
        found.add(_IT)
    return found.pop() if len(found) == 1 else None


def _find_number(name: str, follows: str, told: str) -> str:
    """Return “one” or “many” as the verbs beside a name tell; “” if none tells or they differ."""
    named = rf"(?:the |an? )?{re.escape(name)}"
    found = {
        number
        for number, verbs in {"many": "are|were|do|have", "one": "is|was|does|has"}.items()
        if follows in verbs.split("|")
        or re.search(rf"\b(?:{verbs}) {named}\?", told, re.IGNORECASE)
        or re.search(rf"(?:^|[.!?] ){named} (?:{verbs})\b", told, re.IGNORECASE)
    }
    return found.pop() if len(found) == 1 else ""


def _find_genders(name: str, told: str) -> set[tuple[str, str, str]]:
    """Return what a person's last name goes on as: “Clara Schumann taught in Frankfurt. She …”.

    It stands at the beginning of a sentence, and no other name between.
    """
    begins = rf"(?:^|[.!?] )(?:(\w+) [^A-Z.!?]*)??(?:[A-Z][\w.-]* )*{re.escape(name)}\b"
    between = r"(?:[^A-Z]{0,100}?\b| (?:is|was) an? [^.!?]*\. )"
    behind = re.compile(rf"{begins}{between}([Hh]e|[Hh]is|[Ss]he|[Hh]er)\b")
    return {
        _HE if match[2].lower() in ("he", "his") else _SHE
        for match in behind.finditer(told)
        if not match[1] or not content_of(match[1])
    }


def _is_thing(name: str, text: str) -> bool:
    """Return true if a name can't be a person's: “IBM”, “in Norway”, “Docker is a platform”."""
    language, escaped = dialog_language(), re.escape(name)
    if name.isupper() or re.search(r"\d", name):
        return True
    if re.search(rf"\b(?:[Ii]n|[Aa]t|within|across|into|inside|using|via) {escaped}\b(?! ?['’]| [A-Z])", text):
        return True
    told = re.findall(rf"\b{escaped}(?: \([^)]*\))? (?:is|was) (?:an?|the) ([^.,;]*)", text)
    return any(head and not language.matches("person", head) for head in (Words(each).head for each in told))
