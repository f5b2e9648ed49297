"""Algorithm 2 of Lee et al. 2024 (section 2.4.2): the retriever is asked after every user turn, and every answer rests
on all unique passages found so far. The loop calls the retriever; it is never left to the model.
"""

from collections.abc import Sequence

from generator.dialogs.dedup import Repetition
from generator.dialogs.focus import fresh_start
from generator.dialogs.prompt import Documents
from generator.dialogs.query import retrieval_query
from generator.dialogs.steps import Answer, Conversing, Draft, Passed, Rewrite, moved_on
from generator.errors import Rejected
from generator.schema import Hit, Passage, QueryForm, Retriever, Scored, Split, Turn
from taxonomy import QuestionType


class MultiDocumentDialog(Conversing):
    """Input: a first question, or a document to ask one of. Output: the dialog and its passages.

    Args:
        retriever: finds passages among the documents of one split.
        k: passages a search, as in `retriever.k`.
        query: what is searched for, as in `retriever.query`.
        moving: later questions start from passages that no answer rests on yet, as in `taxonomy.focus=passages`.
    """

    def __init__(
        self,
        repetition: Repetition,
        retriever: Retriever,
        k: int,
        query: QueryForm,
        planned: bool = False,
        moving: bool = False,
    ) -> None:
        super().__init__(repetition, planned)
        self.rewrite = Rewrite()
        self.answer = Answer()
        self.retriever = retriever
        self.k = k
        self.query = query
        self.moving = moving

    async def aforward(self, source: Passage | str, kinds: Sequence[QuestionType], focus: str, split: Split) -> Draft:
        """A dialog of `len(kinds)` turns, without those that weren't worth keeping."""
        history: tuple[Turn, ...] = ()  # line 1
        passages: tuple[Passage, ...] = ()
        passed: Passed = ()
        try:
            for place, kind in enumerate(kinds):  # lines 2 and 8
                try:
                    if history and kind.is_conversational:
                        history = (*history, await self.chat.acall(history, kind))
                    else:
                        start = await self.start(passages, history, place, split) if history else focus
                        turn, passages = await self.turn(source, passages, history, kind, start, split)
                        history = (*history, turn)  # lines 6 and 17
                except Rejected as refused:
                    passed = moved_on(passed, history, refused)
        except Rejected as end:
            return Draft(history, passages, passed, end)
        return Draft(history, passages, passed, None)

    async def turn(
        self,
        source: Passage | str,
        passages: tuple[Passage, ...],
        history: tuple[Turn, ...],
        kind: QuestionType,
        start: str,
        split: Split,
    ) -> tuple[Turn, tuple[Passage, ...]]:
        """One turn, and the passages found up to it."""
        if history:  # line 9
            question = await self.question(passages, history, kind, start)
        else:  # the algorithm's input
            question = source if isinstance(source, str) else await self.question((source,), (), kind, start)
        sought = await self.sought(passages, history, question, kind)
        found = _each_once(await self.retriever.search(sought, self.k, split))  # lines 3 and 10
        known = {p.id for p in passages}
        hits = [
            Hit(passage_id=s.passage.id, score=s.score, rank=rank, new=s.passage.id not in known)
            for rank, s in enumerate(found, start=1)
        ]
        grown = (*passages, *(s.passage for s in found if s.passage.id not in known))  # lines 4, 11 to 15
        if not grown:
            raise Rejected("retrieve", "nothing found", sought)
        return await self.answer.acall(grown, history, question, kind, sought, hits), grown  # lines 5 and 16

    async def start(self, passages: Sequence[Passage], history: Sequence[Turn], place: int, split: Split) -> str:
        """What a later question is to touch on; empty: the model chooses."""
        if not self.moving:
            return ""
        return await fresh_start(self.retriever, 2 * self.k, split, passages, history, place)

    async def sought(
        self, passages: Sequence[Passage], history: Sequence[Turn], question: str, kind: QuestionType
    ) -> str:
        """The text that the retriever is asked with; a question that was written to stand alone needs no rewriting."""
        rewritten = question
        if self.query == "rewrite" and history and not kind.stands_alone:
            rewritten = await self.rewrite.acall(Documents(passages=tuple(passages)), history, question)
        return retrieval_query(self.query, history, question, rewritten)


def _each_once(found: Sequence[Scored]) -> Sequence[Scored]:
    """A search's results without those whose passage stands there already, as an index with copies may return."""
    by_id: dict[str, Scored] = {}
    for scored in found:
        by_id.setdefault(scored.passage.id, scored)
    return tuple(by_id.values())
