"""Ask a later question as one does in the middle of a conversation: what was just named is “it”.

Some of people's questions can't be understood without the dialog (`taxonomy.non_standalone`). A small model names
everything in full, so it is asked for the pronoun alone, afterwards. The question in full is then the rewritten one.
"""

import re
from collections.abc import Sequence
from contextlib import suppress

import dspy

from generator.common.language import IN_ENGLISH, languages
from generator.dialogs.calls import call
from generator.dialogs.checks.later_turns import content_of, refers_back
from generator.dialogs.checks.questions import find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.message_text import unquote
from generator.dialogs.prompt import Documents
from generator.errors import Rejected
from generator.schema import Turn
from taxonomy import QuestionType

_WORD = re.compile(r"[\w-]+(?:['’]\w+|(?<=s)['’](?!\w))?")
_GENITIVE = re.compile(r"(?:['’]s|(?<=s)['’])$")
_BEFORE_SUBJECT = set("do does did can could will would should may might must".split())
_ARTICLES, _JOINS, _GOES_ON = {"a", "an", "the"}, {"and", "between", "or"}, {"behind", "of"}
# Before these and a noun, no phrase begins with the noun.
_QUALIFY = set("my your our any no every each all first last next other same such another more".split())
EXAMPLES = (
    ("What is the height of [the old tower]?", "What is its height?"),
    ("Where do [Alpine marmots] live in winter?", "Where do they live in winter?"),
    ("Why did [Clara Schumann] give up composing?", "Why did she give up composing?"),
    ("What are the prices of [annual passes] for students?", "What are their prices for students?"),
    ("Who may fish in [Lake Orrin]?", "Who may fish there?"),
    ("What are some uses of [old tyres]?", "What are some uses of them?"),
    ("How do I pay for [a lost key]?", "How do I pay for it?"),
)


class Pronoun(dspy.Signature):
    """Put it, its, they, them, their, he, she, his, her or there in place of the words in brackets, which never just \
go. Change nothing else."""

    said: str = dspy.InputField()
    text: str = dspy.OutputField()


class Refer(dspy.Module):
    """A question that refers to the last turn in place of naming what that was about; in English alone."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__()
        self.predict, self.repetition = dspy.Predict(Pronoun), repetition
        self.predict.demos = [dspy.Example(said=said, text=text) for said, text in EXAMPLES]

    async def aforward(
        self, question: str, documents: Documents, history: Sequence[Turn], question_type: QuestionType
    ) -> str:
        """Return the question with a pronoun, or as it is: where it has one, names nothing of the last turn, or fails.

        What takes up the last turn, or has a reply of its own, stays as it is.
        """
        takes_up = question_type.part_taken_up in ("question", "answer")
        if takes_up or question_type.reply or languages() != IN_ENGLISH or refers_back(question):
            return question
        last = history[-1]
        start, end = find_named(question, f"{last.clean_query or last.query} {last.answer}")
        if start == end:
            return question
        named = question[start:end]
        marked = f"{question[:start]}[{named}]{question[end:]}"
        with suppress(Rejected):
            said = unquote((await call(self.predict, "refer", "greedy", len(history) + 1, said=marked)).text)
            left = content_of(question) - content_of(said)
            same = refers_back(said) and content_of(said) < content_of(question) and left <= content_of(named)
            if same and not find_fault(said, documents, history, question_type, self.repetition):
                return said
        return question


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
        free = not (in_name or before in _ARTICLES | _JOINS | _QUALIFY)
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
