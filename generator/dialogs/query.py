"""Rewrite a question to stand alone, form a search query in one of mtRAG's ways (Katsis et al. 2025), and search."""

from collections.abc import Collection, Sequence

import dspy

from generator.common.language import dialog_language, languages
from generator.common.scripts import words
from generator.common.sentences import sentences
from generator.common.support import read_terms, term_keys
from generator.errors import RetrieverError
from generator.prompts.calls import call
from generator.prompts.message_text import on_one_line
from generator.prompts.sections import Conversation, Documents, said_in
from generator.prompts.signatures import StandaloneQuery
from generator.schema import Hit, Passage, QueryForm, Retriever, Scored, Split, Turn

# So many words; where none are told apart, so many pairs of letters, of which a word of two has three with its edges.
_MOST_ADDED, _MOST_PAIRS = 2, 6


class Rewrite(dspy.Module):
    """A later question rewritten to stand alone, as a search query."""

    def __init__(self) -> None:
        super().__init__()
        self.predict = dspy.Predict(StandaloneQuery)

    async def aforward(self, documents: Documents, history: Sequence[Turn], question: str) -> str:
        """Return the search query; the question itself if the model's is empty, adds facts or pastes the dialog."""
        dialog, turn = Conversation(turns=tuple(history)), len(history) + 1
        inputs = {"documents": documents, "dialog": dialog, "question": question}
        prediction = await call(self.predict, "rewrite", "sampled", turn, **inputs)
        query = on_one_line(prediction.query)
        said, told = [question, *said_in(history)], [p.titled for p in documents.passages]
        return question if not query or adds_facts(query, said, told) or pastes_dialog(query, said) else query


def adds_facts(query: str, said: Sequence[str], told: Sequence[str]) -> bool:
    """Return True if a rewritten question has a number that nobody said, or three words that only documents have.

    So do 0.4% of people's in mtRAG (`benchmarks/question_checks.py`). It can't be told where documents have another
    language.
    """
    known, theirs = (frozenset[str]().union(*map(term_keys, texts)) for texts in (said, told))
    added = [] if languages().differ else [term for term in read_terms(query) if term.key not in known]
    most = _MOST_ADDED if dialog_language().spaced else _MOST_PAIRS
    return sum(t.key in theirs for t in added) > most or any(term.kind == "number" for term in added)


def pastes_dialog(query: str, said: Sequence[str]) -> bool:
    """Return True if a rewritten question has more sentences than the question, or is another message.

    The question comes first in `said`. So are 0.3% of people's (“Portugal. The Man”), and 9 of 106 of Qwen 1.5B.
    """
    question, *earlier = said
    return len(sentences(query)) > len(sentences(question)) or words(query) in map(words, earlier)


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

    Raises:
        RetrieverError: it can't be searched, or gives passages with different texts one id, by which they are cited.
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
    texts = {name: text for text, name in ids.items()}
    for text, scored in best:
        if texts.setdefault(scored.passage.id, text) != text:
            raise RetrieverError(
                f"retriever: two passages with different texts have the id {scored.passage.id}; give each passage of "
                "your index an id of its own, and the same text in every reply (docs/retrieval.md)"
            )
    hits = tuple(
        Hit(passage_id=ids.get(text, scored.passage.id), score=scored.score, rank=rank, new=text not in ids)
        for rank, (text, scored) in enumerate(best, start=1)
    )
    return hits, tuple(scored.passage for text, scored in best if text not in ids)
