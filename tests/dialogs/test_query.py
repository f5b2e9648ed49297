"""The search query of a question, with a scripted model."""

import pytest

from generator.dialogs.query import Rewrite, adds_facts, form_query
from generator.prompts.sections import Documents
from generator.schema import QueryForm
from tests.support.languages import speaking
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


@pytest.mark.parametrize(
    ("query", "adds"),
    [
        ("HJ-40电饭煲屏幕显示E1是什么意思？", False),
        ("HJ-40电饭煲屏幕显示E1、底部温度传感器断路是什么意思？", True),
        ("HJ-50电饭煲显示E1是什么意思？", True),
    ],
)
def test_two_words_of_documents_may_be_added_where_no_spaces_part_them(query: str, adds: bool) -> None:
    with speaking("zh"):
        said = ["那E1这个故障代码表示什么？", "HJ-40电饭煲都有哪些部件需要清洗？", "内盖和蒸汽阀。"]
        assert adds_facts(query, said, ["屏幕显示E1，表示底部温度传感器断路。"]) == adds


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
