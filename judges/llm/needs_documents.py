"""Tell whether a question needs its documents: asked closed-book, a model gives another answer, or none.

A question that a model answers by heart teaches no reading, and tests none. The instruction is `needs_documents.txt`.
"""

from collections.abc import Sequence

import dspy

from generator.common.refusals import drop_refusals
from generator.common.scripts import has_words
from generator.common.shingles import content_stems
from generator.common.support import read_terms, term_keys
from generator.common.units import convert_units
from generator.dialogs.columns import NEEDS_DOCUMENTS
from generator.errors import Rejected
from generator.prompts.calls import call
from generator.prompts.sections import Conversation
from generator.schema import Passage, Turn, Verdict
from judges.base import ModelJudge, ModelJudgeSettings, rubric

# A closed-book answer with at least this share of what the dialog's answer adds to its question counts as the same
# answer.
SAME = 0.5


class ClosedBook(dspy.Signature):
    __doc__ = rubric(__file__)

    dialog: Conversation = dspy.InputField()
    query: str = dspy.InputField(desc="The User says")
    text: str = dspy.OutputField()  # in plain words: the usual prompt begins with an Agent who answers from documents


class NeedsDocumentsJudge(ModelJudge):
    """Labels a question `no` if the model's answer without passages agrees with the dialog's, else `yes`.

    The score is the share, 0 to 1, of the answer's words that the closed-book answer lacks, as stems and without those
    of the question. An answer that rests on no evidence, such as a refusal, is not asked for: `no evidence`.
    """

    name = NEEDS_DOCUMENTS
    signature = ClosedBook
    best = 1

    def judge_without_model(self, passages: Sequence[Passage], turn: Turn) -> Verdict | None:
        if turn.evidence:
            return None
        return self.verdict("no evidence", "the answer rests on no sentence of the documents")

    async def judge_with_model(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        dialog = Conversation(turns=tuple(history))
        reply = await call(self.predict, "judge", "sampled", turn.turn, dialog=dialog, query=turn.query)
        if not has_words(reply.text):
            raise Rejected("judge", "empty reply", reply.text)
        missing = 1 - agreement(turn.query, turn.answer, reply.text)
        return self.verdict("no" if missing <= 1 - SAME else "yes", f"closed-book: {reply.text}", missing)


def agreement(question: str, answer: str, other: str) -> float:
    """Return the share of what an answer adds to its question that another answer has, 0 to 1.

    0 where a number of it is missing. An answer that adds nothing, such as "it does", is compared as a whole. What
    either says isn't known is left out: "I don't know" agrees with no answer, nor with one to a part of the question.
    """
    answer, other = drop_refusals(answer), drop_refusals(other)
    terms = read_terms(convert_units(answer, [other]))
    given = {term.key for term in terms} or set(content_stems(answer))  # “Yes.”
    added, told = given - term_keys(question) or given, term_keys(other)
    numbers = {term.key for term in terms if term.kind == "number" or any(map(str.isdigit, term.text))}
    if not added or (added - told) & numbers:
        return 0.0
    return len(added & told) / len(added)


class NeedsDocumentsSettings(ModelJudgeSettings):
    judge = NeedsDocumentsJudge
