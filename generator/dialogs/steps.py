"""The steps of a dialog as DSPy modules (ask, rewrite, answer), and the loop that both algorithms share.

A step whose result isn't worth keeping raises `Rejected`. The modules hold neither a dialog's state nor a model: both
come with the call (`generator.dialogs.calls`).
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar

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
    NewQuestion,
    NextQuestion,
    Remark,
    StandaloneQuery,
)
from generator.errors import Rejected
from generator.schema import Algorithm, Hit, Passage, Split, Turn
from taxonomy import QuestionType

ATTEMPTS = 3
_SHORTEST_SUBJECT = 4  # characters that name what a question is about


class Ask(dspy.Module):
    """The base of the steps that ask a question: a question that fails a check is asked again, at most twice."""

    def __init__(self, signature: type[dspy.Signature], repetition: Repetition) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.repetition = repetition

    async def ask_until_accepted(
        self,
        attempt: Callable[[str, int], Awaitable[dspy.Prediction]],
        documents: Documents,
        history: Sequence[Turn],
        question_type: QuestionType,
    ) -> dspy.Prediction:
        """Return the first of three attempts whose question passes the checks.

        Args:
            attempt: asks once. It gets the refused questions with their reasons, and the least length in characters:
                small models with a fixed output format else stop at the same place again.

        Raises:
            Rejected: no attempt passes.
        """
        refused: list[str] = []
        least = 1
        while True:
            prediction = await attempt("\n".join(refused), least)
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

    async def aforward(self, documents: Documents, question_type: QuestionType, focus: str) -> str:
        """Return the question as the user types it.

        Raises:
            Rejected: the documents allow no such question, no attempt passes the checks, or the draft is inconsistent.
        """
        may_decline = question_type.may_decline
        base: SignatureType = self.predict.signature if may_decline else _without_can_ask(self.predict.signature)
        inputs = {"documents": documents, "dialog": Conversation(), "kind": question_type.prompt(), "focus": focus}

        async def attempt(rejected: str, least: int) -> dspy.Prediction:
            signature = _with_min_length(base, least)
            prediction = await call(self.predict, "ask", "turns", 1, signature=signature, rejected=rejected, **inputs)
            if may_decline and not prediction.can_ask:  # then the question needn't be one
                raise Rejected("ask", f"declined: nothing {question_type.name} to ask", prediction.explanation)
            return prediction

        prediction = await self.ask_until_accepted(attempt, documents, (), question_type)
        if not prediction.consistent:
            raise Rejected("ask", "inconsistent by its own check", prediction.question)
        return _on_one_line(prediction.question)


class AskNext(Ask):
    """A later question, aware of its type, the dialog, and what was asked (section 2.2, figures 7 to 9).

    Args:
        signature: `NextQuestion` for one that leans on the last answer, `NewQuestion` for one that stands alone.
    """

    def __init__(self, repetition: Repetition, signature: type[dspy.Signature] = NextQuestion) -> None:
        super().__init__(signature, repetition)

    async def aforward(
        self, documents: Documents, history: Sequence[Turn], question_type: QuestionType, focus: str = ""
    ) -> str:
        """Return the question as the user types it.

        Raises:
            Rejected: no attempt passes the checks.
        """
        dialog = Conversation(turns=tuple(history))
        inputs = {"documents": documents, "dialog": dialog, "kind": question_type.prompt(), "focus": focus}

        async def attempt(rejected: str, least: int) -> dspy.Prediction:
            signature, turn = _with_min_length(self.predict.signature, least), len(history) + 1
            return await call(self.predict, "ask", "turns", turn, signature=signature, rejected=rejected, **inputs)

        return _on_one_line((await self.ask_until_accepted(attempt, documents, history, question_type)).question)


class Chat(dspy.Module):
    """A turn that asks for nothing: thanks, surprise, goodbye (Katsis et al. 2025, table 11: conversational)."""

    def __init__(self) -> None:
        super().__init__()
        self.remark = dspy.Predict(Remark)
        self.courtesy = dspy.Predict(Courtesy)

    async def aforward(self, history: Sequence[Turn], question_type: QuestionType) -> Turn:
        """Return the finished turn. Nothing is retrieved for it.

        Raises:
            Rejected: three remarks in a row ask something, or hold no word.
        """
        dialog, number, refused = Conversation(turns=tuple(history)), len(history) + 1, list[str]()
        while True:
            prediction = await call(self.remark, "ask", "turns", number, dialog=dialog, rejected="\n".join(refused))
            remark = _on_one_line(prediction.question)
            if "?" not in remark and any(c.isalnum() for c in remark):
                break
            refused.append(f"“{remark}”: asks something, or says nothing")
            if len(refused) == ATTEMPTS:
                raise Rejected("ask", "no remark", remark)
        reply = await call(self.courtesy, "answer", "turns", number, dialog=dialog, question=remark)
        return Turn(
            turn=number,
            query=remark,
            question_type=question_type.name,
            multi_turn_type=question_type.multi_turn_type,
            answerability="conversational",
            planned=question_type.planned(),
            reasoning="",
            answer=reply.answer.strip(),
            consistent=True,
        )


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
        return _on_one_line(prediction.query) or question


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
        prediction = await call(self.predict, "answer", "turns", number, **inputs)
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


@dataclass(frozen=True)
class Draft:
    """What an algorithm generated from a plan.

    Attributes:
        turns: the turns worth keeping.
        passages: what they are grounded on.
        skipped: why other turns were skipped, each with the number that it would have had.
        end: what ended the dialog early, if anything did.
    """

    turns: tuple[Turn, ...]
    passages: tuple[Passage, ...]
    skipped: tuple[tuple[int, Rejected], ...]
    end: Rejected | None


class DialogProgram(dspy.Module):
    """The loop that Algorithms 1 and 2 share; they differ in `turn`.

    Args:
        planned: turns are planned in all of mtRAG's dimensions (`taxonomy.Target`), not by their types alone.
    """

    algorithm: ClassVar[Algorithm]

    def __init__(self, repetition: Repetition, planned: bool) -> None:
        super().__init__()
        self.ask_first = AskFirst(repetition)
        self.ask_next = AskNext(repetition)
        if planned:
            self.ask_new = AskNext(repetition, NewQuestion)
            self.chat = Chat()

    async def aforward(
        self, source: Passage | str, question_types: Sequence[QuestionType], focus: str, split: Split
    ) -> Draft:
        """Return a dialog of one turn for each of `question_types`, without those that weren't worth keeping.

        Args:
            source: the document that the first question is asked of, or the first question itself.
            focus: what the first question is to touch on.
            split: the split whose documents are searched.
        """
        history: tuple[Turn, ...] = ()  # line 1 of both algorithms
        passages: tuple[Passage, ...] = ()
        skipped: tuple[tuple[int, Rejected], ...] = ()
        for place, question_type in enumerate(question_types):  # line 2 of both, line 8 of Algorithm 2
            try:
                if history and question_type.is_conversational:
                    turn = await self.chat.acall(history, question_type)
                else:
                    if history:
                        focus = await self.later_focus(passages, history, place, split)
                    turn, passages = await self.turn(source, passages, history, question_type, focus, split)
                history = (*history, turn)  # line 5 of Algorithm 1, lines 6 and 17 of Algorithm 2
            except Rejected as rejected:
                # Without a first turn there is no dialog, and a prompt that is too long only grows.
                if not history or rejected.stage == "context":
                    return Draft(history, passages, skipped, rejected)
                skipped = (*skipped, (len(history) + 1, rejected))
        return Draft(history, passages, skipped, None)

    @abstractmethod
    async def turn(
        self,
        source: Passage | str,
        passages: tuple[Passage, ...],
        history: tuple[Turn, ...],
        question_type: QuestionType,
        focus: str,
        split: Split,
    ) -> tuple[Turn, tuple[Passage, ...]]:
        """Return the next turn, and the passages that the dialog has after it.

        Raises:
            Rejected: it isn't worth keeping.
        """

    async def later_focus(self, passages: Sequence[Passage], history: Sequence[Turn], place: int, split: Split) -> str:
        """Return what the question of a later turn is to touch on; empty leaves that to the model."""
        return ""

    async def ask(
        self, passages: Sequence[Passage], history: Sequence[Turn], question_type: QuestionType, focus: str
    ) -> str:
        """Return the question that a turn begins with."""
        documents = Documents(passages=tuple(passages))
        if not history:
            return await self.ask_first.acall(documents, question_type, focus)
        ask = self.ask_new if question_type.stands_alone else self.ask_next
        return await ask.acall(documents, history, question_type, focus)


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


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
