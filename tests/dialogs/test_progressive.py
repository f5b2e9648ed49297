"""An item of a scenario: its sets of questions, what is found for them, their ratings, and the references."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from generator.dialogs.dedup import Repetition
from generator.dialogs.plan import Plan
from generator.dialogs.program import Draft
from generator.dialogs.progressive import ProgressiveDialog
from generator.models.lm import LanguageModel
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import Model, Others, use_model
from generator.schema import Passage
from taxonomy import read_scenarios
from tests.support.scripted import Scripted, Shelf, piece, task

SCENARIOS = read_scenarios()
MILL = piece("mill", "The mill burnt on Friday night. Nobody was hurt. The owners will rebuild. Work starts in June.")
OTHERS = [piece("brigade", "The brigade came late. Its pump failed."), piece("river"), piece("town")]
NEWS = ("Sum up the fire at the mill in five points.", "Work in what the brigade did.", "Add what comes next for it.")
TRAVEL = ("Plan two days on Norrey for us.", "We can spend 300 pounds.", "A house with dogs, please: the final plan?")


def plan(name: str, source: Passage = MILL, focus: str = "") -> Plan:
    scenario = SCENARIOS[name]
    return Plan("d1", 1, "train", (), source, focus, len(scenario.turns), scenario)


def asked(questions: Sequence[str], *queries: str) -> Mapping[str, Any]:
    turns = [{"evidence": [1], "request": question} for question in questions]
    for turn, query in zip(turns, queries, strict=False):
        turn["query"] = query
    return {"plan": "It burns.", "turns": turns}


def write(
    model: Scripted,
    shelf: Shelf,
    of: Plan,
    candidates: int = 1,
    generators: Sequence[str] = ("",),
    scorers: Sequence[str] = ("",),
    others: Mapping[str, Scripted] | None = None,
    min_rating: int = 1,
) -> Draft:
    program = ProgressiveDialog(Repetition(0.8), shelf, 5, candidates, min_rating, generators, scorers)

    def opened(each: Scripted) -> Model:
        return Model(LanguageModel(each, each, seed=7), SharedPrefixAdapter(preamble=program.preamble))

    async def run() -> Draft:
        models: Others = {name: opened(each) for name, each in (others or {}).items()}
        with use_model(*opened(model)):
            return await program.write(of, models)

    return model.run(run)


def points(*facts: tuple[Sequence[int], str]) -> Mapping[str, Any]:
    return {"points": [{"evidence": list(numbers), "text": text} for numbers, text in facts]}


def test_a_synthesis_item_has_points_of_what_was_found_and_the_target_paragraph() -> None:
    model = Scripted(
        candidates=[asked(NEWS, "mill fire", "brigade pump", "mill owners plans")],
        score=[{"rating": 4, "explanation": "Fine."}],
        reference=[
            points(([1], "It burnt on Friday."), ([2], "Nobody was\nhurt.")),
            points(([2], "The pump failed."), ([1, 2], "The pump failed.")),
            {"explanation": "Plans.", "evidence": [4, 3]},
        ],
    )
    shelf = Shelf([[MILL], [OTHERS[0], MILL], [OTHERS[1]]])
    draft = write(model, shelf, plan("news"))
    assert (draft.end, draft.skipped, draft.unused) == (None, (), ())
    assert shelf.asked == [(query, 5, "train") for query in ("mill fire", "brigade pump", "mill owners plans")]
    assert shelf.inside == [None] * 3
    assert [turn.query for turn in draft.turns] == list(NEWS)
    assert [turn.retrieval_query for turn in draft.turns] == ["mill fire", "brigade pump", "mill owners plans"]
    assert [[(hit.passage_id, hit.new) for hit in turn.hits] for turn in draft.turns] == [
        [(MILL.id, True)],
        [(OTHERS[0].id, True), (MILL.id, False)],
        [(OTHERS[1].id, True)],
    ]
    assert [turn.answer for turn in draft.turns] == [
        "- It burnt on Friday.\n- Nobody was hurt.",
        "- The pump failed.",
        "The owners will rebuild. Work starts in June.",
    ]
    assert [[e.text for e in turn.evidence] for turn in draft.turns] == [
        ["The mill burnt on Friday night.", "Nobody was hurt."],
        ["Its pump failed.", "The brigade came late."],
        ["The owners will rebuild.", "Work starts in June."],
    ]
    by_id = {passage.id: passage for passage in draft.passages}
    spans = [e for turn in draft.turns for e in turn.evidence]
    assert all(by_id[e.passage_id].text[e.start : e.end] == e.text for e in spans)
    assert [t.question_type for t in draft.turns] == ["news"] * 3
    assert [turn.reasoning for turn in draft.turns] == ["Set 1 of 1, rated 4 of 5: Fine.\nIt burns.", "", "Plans."]


def test_the_target_paragraph_is_placed_in_a_passage_that_was_found_and_else_in_the_source() -> None:
    part = Passage(id="mill:32-68", document_id="mill", text=MILL.text[32:68], start=32, end=68)
    for found, name, start in (([part], part.id, 0), ([OTHERS[1]], MILL.id, 32)):
        model = Scripted(
            candidates=[asked(NEWS, "a b", "c d", "e f")], reference=[{}, {}, {"explanation": "", "evidence": [2]}]
        )
        draft = write(model, Shelf([[OTHERS[0]], [OTHERS[0]], found]), plan("news"))
        (span,) = draft.turns[2].evidence
        assert (span.passage_id, span.start, span.text) == (name, start, "Nobody was hurt.")
        assert name in [passage.id for passage in draft.passages]


def test_a_reasoning_item_searches_its_own_document_and_quotes_the_evidence() -> None:
    questions = ("Why is the mill closed?", "It looked fine from the road, though.", "Then why do I see cranes there?")
    model = Scripted(
        candidates=[asked(questions)],
        reference=[{"explanation": "It burnt.", "evidence": [1]}, {"evidence": [2]}, {"evidence": [4, 3]}],
    )
    shelf = Shelf([[MILL], [MILL], [MILL]])
    draft = write(model, shelf, plan("customer"))
    assert shelf.asked == [(question, 5, "train") for question in questions]
    assert shelf.inside == ["mill"] * 3
    assert draft.turns[2].answer == "The owners will rebuild.\nWork starts in June.", "in the document's order"
    assert '"query"' not in task(model.prompts("candidates")[0])
    earlier = f"The User asked before:\n1. {questions[0]}\n2. {questions[1]}\n"
    assert earlier in task(model.prompts("reference")[2])
    assert [call.turn for call in model.of("reference")] == [1, 2, 3]


def test_a_sentence_that_the_end_of_its_passage_cuts_is_no_evidence() -> None:
    questions = ("Why is the mill closed?", "It looked fine from the road, though.", "Then why do I see cranes there?")
    cut = [
        Passage(id=f"mill:{start}-{end}", document_id="mill", text=MILL.text[start:end], start=start, end=end)
        for start, end in ((9, 68), (0, 46), (9, 46))
    ]
    model = Scripted(candidates=[asked(questions)], reference=[{"explanation": "", "evidence": [1]}] * 3)
    draft = write(model, Shelf([[cut[0]], [cut[1]], [cut[2]]]), plan("customer"))
    first, second, third = draft.turns
    assert [turn.answer for turn in (first, second)] == ["Nobody was hurt.", "The mill burnt on Friday night."]
    assert [(e.passage_id, e.start) for turn in (first, second) for e in turn.evidence] == [
        (cut[0].id, 23),
        (cut[1].id, 0),
    ]
    assert third.answer == "burnt on Friday night.", "there is no other"


def test_a_plan_rests_on_given_information_and_stands_at_the_end_alone() -> None:
    model = Scripted(
        candidates=[asked(TRAVEL)], reference=[{"explanation": "Dogs.", "evidence": [1], "answer": " 1. Go. "}]
    )
    shelf = Shelf([])
    draft = write(model, shelf, plan("travel"))
    assert shelf.asked == []
    assert draft.passages == (MILL,)
    assert [[hit.passage_id for hit in turn.hits] for turn in draft.turns] == [[MILL.id]] * 3
    assert [hit.new for turn in draft.turns for hit in turn.hits] == [True, False, False]
    assert [turn.answer for turn in draft.turns] == ["", "", "1. Go."]
    assert [turn.retrieval_query for turn in draft.turns] == ["", "", ""]
    assert len(model.of("reference")) == 1


def test_a_plan_that_only_repeats_what_was_asked_is_no_reference() -> None:
    echo = "\n".join(f"{n}. {text}" for n, text in enumerate(TRAVEL, 1))
    model = Scripted(candidates=[asked(TRAVEL)], reference=[{"evidence": [1], "answer": echo}])
    end = write(model, Shelf([]), plan("travel")).end
    assert end is not None and (end.stage, end.reason) == ("reference", "repeats the questions")


def shelves(sets: int) -> Shelf:
    return Shelf([[MILL], [OTHERS[0]], [OTHERS[1]]] * sets)


def numbered(number: int) -> Mapping[str, Any]:
    name = ("Alder", "Birch", "Cedar", "Dogwood")[number]
    return asked(
        (f"Write a summary of the {name} mill.", f"Go on with floods near {name}.", f"Add {name} and its owners."),
        *(f"{name} {n}" for n in range(3)),
    )


def test_the_best_set_stays_and_of_equals_the_first() -> None:
    model = Scripted(
        candidates=[numbered(n) for n in range(4)], score=[{"rating": 2}, {"rating": 4}, {"rating": 4}, {"rating": 1}]
    )
    draft = write(model, shelves(4), plan("news"), candidates=4)
    assert draft.turns[0].query == "Write a summary of the Birch mill."
    assert [(unused.why.stage, unused.why.reason[:12], unused.why.text[:30]) for unused in draft.unused] == [
        ("score", "rated 2 of 5", "Write a summary of the Alder m"),
        ("score", "rated 4 of 5", "Write a summary of the Cedar m"),
        ("score", "rated 1 of 5", "Write a summary of the Dogwood"),
    ]
    assert [call.request.sampling.temperature for call in model.of("candidates")] == [0.4, 0.7, 1.0, 0.4]
    first, second, *_ = model.prompts("candidates")
    assert "Go on with floods near Alder." not in first and "Go on with floods near Alder." in task(second)
    assert "start from this" not in task(first)
    assert "start from this, in your own words:\nNobody was hurt." in task(second)


@pytest.mark.parametrize(("ratings", "kept"), [((2, 3), True), ((2, 2), False)])
def test_an_item_whose_best_set_is_rated_too_low_is_a_drop(ratings: Sequence[int], kept: bool) -> None:
    model = Scripted(candidates=[numbered(0), numbered(1)], score=[{"rating": rating} for rating in ratings])
    draft = write(model, shelves(2), plan("news"), candidates=2, min_rating=3)
    assert len(draft.unused) == 1 and len(draft.turns) == 3 * kept
    if not kept:
        assert draft.end is not None and draft.end.stage == "score" and "min_rating=3" in draft.end.reason
        assert "Alder" in draft.end.text


def test_sets_start_from_the_focus_of_their_plan_and_from_sentences_that_tell_something() -> None:
    source = piece("mill", f"## The fire\n\nSee below. {MILL.text}\n\n## The owners\n\nThey live in Norrey.")
    model = Scripted(candidates=[numbered(n) for n in range(3)])
    write(model, shelves(3), plan("news", source, "The owners will rebuild. Work starts in June."), candidates=3)
    started = [task(prompt).split("in your own words:\n")[1].split("\n")[0] for prompt in model.prompts("candidates")]
    assert started == ["The owners will rebuild. Work starts in June.", "Work starts in June.", MILL.text[:31]]


def test_the_scorer_sees_which_sentences_were_found_for_a_question() -> None:
    model = Scripted(candidates=[numbered(0)])
    write(model, Shelf([[MILL], [OTHERS[0], MILL], [OTHERS[1]]]), plan("news"))
    (shown,) = model.prompts("score")
    assert "1. Write a summary of the Alder mill. (found: sentences 1-4)\n" in shown
    assert "2. Go on with floods near Alder. (found: sentences 1-6)\n" in shown
    assert "3. Add Alder and its owners. (found: sentences 7-8)\n" in shown


def test_the_scorer_reads_no_sentence_of_the_source_twice() -> None:
    part = Passage(id="mill:23-57", document_id="mill", text=MILL.text[23:57], start=23, end=57)
    model = Scripted(candidates=[asked(NEWS, "a b", "c d", "e f")])
    write(model, Shelf([[part], [OTHERS[0]], [part, MILL]]), plan("news"))
    (shown,) = model.prompts("score")
    assert shown.count("Nobody was hurt.") == 1
    assert f"1. {NEWS[0]} (found: sentences 2)\n" in shown
    assert f"2. {NEWS[1]} (found: sentences 5-6)\n" in shown
    assert f"3. {NEWS[2]} (found: sentences 1-4)\n" in shown


def test_what_is_wrong_with_a_set_is_told_to_the_next_attempt() -> None:
    bad = asked(("What burnt?", *NEWS[1:]), "a", "b", "c")
    model = Scripted(candidates=[bad, asked(NEWS, "a b", "c d", "e f")])
    draft = write(model, shelves(1), plan("news"))
    assert draft.end is None
    assert "the first question asks for no text, such as a summary or a table: “What burnt?”" in task(
        model.prompts("candidates")[1]
    )


def test_a_set_is_given_up_after_three_attempts_and_the_others_go_on() -> None:
    bad = asked(("What burnt?", *NEWS[1:]), "a", "b", "c")
    model = Scripted(candidates=[bad, bad, bad, "no JSON", "no JSON", asked(NEWS, "a b", "c d", "e f")])
    draft = write(model, shelves(1), plan("news"), candidates=3)
    assert [turn.query for turn in draft.turns] == list(NEWS)
    assert [(unused.why.stage, unused.why.reason) for unused in draft.unused] == [
        ("candidates", "the first question asks for no text, such as a summary or a table"),
        ("candidates", "unusable reply"),
    ]
    assert draft.turns[0].reasoning.startswith("Set 3 of 3, rated ")


@pytest.mark.parametrize(
    ("script", "found", "stage", "reason"),
    [
        ({"candidates": ["?", "?"]}, [[MILL]] * 3, "candidates", "unusable reply"),
        ({"score": ["?", "?"]}, [[MILL]] * 3, "score", "unusable reply"),
        ({}, [[MILL], []], "retrieve", "nothing found"),
        ({"reference": [points(([1], "…"))]}, [[MILL]] * 3, "reference", "empty reference"),
    ],
)
def test_without_a_usable_set_or_reference_there_is_no_item(
    script: dict[str, Any], found: Sequence[Sequence[Passage]], stage: str, reason: str
) -> None:
    model = Scripted(**{"candidates": [asked(NEWS, "a b", "c d", "e f")], **script})
    draft = write(model, Shelf(found), plan("news"))
    assert draft.turns == ()
    assert draft.end is not None and (draft.end.stage, draft.end.reason) == (stage, reason)


def test_several_models_write_in_turn_and_the_mean_of_several_ratings_counts() -> None:
    model = Scripted(candidates=[numbered(0), numbered(2)])
    b = Scripted(candidates=[numbered(1)])
    b.model = "model-b"
    low, high = Scripted(score=[{"rating": 1}, {"rating": 3}, {"rating": 1}]), Scripted(score=[{"rating": 4}] * 3)
    draft = write(
        model,
        shelves(3),
        plan("news"),
        candidates=3,
        generators=("", "b"),
        scorers=("low", "high"),
        others={"b": b, "low": low, "high": high},
    )
    assert draft.turns[0].query == "Write a summary of the Birch mill."
    assert draft.turns[0].reasoning.startswith("Set 2 of 3 by model-b, rated 3.5 of 5: ")
    assert [unused.why.reason[:14] for unused in draft.unused] == ["rated 2.5 of 5", "rated 2.5 of 5"]
    assert model.stages == ["candidates", "candidates", "reference", "reference", "reference"]
    assert (b.stages, low.stages, high.stages) == (["candidates"], ["score"] * 3, ["score"] * 3)
