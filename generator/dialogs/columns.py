"""Compute the columns of a context-response pair that filters, statistics and the dataset read.

Overlap and ranks tell how far the question's own words lead to its evidence; docs/dataset.md has their distribution on
questions of people.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, cast, get_args

from generator.common.language import languages
from generator.common.scripts import count_words
from generator.common.shingles import content_stems
from generator.dialogs.focus import count_new_passages
from generator.schema import TASK, Dialog, Evidence, Label, Passage, Split, Turn, Verdict
from taxonomy import PLAIN

Difficulty = Literal["easy", "medium", "hard"]
VerdictLabel = Literal["correct", "incorrect", "unjudged", "none"]
# Where judges differ, the strictest decides: correct is what all of them found correct.
_STRICTEST = ("incorrect", "unjudged", "correct")
# The names of judges who are people begin so. Where people have judged a pair, no model decides about it.
PERSON = "human:"
# The judge that says whether a model without passages gives another answer (`judges/llm/needs_documents.py`).
NEEDS_DOCUMENTS = "needs_documents"
# A question with less of its words in the evidence is put in other words; behind the fifth hit, evidence isn't read.
LOW_OVERLAP, FIRST, READ = 2 / 3, 1, 5


class EvidenceRanker(Protocol):
    """A BM25 search that tells the place of evidence, in place of hits."""

    async def rank_evidence(
        self, query: str, evidence: Sequence[tuple[Evidence, Passage]], split: Split
    ) -> int | None: ...


async def rank_turns(dialog: Dialog, ranker: EvidenceRanker) -> Dialog:
    """Return the dialog with `rank_last_turn` and `rank_query` of its turns.

    Raises:
        RetrieverError: the index can't be searched.
    """
    passages = {passage.id: passage for passage in dialog.passages}
    turns = []
    for turn in dialog.turns:
        evidence = [(each, passages[each.passage_id]) for each in turn.evidence]
        by_text = {
            query: await ranker.rank_evidence(query, evidence, dialog.split) if evidence and query else None
            for query in {turn.query, turn.retrieval_query}
        }
        ranks = {"rank_last_turn": by_text[turn.query], "rank_query": by_text[turn.retrieval_query]}
        turns.append(turn.model_copy(update=ranks))
    return dialog.model_copy(update={"turns": tuple(turns)})


def overlap(turn: Turn) -> float | None:
    """Return the share of the question's different stems, without function words, that its evidence has, 0 to 1.

    None without evidence, or with evidence in another language.
    """
    if not turn.evidence or languages().differ:
        return None
    asked = set(content_stems(turn.query))
    told = set(content_stems("\n".join(evidence.text for evidence in turn.evidence)))
    return len(asked & told) / len(asked) if asked else 0.0


def needs_documents(turn: Turn) -> bool | None:
    """Return what the judge `needs_documents` said; None if it wasn't asked, or gave no verdict."""
    labels = [verdict.label for verdict in turn.verdicts if verdict.judge == NEEDS_DOCUMENTS]
    return {"yes": True, "no": False}.get(labels[-1]) if labels else None


def difficulty(turn: Turn) -> Difficulty | None:
    """Return how hard it is to find the evidence and to answer from it; None without evidence.

    A point each: an overlap below 2/3; by the last turn, the evidence isn't the first hit; nor among the first five;
    nor among the first five by the retrieval query. No point is `easy`, one or two are `medium`, more `hard`; what a
    model answers without documents is `easy`. On mtRAG, people found answers to hard questions less faithful.
    """
    if not turn.evidence:
        return None
    share = overlap(turn)
    last, query = turn.rank_last_turn or FIRST, turn.rank_query or FIRST
    points = (share is not None and share < LOW_OVERLAP) + (last > FIRST) + (last > READ) + (query > READ)
    if needs_documents(turn) is False or not points:
        return "easy"
    return "hard" if points > 2 else "medium"


def label_order(label: str) -> tuple[int, str, str]:
    """Return what labels are sorted by: levels of difficulty from easy to hard, others by name."""
    levels = get_args(Difficulty)
    return levels.index(label) if label in levels else -1, label.casefold(), label


def deciding_verdict(turn: Turn) -> Verdict | None:
    """Return the strictest of the verdicts that decide about a turn, of people if there are any; None without one.

    Where a judge that asks no model is in doubt, what others say stands.
    """
    deciders = [verdict for verdict in turn.verdicts if verdict.decides]
    people = [verdict for verdict in deciders if is_person(verdict)]
    sure = [verdict for verdict in deciders if not is_doubt(verdict)]
    return min(people or sure or deciders, key=lambda verdict: _STRICTEST.index(verdict.label), default=None)


def is_doubt(verdict: Verdict) -> bool:
    """Return whether a judge that asks no model can't tell; one that asks a model is `unjudged` where it failed."""
    return verdict.label == "unjudged" and not verdict.model and not is_person(verdict)


def is_person(verdict: Verdict | None) -> bool:
    """Return whether a person gave a verdict."""
    return verdict is not None and verdict.judge.startswith(PERSON)


def verdict_label(turn: Turn) -> VerdictLabel:
    """Return the label of the deciding verdict; `none` without one."""
    verdict = deciding_verdict(turn)
    return cast(Label, verdict.label) if verdict else "none"


def new_passages(dialog: Dialog, turn: Turn) -> int | None:
    """Return how many passages a later turn's evidence is in that no earlier turn's is in; see `count_new_passages`.

    None also in a task, whose earlier turns came without evidence.
    """
    history = dialog.turns[: turn.turn - 1]
    return None if dialog.ended == TASK else count_new_passages(dialog.passages, history, turn)


# What `judge.filter` can compare in every run beside the verdicts of its judges, by name.
NUMBERS: Mapping[str, Callable[[Dialog, Turn], float | None]] = {
    "turn": lambda _, turn: turn.turn,
    "query_words": lambda _, turn: count_words(turn.query),
    "answer_words": lambda _, turn: count_words(turn.answer),
    "overlap": lambda _, turn: overlap(turn),
    "rank_last_turn": lambda _, turn: turn.rank_last_turn,
    "rank_query": lambda _, turn: turn.rank_query,
    "new_passages": new_passages,
}
LABELS: Mapping[str, Callable[[Dialog, Turn], str | None]] = {
    "question_type": lambda _, turn: turn.question_type,
    "multi_turn_type": lambda _, turn: turn.multi_turn_type,
    "answerability": lambda _, turn: turn.answerability,
    "difficulty": lambda _, turn: difficulty(turn),
    NEEDS_DOCUMENTS: lambda _, turn: {True: "yes", False: "no", None: None}[needs_documents(turn)],
    "verdict": lambda _, turn: verdict_label(turn),
    "user": lambda dialog, _: dialog.user or PLAIN.name,
    "lm": lambda dialog, _: dialog.lm,
}
