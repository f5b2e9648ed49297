"""The steps of a dialog as DSPy modules: ask, chat, answer.

A step whose result isn't worth keeping raises `Rejected`. The modules hold neither a dialog's state nor a model: both
come with the call (`generator.prompts.calls`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import dspy

from generator.common.scripts import has_question_mark, has_words
from generator.dialogs.candidates import Attempt, Refused, draw_best, rate_answer, rate_question
from generator.dialogs.checks.answerability import begins_with_refusal, measure_answerability
from generator.dialogs.checks.answers import find_answer_fault
from generator.dialogs.checks.asks_back import asks_alone
from generator.dialogs.checks.evidence import find_untold
from generator.dialogs.checks.questions import find_fault, find_length_fault
from generator.dialogs.checks.requests import find_withheld
from generator.dialogs.checks.tasks import UNPLANNED
from generator.dialogs.dedup import Repetition
from generator.dialogs.evidence_choice import choose_evidence
from generator.dialogs.language_checks import check_language
from generator.dialogs.users import Asker
from generator.errors import Rejected
from generator.prompts.adapter import TEXT
from generator.prompts.calls import call
from generator.prompts.message_text import on_one_line, unquote
from generator.prompts.plain_words import IN_PLAIN_WORDS, PlainAnswer
from generator.prompts.replies import SignatureType
from generator.prompts.sections import Conversation, Documents
from generator.prompts.signatures import ChooseEvidence, Courtesy, GroundedAnswer, Remark, in_language
from generator.schema import Hit, Judge, Passage, Turn
from taxonomy import QuestionType

INCONSISTENT = "inconsistent by its own check"
NO_EVIDENCE = "no sentence tells it"
UNKNOWN = "the facts don't tell it, or only a part, so say what you don't know"
# What a reply in plain words doesn't say of itself.
_UNSAID = {"facts": (), "known": True, "consistent": True, "answerability": "answerable", "evidence": ()}
_HAS_ANSWER = ("answerable", "partial")


class Ask(dspy.Module):
    """A question; one that fails a check is asked again, at most twice (Lee et al. 2024, section 2.2, figures 3 to 9).

    Args:
        signature: `FirstQuestion`, with a draft answer that must agree with it. Of later questions `NextQuestion` for
            one that leans on the last answer, `NewQuestion` for one that stands alone, `NextStatement` for what the
            user tells in place of a question.
        candidates: questions drawn at a time, of which the best stays.
        reasoning: False: the question is asked for in plain words, without steps, examples and draft answer.
    """

    def __init__(
        self, signature: type[dspy.Signature], repetition: Repetition, candidates: int = 1, reasoning: bool = True
    ) -> None:
        super().__init__()
        self.predict = dspy.Predict(signature if reasoning else IN_PLAIN_WORDS[signature])
        self.repetition, self.candidates = repetition, candidates

    async def aforward(
        self,
        documents: Documents,
        history: Sequence[Turn],
        question_type: QuestionType,
        focus: str = "",
        user: str = "",
    ) -> str:
        """Return a question that passes the checks, the best of so many candidates, within three attempts.

        Each attempt after the first is told why the others were refused, and isn't shown the examples of the type,
        which small models copy. In plain words all attempts have the same prompt, since a small model replies to the
        reason.

        Raises:
            Rejected: no attempt passes, the documents allow no such question, or its draft answer is inconsistent.
        """
        inputs = {"documents": documents, "dialog": Conversation(turns=tuple(history))}
        without_examples = question_type.model_copy(update={"examples": ()})
        signature: SignatureType = self.predict.signature
        plain = TEXT in signature.output_fields
        if plain and (question_type.part_taken_up == "answer" or question_type.expected not in _HAS_ANSWER):
            focus = ""  # no sentence of the documents is what it asks for
        if "can_ask" in signature.output_fields and not question_type.may_decline:
            signature = _without_can_ask(signature)

        async def draw(attempt: Attempt) -> str:
            shown = without_examples if attempt.refused else question_type
            prediction = await call(
                self.predict,
                "ask",
                attempt.profile,
                len(history) + 1,
                signature=signature,
                kind=question_type.brief() if plain else shown.prompt(),
                rejected="" if plain else attempt.rejected,
                focus=focus,
                user=user,
                **inputs,
            )
            if not prediction.get("can_ask", True):  # then the question needn't be one
                raise Rejected("ask", f"declined: nothing {question_type.name} to ask", prediction.explanation)
            question = unquote(prediction.text if plain else prediction.question)
            check_language(question)
            fault = find_fault(question, documents, history, question_type, self.repetition, focus)
            if fault := fault or find_length_fault(question, question_type, attempt.last):
                raise Refused("ask", fault, question)
            if not prediction.get("consistent", True):
                raise Rejected("ask", INCONSISTENT, question)
            return question

        async def rate(question: str) -> tuple[str, float]:
            return question, rate_question(question, documents, history, focus)

        return await draw_best(self.candidates, "ask", len(history) + 1, draw, rate)


class Asked(NamedTuple):
    """Hold what the User asked, and what was found for it.

    Attributes:
        query: as it was typed.
        clean: before slips, which its answer is checked against; empty if it is `query`.
        search_query, hits: the search for it; empty if there was none.
    """

    query: str
    clean: str = ""
    search_query: str = ""
    hits: Sequence[Hit] = ()

    @property
    def meant(self) -> str:
        return self.clean or self.query

    def make_turn(self, question_type: QuestionType, number: int, **answered: Any) -> Turn:
        """Return the record of the turn, whose answer agrees with itself and is given by its fields."""
        return Turn(
            turn=number,
            query=self.query,
            clean_query="" if self.meant == self.query else self.clean,
            question_type=question_type.name,
            multi_turn_type=question_type.multi_turn_type if number > 1 else None,
            planned=question_type.planned(),
            retrieval_query=self.search_query,
            hits=tuple(self.hits),
            consistent=True,
            **answered,
        )


async def call_until_sound(
    predict: dspy.Predict, stage: str, turn: int, find: Callable[[str], str | None], **inputs: object
) -> tuple[str, dspy.Prediction]:
    """Return what is said in the first of three replies in which `find` finds no fault, on one line, and the reply.

    Raises:
        Rejected: all have one.
    """

    async def draw(attempt: Attempt) -> tuple[str, dspy.Prediction]:
        reply = await call(predict, stage, attempt.profile, turn, rejected=attempt.rejected, **inputs)
        text = on_one_line(reply.answer if stage == "answer" else reply.question)
        check_language(text)
        if fault := find(text):
            raise Refused(stage, fault, text)
        return text, reply

    return await draw_best(1, stage, turn, draw)


class Chat(dspy.Module):
    """A turn that asks for nothing: thanks, surprise, goodbye (Katsis et al. 2025, table 11: conversational)."""

    def __init__(self) -> None:
        super().__init__()
        self.remark = dspy.Predict(Remark)
        self.courtesy = dspy.Predict(Courtesy)

    async def aforward(self, history: Sequence[Turn], question_type: QuestionType, asker: Asker) -> Turn:
        """Return the finished turn. Nothing is retrieved for it.

        Raises:
            Rejected: three remarks in a row ask something or hold no word, or the reply holds none.
        """
        dialog, number = Conversation(turns=tuple(history)), len(history) + 1

        def find(remark: str) -> str | None:
            return "asks something, or says nothing" if not has_words(remark) or has_question_mark(remark) else None

        with asker.speaking():
            remark, _ = await call_until_sound(self.remark, "ask", number, find, dialog=dialog)
        asked = Asked(asker.type_out(remark, number), remark)
        with answering(asked.query):
            reply = await call(self.courtesy, "answer", "greedy", number, dialog=dialog, question=asked.query)
            if not has_words(reply.answer):
                raise Rejected("answer", "empty answer", "")
        answer = reply.answer.strip()
        return asked.make_turn(question_type, number, answerability="conversational", reasoning="", answer=answer)


@contextmanager
def answering(question: str) -> Iterator[None]:
    """Put the question before an answer that is refused, since no turn is left that has it."""
    try:
        yield
    except Rejected as why:
        text = f"User: {question}\nAgent: {why.text}" if why.stage == "answer" else why.text
        raise Rejected(why.stage, why.reason, text) from why


class Answer(dspy.Module):
    """The agent's answer with its reasoning, consistency check and evidence (Lee et al. 2024, section 2.3).

    Args:
        candidates: answers drawn at a time, of which the best stays.
        judges: that ask no model, to choose among candidates.
        reasoning: False: the answer is asked for in a chat, without reasoning and check, and its evidence after it.
    """

    def __init__(self, candidates: int = 1, judges: Sequence[Judge] = (), reasoning: bool = True) -> None:
        super().__init__()
        self.predict = dspy.Predict(in_language(GroundedAnswer if reasoning else PlainAnswer))
        self.choose = dspy.Predict(ChooseEvidence)
        self.candidates, self.judges = candidates, judges

    async def aforward(
        self,
        passages: Sequence[Passage],
        history: Sequence[Turn],
        asked: Asked,
        question_type: QuestionType,
    ) -> Turn:
        """Return the finished turn.

        The answer agrees with itself and passes the checks of `generator.dialogs.checks.answers`: the best of so many
        candidates, within three attempts. Each attempt after the first is told why the others were refused. An answer
        that was refused is refused again, whatever the model now says of its consistency.

        Raises:
            Rejected: no attempt passes, or, without reasoning, one refuses where the plan wants an answer.
        """
        documents, number = Documents(passages=tuple(passages)), len(history) + 1
        inputs = {"documents": documents, "dialog": Conversation(turns=tuple(history)), "question": asked.query}
        meant = asked.meant
        plain = TEXT in self.predict.signature.output_fields

        async def draw(attempt: Attempt) -> Turn:
            reply = await call(self.predict, "answer", attempt.profile, number, rejected=attempt.rejected, **inputs)
            prediction = dspy.Prediction(answer=reply.text, **_UNSAID) if plain else reply
            answer = on_one_line(prediction.answer)
            check_language(answer)
            if same := next((each for each in attempt.refused if on_one_line(each.text) == answer), None):
                raise Refused("answer", same.reason, prediction.answer, same.details)
            answerability = measure_answerability(meant, answer, prediction.answerability)
            # What is unanswerable by two of plan, model and the answer's beginning gives the nearest thing.
            planned, begins = question_type.expected == "unanswerable", begins_with_refusal(answer)
            own = prediction.answerability == "unanswerable"
            if answerability == "partial" and planned + own + begins > 1:
                answerability = "unanswerable"
            unknown = answerability == "answerable" and not prediction.known
            fault = find_answer_fault(answer, meant, history, passages)
            if not fault and question_type.expected in _HAS_ANSWER and asks_alone(answer):
                fault = "answers nothing: give an answer, and don't ask back"
            refuses = answerability == "unanswerable" != question_type.expected
            if refuses and not fault:
                withheld = find_withheld(meant, passages)
                fault = f"says that it isn't known: answer from “{withheld}”" if withheld else None
            if plain and not fault:
                if refuses:
                    raise Rejected("answer", UNPLANNED, prediction.answer)
                fault = find_untold(answer, meant, history, passages)
            if fault or unknown or not prediction.consistent:
                own = UNKNOWN if unknown else "" if prediction.consistent else on_one_line(prediction.consistency)
                raise Refused("answer", fault or INCONSISTENT, prediction.answer, own)
            return asked.make_turn(
                question_type,
                number,
                answerability=answerability,
                reasoning="\n".join(prediction.facts),
                answer=prediction.answer.strip(),
                evidence=documents.evidence(prediction.evidence),
            )

        async def rate(turn: Turn) -> tuple[str, float]:
            # No judge finds fault with a refusal, so that it would beat the answer that the question was asked for.
            refuses = turn.answerability == "unanswerable" != question_type.expected
            return turn.answer, await rate_answer(turn, passages, history, () if refuses else self.judges)

        turn = await draw_best(self.candidates, "answer", number, draw, rate)
        turn = await choose_evidence(self.choose, documents, history, turn)
        noted = "\n".join(each.text for each in turn.evidence) or NO_EVIDENCE
        return turn.model_copy(update={"reasoning": noted}) if plain else turn


@cache  # a new signature would need a new schema
def _without_can_ask(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """Return the first question's signature for types that every document allows."""
    return signature.delete("can_ask")
