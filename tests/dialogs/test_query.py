"""The search query of a question, with a scripted model."""

import pytest

from generator.dialogs.query import Rewrite, form_query
from generator.prompts.sections import Documents
from generator.schema import QueryForm
from tests.support.records import make_turn
from tests.support.scripted import Scripted, piece, task
from tests.support.trams import DOCUMENTS, SAID


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (" age of\nthe driver ", "age of the driver"),
        (" ", "How old is she?"),
        ("How old is the driver, 41?", "How old is she?"),
        ("How old is the driver of the red bus?", "How old is the driver of the red bus?"),
        ("How old is the driver of the red bus in Lorsund harbour?", "How old is she?"),
        ("How many years has the driver lived until now?", "How many years has the driver lived until now?"),
        ("How old is the driver? It is green.", "How old is she?"),
        ("does it run at night", "How old is she?"),
    ],
)
def test_a_rewritten_query_is_sampled_stripped_and_neither_adds_facts_nor_pastes(query: str, expected: str) -> None:
    model = Scripted(rewrite=[{"query": query}])
    documents = Documents(passages=(*DOCUMENTS.passages, piece("harbour", "The bus stops in Lorsund harbour.")))
    assert model.run(lambda: Rewrite().acall(documents, SAID, "How old is she?")) == expected
    assert [(c.stage, c.turn, c.profile) for c in model.calls] == [("rewrite", 3, "sampled")]
    assert "How old is she?" in task(model.calls[0].prompt)


HISTORY = [make_turn(1, query="What runs?", answer="A tram."), make_turn(2, query="Where?", answer="Along the river.")]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("last_turn", "How often?"),
        ("rewrite", "How often does the tram run?"),
        ("user_turns", "What runs?\nWhere?\nHow often?"),
        ("full", "What runs?\nA tram.\nWhere?\nAlong the river.\nHow often?"),
    ],
)
def test_query_forms(form: QueryForm, expected: str) -> None:
    assert form_query(form, HISTORY, "How often?", "How often does the tram run?") == expected
    assert form_query(form, [], "What runs?", "What is it that runs?") == "What runs?"
