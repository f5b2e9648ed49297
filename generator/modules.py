"""The steps of a dialog as DSPy modules: ask, rewrite, answer; and the checks that a question must pass.

A step that can't give something worth keeping raises `Rejected`. The modules hold no state of a dialog and no model:
both come with the call (`generator.calls`).
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import dspy
from pydantic import Field

from generator.adapter import SignatureType
from generator.calls import call
from generator.dedup import Repetition
from generator.errors import Rejected
from generator.prompt import Conversation, Documents
from generator.schema import Hit, Passage, Turn
from generator.shingles import content_stems
from generator.signatures import FirstQuestion, GroundedAnswer, NextQuestion, StandaloneQuery
from taxonomy import QuestionType

# Phrases by which a question shows that its author had the documents before them. "The passage of the bill", "the
# documents I must bring", "in the context of the war" are a user's own, so nouns alone don't tell: it takes a word that
# points at our material, and none after it that says whose it is. What slips through costs a worse question, what is
# wrongly caught a second attempt.
_THE = r"(?:the|this|these|those|your|our)"
_NOUN = r"(?:documents?|passages?|texts?|excerpts?|articles?|paragraphs?|contexts?|sentences?|information)"
_PART = r"(?:documents?|passages?|texts?|excerpts?|paragraphs?|sentences?)"
_SAY = r"(?:say|tell|mention|state|describe|indicate|suggest|explain|discuss|imply|specify|refer|talk|give)"
_OWN = r"(?! (?:of|for|I|he|she|it|they|we|you|that|which|who)\b)"
SCAFFOLDING = re.compile(
    rf"\b(?:the|these) passages?\b(?! (?:of|through|from|to|between|time)\b)|\bthis (?:passage|excerpt)\b"
    rf"|\b(?:the|this|these|those|in|on|to|from) (?:provided|given|above|following|numbered|supplied) {_NOUN}\b"
    rf"|\b(?:according to|based on|(?:mentioned|stated|described|discussed|listed|given) in|from|per) "
    rf"{_THE} {_NOUN}\b{_OWN}"
    rf"|\bin {_THE} (?:(?:two|three|four|first|second|last|same|other) )?{_PART}\b{_OWN}|\bin the context(?=[,.?!]|$)"
    rf"|\b{_THE} {_NOUN} (?:also |only |not )?{_SAY}s?\b"
    rf"|\b(?:sentences?|passages?|documents?|paragraphs?) ?(?:#|no\.? ?|number )?\d+\b(?! of\b)|\[\d+\]",
    re.IGNORECASE,
)

UNFINISHED = "is only the beginning of a question"
_SHORTEST_THING = 4  # characters that name what a question is about

# Where a phrasing leaves a gap for what the question is about, small models copy the gap.
GAP = re.compile(r"(?:^|\s)(?:…|\.{3})(?:\s|$)")


class Ask(dspy.Module):
    """What the first and the later questions have in common: a bad one is asked again with the reason, once."""

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
        """The first of two attempts whose question passes the checks; `attempt` is told why the last one failed.

        It is also told how long the question must be: small models, held to a form, else stop there again.
        """
        prediction = await attempt("", 1)
        if fault := self.fault(prediction.question, documents, history, kind):
            least = len(prediction.question) + _SHORTEST_THING if fault == UNFINISHED else 1
            prediction = await attempt(f"“{prediction.question}”: {fault}", least)
            if fault := self.fault(prediction.question, documents, history, kind):
                raise Rejected("ask", fault, prediction.question)
        return prediction

    def fault(self, question: str, documents: Documents, history: Sequence[Turn], kind: QuestionType) -> str | None:
        """Why a question can't be used, or None."""
        if not any(c.isalnum() for c in question):
            return "no question"
        if GAP.search(question):
            return "leaves the gap of a phrasing"
        if _is_beginning(question, kind):
            return UNFINISHED
        if SCAFFOLDING.search(question):
            return "speaks of the documents"
        asked = [turn.query for turn in history]
        if any(self.repetition.earlier(text, asked) is not None for text in (question, _unopened(question, kind))):
            return "repeats an earlier question"
        if self.repetition.earlier(question, [example.question for example in kind.examples]) is not None:
            return "copies an example"
        if len(_borrowed(question, kind) - _known(documents, history)) >= 2:
            return "is on the topic of an example"
        return None


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
            made = await call(self.predict, "ask", "turns", 1, signature=signature, rejected=rejected, **inputs)
            if kind.may_decline and not made.can_ask:  # then whatever stands for a question needn't be one
                raise Rejected("ask", f"declined: nothing {kind.name} to ask", made.explanation)
            return made

        prediction = await self.until_sound(attempt, documents, (), kind)
        if not prediction.consistent:
            raise Rejected("ask", "inconsistent by its own check", prediction.question)
        return _one_line(prediction.question)


class AskNext(Ask):
    """A later question, aware of its type, the dialog, and what was asked (section 2.2, figures 7 to 9)."""

    def __init__(self, repetition: Repetition) -> None:
        super().__init__(NextQuestion, repetition)

    async def aforward(self, documents: Documents, history: Sequence[Turn], kind: QuestionType) -> str:
        """The question, as the user types it."""

        async def attempt(rejected: str, least: int) -> dspy.Prediction:
            inputs = {"documents": documents, "dialog": Conversation(turns=tuple(history)), "kind": kind.prompt()}
            signature, turn = _of_length(self.predict.signature, least), len(history) + 1
            return await call(self.predict, "ask", "turns", turn, signature=signature, rejected=rejected, **inputs)

        return _one_line((await self.until_sound(attempt, documents, history, kind)).question)


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
        prediction = await call(self.predict, "answer", "turns", number, **inputs)
        if not prediction.consistent:
            raise Rejected("answer", "inconsistent by its own check", prediction.answer)
        if not any(c.isalnum() for c in prediction.answer):
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


def _is_beginning(question: str, kind: QuestionType) -> bool:
    """Whether a question is a phrasing of its kind up to the gap, and no more."""
    said = question.casefold().strip(" …?.,:")
    return any(
        said == phrasing.partition("…")[0].casefold().strip(" ,") for phrasing in kind.phrasings if "…" in phrasing
    )


def _unopened(question: str, kind: QuestionType) -> str:
    """A question without a beginning of its kind: “No, I meant”, and the same again, is no new question."""
    said = question.casefold()
    return next((question[len(words) :] for words in kind.beginnings() if said.startswith(words.casefold())), question)


def _borrowed(question: str, kind: QuestionType) -> set[str]:
    """Stems that a question shares with what the examples of its kind are about."""
    examples = [said for e in kind.examples for pair in e.dialog for said in (pair.user, pair.agent, e.question)]
    return set(content_stems(question)) & set(content_stems(" ".join(examples))) - set(
        content_stems(" ".join(kind.phrasings))
    )


def _known(documents: Documents, history: Sequence[Turn]) -> set[str]:
    """The stems of everything that a dialog is about."""
    texts = [text for p in documents.passages for text in (p.title, p.text)]
    return set(content_stems(" ".join([*texts, *(said for turn in history for said in (turn.query, turn.answer))])))
