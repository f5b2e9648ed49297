"""The steps of a dialog as DSPy modules: ask, rewrite, answer.

A step that can't give something worth keeping raises `Rejected`. The modules hold no state of a dialog and no model:
both come with the call (`generator.dialogs.calls`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import dspy
from pydantic import Field

from generator.dialogs.adapter import SignatureType
from generator.dialogs.calls import call
from generator.dialogs.checks import UNFINISHED, fault
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
from generator.schema import Hit, Passage, Turn
from taxonomy import QuestionType

ATTEMPTS = 3
_SHORTEST_THING = 4  # characters that name what a question is about


class Ask(dspy.Module):
    """What the first and the later questions have in common: a bad one is asked again, at most twice."""

    def __init__(self, signature: type[dspy.Signature], repetition: Repetition) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.repetition = repetition

    async def until_sound(
        self,
        attempt: Callable[[str, int], Awaitable[dspy.Prediction]],
        documents: Documents,
        history: Sequence[Turn],
        kind: QuestionType,
    ) -> dspy.Prediction:
        """The first of three attempts whose question passes the checks; `attempt` is told why those before it failed.

        It is also told how long the question must be: small models, held to a form, else stop there again.

        Raises:
            Rejected: none does.
        """
        refused: list[str] = []
        least = 1
        while True:
            prediction = await attempt("\n".join(refused), least)
            why = fault(prediction.question, documents, history, kind, self.repetition)
            if why is None:
                return prediction
            refused.append(f"“{prediction.question}”: {why}")
            if len(refused) == ATTEMPTS:
                raise Rejected("ask", why, prediction.question)
            least = len(prediction.question) + _SHORTEST_THING if why == UNFINISHED else 1


class AskFirst(Ask):
    """The first question, with a draft answer that must agree with it (section 2.2, figures 3 to 6 of the paper)."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__(FirstQuestion, repetition)

    async def aforward(self, documents: Documents, kind: QuestionType, focus: str) -> str:
        """The question, as the user types it."""
        base: SignatureType = self.predict.signature if kind.may_decline else _undeclinable(self.predict.signature)

        async def attempt(rejected: str, least: int) -> dspy.Prediction:
            inputs = {"documents": documents, "dialog": Conversation(), "kind": kind.prompt(), "focus": focus}
            signature = _of_length(base, least)
            made = await call(self.predict, "ask", "greedy", 1, signature=signature, rejected=rejected, **inputs)
            if kind.may_decline and not made.can_ask:  # then whatever stands for a question needn't be one
                raise Rejected("ask", f"declined: nothing {kind.name} to ask", made.explanation)
            return made

        prediction = await self.until_sound(attempt, documents, (), kind)
        if not prediction.consistent:
            raise Rejected("ask", "inconsistent by its own check", prediction.question)
        return _one_line(prediction.question)


class AskNext(Ask):
    """A later question, aware of its type, the dialog, and what was asked (section 2.2, figures 7 to 9).

    Args:
        signature: `NextQuestion` for one that leans on the last answer, `NewQuestion` for one that stands alone.
    """

    def __init__(self, repetition: Repetition, signature: type[dspy.Signature] = NextQuestion) -> None:
        super().__init__(signature, repetition)

    async def aforward(self, documents: Documents, history: Sequence[Turn], kind: QuestionType, focus: str = "") -> str:
        """The question, as the user types it."""
        dialog = Conversation(turns=tuple(history))

        async def attempt(rejected: str, least: int) -> dspy.Prediction:
            inputs = {"documents": documents, "dialog": dialog, "kind": kind.prompt(), "focus": focus}
            signature, turn = _of_length(self.predict.signature, least), len(history) + 1
            return await call(self.predict, "ask", "greedy", turn, signature=signature, rejected=rejected, **inputs)

        return _one_line((await self.until_sound(attempt, documents, history, kind)).question)


class Chat(dspy.Module):
    """A turn that asks for nothing: thanks, surprise, goodbye (Katsis et al. 2025, table 11: conversational)."""

    def __init__(self) -> None:
        super().__init__()
        self.remark = dspy.Predict(Remark)
        self.courtesy = dspy.Predict(Courtesy)

    async def aforward(self, history: Sequence[Turn], kind: QuestionType) -> Turn:
        """The finished turn. Nothing is retrieved for it.

        Raises:
            Rejected: the user asks something, or says nothing, three times.
        """
        dialog, number, refused = Conversation(turns=tuple(history)), len(history) + 1, list[str]()
        while True:
            made = await call(self.remark, "ask", "greedy", number, dialog=dialog, rejected="\n".join(refused))
            remark = _one_line(made.question)
            if "?" not in remark and any(c.isalnum() for c in remark):
                break
            refused.append(f"“{remark}”: asks something, or says nothing")
            if len(refused) == ATTEMPTS:
                raise Rejected("ask", "no remark", remark)
        reply = await call(self.courtesy, "answer", "greedy", number, dialog=dialog, question=remark)
        return Turn(
            turn=number,
            query=remark,
            question_type=kind.name,
            multi_turn_type=kind.multi_turn_type,
            answerability="conversational",
            planned=kind.planned(),
            reasoning="",
            answer=reply.answer.strip(),
            consistent=True,
        )


class Conversing(dspy.Module):
    """What both algorithms have in common: how the user comes to say something.

    Args:
        planned: turns are planned in all of mtRAG's dimensions (`taxonomy.Target`), not by their types alone.
    """

    def __init__(self, repetition: Repetition, planned: bool) -> None:
        super().__init__()
        self.ask_first = AskFirst(repetition)
        self.ask_next = AskNext(repetition)
        if planned:
            self.ask_new = AskNext(repetition, NewQuestion)
            self.chat = Chat()

    async def question(
        self, passages: Sequence[Passage], history: Sequence[Turn], kind: QuestionType, focus: str
    ) -> str:
        """The question that a turn begins with."""
        documents = Documents(passages=tuple(passages))
        if not history:
            return await self.ask_first.acall(documents, kind, focus)
        ask = self.ask_new if kind.stands_alone else self.ask_next
        return await ask.acall(documents, history, kind, focus)


class Rewrite(dspy.Module):
    """A question made standalone for the retriever; the first one stands alone already."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(StandaloneQuery)

    async def aforward(self, documents: Documents, history: Sequence[Turn], question: str) -> str:
        """The standalone query."""
        dialog, turn = Conversation(turns=tuple(history)), len(history) + 1
        inputs = {"documents": documents, "dialog": dialog, "question": question}
        prediction = await call(self.predict, "rewrite", "sampled", turn, **inputs)
        return _one_line(prediction.query) or question


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
        kind: QuestionType,
        retrieval_query: str = "",
        hits: Sequence[Hit] = (),
    ) -> Turn:
        """The finished turn; `retrieval_query` and `hits` are kept in it as they are.

        Raises:
            Rejected: the model's own check says that the answer is not consistent.
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
            question_type=kind.name,
            multi_turn_type=kind.multi_turn_type if number > 1 else None,
            answerability=prediction.answerability,
            planned=kind.planned(),
            retrieval_query=retrieval_query,
            hits=tuple(hits),
            reasoning=prediction.reasoning,
            answer=prediction.answer.strip(),
            consistent=prediction.consistent,
            evidence=documents.evidence(prediction.evidence),
        )


@dataclass(frozen=True)
class Draft:
    """What an algorithm made.

    Attributes:
        turns: those kept.
        passages: what they rest on.
        passed: what it moved on from, each with the number of the turn that it would have been.
        end: what ended it early, if anything did.
    """

    turns: tuple[Turn, ...]
    passages: tuple[Passage, ...]
    passed: tuple[tuple[int, Rejected], ...]
    end: Rejected | None


Passed = tuple[tuple[int, Rejected], ...]


def moved_on(passed: Passed, history: Sequence[Turn], refused: Rejected) -> Passed:
    """What a dialog moved on from, now that its next turn was refused.

    Raises:
        Rejected: it can't move on: there is no turn yet, or the prompt has grown too long for the model.
    """
    if not history or refused.stage == "context":
        raise refused
    return (*passed, (len(history) + 1, refused))


@cache  # a new one each time would have its reply's schema made anew each time
def _undeclinable(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The first question's signature for kinds that every document allows."""
    return signature.delete("can_ask")


@cache
def _of_length(signature: SignatureType, least: int) -> SignatureType:
    """A signature whose question has at least so many characters."""
    if least <= 1:
        return signature
    return signature.with_updated_fields("question", type_=Annotated[str, Field(min_length=least)])


def _one_line(text: str) -> str:
    return " ".join(text.split())
