"""Score a reply for each target, with its feedback."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest

from generator.optimization.data import Example, read_examples
from generator.optimization.targets import AnswerTarget, AskTarget, Outcome, RewriteTarget, compare_queries, find_target
from generator.prompts.calls import use_model
from generator.schema import Passage, Verdict
from tests.support.records import make_dialog, make_passage, make_turn, write_dialogs
from tests.support.scripted import Scripted, said


@pytest.mark.parametrize(
    ("query", "score"),
    [
        ("When did Zappa's band disband?", 1),
        ("When did they disband?", 0),  # as it was asked
        ("When did Zappa and Mary disband?", 0.5),  # one of two right, one of two found
        ("Zappa's band", 0),  # nothing is kept
    ],
)
def test_a_query_is_compared_by_what_it_adds_and_keeps(query: str, score: float) -> None:
    assert compare_queries("When did they disband?", query, "When did the band of Zappa disband?") == score


def test_a_rewrite_that_cannot_be_read_scores_nothing() -> None:
    target, passages = RewriteTarget(), (make_passage("p", "Zappa's band disbanded in 1969."),)
    turn = make_turn(2, query="When did they disband?")
    shown = Example("1", "s", frozenset({"d"}), passages, said(("Who led the band?", "Zappa.")), turn, "", "When?")
    outcome = Scripted(rewrite=["no", "no"]).run(lambda: target.attempt(target.step, shown, ("terms",)))
    assert outcome.score == 0 and "The reply was refused: " in outcome.feedback


def test_a_rewrite_that_the_step_refuses_is_shown_with_the_reason() -> None:
    target, passages, query = RewriteTarget(), (make_passage("p", "One."),), "When did they? In 1969 or in 1970?"
    turn = make_turn(2, query="When did they disband?")
    shown = Example("1", "s", frozenset({"d"}), passages, said(("Who led the band?", "Zappa.")), turn, "", "When?")

    async def attempt() -> Outcome:
        with use_model(dspy.settings.lm, dspy.settings.adapter, []):
            return await target.attempt(target.step, shown, ("terms",))

    outcome = Scripted(rewrite=[{"query": query}]).run(attempt)
    assert query in outcome.feedback and "It was refused" in outcome.feedback


def test_scores_are_compared_where_people_gave_all_of_them_and_the_judge_is_asked(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"answer": "It is red.", "other_answers": ("Red.",)}
    turns = [((1, 2), {}), ((4, 4), {}), ((2, 1), {}), ((4, None), {}), ((2, 4), {"other_answers": ()})]
    turns += [((1, 4), {"answer": "Red."}), ((1, 1), {"answerability": "unanswerable"}), ((3, 3), {})]
    dialogs = []
    for number, (scores, changes) in enumerate(turns):
        given = zip(("faithfulness", "completeness"), scores, strict=True)
        verdicts = tuple(
            Verdict(judge=f"human:all:{name}", label="scored", explanation="", model="", score=score, decides=False)
            for name, score in given
            if score
        )
        dialogs.append(make_dialog(make_turn(1, **asked | changes, verdicts=verdicts), id=str(number)))
    target, metrics = find_target("judge.rb_llm", "m"), ("faithfulness", "completeness")
    found = read_examples([str(write_dialogs(tmp_path / "rated.jsonl", *dialogs))], target.criteria(metrics))
    rated = {each.id.split()[1]: (each.rating, each.label) for each in target.select(found, metrics)}
    assert rated == {"0": (0, "low"), "1": (1, "high"), "2": (0, "low"), "7": (0.6, "high")}


def try_answer(reply: dict[str, Any], label: str = "", metrics: Sequence[str] = ("evidence",)) -> Outcome:
    passage = Passage(id="p", document_id="d", text="The gate is of iron. It opened in 1954.", start=0, end=39)
    target = AnswerTarget()
    shown = Example("1", "s", frozenset({"d"}), (passage,), (), make_turn(1, query="What is the gate made of?"), label)
    model = Scripted(answer=[reply] * 3)
    return model.run(lambda: target.attempt(target.step, shown, metrics))


def test_an_answer_is_scored_by_its_evidence_and_told_what_it_lacks() -> None:
    good = {"answer": "It is made of iron.", "evidence": [1], "consistent": True, "answerability": "answerable"}
    assert try_answer(good).score == 1
    poor = try_answer(good | {"answer": "It is made of copper and of glass.", "evidence": [2]})
    assert poor.score == 0 and "The evidence doesn't tell: " in poor.feedback and "copper" in poor.feedback
    unknown = good | {"answer": "I don't have information on that.", "answerability": "unanswerable", "evidence": []}
    assert [try_answer(unknown, label).score for label in ("unanswerable", "answerable", "")] == [1, 0, 0]
    assert try_answer(good, "answerable", ("labels",)).score == 1
    other = try_answer(good, "unanswerable", ("evidence", "labels"))
    assert other.score == 0.5 and "answerable; people say unanswerable." in other.feedback
    refused = try_answer(good | {"consistent": False, "consistency": "No."})
    assert refused.score == 0 and "The reply was refused: " in refused.feedback


@pytest.mark.parametrize(("refused", "score"), [([], 1), (["What do the documents say about the gate?"], 0.5)])
def test_a_question_is_scored_by_the_attempts_that_it_needs(refused: list[str], score: float) -> None:
    questions = [*refused, "What is the gate made of?"]
    passage = Passage(id="p", document_id="d", text="The gate is of iron. It opened in 1954.", start=0, end=39)
    target = AskTarget("ask_first", ["direct"])
    shown = Example("1", "s", frozenset({"d"}), (passage,), (), make_turn(1), "")
    good = {"can_ask": True, "consistent": True}
    model, trace = Scripted(ask=[good | {"question": each} for each in questions]), list[Any]()

    async def attempt() -> Outcome:
        with use_model(dspy.settings.lm, dspy.settings.adapter, trace):
            return await target.attempt(target.step, shown, ("checks",))

    outcome = model.run(attempt)
    assert len(trace) == len(questions)
    assert outcome.score == score and questions[-1] in outcome.feedback
    assert ("Refused before" in outcome.feedback) == (score < 1)
