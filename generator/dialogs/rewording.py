"""Put a question in the words of a user who hasn't read the documents.

Whoever writes a question with documents in view takes their words, so that a search by words finds its evidence first.
Those who look for something don't have these words.
"""

from collections.abc import Sequence
from contextlib import suppress

import dspy

from generator.common.scripts import has_question_mark
from generator.common.support import read_terms, term_keys
from generator.dialogs.candidates import Attempt, Refused, draw_best
from generator.dialogs.checks.evidence import is_telling
from generator.dialogs.checks.later_turns import content_of
from generator.dialogs.checks.questions import find_fault, find_length_fault
from generator.dialogs.dedup import Repetition
from generator.errors import Rejected
from generator.prompts.calls import call
from generator.prompts.message_text import unquote
from generator.prompts.sections import Documents
from generator.prompts.signatures import REJECTED
from generator.schema import Turn
from taxonomy import QuestionType

SAME, ANOTHER = "says it in the same words", "asks for something else"


class OtherWords(dspy.Signature):
    """Say this question in other words, as somebody types it who has read nothing about the matter. Names, numbers \
and what is asked stay as they are. Reply with the question alone."""

    length: str = dspy.InputField(desc="How long it may be")
    rejected: str = dspy.InputField(desc=REJECTED)
    said: str = dspy.InputField(desc="The question")
    text: str = dspy.OutputField()


class Reword(dspy.Module):
    """A question said again by a model that sees nothing but the question."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__()
        self.predict, self.repetition = dspy.Predict(OtherWords), repetition

    async def aforward(
        self, question: str, documents: Documents, history: Sequence[Turn], question_type: QuestionType
    ) -> str:
        """Return the question in other words, or as it is where three attempts fail.

        What asks nothing, takes up the last turn or has a reply of its own stays as it is: its words make its type. So
        does what has no content word, one of which the other words must have.
        """
        takes_up = question_type.part_taken_up in ("question", "answer")
        if takes_up or question_type.reply or not has_question_mark(question) or not content_of(question):
            return question

        longer = find_length_fault(question, question_type) is not None  # as in a third attempt
        inputs = {"length": f"{question_type.tell_length(1 + longer)} at most", "said": question}

        async def draw(attempt: Attempt) -> str:
            shown = {"rejected": attempt.rejected, **inputs}
            said = unquote((await call(self.predict, "reword", attempt.profile, len(history) + 1, **shown)).text)
            fault = find_fault(said, documents, history, question_type, self.repetition)
            fault = fault or find_length_fault(said, question_type, longer) or find_change(said, question, documents)
            if fault:
                raise Refused("reword", fault, said)
            return said

        with suppress(Rejected):
            return await draw_best(1, "reword", len(history) + 1, draw)
        return question


def find_change(said: str, question: str, documents: Documents) -> str | None:
    """Return the reason why a text doesn't say the same as a question in other words, or None.

    It asks for something else where it lacks a name or number of the question (but “two” and “three”, which “both”
    means, too), has one that neither question nor documents have, has no content word of the question, or isn't one.
    """
    told = term_keys(question).union(*(term_keys(passage.titled) for passage in documents.passages))
    named, again = (
        {term.key for term in read_terms(text) if term.kind == "name" or is_telling(term)} for text in (question, said)
    )
    before, after = content_of(question), content_of(said)
    if before == after:
        return SAME
    same = named <= term_keys(said) and again <= told and before & after and has_question_mark(said)
    return None if same else ANOTHER
