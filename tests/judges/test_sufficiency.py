"""The judge of contexts: it sees those of its turn alone, and has nothing to look for without a reference."""

import pytest

from generator.schema import Turn
from judges.llm.sufficiency import SufficiencyJudge
from tests.support.records import make_hits, make_passage, make_turn
from tests.support.scripted import Scripted

PASSAGES = [make_passage("p1", "The ferry sails at ten."), make_passage("p2", "The mill is old.")]


def asked(model: Scripted, turn: Turn, *before: Turn) -> tuple[str, str]:
    verdict = model.run(lambda: SufficiencyJudge("m").judge(PASSAGES, before, turn))
    return verdict.label, verdict.explanation


@pytest.mark.parametrize(("suffices", "label"), [(True, "correct"), (False, "incorrect")])
def test_it_labels_the_reference_by_the_contexts_of_its_turn(suffices: bool, label: str) -> None:
    model = Scripted(judge=[{"explanation": "By sentence 1.", "suffices": suffices}])
    turn = make_turn(2, query="When?", answer="At ten.", hits=make_hits("p1"))
    assert asked(model, turn) == (label, "By sentence 1.")
    (prompt,) = model.prompts("judge")
    assert "The ferry sails at ten." in prompt and "The mill is old." not in prompt
    assert "The reference:\nAt ten.\n" in prompt


def test_it_sees_what_a_later_question_goes_on_from() -> None:
    model = Scripted(judge=[{"explanation": "By sentence 1.", "suffices": True}])
    before = make_turn(1, query="Plan a day on Norrey for two.", answer="", hits=make_hits("p2"))
    turn = make_turn(2, query="We must be there by eleven.", answer="Take the ferry.", hits=make_hits("p1"))
    asked(model, turn, before)
    (prompt,) = model.prompts("judge")
    assert "User: Plan a day on Norrey for two.\n</dialog>" in prompt and "The mill is old." not in prompt


def test_a_turn_without_a_reference_is_not_asked_about() -> None:
    model = Scripted()
    assert asked(model, make_turn(1, answer="", hits=make_hits("p1"))) == ("given", "it has no reference")
    assert model.calls == []
