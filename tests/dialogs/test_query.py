"""The search query of a question, with a scripted model."""

import pytest

from generator.dialogs.query import Rewrite
from tests.support.scripted import Scripted, task
from tests.support.trams import DOCUMENTS, SAID


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (" age of\nthe driver ", "age of the driver"),
        (" ", "How old is she?"),
        ("How old is the driver, 41?", "How old is she?"),
        ("How old is the driver from Lorsund harbour office?", "How old is she?"),
        ("How old is the driver? It is green.", "How old is she?"),
        ("does it run at night", "How old is she?"),
    ],
)
def test_a_rewritten_query_is_sampled_stripped_and_neither_adds_facts_nor_pastes(query: str, expected: str) -> None:
    model = Scripted(rewrite=[{"query": query}])
    assert model.run(lambda: Rewrite().acall(DOCUMENTS, SAID, "How old is she?")) == expected
    assert [(c.stage, c.turn, c.profile) for c in model.calls] == [("rewrite", 3, "sampled")]
    assert "How old is she?" in task(model.calls[0].prompt)
