"""The judge that asks closed-book: what it compares, what it asks, and a run that has it beside its own judge."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.schema import Verdict
from judges.llm.needs_documents import NeedsDocumentsJudge, agreement
from tests.support.openai_server import OpenAIServer, prompt
from tests.support.records import make_evidence, make_passage, make_turn
from tests.support.runs import Site
from tests.support.scripted import Entry, Scripted

FERRY = make_passage("p", "Of ferries: dogs travel free on the ferry to Holm.")
ASKED = make_turn(1, query="What do dogs pay on the ferry?", answer="Dogs travel free.", evidence=make_evidence("p"))


def judge(replies: Sequence[Entry], **changes: object) -> tuple[Verdict, Scripted]:
    model = Scripted(judge=replies)
    turn = ASKED.model_copy(update=changes)
    return model.run(lambda: NeedsDocumentsJudge("m").judge([FERRY], (), turn)), model


@pytest.mark.parametrize(
    ("answer", "other", "expected"),
    [
        ("Dogs travel free.", "They travel for free.", 1),
        ("Dogs travel free.", "I don't know what dogs pay.", 0),  # the question's words are no agreement
        ("Dogs pay 20 crowns.", "Dogs pay 30 crowns.", 0),
        ("Dogs pay 1,200 crowns.", "1200 crowns", 1),
        ("Dogs pay for two weeks.", "For 14 days.", 1),
        ("Dogs wait at gate B12.", "Dogs wait at gate B13.", 0),
        ("Small dogs travel free.", "Free, if small.", 2 / 3),
        ("Dogs pay.", "Dogs pay on the ferry.", 1),  # which adds nothing to the question
        ("They travel free. I don't have information on cats.", "I don't know.", 0),
        ("They travel free. I don't have information on cats.", "They travel free.", 1),
    ],
)
def test_agreement(answer: str, other: str, expected: float) -> None:
    assert agreement("What do dogs pay on the ferry?", answer, other) == expected


@pytest.mark.parametrize(("reply", "expected"), [("They travel free.", ("no", 0)), ("20 crowns.", ("yes", 1))])
def test_verdict(reply: str, expected: tuple[str, float]) -> None:
    verdict, model = judge([reply])
    assert (verdict.label, verdict.score, verdict.decides) == (*expected, False)
    assert reply in verdict.explanation
    asked = model.calls[0].prompt
    assert "What do dogs pay" in asked and "Holm" not in asked
    assert "there are no documents" in asked and "the documents below" not in asked


def test_a_reply_that_cannot_be_used() -> None:
    verdict, _ = judge([" "])
    assert (verdict.label, verdict.score, verdict.explanation) == ("unjudged", None, "empty reply")


def test_a_refusal_is_not_asked_for() -> None:
    verdict, model = judge([], evidence=(), answerability="unanswerable")
    assert verdict.label == "no evidence" and not model.calls


def test_a_run_has_it_beside_its_judge(openai_server: OpenAIServer, tmp_path: Path) -> None:
    site = Site(tmp_path)
    measured = "taxonomy.measure=[needs_documents]"
    done = site.run(
        openai_server,
        "dialogs=2",
        "turns=1",
        "taxonomy=direct",
        "lm.concurrency=1",
        measured,
        "judge.filter=overlap>=0",
    )
    assert done.code == 0
    assert {row["needs_documents"] for row in site.rows()} <= {True, False}
    closed_book = [text for text in map(prompt, openai_server.bodies) if "there are no documents" in text]
    assert len(closed_book) == 2 and not any("harbour office opens" in text for text in closed_book)
