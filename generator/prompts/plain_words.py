"""The prompts of small models, as DSPy signatures: questions and answers asked for in plain words.

They have one output, all of the reply; `generator.prompts.adapter` lays them out. After Lee et al. 2024, sections 2.2
and 2.3, without their steps and reasoning (`docs/decisions.md`, 104); the words are ours.
"""

import dspy

from generator.prompts.signatures import (
    REJECTED,
    AboutQuestion,
    FirstQuestion,
    NewQuestion,
    NextQuestion,
    NextStatement,
    Question,
)


class PlainQuestion(Question):
    """Name the inputs of every question that is asked for in plain words: the message is all of the reply."""

    focus: str = dspy.InputField(desc="It touches on this")
    text: str = dspy.OutputField()


class PlainFirst(PlainQuestion):
    """Somebody who never saw these documents wants to know something that they tell. Write what this User types into \
a chat: a short question that names what it is about. Reply with the question alone."""


class PlainStatement(PlainQuestion):
    """The User of this chat never saw the documents. Write the User's next message, which asks nothing: one short \
statement with “I” or “my”, in which the User, an ordinary person, tells of their own situation or plan, so that the \
Agent can help with what stands below. Reply with the message alone."""

    focus: str = dspy.InputField(desc="The Agent will answer with this, which the User doesn't know yet")


class PlainNext(PlainQuestion):
    """The User of this chat never saw the documents. Write the User's next message: short, and about something that \
nobody has asked yet. Reply with the message alone."""

    focus: str = dspy.InputField(desc="It asks for this, which the User doesn't know yet")


class PlainNew(PlainNext):
    """The User of this chat never saw the documents. Write the User's next message: a short question about something \
that nobody has asked yet, which names it in full. Reply with the message alone."""


class PlainAnswer(AboutQuestion):
    """You answer a user's questions about the documents above. Answer in one to three plain sentences, with what \
they say and nothing else. If they tell only a part of what the user wants to know, give that and say what you don't \
know. If they tell nothing of it, say “I don't have information on” that. Speak as one who knows this by heart: no \
word about documents."""

    rejected: str = dspy.InputField(desc=REJECTED)
    text: str = dspy.OutputField()


# What is asked for in place of these without `algorithm.reasoning`.
IN_PLAIN_WORDS: dict[type[dspy.Signature], type[dspy.Signature]] = {
    FirstQuestion: PlainFirst,
    NextQuestion: PlainNext,
    NextStatement: PlainStatement,
    NewQuestion: PlainNew,
}
