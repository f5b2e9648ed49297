"""Hold the signatures of questions, answers, evidence and whole dialogs; other steps have theirs beside their module.

A docstring is the instruction, an input's description is its heading in the prompt, and an output's description says
what belongs in it. Reasoning stands before what it justifies. What varies (question types, rubrics) is YAML or text
elsewhere and enters as an input. Bounds keep small models from rambling; booleans and choices are the model's own
output, never matched by a pattern.

After Lee et al. 2024, sections 2.2, 2.3 and figures 3 to 9; the words are ours.
"""

import hashlib
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

import dspy
from pydantic import BeforeValidator, ConfigDict, Field

from generator.common.language import dialog_language
from generator.prompts.sections import Conversation, Documents
from generator.schema import Record

REJECTED = "Your last attempt was refused; write a different one"


def cut_to(longest: int) -> BeforeValidator:
    """Return what cuts a text in a list that nobody says, in place of losing the reply where no schema bounds it."""
    return BeforeValidator(lambda text: text[:longest] if isinstance(text, str) else text)


def any_letters(choice: Any) -> BeforeValidator:
    """Return what takes the choices of a `Literal` in other letters (“Correct.”), where no schema bounds a reply."""
    choices = {name.casefold(): name for name in get_args(choice) if isinstance(name, str)}
    return BeforeValidator(
        lambda text: choices.get(text.strip(" .").casefold(), text) if isinstance(text, str) else text
    )


Fact = Annotated[str, Field(max_length=400), cut_to(400)]


class InDialog(dspy.Signature):
    """Name the inputs of every task that is done in the light of documents and dialog."""

    documents: Documents = dspy.InputField()
    dialog: Conversation = dspy.InputField()


class AboutQuestion(InDialog):
    """Name the inputs of every task that deals with what the User says now."""

    question: str = dspy.InputField(desc="The User says")


class Question(InDialog):
    """Name the inputs of every task that asks a question of a type."""

    focus: str = dspy.InputField(desc="Let the question touch on this, in your own words")
    rejected: str = dspy.InputField(desc=REJECTED)
    user: str = dspy.InputField(desc="Who the User is")
    kind: str = dspy.InputField(desc="The kind of question")


class FirstQuestion(Question):
    """Write the question with which the User opens the conversation, of exactly the kind below. Start by doing the \
steps of the kind on the documents: write what each finds there, with names and numbers, not what the step says. The \
question is one that a person types who never saw the documents: short, and it names the thing it is about, so that \
it can be understood with nothing before it. Never speak of documents, passages, texts or sentences. Then draft its \
answer and check it."""

    explanation: str = dspy.OutputField(
        desc="what each step of the kind finds in the documents: 1. … 2. … 3. …, with sentence numbers",
        max_length=600,
    )
    can_ask: bool = dspy.OutputField(desc="true if the documents allow a question of this kind")
    question: str = dspy.OutputField(desc="what the User types", max_length=250)
    answer: str = dspy.OutputField(
        desc="what the documents say to it; if they don't say, what is missing and the nearest thing they do say",
        max_length=500,
    )
    consistency: str = dspy.OutputField(
        desc="Yes or No, and why: does the answer agree with the explanation and the documents, and is the question of "
        "the kind?",
        max_length=250,
    )
    consistent: bool = dspy.OutputField(desc="true if they agree")
    evidence: list[int] = dspy.OutputField(desc="numbers of the sentences that the answer rests on", max_length=6)


class NextQuestion(Question):
    """Write the User's next message. Having read the Agent's last answer, the User wants something else about it, of \
exactly the kind below. Copy the words that the User takes up, say what the User wants to know about them, then write \
the message: it is short, makes no sense without that answer, and asks for nothing that was asked before. Never speak \
of documents, passages, texts or sentences."""

    takes_up: str = dspy.OutputField(desc="words copied from the Agent's last answer", max_length=120)
    wants: str = dspy.OutputField(
        desc="by the steps of the kind: what the User wants to know about them now, which nobody has asked yet, and "
        "the number of the sentence that tells it, if one does",
        max_length=300,
    )
    question: str = dspy.OutputField(
        desc="what the User now says to the Agent, beginning as such questions begin", max_length=250
    )


class NextStatement(Question):
    """Write the User's next message. Having read the Agent's last answer, the User tells something about themselves \
or their case, of exactly the kind below, and asks nothing. Copy the words that the User takes up, say what the User \
tells, then write the message: one short statement with “I” or “my”. Never speak of documents, passages, texts or \
sentences."""

    takes_up: str = dspy.OutputField(desc="words copied from the Agent's last answer", max_length=120)
    tells: str = dspy.OutputField(
        desc="by the steps of the kind: what the User tells of themselves or their case", max_length=300
    )
    question: str = dspy.OutputField(desc="what the User now says to the Agent, which asks nothing", max_length=250)


class NewQuestion(Question):
    """Write the User's next message. The User goes on from what was talked about to something that nobody has asked \
yet, of exactly the kind below. Name the matter that the message is about and say what the User wants to know, then \
write the message: it is short and names that matter in full, so that it can be understood with nothing before it. \
Never speak of documents, passages, texts or sentences."""

    matter: str = dspy.OutputField(desc="the full name of the person, thing or matter that it is about", max_length=120)
    wants: str = dspy.OutputField(
        desc="by the steps of the kind: what the User wants to know of it, which nobody has asked yet, and the number "
        "of the sentence that tells it, if one does",
        max_length=300,
    )
    question: str = dspy.OutputField(desc="what the User now says, naming the matter", max_length=250)


class Remark(dspy.Signature):
    """Write the User's next message: a short remark on the Agent's last answer that asks for nothing, such as thanks, \
surprise, agreement or goodbye. One to eight words, as people write in a chat."""

    dialog: Conversation = dspy.InputField()
    rejected: str = dspy.InputField(desc=REJECTED)
    question: str = dspy.OutputField(desc="what the User now says; not a question", max_length=80)


class Courtesy(dspy.Signature):
    """Write the Agent's reply to a remark of the User that asks for nothing: one short friendly sentence, without a \
word on the matter itself."""

    dialog: Conversation = dspy.InputField()
    question: str = dspy.InputField(desc="The User says")
    answer: str = dspy.OutputField(desc="what the Agent says", max_length=160)


class GroundedAnswer(AboutQuestion):
    """Write the Agent's reply to the User. First copy the facts that speak to what the User says, in the light of \
the dialog. Then reply in one to three plain sentences, from these facts alone. If they tell only a part of what the \
User wants to know, give that and name what you don't know. If they tell nothing of it, begin with “I don't have \
information on”, and add what you do know only if it helps with just that. Speak as one who knows this by heart: no \
sentence numbers, no word about documents."""

    rejected: str = dspy.InputField(desc=REJECTED)
    facts: list[Fact] = dspy.OutputField(
        desc="the facts that speak to what the User wants to know, as their sentences have them, and what follows from "
        "them; none if nothing does",
        max_length=4,
    )
    known: bool = dspy.OutputField(desc="does this tell what the User wants to know? false if it only comes near")
    answer: str = dspy.OutputField(desc="what the Agent says", max_length=700)
    consistency: str = dspy.OutputField(
        desc="Yes or No, and why: does the answer follow from the facts, and is every statement in the documents, "
        "or does it rightly say what isn't there?",
        max_length=250,
    )
    consistent: bool = dspy.OutputField(desc="true if so")
    # Before the answer it harms: a small model says “partial” whatever it is, and then speaks of documents.
    answerability: Literal["answerable", "partial", "unanswerable"] = dspy.OutputField(
        desc="how much of it the documents answer: all, a part, or nothing"
    )
    evidence: list[int] = dspy.OutputField(desc="numbers of the sentences that the answer rests on", max_length=6)


class ChooseEvidence(AboutQuestion):
    """Choose the sentences that the Agent's reply rests on: those below that together tell what it says, at most six, \
and none that it can do without. They needn't tell what the User says. First say what the reply claims and which of \
the sentences tell it."""

    answer: str = dspy.InputField(desc="The Agent replies")
    sentences: str = dspy.InputField(desc="Sentences that may tell it, with their numbers")
    explanation: str = dspy.OutputField(desc="what the reply claims, and which sentences tell it", max_length=300)
    evidence: list[int] = dspy.OutputField(desc="numbers of the sentences chosen", max_length=6)


class StandaloneQuery(AboutQuestion):
    """Rewrite what the User says as one search query that can be understood without the dialog: put names for \
pronouns, add what the dialog makes clear, keep the User's meaning and every detail. Don't answer it, and add nothing \
from the documents that the User couldn't know. If it stands alone already, repeat it."""

    query: str = dspy.OutputField(desc="the search query", max_length=300)


class ReplyRecord(Record):
    """A record in a reply, which may hold more than was asked for."""

    model_config = ConfigDict(extra="ignore")


class WrittenTurn(ReplyRecord):
    """A turn of a dialog that is written as a whole."""

    user: str = Field(max_length=500)
    agent: str = Field(max_length=700)


class GroundedTurn(ReplyRecord):
    """The same, grounded: the sentences that the answer rests on come before it."""

    user: str = Field(max_length=500)
    evidence: list[int] = Field(max_length=6)
    agent: str = Field(max_length=700)


class WholeDialog(dspy.Signature):
    """Write a whole conversation between a User and an Agent, of exactly the kind below. First plan it: for each step \
of the kind, what User and Agent do. Then write turn after turn, each as its step wants it: what the User types, as \
people write in a chat, and what the Agent replies, in one to five plain sentences or in the form that the kind asks \
for. What the Agent says is true, unless the kind wants a mistake. Messages hold their words alone: nobody's name \
before them, no number of a turn or step. No message comes twice, and no example is copied."""

    documents: Documents = dspy.InputField()
    rejected: str = dspy.InputField(desc=REJECTED)
    subject: str = dspy.InputField(desc="The subject, which is what it is about and not what anybody says")
    kind: str = dspy.InputField(desc="The kind of conversation")
    plan: str = dspy.OutputField(desc="step by step, what User and Agent do: 1. … 2. …", max_length=500)
    result: str = dspy.OutputField(max_length=60)
    mistake: str = dspy.OutputField(max_length=60)
    turns: list[WrittenTurn] = dspy.OutputField(desc="turn after turn, as the plan wants it: the words of both")


GROUNDED = """\
What the Agent says is in the documents, unless the kind wants a mistake; first note the numbers of the sentences that \
an answer rests on, none where the Agent only asks or doesn't know. User and Agent never speak of the documents."""


_UNKNOWN, _UNKNOWN_IN_A_CHAT = "egin with “I don't have information on”,", "say “I don't have information on” that"


def quote_unknown(text: str) -> str:
    """Return an instruction that quotes how an answer begins which isn't known, with the dialog's language's words."""
    language = dialog_language()
    if language.code == "en":
        return text
    told, said = "egin by saying that you don't know,", "say that you don't know"
    if language.unknown:
        told, said = f"egin with “{language.unknown}”,", f"say “{language.unknown}”"
    return text.replace(_UNKNOWN, told).replace(_UNKNOWN_IN_A_CHAT, said)


def in_language(signature: Any) -> Any:
    """Return a signature whose instructions quote what is said in the dialog's language; in English, the same."""
    told = quote_unknown(signature.instructions)
    return signature if told == signature.instructions else signature.with_instructions(told)


def prompt_version(signatures: Iterable[Any], *texts: str) -> str:
    """Return a short hash of every word of the prompts: of the signatures, and of `texts` (layout, question types)."""
    words = [(s.instructions, [repr((name, f.json_schema_extra)) for name, f in s.fields.items()]) for s in signatures]
    return hashlib.sha256(repr((words, texts)).encode()).hexdigest()[:12]
