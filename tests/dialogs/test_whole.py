"""A whole dialog in one call: its prompt, its attempts, its record."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from generator.dialogs.checks.evidence import find_uncovered
from generator.dialogs.dedup import Repetition
from generator.dialogs.plan import Plan
from generator.dialogs.program import Draft
from generator.dialogs.whole import WholeDialogProgram
from generator.models.lm import LanguageModel
from generator.prompts.adapter import SharedPrefixAdapter
from generator.prompts.calls import use_model
from taxonomy import read_facets, read_tasks
from tests.support.scripted import Entry, Scripted, piece, spoken, task

TASKS, AIMS = read_tasks(), read_facets("answerability")
HARBOUR = piece("harbour")
PAIRS = [
    ("How deep is the harbour?", "It has nine metres at low tide."),
    ("And is it deep enough for ferries?", "For small ones."),
    ("Which of them call there?", "Two a day, both from Norrey."),
]


def plan(name: str = "CM", turns: int = 3, unknown: int = 0) -> Plan:
    """Return the plan of a dialog of which the documents are not to answer a turn, if `unknown` gives its number."""
    aims = ["unanswerable" if number == unknown else "answerable" for number in range(1, turns + 1)]
    return Plan(
        dialog_id="d1",
        seed=1,
        split="train",
        question_types=(),
        source=HARBOUR,
        focus="Why its door is blue.",
        turns=turns,
        task=TASKS[name],
        aims=tuple(AIMS[aim] for aim in aims) if unknown else (),
    )


def reply(*pairs: tuple[str, str], evidence: Sequence[Sequence[int]] = (), **fields: str) -> Mapping[str, Any]:
    turns: list[dict[str, object]] = [{"user": user, "agent": agent} for n, (user, agent) in enumerate(pairs, start=1)]
    for turn, numbers in zip(turns, evidence, strict=False):
        turn["evidence"] = list(numbers)
    return {"plan": "They meet.", "turns": turns, **fields}


def write(model: Scripted, of: Plan | None = None, grounded: bool = False, structured_outputs: bool = True) -> Draft:
    program = WholeDialogProgram(Repetition(0.8), grounded)

    async def run() -> Draft:
        adapter = SharedPrefixAdapter(structured_outputs, preamble=program.preamble)
        with use_model(LanguageModel(model, model, seed=7), adapter):
            return await program.write(of or plan(), {})

    return model.run(run)


def test_the_turns_are_those_that_the_model_wrote() -> None:
    model = Scripted(write=[reply(*PAIRS[:2], ("User: Which\nof them call? ", f" [2] {PAIRS[2][1]}\n"))])
    draft = write(model)
    assert (draft.end, draft.skipped, draft.passages) == (None, (), ())
    assert spoken(draft) == [*PAIRS[:2], ("Which\nof them call?", PAIRS[2][1])]
    assert [(t.turn, t.question_type, t.multi_turn_type) for t in draft.turns] == [
        (1, "CM", None),
        (2, "CM", "CM"),
        (3, "CM", "CM"),
    ]
    assert [turn.reasoning for turn in draft.turns] == ["They meet.", "", ""]
    assert [(call.stage, call.turn, call.profile) for call in model.calls] == [("write", 1, "greedy")]


def test_the_prompt_names_task_topic_and_form() -> None:
    model = Scripted(write=[reply(*PAIRS)])
    write(model)
    (call,) = model.calls
    assert TASKS["CM"].prompt(3) in call.prompt
    assert "Harbour: Why its door is blue." in call.prompt
    assert HARBOUR.text not in call.prompt and "<documents>" not in call.prompt and "<dialog>" not in call.prompt
    blank = '{"user":"…","agent":"…"}'
    assert f'{{"plan":"…","turns":[{blank},{blank},{blank}]}}' in task(call.prompt)
    turns = call.schema["properties"]["turns"]
    assert (turns["minItems"], turns["maxItems"]) == (3, 3)
    assert call.schema["required"] == ["plan", "turns"]


def test_a_grounded_dialog_has_the_sentences_that_its_answers_rest_on() -> None:
    model = Scripted(write=[reply(*PAIRS, evidence=[[], [2], [1, 2, 1]])])
    draft = write(model, grounded=True)
    assert draft.passages == (HARBOUR,)
    assert [[e.text for e in turn.evidence] for turn in draft.turns] == [
        [],
        ["It has a blue door."],
        ["The harbour opened in May.", "It has a blue door."],
    ]
    (call,) = model.calls
    assert "<documents>" in call.prompt and "[2] It has a blue door." in call.prompt
    (record,) = call.schema["$defs"].values()
    assert record["properties"]["evidence"]["items"] == {"type": "integer", "minimum": 1, "maximum": 2}
    assert list(record["properties"]) == record["required"] == ["user", "evidence", "agent"]


def test_evidence_beyond_the_documents_is_repaired_and_none_at_all_refused() -> None:
    beyond, none = reply(*PAIRS, evidence=[[], [3], []]), reply(*PAIRS, evidence=[[], [], []])
    model = Scripted(write=[beyond, none, reply(*PAIRS, evidence=[[1], [], []])])
    assert spoken(write(model, grounded=True)) == PAIRS
    assert "there is no sentence 3, only 1 to 2" in model.calls[1].prompt
    assert "rests on no sentence" in model.calls[2].prompt


def test_evidence_of_a_turn_that_is_cut_off_is_not_the_dialogs() -> None:
    pairs = [("When did the harbour open?", "It costs a bundle of hay.")] * 2
    model = Scripted(write=[reply(*pairs, evidence=[[], [2]])] * 3)
    assert write(model, plan("QA", 2), grounded=True).turns == ()
    assert len(model.prompts("write")) == 3


def test_evidence_that_covers_no_answer_is_chosen_once_more() -> None:
    pairs = [("When did the harbour open?", "It opened in May."), ("And its door?", "A blue one.")]
    chosen = {"explanation": "It tells the month.", "evidence": [1]}
    model = Scripted(write=[reply(*pairs, evidence=[[2], [2]])], evidence=[chosen])
    draft = write(model, plan(turns=2), grounded=True)
    assert [[e.text for e in turn.evidence] for turn in draft.turns] == [
        ["The harbour opened in May."],
        ["It has a blue door."],
    ]
    assert [call.stage for call in model.calls] == ["write", "evidence"]
    uncovered = draft.turns[1].model_copy(update={"evidence": draft.turns[0].evidence})
    assert find_uncovered(draft.passages, draft.turns[:1], uncovered), "later turns are checked as the first is"


def test_an_answer_that_cites_nothing_beside_one_that_does_gets_no_evidence() -> None:
    pairs = [
        ("We moved to a house by the harbour.", "A move in May is a good start. Have you met your neighbours?"),
        ("One, he paints doors.", "Like the one of the harbour, which has a blue door."),
    ]
    draft = write(Scripted(write=[reply(*pairs, evidence=[[], [2]])]), plan("PI", 2), grounded=True)
    assert [[e.text for e in turn.evidence] for turn in draft.turns] == [[], ["It has a blue door."]]


@pytest.mark.parametrize(
    ("name", "fields", "first", "last"),
    [
        ("MR", {"result": "9"}, "Four and five.", "Nine."),
        ("SC", {"result": "1862", "mistake": "1826"}, "It opened in 1826.", "You're right, in 1862."),
    ],
)
def test_result_and_mistake_are_fixed_before_the_turns(
    name: str, fields: dict[str, str], first: str, last: str
) -> None:
    pairs = [("When did the harbour open?", first), ("Are you sure about that?", last)]
    model = Scripted(write=[reply(*pairs, **fields)])
    draft = write(model, plan(name, 2))
    assert spoken(draft) == pairs
    assert all(turn.consistent for turn in draft.turns)
    (call,) = model.calls
    assert list(call.schema["properties"]) == ["plan", *fields, "turns"]
    assert TASKS[name].result in task(call.prompt)
    noted = draft.turns[0].reasoning.splitlines()[1:]
    assert noted == [f"{key.capitalize()}: {text}" for key, text in fields.items()]


def test_an_answer_of_an_example_is_refused() -> None:
    pairs = [*PAIRS[:2], (PAIRS[2][0], TASKS["CM"].examples[0].dialog[0].agent)]
    model = Scripted(write=[reply(*pairs), reply(*PAIRS)])
    assert spoken(write(model)) == PAIRS
    assert "copies an example" in model.prompts("write")[1]


def test_a_dialog_without_a_fixed_end_stops_before_a_turn_that_fails() -> None:
    pairs = [
        ("When did the harbour open?", "In May."),
        ("And its door?", "A blue door."),
        ("When did the harbour open?", "In spring."),
        ("Who painted it?", "Two painters."),
    ]
    chosen = {"explanation": "It tells the month.", "evidence": [1]}
    nameless = reply(("What is this?", "It opened in May."), *pairs[1:], evidence=[[1], [2], [], []])
    model = Scripted(write=[nameless, reply(*pairs, evidence=[[1], [2], [], []])], evidence=[chosen])
    draft = write(model, plan("QA", 4), grounded=True)
    assert "names nothing that it is about: “What is this?”" in model.prompts("write")[1]
    assert spoken(draft) == pairs[:2]
    assert draft.end is not None and (draft.end.stage, draft.end.text) == ("write", pairs[2][0])
    ((number, behind),) = draft.skipped
    assert (number, behind.stage, behind.text) == (4, "write", "User: Who painted it?\nAgent: Two painters.")


UNKNOWN = ("Who painted the harbour's door?", "I don't have information on who painted the door of the harbour.")
OPENED = ("When did the harbour open?", "It opened in May.")


def test_a_turn_that_is_planned_to_be_unanswerable_rests_on_nothing() -> None:
    draft = write(
        Scripted(write=[reply(OPENED, UNKNOWN, evidence=[[1], [2]])]), plan("QA", 2, unknown=2), grounded=True
    )
    assert spoken(draft) == [OPENED, UNKNOWN]
    assert [(turn.answerability, len(turn.evidence)) for turn in draft.turns] == [
        ("answerable", 1),
        ("unanswerable", 0),
    ]
    assert [turn.planned and turn.planned.answerability for turn in draft.turns] == ["answerable", "unanswerable"]


@pytest.mark.parametrize("unknown", [0, 1, 2])
def test_the_prompt_tells_which_turn_is_unanswerable(unknown: int) -> None:
    model = Scripted(write=[reply(OPENED, UNKNOWN, evidence=[[1], []])])
    write(model, plan("QA", 2, unknown), grounded=True)
    prompt = task(model.prompts("write")[0])
    assert (
        (f"In turn {unknown} alone" in prompt)
        == ("begin with “I don't have information on”" in prompt)
        == bool(unknown)
    )


@pytest.mark.parametrize(
    ("pair", "unknown", "reason"),
    [
        (UNKNOWN, 0, None),
        (UNKNOWN, 3, "says that it isn't known, where"),
        (("Who painted its door?", UNKNOWN[1]), 2, None),
        (("Who painted its door?", "A painter did, in 1900."), 2, "tells something"),
        (("Who painted its door?", f"{UNKNOWN[1]} It is blue, and the harbour opened in May."), 2, "tells something"),
        (("Does the harbour have a blue door?", UNKNOWN[1]), 2, "says that it isn't known, and"),
        (("Does the harbour have a blue door?", UNKNOWN[1]), 0, "says that it isn't known, and"),
        (("Which sauce goes well with spaghetti?", "I don't have information on sauces."), 2, "shares no word"),
    ],
)
def test_what_is_not_known_is_near_the_documents_and_not_in_them(
    pair: tuple[str, str], unknown: int, reason: str | None
) -> None:
    text = (
        HARBOUR.text + 2 * " A painter comes in spring, when all ferries of the season are back at its quay, and stays."
    )
    model = Scripted(write=[reply(OPENED, pair, evidence=[[1], []])])
    draft = write(model, replace(plan("QA", 2, unknown), source=piece("harbour", text)), grounded=True)
    if reason is None:
        assert draft.end is None and draft.turns[1].answerability == "unanswerable"
    else:
        assert spoken(draft) == [OPENED]
        assert draft.end is not None and draft.end.reason.startswith(reason)


def test_a_dialog_may_be_one_question_that_is_not_known() -> None:
    draft = write(Scripted(write=[reply(UNKNOWN, evidence=[[]])]), plan("QA", 1, unknown=1), grounded=True)
    assert spoken(draft) == [UNKNOWN]


def test_each_attempt_is_told_what_was_wrong_with_those_before() -> None:
    repeated, labelled = [*PAIRS[:2], PAIRS[0]], [*PAIRS[:2], ("Turn 3: why?", "It is.")]
    model = Scripted(write=[reply(*repeated), reply(*labelled), reply(*PAIRS)])
    assert spoken(write(model)) == PAIRS
    one, other = f"repeats a message: “{PAIRS[0][0]}”", "a role or step label in a message: “Turn 3: why?”"
    assert [(one in prompt, other in prompt) for prompt in model.prompts("write")] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_after_three_attempts_there_is_no_dialog() -> None:
    model = Scripted(write=[reply(*PAIRS[:2], PAIRS[0])] * 4)
    draft = write(model)
    assert draft.turns == () and draft.end is not None
    assert (draft.end.stage, draft.end.reason, draft.end.text) == ("write", "repeats a message", PAIRS[0][0])
    assert len(model.calls) == 3


def test_a_dialog_of_another_length_is_repaired_once() -> None:
    model = Scripted(write=[reply(*PAIRS[:2]), reply(*PAIRS)])
    assert spoken(write(model)) == PAIRS
    assert "at least 3 items" in model.calls[1].prompt
    short: list[Entry] = [reply(*PAIRS[:2])] * 2
    draft = write(Scripted(write=short))
    assert draft.end is not None and draft.end.reason == "unusable reply"


def test_a_model_without_schemas_may_add_keys() -> None:
    turns = [{"turn": n, "user": user, "agent": agent} for n, (user, agent) in enumerate(PAIRS, start=1)]
    model = Scripted(write=["Here: " + json.dumps({"plan": "…", "turns": turns, "note": 1})])
    assert spoken(write(model, structured_outputs=False)) == PAIRS
