"""Hold the signatures of a scenario's item: its sets of questions, their ratings, and references (Kuo et al. 2025)."""

import dspy
from pydantic import Field

from generator.prompts.sections import Documents
from generator.prompts.signatures import REJECTED, ReplyRecord

LONGEST_REQUEST = 300


class AskedTurn(ReplyRecord):
    """A question of a set, and the sentences of the source that tell what it asks for.

    Its key is `request`, since small models ask a question where the key says so.
    """

    evidence: list[int] = Field(min_length=1, max_length=3)
    request: str = Field(max_length=LONGEST_REQUEST)


class SearchedTurn(AskedTurn):
    """The same, with the query that its context is searched with."""

    query: str = Field(max_length=120)


class QuestionSet(dspy.Signature):
    """Write the three requests that a User makes to an Agent, one after another, of exactly the kind below, about \
what the document tells. First plan them: in one sentence what in the document they are about, and what each adds. \
Then, for each, note the numbers of the sentences that tell what it asks for, others for each, and write it in the \
User's own words, as people write in a chat, in one to three short sentences. The first one names in full what it is \
about. The User never saw the document, never speaks of it, and asks the Agent for what the document tells without \
telling it. No example is copied."""

    documents: Documents = dspy.InputField()
    earlier: str = dspy.InputField(desc="Requests written before; write others, about something else in the document")
    focus: str = dspy.InputField(desc="Let the first one start from this, in your own words")
    rejected: str = dspy.InputField(desc=REJECTED)
    kind: str = dspy.InputField(desc="The kind of requests")
    plan: str = dspy.OutputField(desc="what in the document they are about, and what each adds", max_length=300)
    turns: list[AskedTurn] = dspy.OutputField()


class SetRating(dspy.Signature):
    """Rate three questions by which an Agent will be tested, from 1 to 5. Six things count: relevance (they are about \
what the source document tells), progression (each goes on from the one before, as the kind wants), clarity (one \
understands what is wanted), support (the sentences found for a question hold what its answer needs), knowledge (they \
ask for facts that matter), complexity (neither plain nor out of reach). 5: all six are met; 4: one has a small flaw; \
3: one fails or several are weak; 2: several fail; 1: useless. First say what speaks for and against them, then rate."""

    documents: Documents = dspy.InputField()
    kind: str = dspy.InputField(desc="The kind of questions")
    questions: str = dspy.InputField(desc="The questions, each with what was found for it")
    explanation: str = dspy.OutputField(desc="the six things, a few words for each", max_length=600)
    rating: int = dspy.OutputField(desc="the rating", ge=1, le=5)


class Point(ReplyRecord):
    """A fact that an answer should bring in, and the sentences that tell it."""

    evidence: list[int] = Field(min_length=1, max_length=3)
    text: str = Field(max_length=400)


class Referring(dspy.Signature):
    """Name the inputs of every task that finds the reference for a question of a set."""

    documents: Documents = dspy.InputField()
    earlier: str = dspy.InputField(desc="The User asked before")
    question: str = dspy.InputField(desc="The User asks now")


class KnowledgePoints(Referring):
    """List the facts in the documents that a good reply to the User's question brings in: one to six points, those \
that matter most first. Each is one fact in one sentence, with its names and numbers, told by the documents and asked \
for by the question; no fact comes twice. Write no reply, only the facts."""

    points: list[Point] = dspy.OutputField(
        desc='each {"evidence": [numbers of the sentences that tell it], "text": "the fact"}',
        min_length=1,
        max_length=6,
    )


class TargetParagraph(Referring):
    """Find the place in the document that the User is after: the neighbouring sentences, one to six, that tell what \
the question asks for. First say in a few words what the question asks for."""

    explanation: str = dspy.OutputField(desc="what the question asks for", max_length=200)
    evidence: list[int] = dspy.OutputField(
        desc="numbers of the neighbouring sentences that tell it", min_length=1, max_length=6
    )


class AnswerEvidence(Referring):
    """Find the evidence for the answer to the User's question: the sentences of the documents, one to six, that \
together tell it, and none that the answer can do without. First say what the answer is and how it follows from them."""

    explanation: str = dspy.OutputField(desc="what the answer is, and how it follows", max_length=300)
    evidence: list[int] = dspy.OutputField(
        desc="numbers of the sentences that the answer needs", min_length=1, max_length=6
    )


class ExpertPlan(Referring):
    """Write the plan that an expert gives the User at the end. First list the conditions of all questions, each with \
what in the documents meets it. Then write the plan step by step, in the order of time: what is done when, where, and \
what it costs, and last the sum. It meets every condition, and proposes nothing that the documents don't offer."""

    explanation: str = dspy.OutputField(desc="the conditions, and what meets each", max_length=400)
    evidence: list[int] = dspy.OutputField(
        desc="numbers of the sentences that the plan rests on", min_length=1, max_length=8
    )
    answer: str = dspy.OutputField(desc="the plan: 1. … 2. … 3. …", max_length=1000)
