"""Form a search query in one of the ways that mtRAG compares (Katsis et al. 2025), and search."""

from collections.abc import Collection, Sequence

from generator.schema import Hit, Passage, QueryForm, Retriever, Scored, Split, Turn


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


async def search(
    retriever: Retriever, query: str, k: int, split: Split, known: Collection[Passage], document: str | None = None
) -> tuple[tuple[Hit, ...], tuple[Passage, ...]]:
    """Return the hits of a search, and those of their passages that are not among `known`.

    Args:
        document: the id of the only document that is searched; None: all are.
    """
    ids = {passage.id for passage in known}
    by_id: dict[str, Scored] = {}
    for scored in await retriever.search(query, k, split, document):
        by_id.setdefault(scored.passage.id, scored)  # an index that holds copies can return one twice
    hits = tuple(
        Hit(passage_id=name, score=scored.score, rank=rank, new=name not in ids)
        for rank, (name, scored) in enumerate(by_id.items(), start=1)
    )
    return hits, tuple(scored.passage for name, scored in by_id.items() if name not in ids)
