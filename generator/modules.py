"""The steps of a dialog as DSPy modules: ask, rewrite, answer; and the checks that a question must pass.

A step that can't give something worth keeping raises `Rejected`. The modules hold no state of a dialog and no model:
both come with the call (`generator.calls`).
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import dspy

from generator.calls import call
from generator.dedup import Repetition
from generator.errors import Rejected
from generator.prompt import Conversation, Documents
from generator.schema import Hit, Passage, Turn
from generator.signatures import FirstQuestion, GroundedAnswer, NextQuestion, StandaloneQuery
from taxonomy import QuestionType

# Phrases by which a question shows that its author had the documents before them. "the passage of the bill" and
# "the documents I must bring" are a user's own, so bare nouns need a word that points at our material.
_NOUN = r"(?:documents?|passages?|texts?|excerpts?|articles?|paragraphs?|contexts?|sentences?)"
SCAFFOLDING = re.compile(
    rf"\bthe passages?\b(?! (?:of|through|from|to|between|time)\b)"
    rf"|\b(?:provided|given|above|following|numbered|supplied) {_NOUN}\b"
    rf"|\b(?:according to|based on|mentioned in|stated in|described in|discussed in|in|from|does|do|per) "
    rf"(?:the|this|these|those|your|our) (?:documents?|texts?|excerpts?|paragraphs?|contexts?|sentences?)\b"
    rf"|\b(?:sentences?|passages?|documents?|paragraphs?) ?(?:#|no\.? ?|number )?\d+\b|\[\d+\]",
    re.IGNORECASE,
)


class Ask(dspy.Module):
    """What the first and the later questions have in common: a bad one is asked again with the reason, once."""

    def __init__(self, signature: type[dspy.Signature], repetition: Repetition) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature)
        self.repetition = repetition

    async def until_sound(
        self, attempt: Callable[[str], Awaitable[dspy.Prediction]], asked: Sequence[str]
    ) -> dspy.Prediction:
        """The first of two attempts whose question passes the checks; `attempt` is told why the last one failed."""
        prediction = await attempt("")
        if fault := self.fault(prediction.question, asked):
            prediction = await attempt(f"“{prediction.question}”: {fault}")
            if fault := self.fault(prediction.question, asked):
                raise Rejected("ask", fault, prediction.question)
        return prediction

    def fault(self, question: str, asked: Sequence[str]) -> str | None:
        """Why a question can't be used, or None."""
        if not any(c.isalnum() for c in question):
            return "no question"
        if SCAFFOLDING.search(question):
            return "speaks of the documents"
        if self.repetition.earlier(question, asked) is not None:
            return "repeats an earlier question"
        return None


class AskFirst(Ask):
    """The first question, with a draft answer that must agree with it (section 2.2, figures 3 to 6 of the paper)."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__(FirstQuestion, repetition)

    async def aforward(self, documents: Documents, kind: QuestionType, focus: str) -> str:
        """The question, as the user types it."""
        signature = self.predict.signature if kind.may_decline else self.predict.signature.delete("can_ask")

        async def attempt(rejected: str) -> dspy.Prediction:
            inputs = {"documents": documents, "dialog": Conversation(), "kind": kind.prompt(), "focus": focus}
            return await call(self.predict, "ask", "turns", 1, signature=signature, rejected=rejected, **inputs)

        prediction = await self.until_sound(attempt, ())
        if kind.may_decline and not prediction.can_ask:
            raise Rejected("ask", f"declined: nothing {kind.name} to ask", prediction.explanation)
        if not prediction.consistent:
            raise Rejected("ask", "inconsistent by its own check", prediction.question)
        return str(prediction.question)


class AskNext(Ask):
    """A later question, aware of its type, the dialog, and what was asked (section 2.2, figures 7 to 9)."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__(NextQuestion, repetition)

    async def aforward(self, documents: Documents, history: Sequence[Turn], kind: QuestionType) -> str:
        """The question, as the user types it."""
        asked = [turn.query for turn in history]

        async def attempt(rejected: str) -> dspy.Prediction:
            inputs = {"documents": documents, "dialog": Conversation(turns=tuple(history)), "kind": kind.prompt()}
            listed = "\n".join(f"- {question}" for question in asked)
            turn = len(history) + 1
            return await call(self.predict, "ask", "turns", turn, asked=listed, rejected=rejected, **inputs)

        return str((await self.until_sound(attempt, asked)).question)


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
        return str(prediction.query).strip() or question


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
        prediction = await call(self.predict, "answer", "turns", number, **inputs)
        if not prediction.consistent:
            raise Rejected("answer", "inconsistent by its own check", prediction.answer)
        if not prediction.answer.strip():
            raise Rejected("answer", "empty answer")
        return Turn(
            turn=number,
            query=question,
            question_type=kind.name,
            multi_turn_type=kind.name if number > 1 else None,
            answerability=prediction.answerability,
            retrieval_query=retrieval_query,
            hits=tuple(hits),
            reasoning=prediction.reasoning,
            answer=prediction.answer.strip(),
            consistent=prediction.consistent,
            evidence=documents.evidence(prediction.evidence),
        )


@dataclass(frozen=True)
class Draft:
    """What an algorithm made: the turns kept, the passages they rest on, and what ended it early, if anything did."""

    turns: tuple[Turn, ...]
    passages: tuple[Passage, ...]
    end: Rejected | None
