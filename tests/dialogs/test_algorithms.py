"""Both algorithms line by line, with a scripted model and, for the second, a scripted retriever."""

from collections.abc import Sequence

import pytest
from dspy import lm15

from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.prompt import Conversation, Documents
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.steps import Draft
from generator.errors import ModelError, RetrieverError
from generator.schema import Dialog, Passage, QueryForm, Scored, Split
from taxonomy import QuestionType
from tests.support.scripted import Entry, Scripted, Shelf, kinds, piece, spoken

QUESTIONS = [
    "When did the harbour open?",
    "Who built its pier?",
    "Why was stone chosen?",
    "No, I meant the lighthouse. How tall is it?",
    "Can visitors climb up?",
]
ANSWERS = ["In 1862.", "Ada Brandt.", "It was cheap.", "Thirty metres.", "On Sundays, yes."]
ASK: list[Entry] = [{"question": question} for question in QUESTIONS]
ANSWER: list[Entry] = [{"answer": text, "evidence": [1]} for text in ANSWERS]
KINDS = kinds("direct", "follow-up", "follow-up", "correction", "clarification")
HARBOUR = piece("harbour")
A, B, C, D, E = (piece(name) for name in ("anchor", "barge", "canal", "dock", "estuary"))


def documents(*passages: Passage) -> str:
    return Documents(passages=passages).render()


def so_far(turns: int) -> str:
    """The dialog section after so many turns."""
    pairs = zip(QUESTIONS[:turns], ANSWERS[:turns], strict=True)
    return "\n".join(["<dialog>", *(f"User: {q}\nAgent: {a}" for q, a in pairs), "</dialog>"])


def context(prompt: str) -> str:
    """The documents and the dialog of a prompt, without rules and task."""
    return prompt[prompt.index("<documents>\n") : prompt.index("\n\n<task>\n")]


def task(prompt: str) -> str:
    return prompt.partition("\n\n<task>\n")[2]


def single(model: Scripted, wanted: Sequence[QuestionType] = KINDS, focus: str = "It has a blue door.") -> Draft:
    draft: Draft = model.run(lambda: SingleDocumentDialog(Repetition(0.8)).acall(HARBOUR, wanted, focus))
    return draft


def multi(
    model: Scripted,
    shelf: Shelf,
    wanted: Sequence[QuestionType] = KINDS,
    query: QueryForm = "last_turn",
    split: Split = "train",
) -> Draft:
    program = MultiDocumentDialog(Repetition(0.8), shelf, 3, query)
    draft: Draft = model.run(lambda: program.acall(HARBOUR, wanted, "It has a blue door.", split))
    return draft


def dialog(draft: Draft) -> Dialog:
    return Dialog(
        id="d",
        corpus="c",
        algorithm="multi",
        split="train",
        document_ids=("harbour",),
        turns=draft.turns,
        passages=draft.passages,
        ended="complete",
        lm="m",
        prompt_version="v",
        seed=0,
    )


# --- Algorithm 1


def test_single_asks_and_answers_in_turn() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    draft = single(model)
    assert draft.end is None
    assert draft.passages == (HARBOUR,)
    assert spoken(draft) == list(zip(QUESTIONS, ANSWERS, strict=True))
    assert model.stages == ["ask", "answer"] * 5
    assert [made.turn for made in model.calls] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert {made.profile for made in model.calls} == {"greedy"}


def test_single_grounds_every_prompt_on_the_document_and_the_turns_before_and_nothing_else() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    single(model)
    for turn, (asked, answered) in enumerate(zip(model.prompts("ask"), model.prompts("answer"), strict=True)):
        assert context(asked) == context(answered) == f"{documents(HARBOUR)}\n\n{so_far(turn)}"  # lines 3 and 4
        assert QUESTIONS[turn] not in asked
        assert f":\n{QUESTIONS[turn]}\n" in task(answered)
        assert KINDS[turn].prompt() in task(asked)
        assert not any(kind.definition in answered for kind in KINDS)


def test_single_uses_the_focus_for_the_first_question_only() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    single(model, focus="Ask of gulls.")
    assert ["Ask of gulls." in task(prompt) for prompt in model.prompts("ask")] == [True, *[False] * 4]


def test_single_does_not_use_the_draft_of_the_first_answer() -> None:
    model = Scripted(ask=[{"question": QUESTIONS[0], "answer": "DRAFT"}, *ASK[1:]], answer=ANSWER)
    draft = single(model)
    assert draft.turns[0].answer == ANSWERS[0]
    assert not any("DRAFT" in prompt for prompt in (made.prompt for made in model.calls))


def test_single_keeps_turns_without_retrieval() -> None:
    turns = single(Scripted(ask=ASK, answer=ANSWER)).turns
    assert [turn.turn for turn in turns] == [1, 2, 3, 4, 5]
    assert [turn.question_type for turn in turns] == [kind.name for kind in KINDS]
    assert [turn.multi_turn_type for turn in turns] == [None, *(kind.name for kind in KINDS[1:])]
    assert {(turn.retrieval_query, turn.hits) for turn in turns} == {("", ())}
    assert all(e.passage_id == HARBOUR.id for turn in turns for e in turn.evidence)


def test_a_dialog_of_one_turn() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    draft = single(model, kinds("direct"))
    assert (len(draft.turns), draft.end, model.stages) == (1, None, ["ask", "answer"])


@pytest.mark.parametrize("algorithm", ["single", "multi"])
def test_a_prompt_that_does_not_fit_ends_the_dialog_before_its_turn(algorithm: str) -> None:
    model = Scripted(ask=ASK, answer=[*ANSWER[:2], lm15.ContextLengthError("long", status=400)])
    shelf = Shelf([[A], [B], [C]])
    draft = single(model) if algorithm == "single" else multi(model, shelf)
    assert spoken(draft) == list(zip(QUESTIONS[:2], ANSWERS[:2], strict=True))
    assert draft.end is not None
    assert (draft.end.stage, draft.end.reason) == ("context", "the next prompt does not fit lm.context")
    assert draft.passages == ((HARBOUR,) if algorithm == "single" else (A, B))
    assert max(made.turn for made in model.calls) == 3


@pytest.mark.parametrize("algorithm", ["single", "multi"])
def test_a_first_turn_that_fails_leaves_no_turn(algorithm: str) -> None:
    model = Scripted(ask=[{"question": QUESTIONS[0], "consistent": False}])
    shelf = Shelf([[A]])
    draft = single(model) if algorithm == "single" else multi(model, shelf)
    assert draft.turns == ()
    assert draft.end is not None and draft.end.stage == "ask"
    assert model.stages == ["ask"]
    assert shelf.asked == []


MOVED_ON: dict[str, tuple[dict[str, list[Entry]], str, str]] = {
    "repeated question": (
        {"ask": [*ASK[:2], ASK[0], ASK[1], ASK[0], *ASK[2:4]]},
        "ask",
        "repeats an earlier question",
    ),
    "scaffolding": (
        {"ask": [*ASK[:2], *[{"question": "Is [1] so?"}] * 3, *ASK[2:4]]},
        "ask",
        "speaks of the documents",
    ),
    "inconsistent": (
        {"ask": [*ASK[:2], ASK[4], *ASK[2:4]], "answer": [*ANSWER[:2], {"consistent": False}, *ANSWER[2:4]]},
        "answer",
        "inconsistent by its own check",
    ),
    "unusable": (
        {"ask": [*ASK[:2], ASK[4], *ASK[2:4]], "answer": [*ANSWER[:2], "no", "no", *ANSWER[2:4]]},
        "answer",
        "unusable reply",
    ),
    "refused": (
        {
            "ask": [*ASK[:2], ASK[4], *ASK[2:4]],
            "answer": [*ANSWER[:2], lm15.InvalidRequestError("HTTP 400", status=400), *ANSWER[2:4]],
        },
        "model",
        "InvalidRequestError",
    ),
}


@pytest.mark.parametrize("algorithm", ["single", "multi"])
@pytest.mark.parametrize(("script", "stage", "reason"), MOVED_ON.values(), ids=MOVED_ON.keys())
def test_a_dialog_moves_on_from_a_turn_that_is_not_worth_keeping(
    algorithm: str, script: dict[str, list[Entry]], stage: str, reason: str
) -> None:
    model = Scripted(**{"answer": ANSWER, **script})
    draft = single(model) if algorithm == "single" else multi(model, Shelf([[A], [B], [C], [A], [B]]))
    assert (draft.end, spoken(draft)) == (None, list(zip(QUESTIONS[:4], ANSWERS[:4], strict=True)))
    assert [turn.question_type for turn in draft.turns] == [KINDS[place].name for place in (0, 1, 3, 4)]
    assert [turn.turn for turn in draft.turns] == [1, 2, 3, 4]
    assert [(turn, lost.stage, lost.reason) for turn, lost in draft.passed] == [(3, stage, reason)]


def test_what_was_found_for_a_lost_turn_is_no_part_of_the_dialog() -> None:
    model = Scripted(ask=[ASK[0], ASK[4], ASK[1]], answer=[ANSWER[0], {"consistent": False}, ANSWER[1]])
    draft = multi(model, Shelf([[A], [C], [B]]), KINDS[:3])
    assert draft.passages == (A, B)
    assert [hit.new for turn in draft.turns for hit in turn.hits] == [True, True]


def test_a_bad_question_costs_a_call_and_the_dialog_goes_on() -> None:
    model = Scripted(ask=[ASK[0], ASK[0], *ASK[1:]], answer=ANSWER)
    draft = single(model)
    assert (draft.end, len(draft.turns)) == (None, 5)
    assert model.stages == ["ask", "answer", "ask", "ask", "answer", *["ask", "answer"] * 3]


@pytest.mark.parametrize("algorithm", ["single", "multi"])
def test_an_endpoint_that_is_gone_is_not_the_dialogs_end_but_the_runs(algorithm: str) -> None:
    model = Scripted(ask=[*ASK[:1], lm15.TransportError("gone")], answer=ANSWER)
    with pytest.raises(ModelError, match="gone"):
        single(model) if algorithm == "single" else multi(model, Shelf([[A]]))


# --- Algorithm 2

FOUND = [[A, B], [B, C], [C, A], [D, A, E], [B]]
GROWN = [(A, B), (A, B, C), (A, B, C), (A, B, C, D, E), (A, B, C, D, E)]


def test_multi_retrieves_after_every_question() -> None:
    model, shelf = Scripted(ask=ASK, answer=ANSWER), Shelf(FOUND)
    draft = multi(model, shelf, split="validation")
    assert draft.end is None
    assert spoken(draft) == list(zip(QUESTIONS, ANSWERS, strict=True))
    assert shelf.asked == [(question, 3, "validation") for question in QUESTIONS]
    assert model.stages == ["ask", "answer"] * 5


def test_the_passages_grow_by_exactly_the_new_hits_in_order_of_first_retrieval() -> None:
    draft = multi(Scripted(ask=ASK, answer=ANSWER), Shelf(FOUND))
    assert draft.passages == GROWN[-1]
    hits = [[(hit.passage_id, hit.rank, hit.score, hit.new) for hit in turn.hits] for turn in draft.turns]
    assert hits == [
        [(A.id, 1, 10, True), (B.id, 2, 9, True)],
        [(B.id, 1, 10, False), (C.id, 2, 9, True)],
        [(C.id, 1, 10, False), (A.id, 2, 9, False)],
        [(D.id, 1, 10, True), (A.id, 2, 9, False), (E.id, 3, 8, True)],
        [(B.id, 1, 10, False)],
    ]


def test_grounding_gives_each_turn_the_passages_that_its_answer_had() -> None:
    made = dialog(multi(Scripted(ask=ASK, answer=ANSWER), Shelf(FOUND)))
    assert [made.grounding(turn) for turn in (1, 2, 3, 4, 5)] == GROWN


def test_multi_grounds_answers_on_all_found_so_far_and_questions_on_what_was_there_before() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    multi(model, Shelf(FOUND))
    before = [(HARBOUR,), *GROWN[:-1]]  # the first question comes from the document
    for turn, (asked, answered) in enumerate(zip(model.prompts("ask"), model.prompts("answer"), strict=True)):
        assert context(asked) == f"{documents(*before[turn])}\n\n{so_far(turn)}"  # line 9
        assert context(answered) == f"{documents(*GROWN[turn])}\n\n{so_far(turn)}"  # lines 5 and 16
        assert f":\n{QUESTIONS[turn]}\n" in task(answered)
        assert KINDS[turn].prompt() in task(asked)


def test_evidence_points_into_the_passages_found_so_far() -> None:
    """The fifth sentence is the first of the third passage."""
    model = Scripted(ask=ASK, answer=[ANSWER[0], {"answer": "Ada Brandt.", "evidence": [5]}, *ANSWER[2:]])
    evidence = multi(model, Shelf(FOUND)).turns[1].evidence
    assert [(e.passage_id, e.text) for e in evidence] == [(C.id, "The canal opened in May.")]
    most = [made.schema["properties"]["evidence"]["items"]["maximum"] for made in model.of("answer")]
    assert most == [2 * len(grown) for grown in GROWN]


def test_the_rewritten_question_is_searched_for_from_the_second_turn_on() -> None:
    rewritten = ["Harbour pier builder", "Reason for stone", "Lighthouse height", "Lighthouse visits"]
    model = Scripted(ask=ASK, answer=ANSWER, rewrite=[{"query": text} for text in rewritten])
    shelf = Shelf(FOUND)
    draft = multi(model, shelf, query="rewrite")
    assert model.stages == ["ask", "answer", *["ask", "rewrite", "answer"] * 4]
    assert [query for query, _, _ in shelf.asked] == [QUESTIONS[0], *rewritten]
    assert [turn.retrieval_query for turn in draft.turns] == [QUESTIONS[0], *rewritten]
    assert [turn.query for turn in draft.turns] == QUESTIONS
    for number, made in enumerate(model.of("rewrite"), start=1):
        assert made.profile == "sampled"
        assert made.turn == number + 1
        assert context(made.prompt) == f"{documents(*GROWN[number - 1])}\n\n{so_far(number)}"
        assert f":\n{QUESTIONS[number]}\n" in task(made.prompt)


@pytest.mark.parametrize(
    ("query", "third"),
    [
        ("last_turn", QUESTIONS[2]),
        ("user_turns", "\n".join(QUESTIONS[:3])),
        ("full", "\n".join([QUESTIONS[0], ANSWERS[0], QUESTIONS[1], ANSWERS[1], QUESTIONS[2]])),
    ],
)
def test_the_other_forms_of_a_query_need_no_call(query: QueryForm, third: str) -> None:
    model, shelf = Scripted(ask=ASK, answer=ANSWER), Shelf(FOUND)
    draft = multi(model, shelf, query=query)
    assert "rewrite" not in model.stages
    assert shelf.asked[0][0] == QUESTIONS[0]
    assert shelf.asked[2][0] == third
    assert draft.turns[2].retrieval_query == third


def test_a_passage_found_twice_in_one_search_is_there_once() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    draft = multi(model, Shelf([[A, B, A], [C, B, C]]), KINDS[:2])
    assert draft.passages == (A, B, C)
    assert [[(hit.passage_id, hit.rank, hit.new) for hit in turn.hits] for turn in draft.turns] == [
        [(A.id, 1, True), (B.id, 2, True)],
        [(C.id, 1, True), (B.id, 2, False)],
    ]
    assert context(model.prompts("answer")[1]).startswith(documents(A, B, C))


def test_a_first_search_that_finds_nothing_drops_the_dialog() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    draft = multi(model, Shelf([[]]))
    assert (draft.turns, draft.passages) == ((), ())
    assert draft.end is not None
    assert (draft.end.stage, draft.end.reason, draft.end.text) == ("retrieve", "nothing found", QUESTIONS[0])
    assert model.stages == ["ask"]


def test_a_later_search_that_finds_nothing_leaves_the_passages_as_they_are() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    draft = multi(model, Shelf([[A], [], [B]]), KINDS[:3])
    assert draft.end is None
    assert [len(turn.hits) for turn in draft.turns] == [1, 0, 1]
    assert [dialog(draft).grounding(turn) for turn in (1, 2, 3)] == [(A,), (A,), (A, B)]
    assert context(model.prompts("answer")[1]).startswith(documents(A) + "\n\n")


def test_passages_of_a_turn_that_was_not_kept_are_not_in_the_dialog() -> None:
    model = Scripted(ask=ASK, answer=[ANSWER[0], {"consistent": False}])
    draft = multi(model, Shelf([[A], [B, C]]))
    assert draft.passages == (A,)
    assert dialog(draft).grounding(1) == (A,)


def test_a_dialog_moves_on_from_a_rewriting_that_fails() -> None:
    model = Scripted(ask=ASK, answer=ANSWER, rewrite=["no", "no", {"query": "Why stone"}])
    shelf = Shelf(FOUND)
    draft = multi(model, shelf, KINDS[:3], query="rewrite")
    assert draft.end is None
    assert [(turn, lost.stage, lost.reason) for turn, lost in draft.passed] == [(2, "rewrite", "unusable reply")]
    assert [turn.query for turn in draft.turns] == [QUESTIONS[0], QUESTIONS[2]]
    assert [query for query, _, _ in shelf.asked] == [QUESTIONS[0], "Why stone"]


def test_a_retriever_that_can_not_be_asked_is_the_runs_end() -> None:
    class SkippedRecord:
        async def search(self, query: str, k: int, split: Split) -> list[Scored]:
            raise RetrieverError("the index is gone")

    program = MultiDocumentDialog(Repetition(0.8), SkippedRecord(), 3, "last_turn")
    with pytest.raises(RetrieverError, match="the index is gone"):
        Scripted(ask=ASK).run(lambda: program.acall(HARBOUR, KINDS, "", "train"))


def test_dialogs_share_a_program_without_mixing() -> None:
    """One program makes all dialogs of a run at the same time."""
    program = MultiDocumentDialog(Repetition(0.8), Shelf(FOUND), 3, "last_turn")
    before = repr(program.dump_state())
    first, second = Scripted(ask=ASK, answer=ANSWER), Scripted(ask=ASK[::-1], answer=ANSWER)
    first.run(lambda: program.acall(HARBOUR, KINDS[:2], "", "train"))
    draft = second.run(lambda: program.acall(A, KINDS[:2], "", "train"))
    assert QUESTIONS[0] not in second.prompts("answer")[1]
    assert [turn.query for turn in draft.turns] == [QUESTIONS[4], QUESTIONS[3]]
    assert repr(program.dump_state()) == before


def test_conversation_renders_what_these_tests_expect() -> None:
    """`so_far` is written by hand; this ties it to the records."""
    turns = single(Scripted(ask=ASK, answer=ANSWER)).turns
    assert Conversation(turns=turns[:3]).render() == so_far(3)
