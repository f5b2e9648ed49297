"""Advise before a run begins."""

import re

import pytest

from generator.models.lm import is_small
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site


@pytest.mark.parametrize(
    ("parameters", "given", "advised"),
    [
        (1_543_714_304, (), "set algorithm.reasoning=false lm.sampled.temperature=0.5"),
        (1_543_714_304, ("lm.sampled.temperature=0.5",), "set algorithm.reasoning=false, "),
        (1_543_714_304, ("algorithm.reasoning=true", "lm.sampled.temperature=0.5"), ""),
        (1_543_714_304, ("algorithm=whole", "taxonomy=qa", "lm.sampled.temperature=0.5"), ""),
        (7_241_732_096, (), ""),
    ],
)
def test_what_suits_a_small_model_is_said_where_only_its_server_tells_its_size(
    site: Site, parameters: int, given: tuple[str, ...], advised: str
) -> None:
    with OpenAIServer(parameters=parameters) as server:
        done = site.run(server, "judge=none", "dialogs=1", "turns=1", *given)
    assert done.code == 0
    assert ("test-model has " in done.err) == bool(advised) and advised in done.err


def test_plain_words_suit_one_or_two_billion_parameters() -> None:
    assert [is_small(billions) for billions in (0, 0.135, 1.54, 2.03, 7.24)] == [False, False, True, True, False]


@pytest.mark.parametrize(("k", "told"), [(8, "not even a first turn"), (5, "end early")])
def test_a_context_that_holds_no_dialog_is_named_before_it_begins(site: Site, k: int, told: str) -> None:
    given = ("lm.context=3000", "lm.max_tokens=512", f"retriever.k={k}", "retriever.passage_tokens=200")
    with OpenAIServer() as server:
        done = site.run(server, "judge=none", "dialogs=1", "turns=4", *given)
        assert "lm.context=3000 has room for" in done.err and told in done.err
        fixes = re.findall(r"(?:set|or for instance) ((?:[\w.]+=\d+ ?)+)", done.err)
        assert len(fixes) == 2
        for fix in fixes:
            done = site.run(server, "judge=none", "dialogs=1", "turns=4", *given, *fix.split(), "fresh=true")
            assert "has room for" not in done.err
