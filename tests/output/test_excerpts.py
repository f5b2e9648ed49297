"""Excerpts of passages: what of them is shown where room is short."""

from generator.output.excerpts import excerpts
from tests.support.records import make_evidence_of, make_passage


def test_excerpts_keep_evidence_whole_and_give_the_rest_to_other_passages() -> None:
    text = "The tower is 40 m tall. It stands in a park. The gate is 9 m tall and made of iron. Both are open in May."
    _, tower = passages = [make_passage("a", "one two three four five six"), make_passage("p", text)]
    short = excerpts(passages, (make_evidence_of(tower, "The gate is 9 m tall"),), 12)
    assert "The gate is 9 m tall" in short[-1].text
    assert text[short[-1].start : short[-1].end] == short[-1].text
    both = excerpts(passages, (make_evidence_of(tower, "40 m"),), 34)
    assert [one.id for one in both] == ["a", "p"] and both[1].text == text
    assert excerpts(passages, (), None) == passages and [one.text for one in excerpts(passages, (), 2)] == ["one two"]
    (cut,) = excerpts([tower], [make_evidence_of(tower, "The tower"), make_evidence_of(tower, "in May")], 6)
    assert cut.text.startswith("The tower"), "where not all of it fits, its beginning"
