"""Both algorithms line by line, with a scripted model and, for the second, a scripted retriever."""

from collections.abc import Sequence

import pytest
from dspy import lm15

from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.program import Draft, Options
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.users import Asker
from generator.prompts.sections import Documents
from generator.schema import Algorithm, Passage, QueryForm, Split
from taxonomy import QuestionType
from tests.support.scripted import Entry, Scripted, Shelf, context, dialog_of, kinds, piece, plan, spoken, task

QUESTIONS = [
    "When did the harbour open?",
    "Who built its pier?",
    "Why was it built of stone?",
    "No, I meant the lighthouse. Why that of stone?",
    "Do you mean those of stone?",
]
ANSWERS = [
    "In 1862.",
    "Ada Brandt built it.",
    "Because that stone was cheap.",
    "It was stone for storms.",
    "Yes, autumn storms.",
]
PAIRS = list(zip(QUESTIONS, ANSWERS, strict=True))
ASK: list[Entry] = [{"question": question} for question in QUESTIONS]
ANSWER: list[Entry] = [{"answer": text, "evidence": [1]} for text in ANSWERS]
TYPES = kinds("direct", "follow-up", "follow-up", "correction", "clarification")
HARBOUR = piece("harbour")
A, B, C, D, E = (piece(name) for name in ("anchor", "barge", "canal", "dock", "estuary"))
FOUND = [[A, B], [B, C], [C, A], [D, A, E], [B]]
GROWN = [(A, B), (A, B, C), (A, B, C), (A, B, C, D, E), (A, B, C, D, E)]
both = pytest.mark.parametrize("algorithm", ["single", "multi"])


def documents(*passages: Passage) -> str:
    return Documents(passages=passages).render()


def so_far(turns: int) -> str:
    """Return the dialog section after so many turns."""
    return "\n".join(["<dialog>", *(f"User: {q}\nAgent: {a}" for q, a in PAIRS[:turns]), "</dialog>"])


def generate(
    model: Scripted,
    algorithm: Algorithm = "multi",
    shelf: Shelf | None = None,
    types: Sequence[QuestionType] = TYPES,
    query: QueryForm = "last_turn",
    split: Split = "train",
) -> Draft:
    program = (
        SingleDocumentDialog(Repetition(0.8))
        if algorithm == "single"
        else MultiDocumentDialog(Repetition(0.8), shelf or Shelf(FOUND), 3, query)
    )
    return model.run(lambda: program.write(plan(HARBOUR, types, "Ask of gulls.", split=split), {}))


@both
def test_questions_and_answers_alternate(algorithm: Algorithm) -> None:
    model, shelf = Scripted(ask=ASK, answer=ANSWER), Shelf(FOUND)
    draft = generate(model, algorithm, shelf, split="validation")
    assert (draft.end, draft.skipped, spoken(draft)) == (None, (), PAIRS)
    assert [call.turn for call in model.calls] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert shelf.asked == ([(question, 3, "validation") for question in QUESTIONS] if algorithm == "multi" else [])
    assert [turn.turn for turn in draft.turns] == [1, 2, 3, 4, 5]
    assert [turn.question_type for turn in draft.turns] == [kind.name for kind in TYPES]
    assert [turn.multi_turn_type for turn in draft.turns] == [None, *(kind.name for kind in TYPES[1:])]
    assert ["Ask of gulls." in task(prompt) for prompt in model.prompts("ask")] == [True, *[False] * 4]


@both
def test_prompts_hold_the_documents_and_the_turns_before(algorithm: Algorithm) -> None:
    model = Scripted(ask=[{"question": QUESTIONS[0], "answer": "DRAFT"}, *ASK[1:]], answer=ANSWER)
    generate(model, algorithm)
    after = GROWN if algorithm == "multi" else [(HARBOUR,)] * 5
    before = [(HARBOUR,), *after[:-1]]  # the first question comes from the document
    for turn, (ask, answer) in enumerate(zip(model.prompts("ask"), model.prompts("answer"), strict=True)):
        assert context(ask) == f"{documents(*before[turn])}\n\n{so_far(turn)}"
        assert context(answer) == f"{documents(*after[turn])}\n\n{so_far(turn)}"
        assert QUESTIONS[turn] not in ask and f":\n{QUESTIONS[turn]}\n" in task(answer)
        assert Asker().adapt(TYPES[turn], turn).prompt() in task(ask)
        assert not any(kind.definition in answer for kind in TYPES)
    assert not any("DRAFT" in call.prompt for call in model.calls)


@both
def test_a_prompt_that_does_not_fit_ends_the_dialog_before_its_turn(algorithm: Algorithm) -> None:
    model = Scripted(ask=ASK, answer=[*ANSWER[:2], lm15.ContextLengthError("long", status=400)])
    draft = generate(model, algorithm, Shelf([[A], [B], [C]]))
    assert spoken(draft) == PAIRS[:2]
    assert draft.end is not None and draft.end.stage == "context"
    assert draft.passages == ((HARBOUR,) if algorithm == "single" else (A, B))
    assert max(call.turn for call in model.calls) == 3


@both
def test_a_first_turn_that_fails_ends_the_dialog(algorithm: Algorithm) -> None:
    model, shelf = Scripted(ask=[{"question": QUESTIONS[0], "consistent": False}]), Shelf([[A]])
    draft = generate(model, algorithm, shelf)
    assert (draft.turns, model.stages, shelf.asked) == ((), ["ask"], [])
    assert draft.end is not None and draft.end.stage == "ask"


SKIPPED: dict[str, tuple[dict[str, list[Entry]], str, str]] = {
    "question": ({"ask": [*ASK[:2], ASK[0], ASK[1], ASK[0], *ASK[2:4]]}, "ask", "repeats an earlier question"),
    "answer": (
        {"ask": [*ASK[:2], {"question": "Is it high?"}, *ASK[2:4]], "answer": [*ANSWER[:2], "no", "no", *ANSWER[2:4]]},
        "answer",
        "unusable reply",
    ),
}


@both
@pytest.mark.parametrize(("script", "stage", "reason"), SKIPPED.values(), ids=SKIPPED.keys())
def test_a_turn_that_is_not_worth_keeping_is_skipped(
    algorithm: Algorithm, script: dict[str, list[Entry]], stage: str, reason: str
) -> None:
    model = Scripted(**{"answer": ANSWER, **script})
    draft = generate(model, algorithm, Shelf([[A], [B], [C], [A], [B]]))
    assert (draft.end, spoken(draft)) == (None, PAIRS[:4])
    assert [turn.question_type for turn in draft.turns] == [TYPES[place].name for place in (0, 1, 3, 4)]
    assert [turn.turn for turn in draft.turns] == [1, 2, 3, 4]
    assert [(turn, rejected.stage, rejected.reason) for turn, rejected in draft.skipped] == [(3, stage, reason)]
    if stage == "answer":
        assert draft.skipped[0][1].text.startswith("User: Is it high?\nAgent: no\n"), "with the question and the error"


# --- Algorithm 2


def test_the_passages_grow_by_exactly_the_new_hits_in_order_of_first_retrieval() -> None:
    draft = generate(Scripted(ask=ASK, answer=ANSWER))
    assert draft.passages == GROWN[-1]
    assert [[(hit.passage_id, hit.rank, hit.score, hit.new) for hit in turn.hits] for turn in draft.turns] == [
        [(A.id, 1, 10, True), (B.id, 2, 9, True)],
        [(B.id, 1, 10, False), (C.id, 2, 9, True)],
        [(C.id, 1, 10, False), (A.id, 2, 9, False)],
        [(D.id, 1, 10, True), (A.id, 2, 9, False), (E.id, 3, 8, True)],
        [(B.id, 1, 10, False)],
    ]
    assert [dialog_of(draft).grounding(turn) for turn in (1, 2, 3, 4, 5)] == GROWN


def test_the_rewritten_question_is_searched_for_from_the_second_turn_on() -> None:
    rewritten = ["Harbour pier builder", "Reason for stone", "Lighthouse height", "Lighthouse visits"]
    model, shelf = Scripted(ask=ASK, answer=ANSWER, rewrite=[{"query": text} for text in rewritten]), Shelf(FOUND)
    draft = generate(model, shelf=shelf, query="rewrite")
    assert model.stages == ["ask", "answer", *["ask", "rewrite", "answer"] * 4]
    assert [query for query, _, _ in shelf.asked] == [QUESTIONS[0], *rewritten]
    assert [turn.retrieval_query for turn in draft.turns] == [QUESTIONS[0], *rewritten]
    assert [turn.query for turn in draft.turns] == QUESTIONS
    for number, call in enumerate(model.of("rewrite"), start=1):
        assert (call.profile, call.turn) == ("sampled", number + 1)
        assert context(call.prompt) == f"{documents(*GROWN[number - 1])}\n\n{so_far(number)}"
        assert f":\n{QUESTIONS[number]}\n" in task(call.prompt)


def test_the_other_forms_of_a_query_need_no_call() -> None:
    model, shelf = Scripted(ask=ASK, answer=ANSWER), Shelf(FOUND)
    draft = generate(model, shelf=shelf, query="user_turns")
    assert "rewrite" not in model.stages
    assert shelf.asked[2][0] == draft.turns[2].retrieval_query == "\n".join(QUESTIONS[:3])


def test_of_passages_with_one_text_a_search_returns_one_and_as_many_others_as_without() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    copy = B.model_copy(update={"id": "copy", "document_id": "copy", "text": f" {B.text} "})
    shelf = Shelf([[A, B, copy], [A, B], [C, copy]])
    draft = generate(model, shelf=shelf, types=TYPES[:2])
    assert [k for _, k, _ in shelf.asked] == [3, 6, 3]
    assert draft.passages == (A, B, C)
    assert [[(hit.passage_id, hit.rank, hit.new) for hit in turn.hits] for turn in draft.turns] == [
        [(A.id, 1, True), (B.id, 2, True)],
        [(C.id, 1, True), (B.id, 2, False)],
    ]
    assert context(model.prompts("answer")[1]).startswith(documents(A, B, C))


def test_a_first_search_without_results_drops_the_dialog() -> None:
    model = Scripted(ask=ASK, answer=ANSWER)
    draft = generate(model, shelf=Shelf([[]]))
    assert (draft.turns, draft.passages, model.stages) == ((), (), ["ask"])
    assert draft.end is not None
    assert (draft.end.stage, draft.end.reason, draft.end.text) == ("retrieve", "nothing found", QUESTIONS[0])


@pytest.mark.parametrize(("found", "kept"), [([A, B], False), ([A, HARBOUR], True)])
def test_a_question_is_not_unanswerable_because_the_search_misses_what_it_was_asked_of(
    found: Sequence[Passage], kept: bool
) -> None:
    """A better search would find it, and be punished for it."""
    unknown = {"answer": "I don't know.", "answerability": "unanswerable", "known": False, "evidence": []}
    model = Scripted(ask=[{"question": "Who owns the harbour?"}], answer=[unknown])
    draft = generate(model, shelf=Shelf([found]), types=TYPES[:1])
    assert [turn.answerability for turn in draft.turns] == ["unanswerable"] * kept
    assert (draft.end is None) == kept and (kept or (draft.end and draft.end.stage == "retrieve"))


def test_dialogs_share_a_program_without_mixing() -> None:
    """One program generates all dialogs of a run at the same time."""
    program = MultiDocumentDialog(Repetition(0.8), Shelf(FOUND), 3, "last_turn")
    before = repr(program.dump_state())
    first, second = Scripted(ask=ASK, answer=ANSWER), Scripted(ask=ASK[1:], answer=ANSWER)
    first.run(lambda: program.write(plan(HARBOUR, TYPES[:2]), {}))
    draft = second.run(lambda: program.write(plan(A, TYPES[:2]), {}))
    assert QUESTIONS[0] not in second.prompts("answer")[1]
    assert [turn.query for turn in draft.turns] == QUESTIONS[1:3]
    assert repr(program.dump_state()) == before


def test_a_turn_that_tells_has_a_task_of_its_own() -> None:
    told = {"question": "I came by the tram."}
    model = Scripted(ask=[ASK[0], ASK[1], told], answer=ANSWER)
    program = SingleDocumentDialog(Repetition(0.8))
    step = program.tell_next.predict
    step.signature = step.signature.with_instructions("Tell it as a ferryman.")
    draft = model.run(lambda: program.write(plan(HARBOUR, kinds("direct", "non-question")), {}))
    assert spoken(draft)[1][0] == told["question"]
    _, first, second = model.prompts("ask")
    assert "Tell it as a ferryman." in first and "asks a question, in place of telling something" in second


STEPS = {"ask_first.predict", "ask_next.predict", "tell_next.predict", "answer.predict", "answer.choose"}
PLANNED = {"ask_new.predict", "chat.remark", "chat.courtesy"}


@pytest.mark.parametrize("planned", [False, True])
def test_the_keys_of_a_saved_program_stay(planned: bool) -> None:
    """A program that was compiled and saved with an earlier release still loads."""
    single = SingleDocumentDialog(Repetition(0.8), Options(planned=planned))
    multi = MultiDocumentDialog(Repetition(0.8), Shelf([]), 3, "rewrite", Options(planned=planned))
    expected = STEPS | (PLANNED if planned else set())
    assert {name for name, _ in single.named_predictors()} == expected
    assert {name for name, _ in multi.named_predictors()} == expected | {"rewrite.predict"}
