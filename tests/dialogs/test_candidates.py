"""Candidates for a question or an answer, with a scripted model, and in runs with a server."""

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks.candidates import read_run
from generator.dialogs.candidates import NOT_BEST, Unused, collect_unused, rate_answer, rate_question
from generator.dialogs.dedup import Repetition
from generator.dialogs.generate import DialogGenerator
from generator.dialogs.program import Draft
from generator.dialogs.steps import Answer, Ask, Asked
from generator.errors import Rejected
from generator.prompts.sections import Documents
from generator.prompts.signatures import REJECTED, NextQuestion
from generator.schema import Cost, Evidence, Passage, Turn, Verdict
from judges.metrics.grounding import GroundingJudge
from tests.support.languages import speaking
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_turn
from tests.support.runs import Site
from tests.support.scripted import KINDS, PROFILES, Entry, Scripted, piece, plan, said

TRAM, BUS = piece("tram", "The green tram runs at night for 12 crowns."), piece("bus", "The bus is red and slow.")
DOCUMENTS = Documents(passages=(TRAM, BUS))
SAID = said(("Which colour is the tram?", "It is green."))
GOOD, WEAK = {"question": "Does the tram run at night?"}, {"question": "Who owns that submarine in Venezuela?"}
FAULTY = {"question": "What does the passage say?"}


def ask(count: int, *script: Entry) -> tuple[str | Rejected, list[Unused], Scripted]:
    """Return the question or why there is none, the unused candidates, and the model."""
    model, step = Scripted(ask=script), Ask(NextQuestion, Repetition(0.8), count)
    with collect_unused() as unused:
        try:
            question: str = model.run(lambda: step.acall(DOCUMENTS, SAID, KINDS["follow-up"]))
        except Rejected as rejected:
            return rejected, unused, model
    return question, unused, model


@pytest.mark.parametrize("script", [(GOOD, WEAK, WEAK), (WEAK, GOOD, WEAK), (WEAK, WEAK, GOOD)])
def test_the_best_stays_wherever_it_stands(script: Sequence[Entry]) -> None:
    question, unused, model = ask(3, *script)
    assert question == GOOD["question"]
    assert [(each.turn, each.why.stage, each.why.reason, each.why.text) for each in unused] == [
        (2, "ask", NOT_BEST, WEAK["question"])
    ] * 2
    assert len({call.prompt for call in model.calls}) == 1
    requests = [call.request for call in model.calls]
    assert [request.sampling for request in requests] == [PROFILES["greedy"], *[PROFILES["sampled"]] * 2]
    assert len({request.seed for request in requests}) == 3


def test_of_equals_the_first_stays() -> None:
    same = {"question": "Does the bus run at night?"}, {"question": "At night, does the bus run?"}
    assert ask(2, *same)[0] == same[0]["question"]
    assert ask(2, *reversed(same))[0] == same[1]["question"]


def test_one_that_passes_is_enough() -> None:
    question, unused, model = ask(3, "not JSON", "nor this", FAULTY, WEAK)
    assert question == WEAK["question"]
    assert [each.why.reason for each in unused] == ["unusable reply", "speaks of the documents"]
    assert len(model.calls) == 4, "the repair of the first, and no second attempt"


def test_if_none_passes_the_next_ones_see_what_was_wrong_with_each() -> None:
    scripted = [{"question": f"What does sentence {number} say?"} for number in (1, 2)]
    question, unused, model = ask(2, *scripted, WEAK, GOOD)
    assert question == GOOD["question"]
    assert len(unused) == 3
    last = model.calls[-1].prompt
    assert f"{REJECTED}:\nspeaks of the documents\n" in last, "once for both"


def test_after_three_attempts_it_is_a_drop() -> None:
    rejected, unused, model = ask(2, *({"question": f"Is [{number}] so?"} for number in range(6)))
    assert isinstance(rejected, Rejected) and rejected.text == "Is [4] so?"
    assert len(model.calls) == 6 and len(unused) == 5


@pytest.mark.parametrize("unusable", [(), ("not JSON", "nor this")], ids=["all refused", "one unusable"])
def test_the_last_attempt_is_the_third_whatever_was_wrong_with_those_before(unusable: tuple[Entry, ...]) -> None:
    long = "Does the green tram run at night from the harbour to the hill and back?"
    question, _, model = ask(2, *unusable, *({"question": long} for _ in range(6)))
    assert question == long and f"has more than {KINDS['follow-up'].words} words" in model.calls[-1].prompt


class Trusting:
    """A judge that asks no model and calls one answer correct."""

    name, decides, asks_model, best, signatures = "trusting", True, False, None, ()

    def __init__(self, text: str) -> None:
        self.text = text

    async def judge(self, passages: Sequence[Passage], history: Sequence[Turn], turn: Turn) -> Verdict:
        label = "correct" if turn.answer == self.text else "incorrect"
        return Verdict(judge=self.name, label=label, explanation="", model="")


def test_answers_are_chosen_by_what_supports_them_and_by_judges_first() -> None:
    invented = {"answer": "It costs 130 crowns, a surcharge included.", "evidence": [2]}
    supported = {"answer": "The tram runs for 12 crowns.", "evidence": [1]}
    for judges, best in (((), supported), ((Trusting(str(invented["answer"])),), invented)):
        model, step = Scripted(answer=[invented, supported]), Answer(2, judges)
        with collect_unused() as unused:
            turn: Turn = model.run(
                lambda s=step: s.acall((TRAM, BUS), (), Asked("What does the tram cost?"), KINDS["direct"])
            )  # type: ignore[misc]
        assert turn.answer == best["answer"]
        assert [each.why.stage for each in unused] == ["answer"]


@pytest.mark.parametrize(("kind", "refuses"), [("direct", False), ("unanswerable", True)])
def test_a_refusal_is_chosen_only_where_none_but_it_is_wanted(kind: str, refuses: bool) -> None:
    refusal = {"answer": "I don't know what the tram costs.", "answerability": "unanswerable", "evidence": []}
    answer = {"answer": "The tram runs for 12 crowns.", "evidence": [1]}
    for script in ([refusal, answer], [answer, refusal]):
        model, step = Scripted(answer=script), Answer(2, (GroundingJudge(),))
        turn: Turn = model.run(lambda s=step: s.acall((TRAM, BUS), (), Asked("What does the tram cost?"), KINDS[kind]))  # type: ignore[misc]
        assert (turn.answer == refusal["answer"]) is refuses


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("Does the tram run at night?", "Does the ferry run at dawn?"),
        ("Does the tram run at night?", "Which colour is the green tram?"),
        ("Does the tram run at night?", "Is it so?"),
        (
            "Does the tram run at night?",
            "Does the tram that is green in fact and not red ever run at night for us too?",
        ),
    ],
    ids=["what the documents know", "new", "about something", "short"],
)
def test_a_better_question_has_a_higher_score(better: str, worse: str) -> None:
    assert rate_question(better, DOCUMENTS, SAID, "") > rate_question(worse, DOCUMENTS, SAID, "")


def test_a_question_that_touches_on_its_focus_has_a_higher_score() -> None:
    questions = ["Is the bus slow?", "Is the tram green?"]
    for focus, best in ((BUS.text, questions[0]), (TRAM.text, questions[1])):
        assert max(questions, key=lambda question: rate_question(question, DOCUMENTS, (), focus)) == best


def test_a_first_question_that_names_its_document_has_a_higher_score() -> None:
    unnamed, named = "Does it run at night for 12 crowns?", "Does the tram run at night for 12 crowns?"
    titled = Documents(passages=(TRAM.model_copy(update={"text": "It runs at night for 12 crowns.", "title": "Tram"}),))
    assert rate_question(named, titled, (), "") > rate_question(unnamed, titled, (), "")


def test_a_question_and_an_answer_of_usual_length_score_no_less_where_no_spaces_part_words() -> None:
    text = "緑の電車は夜に十二クローネで走ります。駅から港まで行きます。"
    tram = piece("tram", text).model_copy(update={"title": "電車"})

    def score(answer: str) -> float:
        turn = make_turn(1, query="電車は走りますか？", answer=answer)
        return asyncio.run(rate_answer(turn, (tram,), (), ()))

    with speaking("ja"):
        assert rate_question("緑の電車は夜に十二クローネで走りますか？", Documents(passages=(tram,)), (), "") == 1
        assert score(4 * text) == score(text)


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("The tram costs 130 crowns.", TRAM),
        ("The tram costs 12 crowns.", BUS),
        ("Yes.", TRAM),
        ("At night the green tram runs.", BUS),
    ],
    ids=["invented", "evidence beside the point", "says little", "not to the question"],
)
def test_a_worse_answer_has_a_lower_score(answer: str, evidence: Passage) -> None:
    def score(answer: str, passage: Passage) -> float:
        span = Evidence(passage_id=passage.id, start=0, end=len(passage.text), text=passage.text)
        turn = make_turn(1, query="What does the tram cost?", answer=answer, evidence=(span,))
        return asyncio.run(rate_answer(turn, (TRAM, BUS), (), ()))

    assert score(answer, evidence) < score("The tram costs 12 crowns.", TRAM)


def test_what_is_lost_of_a_dialog_is_listed_turn_by_turn() -> None:
    why, cost = Rejected("ask", "left the subject", "Why?"), Cost()
    draft = Draft(turns=(make_turn(1),), skipped=((2, why),), unused=(Unused(why, cost, 1), Unused(why, cost, 3)))
    planned = plan(TRAM, [KINDS["direct"]])
    drops = DialogGenerator._list_losses(cast(DialogGenerator, SimpleNamespace(min_turns=1)), planned, draft)
    assert [(drop.turn, drop.scope) for drop in drops] == [(1, "candidate"), (2, "turn"), (3, "candidate")]


def test_the_ledger_has_the_rest_with_its_cost_and_concurrency_changes_nothing(tmp_path: Path) -> None:
    chance, sites = random.Random(4), []
    for concurrency in (1, 8):
        sites.append(Site(tmp_path / str(concurrency)))
        with OpenAIServer(delay_s=lambda _: chance.uniform(0, 0.02)) as server:
            done = sites[-1].run(server, "algorithm.candidates=3", "dialogs=2", f"lm.concurrency={concurrency}")
            assert done.code == 0, done.err
            assert set(server.finished.values()) == {1}
    one, other = sites
    assert (one.data(), one.counts()) == (other.data(), other.counts())
    summary = one.summary()
    drawn = summary["stages"]["ask"]["calls"] + summary["stages"]["answer"]["calls"]
    drops = [json.loads(line) for line in (one.run_dir / "drops.jsonl").read_text().splitlines()]
    costs = [drop["cost"] for drop in drops if drop["scope"] == "candidate"]
    assert len(costs) == sum(n for why in summary["dropped_candidates"].values() for n in why.values())
    assert {drop["turn"] for drop in drops if drop["scope"] == "candidate"} == {1, 2}
    spent = summary["candidates_cost"]
    assert spent == {key: sum(cost[key] for cost in costs) for key in ("calls", "prompt", "completion")}
    assert 3 * spent["calls"] == 2 * drawn and spent["completion"] > 0
    row = read_run(one.run_dir)
    assert (row[0], row[7]) == ("3", f"{summary['pairs'] / (2 * summary['attempted']):.0%}")
