"""The steps of a dialog, each with a scripted model."""

import asyncio
from contextlib import suppress

import pytest

from generator.dialogs.checks.questions import LIKE_THE_AGENT, LIKE_THE_PROMPT, OF_THE_AGENT
from generator.dialogs.dedup import Repetition
from generator.dialogs.steps import NO_EVIDENCE, UNKNOWN, UNPLANNED, Answer, Ask, Asked, Chat
from generator.dialogs.users import Asker
from generator.errors import Rejected
from generator.prompts.signatures import REJECTED, FirstQuestion, NextQuestion
from generator.schema import Evidence, Hit, Turn
from judges.metrics.grounding import GroundingJudge
from tests.support.scripted import KINDS, Entry, Scripted, piece, said, task
from tests.support.trams import BUS, DOCUMENTS, FARES, LONG, SAID, TOLD, TRAM, answer

GOOD = {"question": "How old is its driver?"}


def ask_first(model: Scripted, question_type: str = "direct", focus: str = "") -> str:
    step = Ask(FirstQuestion, Repetition(0.8))
    question: str = model.run(lambda: step.acall(DOCUMENTS, (), KINDS[question_type], focus))
    return question


def ask_next(model: Scripted, question_type: str = "follow-up") -> str:
    step = Ask(NextQuestion, Repetition(0.8))
    question: str = model.run(lambda: step.acall(DOCUMENTS, SAID, KINDS[question_type]))
    return question


# --- asking


def test_the_prompt_of_a_first_question() -> None:
    model = Scripted(ask=[GOOD, GOOD])
    assert ask_first(model, focus="It runs at night.") == "How old is its driver?"
    ask_first(model)
    prompt, without_focus = model.prompts("ask")
    assert KINDS["direct"].prompt() in task(prompt) and "It runs at night." in task(prompt)
    assert "<dialog>\n</dialog>" in prompt and REJECTED not in prompt
    assert "touch on this" not in without_focus


@pytest.mark.parametrize(
    "around", ['"{}"', '"{}', "'{}'", "**{}**", "`{}`", "```\n{}\n```", "- {}", "1. **{}**", "### {}", " , {}\n"]
)
def test_a_message_stands_without_the_marks_around_it(around: str) -> None:
    asked = ask_next(Scripted(ask=[{"question": around.format("How old is\nthe tram's driver?")}]))
    assert asked == "How old is the tram's driver?"


@pytest.mark.parametrize(
    "question", ['Who says "old" of it?', "'Tram' or 'bus'?", "`tram` or `bus`?", "2. Tram: how old is it?"]
)
def test_marks_within_a_message_stay(question: str) -> None:
    assert ask_next(Scripted(ask=[{"question": question}])) == question


BAD = {
    "asked twice": ("How old is it? How old is it in years?", "asks the same twice"),
    "in the prompt's words": ("Does that mean what the last answer says?", LIKE_THE_PROMPT),
    "in the Agent's words": ("I don't have information on its driver.", LIKE_THE_AGENT),
    "as a machine": ("I am an AI language model.", LIKE_THE_AGENT),
    "as a helper": ("Do you have any other questions about the tram?", LIKE_THE_AGENT),
    "as the office": ("Can we help you with a ticket for the tram?", LIKE_THE_AGENT),
    "of the Agent": ("How did you pay for the tram?", OF_THE_AGENT),
    "of the document": ("Does the document provide any information about the tram?", "speaks of the documents"),
    "announced": ("Here's another way to ask: How old is the driver?", LIKE_THE_AGENT),
    "called a new wording": ("Rephrased question: How old is the driver?", LIKE_THE_AGENT),
    "with a word to the asker": ("Sure! How old is the driver?", LIKE_THE_AGENT),
    "with a note": ("How old is the driver? (same question in other words)", LIKE_THE_AGENT),
    "as JSON": ('{"question": "How old is the driver?"}', LIKE_THE_PROMPT),
    "in tags": ("<question>How old is the driver?</question>", LIKE_THE_PROMPT),
    "told of the task": ("The question is: Who drives the tram?", LIKE_THE_PROMPT),
    "what a document tells": ("What does the document about the tram say?", "speaks of the documents"),
    "repeated": ("Which colour is the tram?", "repeats an earlier question"),
    "what an article claims": ("Why does the article claim that trams are slow?", "speaks of the documents"),
    "scaffolding": ("What does the passage say?", "speaks of the documents"),
    "all of it": ("Can you tell me more about the documents and what they contain?", "speaks of the documents"),
    "a title": ("What is the title of the document?", "speaks of the documents"),
    "the topic of an example": ("Why did her uncle leave the bike shop?", "is on the topic of an example"),
    "a phrasing as it stands": ("Does that mean … ?", "leaves the gap of a phrasing"),
    "a phrasing up to its gap": ("How long did that?", "is only the beginning of a question"),
    "nothing": ("", "no question"),
}


@pytest.mark.parametrize(("bad", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_question_is_asked_again_with_the_reason(bad: str, why: str) -> None:
    model = Scripted(ask=[{"question": bad}, GOOD])
    assert ask_next(model) == "How old is its driver?"
    first, second = model.prompts("ask")
    assert REJECTED not in first
    assert f"{REJECTED}:\n{why}\n" in second  # and not the question, which a small model writes again
    example = KINDS["follow-up"].examples[0].question
    assert example in first and example not in second
    assert second.partition("<task>")[0] == first.partition("<task>")[0]


def test_a_question_in_the_words_of_an_example_that_name_nothing_of_its_topic_is_kept() -> None:
    assert ask_next(Scripted(ask=[{"question": "Why did he do that?"}])) == "Why did he do that?"


def test_only_types_that_documents_may_lack_can_be_declined() -> None:
    model = Scripted(ask=[GOOD, GOOD])
    ask_first(model, "comparative")
    ask_first(model, "direct")
    comparative, direct = model.calls
    assert "can_ask" in comparative.schema["properties"] and '"can_ask"' in comparative.prompt
    assert "can_ask" not in direct.schema["properties"] and "can_ask" not in direct.prompt


@pytest.mark.parametrize("question", ["How old is it?", "", "n/a", "The passage compares nothing."])
def test_a_declined_question_is_rejected_whatever_it_is(question: str) -> None:
    declined = {"question": question, "can_ask": False, "consistent": False, "explanation": "There is one tram."}
    model = Scripted(ask=[declined, GOOD])
    with pytest.raises(Rejected) as caught:
        ask_first(model, "comparative")
    assert (caught.value.stage, caught.value.reason) == ("ask", "declined: nothing comparative to ask")
    assert (caught.value.text, len(model.calls)) == ("There is one tram.", 1)


def test_a_first_question_whose_draft_is_inconsistent_is_rejected() -> None:
    with pytest.raises(Rejected) as caught:
        ask_first(Scripted(ask=[GOOD | {"consistent": False}]))
    assert (caught.value.stage, caught.value.reason) == ("ask", "inconsistent by its own check")
    assert caught.value.text == "How old is its driver?"


def test_remarks_that_ask_something_are_refused() -> None:
    model = Scripted(ask=[{"question": text} for text in ("Why?", "…", "Thanks!")])
    turn: Turn = model.run(lambda: Chat().acall(SAID, KINDS["direct"], Asker()))
    assert (turn.query, turn.answerability) == ("Thanks!", "conversational")
    assert "asks something, or says nothing" in (again := model.prompts("ask")[2]) and "Why?" not in again
    assert [call.profile for call in model.of("ask")] == ["greedy", "sampled", "sampled"]
    with pytest.raises(Rejected, match="asks something"):
        Scripted(ask=[{"question": "Why?"}] * 3).run(lambda: Chat().acall(SAID, KINDS["direct"], Asker()))


def test_a_remark_without_a_reply_is_no_turn() -> None:
    with pytest.raises(Rejected, match="empty answer") as caught:
        Scripted(ask=[{"question": "Thanks!"}], answer=[{"answer": " "}]).run(
            lambda: Chat().acall(SAID, KINDS["direct"], Asker())
        )
    assert (caught.value.stage, caught.value.text) == ("answer", "User: Thanks!\nAgent: ")


# --- answering


def test_an_answer_becomes_a_whole_turn() -> None:
    entry: Entry = {
        "facts": ["The bus is red.", "The tram is green."],
        "answerability": "partial",
        "answer": " It may be. ",
        "consistent": True,
        "evidence": [3, 1, 3],
    }
    model = Scripted(answer=[entry])
    assert answer(model, SAID, "correction") == Turn(
        turn=3,
        query="Is it late?",
        question_type="correction",
        multi_turn_type="correction",
        answerability="answerable",  # nothing is said to be unknown
        retrieval_query="tram late",
        hits=(Hit(passage_id=BUS.id, score=1.5, rank=1, new=True),),
        reasoning="The bus is red.\nThe tram is green.",
        answer="It may be.",
        consistent=True,
        evidence=(
            Evidence(passage_id=BUS.id, start=0, end=15, text="The bus is red."),
            Evidence(passage_id=TRAM.id, start=0, end=18, text="The tram is green."),
        ),
    )
    assert [(c.stage, c.turn, c.request.sampling.temperature) for c in model.calls] == [("answer", 3, 0)]
    first = answer(Scripted(answer=[{}]))
    assert (first.turn, first.question_type, first.multi_turn_type) == (1, "direct", None)


BAD_ANSWERS: dict[str, tuple[dict[str, object], str]] = {
    "scaffolding": ({"answer": "According to the first document, no."}, "speaks of the documents: write “No.”"),
    "a table": (
        {"answer": "The table below has the trams."},
        "speaks of the documents: say the fact itself, without “The table below”",
    ),
    "in the prompt's words": ({"answer": "The user takes the tram."}, f"{LIKE_THE_PROMPT}: write “you” and “I”"),
    "the prompt's advice": (
        {"answer": "To write a different one, say that it runs at night."},
        f"{LIKE_THE_PROMPT}: write “you” and “I”",
    ),
    "the prompt's reason": (
        {"answer": "I don't have information on your last attempt."},
        f"{LIKE_THE_PROMPT}: write “you” and “I”",
    ),
    "a refusal turned round": (
        {"answer": "You don't have information on the tram."},
        f"{LIKE_THE_PROMPT}: write “you” and “I”",
    ),
    "nothing": ({"answer": "Sure, here is the answer."}, "answers nothing"),
    "a question back": (
        {"answer": "Understood. Which tram do you have in mind?"},
        "answers nothing: give an answer, and don't ask back",
    ),
    "an offer": (
        {"answer": "Good question! Would you like to know more about the tram?"},
        "answers nothing: give an answer, and don't ask back",
    ),
    "repeated": ({"answer": said(LONG)[0].answer}, "repeats an earlier answer"),
    "empty": ({"answer": "…"}, "empty answer"),
    "inconsistent": (
        {"answer": "Blue.", "consistent": False, "consistency": "No,\nit is green."},
        "inconsistent by its own check: No, it is green.",
    ),
    "not known": ({"answer": "Blue.", "known": False}, f"inconsistent by its own check: {UNKNOWN}"),
}


@pytest.mark.parametrize(("bad", "why"), BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
def test_a_bad_answer_is_asked_for_again_with_the_reason(bad: dict[str, object], why: str) -> None:
    model = Scripted(answer=[bad, {"answer": "It runs at night."}])
    assert answer(model, said(LONG)).answer == "It runs at night."
    first, second = model.prompts("answer")
    assert REJECTED not in first
    assert f"{REJECTED}:\n{why}\n" in second
    assert second.partition("<task>")[0] == first.partition("<task>")[0]


@pytest.mark.parametrize(("kind", "told"), [("unanswerable", ""), ("direct", "It runs at night. ")])
def test_a_question_back_may_come_with_an_answer_or_where_there_is_none(kind: str, told: str) -> None:
    back = f"{told}Which tram do you have in mind?"
    assert answer(Scripted(answer=[{"answer": back}]), question_type=kind).answer == back


def test_an_answer_is_asked_for_only_three_times() -> None:
    model = Scripted(answer=[{"answer": "See [1]."}, {"answer": "See [2]."}, {"answer": "…"}, {"answer": "Yes."}])
    with pytest.raises(Rejected) as caught:
        answer(model)
    assert (caught.value.stage, caught.value.reason, caught.value.text) == ("answer", "empty answer", "…")
    assert len(model.calls) == 3


def test_an_inconsistent_answer_stays_so_in_the_same_words() -> None:
    model = Scripted(answer=[{"answer": "Blue.", "consistent": False}, *[{"answer": "Blue."}] * 2])
    with pytest.raises(Rejected) as caught:
        answer(model)
    assert (caught.value.reason, caught.value.text) == ("inconsistent by its own check", "Blue.")


UNTOLD, NEAREST = "I don't have information on who drives it.", "Adults pay 5 crowns at the machine."


@pytest.mark.parametrize(
    ("kind", "own", "text", "label"),
    [
        ("unanswerable", "unanswerable", f"{NEAREST} {UNTOLD}", "unanswerable"),
        ("unanswerable", "partial", f"{UNTOLD} {NEAREST}", "unanswerable"),
        ("unanswerable", "partial", f"{NEAREST} {UNTOLD}", "partial"),
        ("direct", "unanswerable", f"{UNTOLD} {NEAREST}", "unanswerable"),
        ("direct", "unanswerable", f"{NEAREST} {UNTOLD}", "partial"),
        ("direct", "partial", f"{UNTOLD} {NEAREST}", "partial"),
        ("unanswerable", None, f"{UNTOLD} {NEAREST}", "unanswerable"),
        ("unanswerable", None, f"{NEAREST} {UNTOLD}", "partial"),
        ("direct", None, f"{UNTOLD} {NEAREST}", "partial"),
    ],
)
def test_the_nearest_thing_beside_what_is_not_known_is_no_part_of_an_answer(
    kind: str, own: str | None, text: str, label: str
) -> None:
    """Without reasoning the model doesn't say how much it answers."""
    model = Scripted(answer=[{"answer": text, "answerability": own, "known": False} if own else text])
    step, asked = Answer(reasoning=own is not None), Asked("Who drives the tram?")
    turn: Turn = model.run(lambda: step.acall((FARES,), (), asked, KINDS[kind]))
    assert (turn.answer, turn.answerability) == (text, label)


def test_an_answer_is_checked_against_the_question_without_its_slips() -> None:
    typed, meant = "how mich is the trma", "How much is the tram?"
    model = Scripted(answer=[{"answer": "How much is the tram."}, {"answer": "The tram runs for 12 crowns."}])
    turn: Turn = model.run(lambda: Answer().acall((TRAM, BUS), (), Asked(typed, meant), KINDS["direct"]))
    assert (turn.answer, turn.query, turn.clean_query) == ("The tram runs for 12 crowns.", typed, meant)
    assert typed in task(model.prompts("answer")[0]), "the model reads what was typed"


# --- without reasoning


@pytest.mark.parametrize(
    ("kind", "ask", "text", "label", "cited"),
    [
        ("direct", "What does an adult pay?", TOLD, "answerable", ["Adults pay 5 crowns at the machine."]),
        ("unanswerable", "Who drives it?", UNTOLD, "unanswerable", []),
    ],
)
def test_without_reasoning_an_answer_is_asked_for_in_a_chat(
    kind: str, ask: str, text: str, label: str, cited: list[str]
) -> None:
    model, history = Scripted(answer=["", text]), said(("Is it green?", "It is."))
    turn: Turn = model.run(lambda: Answer(reasoning=False).acall((FARES,), history, Asked(ask), KINDS[kind]))
    assert (turn.answer, turn.answerability, turn.consistent) == (text, label, True)
    assert [each.text for each in turn.evidence] == cited
    assert turn.reasoning.splitlines() == (cited or [NO_EVIDENCE])
    assert model.stages == ["answer", "answer"], "one sentence alone tells it"
    request = model.calls[1].request
    roles, texts = zip(*((message.role, message.content) for message in request.messages), strict=True)
    assert roles == ("user", "assistant", "user", "assistant", "user")
    assert "[3] Adults pay 5 crowns at the machine." in texts[0] and texts[2:4] == ("Is it green?", "It is.")
    assert texts[4].startswith(ask) and REJECTED in texts[4]
    assert request.response_format is None


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Adults pay 7 crowns at the machine.", "leave out “7”"),
        ("I don't have information on what adults pay.", "answer from “Fares Adults pay 5 crowns at the machine.”"),
    ],
)
def test_what_no_passage_tells_is_asked_for_again_and_a_refusal_of_what_one_tells(text: str, remedy: str) -> None:
    model, step = Scripted(answer=[text, TOLD]), Answer(reasoning=False)
    turn: Turn = model.run(
        lambda: step.acall((FARES,), (), Asked("What do adults pay at the machine?"), KINDS["direct"])
    )
    assert turn.answer == TOLD
    assert remedy in model.calls[1].prompt


def test_a_refusal_of_what_a_sentence_tells_is_asked_again_and_others_are_not() -> None:
    refusals = ["I don't have information on that.", "I don't have information on the fares."]
    model, step = Scripted(answer=[{"answer": refusals[0]}, {"answer": TOLD}]), Answer()
    asked = Asked("What do adults pay at the machine?")
    turn: Turn = model.run(lambda: step.acall((FARES,), (), asked, KINDS["direct"]))
    assert turn.answer == TOLD and "answer from “Fares Adults pay 5 crowns" in model.calls[1].prompt
    others = ("Who drives it, and what are the fares?", "Why do adults pay 5 crowns at the machine?")
    for question, kind in ((asked.query, "unanswerable"), *((other, "direct") for other in others)):
        model = Scripted(answer=[{"answer": refusals[1]}])
        turn = model.run(lambda question=question, kind=kind: step.acall((FARES,), (), Asked(question), KINDS[kind]))
        assert turn.answer == refusals[1]


def test_without_reasoning_an_answer_that_no_sentence_tells_is_incorrect() -> None:
    unit = piece("unit", "Call the ticket office of the harbour. Drivers are responsible. Fines need processing.")
    model = Scripted(answer=["The ticket office is responsible for processing."], evidence=[{"evidence": []}])
    asked = "What is the ticket office of the harbour for?"
    turn: Turn = model.run(lambda: Answer(reasoning=False).acall((unit,), (), Asked(asked), KINDS["direct"]))
    verdict = asyncio.run(GroundingJudge().judge((unit,), (), turn))
    assert (turn.evidence, turn.reasoning, verdict.label) == ((), NO_EVIDENCE, "incorrect")


def test_without_reasoning_a_refusal_that_was_not_planned_is_no_turn() -> None:
    model, step = Scripted(answer=[UNTOLD]), Answer(reasoning=False)
    with pytest.raises(Rejected) as caught:
        model.run(lambda: step.acall((FARES,), (), Asked("Who drives it?"), KINDS["direct"]))
    assert (caught.value.reason, model.stages) == (UNPLANNED, ["answer"])


def test_without_reasoning_a_question_is_asked_for_in_plain_words() -> None:
    model, step = Scripted(ask=["And the driver?", "Why is it red?"]), Ask(NextQuestion, Repetition(0.8), 1, False)
    type_ = KINDS["follow-up"]
    for number, (question, focus) in enumerate((("And the driver?", ""), ("Why is it red?", BUS.text))):
        got: str = model.run(lambda focus=focus: step.acall(DOCUMENTS, SAID, type_, focus))  # type: ignore[misc]
        request = model.calls[number].request
        assert (got, request.response_format) == (question, None)
        (message,) = request.messages
        parts = ["[1] The tram is green.", "Does it run at night?", step.predict.signature.instructions]
        parts += [*([f"yet:\n{focus}"] if focus else []), type_.definition]
        places = [message.content.index(part) for part in parts]
        assert places == sorted(places) and message.content.startswith("<documents>")
        assert type_.examples[0].question not in message.content


def test_in_plain_words_an_attempt_is_not_told_of_the_last_one() -> None:
    """A small model answers the reason, in place of asking."""
    model = Scripted(ask=["What does the passage say?", "Does it run late?"])
    step = Ask(NextQuestion, Repetition(0.8), 1, False)
    assert model.run(lambda: step.acall(DOCUMENTS, SAID, KINDS["follow-up"])) == "Does it run late?"
    assert model.calls[0].prompt == model.calls[1].prompt
    assert [call.profile for call in model.calls] == ["greedy", "sampled"]


def test_no_fact_is_given_for_what_is_not_told_or_was_said() -> None:
    asked = {"unanswerable": FirstQuestion, "clarification": NextQuestion, "follow-up": NextQuestion}
    given = {}
    for name, signature in asked.items():
        model = Scripted(ask=["Is the tram green at night?"] * 3)
        step, history = Ask(signature, Repetition(0.8), 1, False), SAID[:1] if signature is NextQuestion else ()
        with suppress(Rejected):
            model.run(
                lambda step=step, history=history, name=name: step.acall(DOCUMENTS, history, KINDS[name], BUS.text)
            )
        given[name] = f"\n{BUS.text}\n\n" in model.calls[0].prompt
    assert given == {"unanswerable": False, "clarification": False, "follow-up": True}


def test_a_question_longer_than_its_type_allows_is_asked_again() -> None:
    long = "How old is the driver who takes the night bus to the harbour on Sundays?"
    model = Scripted(ask=[{"question": long}, GOOD])
    assert ask_first(model) == GOOD["question"]
    assert "has more than 12 words" in model.prompts("ask")[1]
    both = "How old is the driver who takes the night bus on Sundays and what does a ride cost?"
    assert ask_first(Scripted(ask=[{"question": both}]), "composite") == both
    assert ask_first(Scripted(ask=[{"question": long}] * 3)) == long, "a long question is better than none"
    endless = long.replace("?", f" {'and in the small hours of Monday ' * 2}in winter?")
    with pytest.raises(Rejected, match="has more than 24 words"):
        ask_first(Scripted(ask=[{"question": endless}] * 3))
