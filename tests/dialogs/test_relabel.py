"""A turn's labels, by what its judges measure."""

import pytest

from generator.dialogs.relabel import relabel_turn
from generator.schema import Planned, Turn, Verdict
from tests.support.scripted import said


def judged(found: str | None, says: str | None, own: str = "answerable") -> Turn:
    labels = {"answerability": found, "idk": says, "question_type": "how-to+factoid"}
    verdicts = tuple(
        Verdict(judge=judge, label=label, explanation="", model="m", decides=False)
        for judge, label in labels.items()
        if label
    )
    (turn,) = said(("Why?", "Because."))
    return relabel_turn(turn.model_copy(update={"answerability": own, "verdicts": verdicts}))


CELLS = {
    ("answerable", "no"): "answerable",
    ("answerable", "partial"): "partial",
    ("answerable", "yes"): None,
    ("partial", "no"): None,
    ("partial", "partial"): "partial",
    ("partial", "yes"): None,
    ("unanswerable", "no"): None,
    ("unanswerable", "partial"): "partial",
    ("unanswerable", "yes"): "unanswerable",
}


@pytest.mark.parametrize(("found", "says"), CELLS)
def test_passages_and_answer_together_give_the_label(found: str, says: str) -> None:
    turn, label = judged(found, says), CELLS[found, says]
    assert turn.answerability == (label or found)
    refused = [v for v in turn.verdicts if v.judge == "agreement"]
    assert [v.label for v in refused] == ([] if label else ["incorrect"])
    assert turn.question_type == "how-to+factoid"


def test_a_judge_that_fails_changes_nothing() -> None:
    assert judged("unjudged", "unjudged", "partial").answerability == "partial"
    assert judged("unanswerable", "unjudged").answerability == "unanswerable"
    assert judged("unjudged", "yes", "unanswerable").answerability == "unanswerable"
    assert judged(None, None, "partial").answerability == "partial"


def test_measured_labels_leave_an_underspecified_turn_what_it_is() -> None:
    labelled = judged("underspecified", "yes", "underspecified")
    assert (labelled.answerability, labelled.question_type) == ("underspecified", "how-to+factoid")
    assert len(labelled.verdicts) == 3


def test_what_answers_the_agent_stays_a_statement_however_it_is_put() -> None:
    (turn,) = said(("The Plus plan.", "It costs 19 crowns."))
    planned = Planned(
        question_type="non-question",
        multi_turn_type="clarification-of-reading",
        answerability="answerable",
        standalone=False,
        new_topic=False,
    )
    measured = Verdict(judge="question_type", label="keyword", explanation="", model="", decides=False)
    changes = {"question_type": "non-question", "verdicts": (measured,)}
    assert relabel_turn(turn.model_copy(update=changes)).question_type == "keyword"
    assert relabel_turn(turn.model_copy(update={**changes, "planned": planned})).question_type == "non-question"
