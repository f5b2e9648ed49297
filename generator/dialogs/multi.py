"""Algorithm 2 of Lee et al. 2024 (section 2.4.2): every answer rests on all unique passages retrieved so far.

The retriever is called after every user turn, by this loop and never by the model's choice.
"""

from collections.abc import Sequence
from dataclasses import replace

from generator.common.language import languages
from generator.dialogs.candidates import leave_out
from generator.dialogs.checks.requests import find_request_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.focus import choose_focus, count_new_passages
from generator.dialogs.journal import metered
from generator.dialogs.live import tell, tell_found
from generator.dialogs.program import USUAL, DialogProgram, Options, TurnTask
from generator.dialogs.query import Rewrite, form_query, search
from generator.dialogs.referring import refer
from generator.dialogs.steps import Answer, Asked, answering
from generator.dialogs.underspecified import Underspecified
from generator.errors import Rejected
from generator.schema import Passage, QueryForm, Retriever, Split, Turn


class MultiDocumentDialog(DialogProgram):
    """Input: a first question, or a document to ask it of. Output: the dialog and its passages.

    Lines 1, 2, 6, 8 and 17 are `DialogProgram`'s.

    Args:
        retriever: searches the documents of one split.
        k: passages per search, as in `retriever.k`.
        query: the form of the search query, as in `retriever.query`.
    """

    algorithm = "multi"

    def __init__(
        self, repetition: Repetition, retriever: Retriever, k: int, query: QueryForm, options: Options = USUAL
    ) -> None:
        super().__init__(repetition, options)
        self.rewrite, self.answer = Rewrite(), Answer(options.candidates, options.judges, options.reasoning)
        if options.underspecified:
            self.underspecified = Underspecified(repetition, retriever, k)
        self.retriever, self.k, self.query, self.moving = retriever, k, query, options.moving
        # The question in full must be kept, as the rewritten one.
        self.refers, self.repetition = options.planned and query == "rewrite", repetition

    async def turn(self, task: TurnTask) -> tuple[Turn, tuple[Passage, ...]]:
        """Return the next turn, and all passages retrieved up to it; see `DialogProgram.turn`.

        If conversations are to move on, a turn that rests on passages of earlier answers alone is begun once more from
        another passage; if that is no better, the first one stays. The other is an unused candidate. What goes back to
        the last turn starts nowhere else; nor does what can't be answered, whose reply only offers something near.
        """
        if task.question_type.goes_back:
            task = replace(task, focus="")
        with metered() as meter:
            first = turn, found = await self.begin(task)
        stays = task.question_type.goes_back or task.question_type.expected == "unanswerable"
        if not self.moving or stays or count_new_passages(found, task.history, turn) != 0:
            return first
        why = _refuse(turn)
        tell("refused", turn.turn, turn.query, why.reason)
        for place in (turn.turn, turn.turn - 1):
            # Odd places go back to what was found, perhaps for a topic left.
            if place % 2 and task.plan.switch is not None:
                continue
            other = await self.later_focus(task.passages, task.history, place, task.plan.split)
            if other in ("", task.focus):
                continue
            with metered() as again:
                try:
                    turn, found = await self.begin(replace(task, focus=other))
                    if count_new_passages(found, task.history, turn) != 0:
                        leave_out(why, meter.cost, turn.turn)
                        return turn, found
                    why = _refuse(turn)
                except Rejected as rejected:
                    why = rejected
            leave_out(why, again.cost, task.number)
            break
        return first

    async def begin(self, task: TurnTask) -> tuple[Turn, tuple[Passage, ...]]:
        """Return what `turn` does, from one focus; `Rejected` if it isn't worth keeping."""
        source, history, question_type = task.plan.source, task.history, task.question_type
        form = question_type.dimensions.form
        if form and (history or isinstance(source, Passage)):
            return await self.underspecified.acall(task, form)
        if question_type.resolves:
            with task.asker.speaking():
                question = await self.underspecified.resolve(task)
        elif history:
            question = await self.ask(task)  # line 9
        elif isinstance(source, str):
            question = source  # the algorithm's input
        else:
            question = await self.ask(replace(task, passages=(source,)))
        alone = question
        if self.refers and history and task.refers:
            question = refer(alone, task.documents, history, question_type, self.repetition)
        typed = task.asker.type_out(question, task.number)
        search_query = alone if question != alone else await self.form_query(task, question, typed)
        hits, new = await search(self.retriever, search_query, self.k, task.plan.split, task.passages)  # lines 3 and 10
        passages = (*task.passages, *new)  # lines 4, 11 to 15
        tell("question", task.number, typed, question_type.name)
        tell_found(task.number, hits, passages)
        if not passages:
            raise Rejected("retrieve", "nothing found", search_query)
        if fault := find_request_fault(alone, passages, question_type):  # in the light of what was found for it
            raise Rejected("retrieve", fault, question)
        answer = self.unanswered if question_type.reply else self.answer
        with answering(typed):
            turn = await answer.acall(passages, history, Asked(typed, question, search_query, hits), question_type)
        refuses = turn.answerability == "unanswerable" != question_type.expected
        if refuses and not history and isinstance(source, Passage) and not _has_part(source, passages):
            raise Rejected("retrieve", "what it was asked of isn't found, and no other passage tells it", turn.spoken)
        return turn, passages  # lines 5 and 16

    async def form_query(self, task: TurnTask, question: str, typed: str) -> str:
        """Return the search query. A question that was asked to stand alone isn't rewritten, only without its slips.

        In another language than the documents', every question is, into theirs.
        """
        if self.query != "rewrite":
            return form_query(self.query, task.history, typed, typed)
        if languages().differ or (task.history and not task.question_type.stands_alone):
            return await self.rewrite.acall(task.documents, task.history, typed)
        return question

    async def later_focus(self, passages: Sequence[Passage], history: Sequence[Turn], place: int, split: Split) -> str:
        """Return the beginning of a passage that no answer rests on yet, if conversations are to move on."""
        if not self.moving:
            return await super().later_focus(passages, history, place, split)
        return await choose_focus(self.retriever, 2 * self.k, split, passages, history, place)


def _has_part(source: Passage, passages: Sequence[Passage]) -> bool:
    """Return True if a part of `source`, which a question was asked of, is in one of the passages."""
    own = (each for each in passages if each.document_id == source.document_id)
    return any(each.start < source.end and source.start < each.end for each in own)


def _refuse(turn: Turn) -> Rejected:
    """Return why a turn is begun once more."""
    return Rejected("answer", "rests on passages of earlier answers", turn.spoken)
