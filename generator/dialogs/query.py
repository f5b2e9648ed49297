"""Form the query that is sent to the retriever, in one of the ways that mtRAG compares (Katsis et al. 2025)."""

from collections.abc import Sequence

from generator.schema import QueryForm, Turn


def form_query(form: QueryForm, history: Sequence[Turn], question: str, rewritten: str) -> str:
    """Return the text to search for, one utterance a line; on the first turn, the question in every form.

    `last_turn` is the question as asked; `rewrite` is `rewritten`, the question rewritten to stand alone; `user_turns`
    all questions so far; `full` all questions and answers so far.
    """
    if form == "last_turn" or not history:
        return question
    if form == "rewrite":
        return rewritten
    if form == "user_turns":
        return "\n".join([*(turn.query for turn in history), question])
    return "\n".join([*(text for turn in history for text in (turn.query, turn.answer)), question])
