"""A dialog as rows to train on, one for each context-response pair (Lee et al. 2024, section 2.5).

The first message of a row holds its grounding passages, if any, so each row can be trained on alone.
"""

import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from pydantic import Field

from generator.dialogs.columns import (
    Difficulty,
    VerdictLabel,
    deciding_verdict,
    difficulty,
    needs_documents,
    new_passages,
    overlap,
    verdict_label,
)
from generator.dialogs.filter import Filter, filter_pairs
from generator.schema import Algorithm, Answerability, Dialog, Evidence, Message, Passage, Record, Turn

_TEXTS = files("generator.output")
GROUNDING = _TEXTS.joinpath("grounding.txt").read_text(encoding="utf-8").strip()
_PASSAGE = _TEXTS.joinpath("passage.txt").read_text(encoding="utf-8").strip()
_DELIMITER = re.compile(r"<(?=[^\w<>]*passages?\b)", re.IGNORECASE)


class Row(Record):
    """A context-response pair: the last message is the response, the ones before it are its context."""

    messages: tuple[Message, ...] = Field(
        description="the chat, `role` and `content`; user and assistant alternate, no system role; "
        "the first message holds the grounding passages, if any; the last one is the response"
    )
    pair_id: str = Field(description="`<dialog_id>/<turn>`, unique")
    dialog_id: str = Field(description="the dialog that the pair is from")
    turn: int = Field(description="which turn of the dialog the response is, from 1")
    corpus: str = Field(description="name of the corpus")
    algorithm: Algorithm = Field(
        description="`single` or `multi` (Algorithms 1 and 2 of Lee et al. 2024), `whole` or `progressive`"
    )
    document_ids: tuple[str, ...] = Field(
        description="documents of the whole dialog, or its topic; the first one opened it"
    )
    passage_ids: tuple[str, ...] = Field(description="passages in the first message, in their order there")
    question_type: str = Field(
        description="type that the question was asked as; where that is measured, the types it has, joined by `+`"
    )
    multi_turn_type: str | None = Field(
        description="multi-turn type, or the question type where the taxonomy has no multi-turn types; "
        "null for a first turn"
    )
    answerability: Answerability = Field(
        description="`answerable`, `partial` or `unanswerable` from the passages; `underspecified`: has several "
        "readings; `conversational`: asks for nothing"
    )
    retrieval_query: str = Field(
        description="the query sent to the retriever at this turn, or of human dialogs people's standalone question; "
        "empty if there is none"
    )
    evidence: tuple[Evidence, ...] = Field(
        description="sentences the answer rests on: `passage_id`, `start`, `end` (characters of the passage), `text`"
    )
    overlap: float | None = Field(
        description="share of the question's words, as stems, that the evidence has; null without evidence, or "
        "with evidence in another language"
    )
    rank_last_turn: int | None = Field(
        description="place of the evidence in a BM25 search by the question as asked, from 1; null if there was none"
    )
    rank_query: int | None = Field(description="the same by `retrieval_query`")
    new_passages: int | None = Field(
        description="how many passages the evidence is in that no earlier turn's is in; null for the first turn, and "
        "without evidence"
    )
    needs_documents: bool | None = Field(
        description="false: the judging model gave the same answer without passages; null if it wasn't asked"
    )
    difficulty: Difficulty | None = Field(
        description="`easy`, `medium` or `hard`, by overlap and ranks, and `easy` without need of documents; null "
        "without evidence"
    )
    verdict: VerdictLabel = Field(
        description="the judge's label, of several judges the strictest; `unjudged`: the judge failed, or `grounding` "
        "judged alone and can't tell; `none`: there was no judge"
    )
    explanation: str | None = Field(description="the judge's reasons, null without a judge")
    user: str = Field(description="type of the user who asks; empty for the plain one")
    lm: str = Field(description="model that wrote the dialog")
    judge_lm: str | None = Field(description="model behind the verdict; empty if none was asked, null without a judge")
    prompt_version: str = Field(description="version of the prompts")
    seed: int = Field(description="seed of the dialog")


def rows(dialog: Dialog, keep: Filter) -> list[Row]:
    """Return a row for each context-response pair of a dialog that is kept; see `kept_turns`."""
    return [_row(dialog, turn) for turn in kept_turns(dialog, keep)]


def kept_turns(dialog: Dialog, keep: Filter | None) -> list[Turn]:
    """Return the turns of a dialog whose context-response pairs `filter_pairs` keeps; None keeps all.

    A benchmark's item has no reference answer to some questions, and no pair from the first of them on.
    """
    unanswered = min((turn.turn for turn in dialog.turns if not turn.answer), default=len(dialog.turns) + 1)
    kept = dialog.own_turns if keep is None else filter_pairs(dialog, keep)[0]
    return [turn for turn in kept if turn.turn < unanswered]


def to_messages(
    turns: Sequence[Turn], passages: Sequence[Passage], algorithm: Algorithm = "multi"
) -> tuple[Message, ...]:
    """Return the chat of these turns, whose first message holds the passages; the last message is the response.

    Without passages its list of them is empty; if `algorithm` is `whole`, the first message is the question alone.
    """
    messages: list[Message] = []
    plain = algorithm == "whole" and not passages
    for turn in turns:
        question = turn.query if messages or plain else _grounding_message(passages, turn.query)
        messages += [Message(role="user", content=question), Message(role="assistant", content=turn.answer)]
    return tuple(messages)


def _row(dialog: Dialog, turn: Turn) -> Row:
    passages, verdict = dialog.grounding(turn.turn), deciding_verdict(turn)
    return Row(
        messages=to_messages(dialog.turns[: turn.turn], passages, dialog.algorithm),
        pair_id=f"{dialog.id}/{turn.turn}",
        dialog_id=dialog.id,
        turn=turn.turn,
        corpus=dialog.corpus,
        algorithm=dialog.algorithm,
        document_ids=dialog.document_ids,
        passage_ids=tuple(p.id for p in passages),
        question_type=turn.question_type,
        multi_turn_type=turn.multi_turn_type,
        answerability=turn.answerability,
        retrieval_query=turn.retrieval_query,
        evidence=turn.evidence,
        overlap=overlap(turn),
        rank_last_turn=turn.rank_last_turn,
        rank_query=turn.rank_query,
        new_passages=new_passages(dialog, turn),
        needs_documents=needs_documents(turn),
        difficulty=difficulty(turn),
        verdict=verdict_label(turn),
        explanation=verdict.explanation if verdict else None,
        user=dialog.user,
        lm=dialog.lm,
        judge_lm=verdict.model if verdict else None,
        prompt_version=dialog.prompt_version,
        seed=dialog.seed,
    )


def _grounding_message(passages: Sequence[Passage], question: str) -> str:
    """Return the first user message. `<passage>` tags inside a passage are neutralised, so that none can end early."""
    shown = (Template(_PASSAGE).substitute(text=_DELIMITER.sub("‹", p.titled)) for p in passages)
    return Template(GROUNDING).substitute(passages="\n".join(shown), question=question)
