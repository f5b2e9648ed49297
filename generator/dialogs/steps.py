"""The steps of a dialog as DSPy modules: ask, rewrite, answer.

A step whose result isn't worth keeping raises `Rejected`. The modules hold neither a dialog's state nor a model: both
come with the call (`generator.dialogs.calls`).
"""

from collections.abc import Sequence
from functools import cache
from typing import Annotated

import dspy
from pydantic import Field

from generator.dialogs.adapter import SignatureType
from generator.dialogs.calls import call
from generator.dialogs.checks import UNFINISHED, find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.prompt import Conversation, Documents
from generator.dialogs.signatures import (
    Courtesy,
    FirstQuestion,
    GroundedAnswer,
    NextQuestion,
    Remark,
    StandaloneQuery,
)
from generator.dialogs.users import PLAIN_ASKER, Asker, note_clean
from generator.errors import Rejected
from generator.schema import Hit, Passage, Turn
from taxonomy import QuestionType

ATTEMPTS = 3
_SHORTEST_SUBJECT = 4  # characters that name what a question is about


class Ask(dspy.Module):
    """The base of the steps that ask a question: one that fails a check is asked again, at most twice."""

    def __init__(self, signature: type[dspy.Signature], repetition: Repetition) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.repetition = repetition

    async def ask_until_accepted(
        self,
        signature: SignatureType,
        documents: Documents,
        history: Sequence[Turn],
        question_type: QuestionType,
        focus: str,
        user: str,
    ) -> dspy.Prediction:
        """Return the first of three attempts whose question passes the checks.

        Each attempt after the first sees the refused questions with the reasons. If one was only the beginning of a
        phrasing, the next has to be longer: held to an output format, small models else stop at the same place.

        Raises:
            Rejected: no attempt passes, or the documents allow no such question.
        """
        inputs = {"documents": documents, "dialog": Conversation(turns=tuple(history)), "kind": question_type.prompt()}
        refused: list[str] = []
        least = 1
        while True:
            prediction = await call(
                self.predict,
                "ask",
                "greedy",
                len(history) + 1,
                signature=_with_min_length(signature, least),
                rejected="\n".join(refused),
                focus=focus,
                user=user,
                **inputs,
            )
            if not prediction.get("can_ask", True):  # then the question needn't be one
                raise Rejected("ask", f"declined: nothing {question_type.name} to ask", prediction.explanation)
            fault = find_fault(prediction.question, documents, history, question_type, self.repetition)
            if fault is None:
                return prediction
            refused.append(f"“{prediction.question}”: {fault}")
            if len(refused) == ATTEMPTS:
                raise Rejected("ask", fault, prediction.question)
            least = len(prediction.question) + _SHORTEST_SUBJECT if fault == UNFINISHED else 1


class AskFirst(Ask):
    """The first question, with a draft answer that must agree with it (section 2.2, figures 3 to 6 of the paper)."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__(FirstQuestion, repetition)

    async def aforward(self, documents: Documents, question_type: QuestionType, focus: str, user: str = "") -> str:
        """Return the question; `Rejected` as in `ask_until_accepted`, or if the draft is inconsistent."""
        signature: SignatureType = self.predict.signature
        if not question_type.may_decline:
            signature = _without_can_ask(signature)
        prediction = await self.ask_until_accepted(signature, documents, (), question_type, focus, user)
        if not prediction.consistent:
            raise Rejected("ask", "inconsistent by its own check", prediction.question)
        return on_one_line(prediction.question)


class AskNext(Ask):
    """A later question, aware of its type, the dialog, and what was asked (section 2.2, figures 7 to 9).

    Args:
        signature: `NextQuestion` for one that leans on the last answer, `NewQuestion` for one that stands alone.
    """

    def __init__(self, repetition: Repetition, signature: type[dspy.Signature] = NextQuestion) -> None:
        super().__init__(signature, repetition)

    async def aforward(
        self,
        documents: Documents,
        history: Sequence[Turn],
        question_type: QuestionType,
        focus: str = "",
        user: str = "",
    ) -> str:
        """Return the question; `Rejected` as in `ask_until_accepted`."""
        signature: SignatureType = self.predict.signature
        prediction = await self.ask_until_accepted(signature, documents, history, question_type, focus, user)
        return on_one_line(prediction.question)


class Chat(dspy.Module):
    """A turn that asks for nothing: thanks, surprise, goodbye (Katsis et al. 2025, table 11: conversational)."""

    def __init__(self) -> None:
        super().__init__()
        self.remark = dspy.Predict(Remark)
        self.courtesy = dspy.Predict(Courtesy)

    async def aforward(self, history: Sequence[Turn], question_type: QuestionType, asker: Asker = PLAIN_ASKER) -> Turn:
        """Return the finished turn. Nothing is retrieved for it.

        Raises:
            Rejected: three remarks in a row ask something, or hold no word.
        """
        dialog, number, refused = Conversation(turns=tuple(history)), len(history) + 1, list[str]()
        while True:
            with asker.speaking():
                said = await call(self.remark, "ask", "greedy", number, dialog=dialog, rejected="\n".join(refused))
            remark = on_one_line(said.question)
            if "?" not in remark and any(c.isalnum() for c in remark):
                break
            refused.append(f"“{remark}”: asks something, or says nothing")
            if len(refused) == ATTEMPTS:
                raise Rejected("ask", "no remark", remark)
        typed = asker.type_out(remark, number)
        reply = await call(self.courtesy, "answer", "greedy", number, dialog=dialog, question=typed)
        turn = Turn(
            turn=number,
            query=typed,
            question_type=question_type.name,
            multi_turn_type=question_type.multi_turn_type,
            answerability="conversational",
            planned=question_type.planned(),
            reasoning="",
            answer=reply.answer.strip(),
            consistent=True,
        )
        return note_clean(turn, remark)


class Rewrite(dspy.Module):
    """A later question rewritten to stand alone, as a search query."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(StandaloneQuery)

    async def aforward(self, documents: Documents, history: Sequence[Turn], question: str) -> str:
        """Return the search query; the question itself if the model's is empty."""
        dialog, turn = Conversation(turns=tuple(history)), len(history) + 1
        inputs = {"documents": documents, "dialog": dialog, "question": question}
        prediction = await call(self.predict, "rewrite", "sampled", turn, **inputs)
        return on_one_line(prediction.query) or question


class Answer(dspy.Module):
    """The agent's answer with its reasoning, consistency check and evidence (Lee et al. 2024, section 2.3)."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(GroundedAnswer)

    async def aforward(
        self,
        passages: Sequence[Passage],
        history: Sequence[Turn],
        question: str,
        question_type: QuestionType,
        retrieval_query: str = "",
        hits: Sequence[Hit] = (),
    ) -> Turn:
        """Return the finished turn, with `retrieval_query` and `hits` as given.

        Raises:
            Rejected: the answer is empty, or inconsistent by the model's own check.
        """
        documents, number = Documents(passages=tuple(passages)), len(history) + 1
        inputs = {"documents": documents, "dialog": Conversation(turns=tuple(history)), "question": question}
        prediction = await call(self.predict, "answer", "greedy", number, **inputs)
        if not prediction.consistent:
            raise Rejected("answer", "inconsistent by its own check", prediction.answer)
        if not any(c.isalnum() for c in prediction.answer):
            raise Rejected("answer", "empty answer")
        return Turn(
            turn=number,
            query=question,
            question_type=question_type.name,
            multi_turn_type=question_type.multi_turn_type if number > 1 else None,
            answerability=prediction.answerability,
            planned=question_type.planned(),
            retrieval_query=retrieval_query,
            hits=tuple(hits),
            reasoning=prediction.reasoning,
            answer=prediction.answer.strip(),
            consistent=prediction.consistent,
            evidence=documents.evidence(prediction.evidence),
        )


@cache  # a new signature would need a new schema
def _without_can_ask(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """Return the first question's signature for types that every document allows."""
    return signature.delete("can_ask")


@cache
def _with_min_length(signature: SignatureType, least: int) -> SignatureType:
    """Return the signature with questions of at least `least` characters."""
    if least <= 1:
        return signature
    return signature.with_updated_fields("question", type_=Annotated[str, Field(min_length=least)])


def on_one_line(text: str) -> str:
    """Return a text with single spaces in place of line breaks and other white space."""
    return " ".join(text.split())
