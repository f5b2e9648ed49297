"""Form a search query in one of the ways that mtRAG compares (Katsis et al. 2025), and search."""

from collections.abc import Collection, Sequence

from generator.dialogs.prompt import said_in
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
    return "\n".join([*said_in(history), question])


async def search(
    retriever: Retriever, query: str, k: int, split: Split, known: Collection[Passage], document: str | None = None
) -> tuple[tuple[Hit, ...], tuple[Passage, ...]]:
    """Return the best `k` hits of a search, and those of their passages that are not among `known`.

    Of passages with the same text there is one: the known one, or the best. Copies would take the places of others.

    Args:
        document: the id of the only document that is searched; None: all are.
    """
    wanted = k
    while True:
        found = await retriever.search(query, wanted, split, document)
        by_text: dict[str, Scored] = {}
        for scored in found:
            by_text.setdefault(scored.passage.text_key, scored)
        if len(by_text) >= k or len(found) < wanted:
            break
        wanted *= 2
    best = list(by_text.items())[:k]
    ids = {passage.text_key: passage.id for passage in known}
    hits = tuple(
        Hit(passage_id=ids.get(text, scored.passage.id), score=scored.score, rank=rank, new=text not in ids)
        for rank, (text, scored) in enumerate(best, start=1)
    )
    return hits, tuple(scored.passage for text, scored in best if text not in ids)
