"""Columns of a pair: overlap, ranks of the evidence, difficulty."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from generator.common.language import Languages, load_language, use_languages
from generator.corpora.library import Library
from generator.dialogs.columns import difficulty, needs_documents, new_passages, overlap, rank_turns
from generator.output.stats.statistics import evidence_covers
from generator.retrievers.bm25 import Bm25, PassagePool
from generator.schema import Document, Evidence, Turn, Verdict
from tests.support.records import make_dialog, make_evidence_of, make_passage, make_turn

TEXTS = {
    "ferry": "The ferry to Holm costs 60 crowns. Dogs travel free. The harbour kiosk sells tickets.",
    "library": "The library opens at nine. Books are lent for a month. Holm has no library.",
    "museum": "The museum of Holm shows boats. A ticket costs 20 crowns.",
}


def asked(query: str, evidence: str = "Dogs travel free.", **fields: Any) -> Turn:
    found = (Evidence(passage_id="p", start=0, end=1, text=evidence),) if evidence else ()
    return make_turn(1, query=query, evidence=found, **fields)


def judged(label: str) -> tuple[Verdict, ...]:
    return (Verdict(judge="needs_documents", label=label, explanation="", model="m", decides=False),)


@pytest.mark.parametrize(
    ("query", "evidence", "expected"),
    [
        ("Do dogs travel free?", "Dogs travel free.", 1),
        ("Is my dog travelling for free of charge?", "Dogs travel free.", 0.6),  # my, charge
        ("What about pets?", "Dogs travel free.", 0),
        ("Do dogs travel free?", "", None),
    ],
)
def test_overlap(query: str, evidence: str, expected: float | None) -> None:
    assert overlap(asked(query, evidence)) == expected


def test_ranks_of_evidence(tmp_path: Path) -> None:
    """The same places in the library of a run, in passages of ten words, and in the pool of human dialogs."""
    documents = [Document(id=name, text=text) for name, text in TEXTS.items()]
    library = Library.open("c", "f", lambda: iter(documents), tmp_path, 100, 0)
    run = Bm25(library, np.array([False, False, True]), 1.5, 0.75)
    passage = next(library.passages(range(1)))
    turn = make_turn(
        1,
        query="And what is lent in Holm?",
        retrieval_query="ferry dogs",
        evidence=(make_evidence_of(passage, "Dogs"),),
    )
    dialog = make_dialog(turn, make_turn(2), passages=[passage])
    pool = PassagePool([make_dialog(make_turn(1), passages=list(library.passages())), dialog])
    for ranker, last in ((run, 2), (pool, 3)):  # the museum is of the other split
        ranked = asyncio.run(rank_turns(dialog, ranker)).turns
        assert [(t.rank_last_turn, t.rank_query) for t in ranked] == [(last, 1), (None, None)]
        lost = dialog.model_copy(update={"turns": (turn.model_copy(update={"query": "Why?"}),)})
        assert asyncio.run(rank_turns(lost, ranker)).turns[0].rank_last_turn == last  # no passage has the word


def test_copies_count_once_in_a_rank(tmp_path: Path) -> None:
    """Copies of the evidence are as good a hit; copies of another passage take one place, as in a search."""
    texts = ("ferry", TEXTS["ferry"]), ("Dogs", TEXTS["ferry"]), ("Dogs", TEXTS["museum"]), ("Dogs", TEXTS["museum"])
    documents = [Document(id=str(n), title=title, text=f"{text}{n * ' '}") for n, (title, text) in enumerate(texts)]
    library = Library.open("c", "f", lambda: iter(documents), tmp_path, 100, 0)
    passage = library.passage(0)
    turn = make_turn(
        1, query="Dogs", retrieval_query="Dogs boats", evidence=(make_evidence_of(passage, "Dogs travel free."),)
    )
    dialog = make_dialog(turn, passages=[*library.passages()])
    for ranker in (Bm25(library, np.zeros(4, dtype=np.bool_), 1.5, 0.75), PassagePool([dialog])):
        ranked = asyncio.run(rank_turns(dialog, ranker)).turns[0]
        assert (ranked.rank_last_turn, ranked.rank_query) == (1, 2)


def test_evidence_in_two_passages_has_the_better_place(tmp_path: Path) -> None:
    """A passage that shares the sentence with its neighbour is as good a hit."""
    text = f"{TEXTS['ferry']} The kiosk also sells maps, and postcards of kiosks."
    library = Library.open("c", "f", lambda: iter([Document(id="d", text=text)]), tmp_path, 18, 6)
    first, second = library.passages()
    evidence = make_evidence_of(first, "kiosk sells tickets.")
    assert evidence.text in second.text
    dialog = make_dialog(make_turn(1, query="postcards of a kiosk", evidence=(evidence,)), passages=[first])
    ranked = asyncio.run(rank_turns(dialog, Bm25(library, np.array([False]), 1.5, 0.75)))
    assert ranked.turns[0].rank_last_turn == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "easy"),
        ({"rank_last_turn": 1, "rank_query": 5}, "easy"),
        ({"rank_last_turn": 2}, "medium"),
        ({"rank_last_turn": 6, "rank_query": 5}, "medium"),
        ({"rank_last_turn": 6, "rank_query": 6}, "hard"),
        ({"query": "What about pets?"}, "medium"),
        ({"query": "What about pets?", "rank_last_turn": 6}, "hard"),
        ({"query": "What about pets?", "rank_last_turn": 6, "verdicts": judged("no")}, "easy"),
        ({"rank_last_turn": 2, "verdicts": judged("unjudged")}, "medium"),
        ({"evidence": "", "rank_last_turn": None}, None),
    ],
)
def test_difficulty(fields: dict[str, Any], expected: str | None) -> None:
    assert difficulty(asked(**{"query": "Do dogs travel free?"} | fields)) == expected


def test_words_of_two_languages_are_not_compared() -> None:
    turn = asked("Fahren Hunde umsonst?", rank_last_turn=1)
    with use_languages(Languages(documents=load_language("en"), dialog=load_language("de"))):
        assert overlap(turn) is None and difficulty(turn) == "easy"
        assert evidence_covers(make_dialog(turn, passages=[make_passage("p", "Dogs travel free.")]), turn) is None
    assert overlap(turn) == 0 and difficulty(turn) == "medium"


def test_a_reply_that_declines_needs_no_evidence() -> None:
    refusal = {"answer": "I can only write text.", "reasoning": "A picture."}
    passages = [make_passage("p", "Dogs travel free.")]
    for answerability, expected in (("unanswerable", None), ("answerable", False)):
        turn = asked("Show me a dog.", "", answerability=answerability, **refusal)
        assert evidence_covers(make_dialog(turn, passages=passages), turn) is expected


def test_needs_documents_is_what_the_judge_said_last() -> None:
    said = [needs_documents(asked("?", verdicts=v)) for v in ((), judged("unjudged"), judged("no") + judged("yes"))]
    assert said == [None, None, True]


def test_a_task_has_no_new_passages() -> None:
    first, second = make_turn(1), asked("And dogs?").model_copy(update={"turn": 2})
    dialog = make_dialog(first, second)
    assert new_passages(dialog, second) == 1
    assert new_passages(dialog.model_copy(update={"ended": "task"}), second) is None
