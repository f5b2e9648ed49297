"""The steps of a dialog, each with a scripted model."""

import asyncio
from contextlib import suppress

import pytest
from dspy import lm15

from generator.common.language import Languages, load_language, use_languages
from generator.common.passages import passage
from generator.dialogs.calls import TOO_LONG
from generator.dialogs.checks import (
    LIKE_THE_AGENT,
    LIKE_THE_PROMPT,
    NAMELESS,
    OF_THE_AGENT,
    OFF_SUBJECT,
    UNFINISHED,
    copies_documents,
    find_fault,
    speaks_like_the_prompt,
)
from generator.dialogs.dedup import Repetition
from generator.dialogs.prompt import Documents
from generator.dialogs.query import Rewrite
from generator.dialogs.signatures import REJECTED, FirstQuestion, NextQuestion
from generator.dialogs.steps import NO_EVIDENCE, UNKNOWN, UNPLANNED, Answer, Ask, Chat
from generator.errors import ModelError, Rejected
from generator.schema import Document, Evidence, Hit, Passage, Turn
from judges.metrics.grounding import GroundingJudge
from tests.support.scripted import KINDS, Entry, Scripted, piece, said, task

TRAM, BUS = piece("tram", "The tram is green. It runs at night."), piece("bus", "The bus is red.")
DOCUMENTS = Documents(passages=(TRAM, BUS))
SAID = said(("Which colour is the tram?", "It is green."), ("Does it run at night?", "Yes."))
LONG = ("Does it run at night?", "The green tram runs every night from the harbour to the hill.")
GOOD = {"question": "How old is its driver?"}


def ask_first(model: Scripted, question_type: str = "direct", focus: str = "") -> str:
    step = Ask(FirstQuestion, Repetition(0.8))
    question: str = model.run(lambda: step.acall(DOCUMENTS, (), KINDS[question_type], focus))
    return question


def ask_next(model: Scripted, question_type: str = "follow-up") -> str:
    step = Ask(NextQuestion, Repetition(0.8))
    question: str = model.run(lambda: step.acall(DOCUMENTS, SAID, KINDS[question_type]))
    return question


def answer(model: Scripted, history: tuple[Turn, ...] = (), question_type: str = "direct") -> Turn:
    hits = [Hit(passage_id=BUS.id, score=1.5, rank=1, new=True)]
    turn: Turn = model.run(
        lambda: Answer().acall((TRAM, BUS), history, "Is it late?", KINDS[question_type], "tram late", hits)
    )
    return turn


# --- questions that show that their author saw the documents


@pytest.mark.parametrize(
    "question",
    [
        "Which date does this passage give?",
        "In the two sentences, what is compared?",
        "What does sentence 4 mean?",
        "According to the provided documents, who pays?",
        "What does the article say about his youth?",
        "Is the fee in [3] still valid?",
        "From the context, what is the fee?",
        "Do the documents mention a fee?",
        "What is mentioned about parking?",
        "What does the guide say about the fee?",
        "According to the provided information, who pays?",
    ],
)
def test_a_question_about_the_documents_is_refused(question: str) -> None:
    assert find_fault(question, DOCUMENTS, (), KINDS["direct"], Repetition(0.8)) == "speaks of the documents"


@pytest.mark.parametrize(
    "question",
    [
        "Which documents do I need for the licence?",
        "How long are the documents I must bring kept?",
        "Who voted for the passage of the bill?",
        "When was the passage from Dover opened?",
        "What did the article he wrote in 1990 cause?",
        "What was the role of women in the context of the war?",
        "From the documents that I send, what do you keep?",
    ],
)
def test_the_same_words_in_a_users_own_sense_are_accepted(question: str) -> None:
    assert find_fault(question, DOCUMENTS, (), KINDS["direct"], Repetition(0.8)) is None


def test_a_question_about_something_else_is_refused() -> None:
    tram = Passage(id="a:0-9", document_id="a", title="Tram", text="The tram is green at night. " * 9, start=0, end=9)

    def about(question: str, focus: str = "") -> str | None:
        return find_fault(question, Documents(passages=(tram,)), (), KINDS["direct"], Repetition(0.8), focus)

    assert (
        about("Which is older?") == about("Can elephants jump?") == "shares no word with the documents and the dialog"
    )
    assert about("Can elephants jump?", "Elephants are heavy.") is about("How old is the tram?") is None


@pytest.mark.parametrize(
    ("question", "nameless"),
    [
        ("What does it say?", True),
        ("When did this debate evolve?", True),
        ("When did the debate on trams evolve?", False),
        ("Is it better to walk or to take the tram?", False),
        ("Does the tram run this week?", False),
        ("Why are some trams late, and where are these trams?", False),
        ("Why does a tram carry these things?", True),
        ("Why did she drive the tram?", True),
        ("What did the driver of the tram tell her friends?", False),
    ],
)
def test_a_first_question_names_what_it_is_about(question: str, nameless: bool) -> None:
    def fault(history: tuple[Turn, ...]) -> str | None:
        return find_fault(question, DOCUMENTS, history, KINDS["direct"], Repetition(0.8))

    why = "names nothing that it is about"
    assert (fault(()) == why) is nameless and fault(SAID) != why


def test_a_name_may_look_like_one_of_the_documents() -> None:
    open_days = piece("p", "In March the museum of Germany is open on Saturday and Tuesday.")
    for question in ("Is the German museum open on Sunday?", "Is the museum open on Thursday?"):
        assert find_fault(question, Documents(passages=(open_days,)), (), KINDS["direct"], Repetition(0.8)) is None


def test_the_examples_and_phrasings_of_question_types_are_accepted() -> None:
    texts = [text for kind in KINDS.values() for text in (*kind.phrasings, *(e.question for e in kind.examples))]
    assert len(texts) > 25
    for text in texts:
        why = find_fault(text, DOCUMENTS, (), KINDS["direct"], Repetition(0.8))
        assert why != "speaks of the documents", text


# --- asking


def test_the_prompt_of_a_first_question() -> None:
    model = Scripted(ask=[GOOD, GOOD])
    assert ask_first(model, focus="It runs at night.") == "How old is its driver?"
    ask_first(model)
    prompt, without_focus = model.prompts("ask")
    assert KINDS["direct"].prompt() in task(prompt) and "It runs at night." in task(prompt)
    assert "<dialog>\n</dialog>" in prompt and REJECTED not in prompt
    assert "touch on this" not in without_focus


def test_the_user_of_a_passage_may_be_spoken_of() -> None:
    manual = TRAM.model_copy(update={"text": "Users log in."})
    assert speaks_like_the_prompt("The user logs in.", [BUS])
    assert not speaks_like_the_prompt("The user logs in.", [BUS, manual])
    assert speaks_like_the_prompt("The Agent logs in.", [manual])
    assert speaks_like_the_prompt("The user wants to know how one logs in.", [manual])
    assert speaks_like_the_prompt("No, I meant what the user asked.", [manual])


def test_a_copied_sentence_is_no_message() -> None:
    guide = TRAM.model_copy(update={"text": "Trams run every ten minutes on the line to the port."})
    copied = "so trams run every ten minutes on the line to the port"
    assert copies_documents(copied, [BUS, guide]) and not copies_documents(copied, [BUS])
    assert not copies_documents(f"Is it true that {copied}?", [guide])
    assert not copies_documents("I hear that trams run every ten minutes", [guide])
    longer = guide.model_copy(update={"text": f"{guide.text[:-1]} until the last ship of the day has come in."})
    assert copies_documents(f"Is it true that {longer.text[:-1]}?", [longer])


@pytest.mark.parametrize(
    "around", ['"{}"', '"{}', "'{}'", "**{}**", "`{}`", "```\n{}\n```", "- {}", "1. **{}**", "### {}"]
)
def test_a_message_stands_without_the_marks_around_it(around: str) -> None:
    asked = ask_next(Scripted(ask=[{"question": around.format("How old is the tram's driver?")}]))
    assert asked == "How old is the tram's driver?"


@pytest.mark.parametrize(
    "question", ['Who says "old" of it?', "'Tram' or 'bus'?", "`tram` or `bus`?", "2. Tram: how old is it?"]
)
def test_marks_within_a_message_stay(question: str) -> None:
    assert ask_next(Scripted(ask=[{"question": question}])) == question


@pytest.mark.parametrize(
    ("message", "why"),
    [("Sorry, I was asking about that!", NAMELESS), ("That's not what I asked.", UNFINISHED)],
)
def test_a_correction_says_what_was_meant(message: str, why: str) -> None:
    documents = Documents(passages=(TRAM,))
    assert find_fault(message, documents, SAID, KINDS["correction"], Repetition(0.8)) == why


def test_a_later_question_that_is_short_or_points_back_need_not_share_a_word() -> None:
    documents = Documents(passages=(piece("m", f"{TRAM.text} {BUS.text} " * 9),))
    faults = [
        find_fault(question, documents, history, KINDS["follow-up"], Repetition(0.8))
        for question, history in (
            ("How costly is it?", SAID),
            ("How costly are elephants?", ()),
            ("Can elephants jump far?", SAID),
            ("Did anybody else complain about that?", SAID),
            ("Why did they close the pool?", SAID),
            ("Who runs the pool?", SAID),  # the tram runs, too
        )
    ]
    assert faults == [None, OFF_SUBJECT, OFF_SUBJECT, None, *["is on the topic of an example"] * 2]


BAD = {
    "asked twice": ("How old is it? How old is it in years?", "asks the same twice"),
    "in the prompt's words": ("Does that mean what the last answer says?", LIKE_THE_PROMPT),
    "in the Agent's words": ("I don't have information on its driver.", LIKE_THE_AGENT),
    "as a machine": ("I am an AI language model.", LIKE_THE_AGENT),
    "as a helper": ("Do you have any other questions about the tram?", LIKE_THE_AGENT),
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


def test_function_words_are_no_topic_of_an_example() -> None:
    assert ask_next(Scripted(ask=[{"question": "When does her tram run?"}])) == "When does her tram run?"


def test_it_is_asked_again_only_twice() -> None:
    model = Scripted(ask=[*({"question": f"Is [{number}] so?"} for number in (1, 2)), {"question": "…"}, GOOD])
    with pytest.raises(Rejected) as caught:
        ask_next(model)
    assert (caught.value.stage, caught.value.reason, caught.value.text) == ("ask", "no question", "…")
    assert len(model.calls) == 3
    assert model.prompts("ask")[2].count("speaks of the documents") == 1


def test_a_beginning_must_be_continued() -> None:
    model = Scripted(ask=[{"question": "How long did that?"}, GOOD])
    ask_next(model)
    first, second = (call.schema["properties"]["question"] for call in model.calls)
    assert second == first | {"minLength": len("How long did that?") + 4}


def test_a_clarification_names_what_it_asks_about() -> None:
    said_before, asked = said(LONG), ("Do you mean what it says?", "Does that mean it is?", "Do you mean every night?")
    faults = [find_fault(text, DOCUMENTS, said_before, KINDS["clarification"], Repetition(0.8)) for text in asked]
    assert faults == [NAMELESS, NAMELESS, None]


def test_the_same_question_after_a_beginning_is_a_repetition() -> None:
    model = Scripted(ask=[{"question": "No, I meant: which colour is the tram?"}, GOOD])
    assert ask_next(model) == "How old is its driver?"


def test_white_space_in_and_commas_around_a_question_are_removed() -> None:
    for ask in (ask_first, ask_next):
        assert ask(Scripted(ask=[{"question": " , How old\n is it? \n"}])) == "How old is it?"


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
    turn: Turn = model.run(lambda: Chat().acall(SAID, KINDS["direct"]))
    assert (turn.query, turn.answerability) == ("Thanks!", "conversational")
    assert "asks something, or says nothing" in (again := model.prompts("ask")[2]) and "Why?" not in again
    assert [call.profile for call in model.of("ask")] == ["greedy", "sampled", "sampled"]
    with pytest.raises(Rejected, match="asks something"):
        Scripted(ask=[{"question": "Why?"}] * 3).run(lambda: Chat().acall(SAID, KINDS["direct"]))


def test_a_remark_without_a_reply_is_no_turn() -> None:
    with pytest.raises(Rejected, match="empty answer") as caught:
        Scripted(ask=[{"question": "Thanks!"}], answer=[{"answer": " "}]).run(
            lambda: Chat().acall(SAID, KINDS["direct"])
        )
    assert (caught.value.stage, caught.value.text) == ("answer", "User: Thanks!\nAgent: ")


# --- rewriting


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (" age of\nthe driver ", "age of the driver"),
        (" ", "How old is she?"),
        ("How old is the driver, 41?", "How old is she?"),
        ("How old is the driver from Lorsund harbour office?", "How old is she?"),
        ("How old is the driver? It is green.", "How old is she?"),
        ("does it run at night", "How old is she?"),
    ],
)
def test_a_rewritten_query_is_sampled_stripped_and_neither_adds_facts_nor_pastes(query: str, expected: str) -> None:
    model = Scripted(rewrite=[{"query": query}])
    assert model.run(lambda: Rewrite().acall(DOCUMENTS, SAID, "How old is she?")) == expected
    assert [(c.stage, c.turn, c.profile) for c in model.calls] == [("rewrite", 3, "sampled")]
    assert "How old is she?" in task(model.calls[0].prompt)


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
    "nothing": ({"answer": "Sure, here is the answer."}, "answers nothing"),
    "a question back": (
        {"answer": "Understood. Which tram do you have in mind?"},
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


# --- evidence

FARES = piece("fares", "Fares. A child pays 2 crowns. Adults pay 5 crowns at the machine. The tram is green.")
TOLD = "An adult pays 5 crowns, at the machine."
UNTOLD = "I don't have information on who drives it."


def evidence(model: Scripted) -> list[str]:
    """Return the evidence of an answer from the fares; sentences 1 to 4 are theirs."""
    ask = "What does an adult pay?"
    turn: Turn = model.run(lambda: Answer().acall((FARES,), (), ask, KINDS["direct"]))
    assert turn.answer == TOLD
    return [each.text for each in turn.evidence]


def test_evidence_that_covers_its_answer_is_kept_without_asking() -> None:
    model = Scripted(answer=[{"answer": TOLD, "evidence": [3]}])
    assert evidence(model) == ["Adults pay 5 crowns at the machine."]
    assert model.stages == ["answer"]


def test_evidence_that_does_not_is_chosen_once_from_the_best_sentences() -> None:
    model = Scripted(answer=[{"answer": TOLD, "evidence": [1, 4]}], evidence=[{"evidence": [3]}])
    assert evidence(model) == ["Adults pay 5 crowns at the machine."]
    assert model.stages == ["answer", "evidence"]
    answering, choosing = (call.prompt for call in model.calls)
    assert "[3] Adults pay 5 crowns at the machine.\n[2] A child pays 2 crowns." in task(choosing)
    assert TOLD in task(choosing) and "[4] The tram is green." not in task(choosing)
    assert choosing.partition("<task>")[0] == answering.partition("<task>")[0]


def test_a_refusal_has_no_evidence() -> None:
    model = Scripted(answer=[{"answer": "I don't know what a tram costs.", "evidence": [1, 3]}])
    turn: Turn = model.run(lambda: Answer().acall((FARES,), (), "What does it cost?", KINDS["direct"]))
    assert turn.evidence == ()


def test_a_sentence_that_adds_nothing_is_no_evidence() -> None:
    assert evidence(Scripted(answer=[{"answer": TOLD, "evidence": [1, 3, 4]}])) == [
        "Adults pay 5 crowns at the machine."
    ]


@pytest.mark.parametrize(
    "reply",
    [{"evidence": [4]}, {"evidence": []}, "no", lm15.ServerError("HTTP 500: oops", status=500)],
    ids=["no better", "none", "unusable", "failing"],
)
def test_a_choice_that_does_not_help_changes_nothing(reply: Entry) -> None:
    model = Scripted(answer=[{"answer": TOLD, "evidence": [2]}], evidence=[reply, reply])
    assert evidence(model) == ["A child pays 2 crowns."]


def test_sentences_cited_stay_where_no_choice_is_better() -> None:
    """The first tells nothing that the second doesn't, but the model cited both."""
    told = "Children pay 2 crowns, adults 5 crowns, dogs 9 bundles of hay."
    model = Scripted(answer=[{"answer": told, "evidence": [3, 2, 3]}], evidence=["{}", "{}"])
    repeated = piece("fares", "Fares. Adults pay 5 crowns. Adults pay 5 crowns, a child pays 2 crowns. Dogs eat hay.")
    turn: Turn = model.run(lambda: Answer().acall((repeated,), (), "What does it cost?", KINDS["direct"]))
    assert model.stages[-1] == "evidence" and len(turn.evidence) == 2


@pytest.mark.parametrize(
    ("text", "told", "cited"),
    [
        ("What do adults pay? Adults pay 5 crowns. Dogs pay half.", "Adults pay 5 crowns.", ["Adults pay 5 crowns."]),
        (
            "Adults pay 5 crowns. Is it free for dogs? Yes.",
            "Yes, it is free for dogs.",
            ["Is it free for dogs?", "Yes."],
        ),
        ("Adults pay 5 crowns. Is it free for dogs? Dogs pay half.", "Dogs pay half.", ["Dogs pay half."]),
        (
            "Dogs pay half at the kiosk. Ask for it. Kiosks also sell ice.",
            "Dogs pay half at kiosks.",
            ["Dogs pay half at the kiosk."],
        ),
        (
            "The kiosk includes a shop. Dogs pay half. Mice walk.",
            "That includes dogs, who pay half.",
            ["Dogs pay half."],
        ),
        (
            "The kiosk includes a small shop with ice. Dogs pay half. Mice walk.",
            "That includes small dogs, who pay half.",
            ["The kiosk includes a small shop with ice.", "Dogs pay half."],
        ),
        (
            "The kiosk of Orrin sells sweet ice. Dogs pay half. Mice walk.",
            "In Orrin dogs pay half.",
            ["The kiosk of Orrin sells sweet ice.", "Dogs pay half."],
        ),
        (
            "Dogs enter at half price in most of the winter. Ice is sold at half price all the winter, too. Mice walk.",
            "At half price.",
            ["Dogs enter at half price in most of the winter."],
        ),
        (
            "Dogs pay half at kiosks. Mice walk. “Dogs pay half at kiosks.”",
            "Dogs pay half at kiosks.",
            ["Dogs pay half at kiosks."],
        ),
        ("Dogs are free. Dogs ride. Mice walk.", "Yes.", ["Dogs are free.", "Dogs ride.", "Mice walk."]),
        (
            "Dogs pay half. Cats pay half. Mice walk.",
            "Dogs pay half, and cats do.",
            ["Dogs pay half.", "Cats pay half."],
        ),
    ],
)
def test_only_what_tells_it_is_evidence(text: str, told: str, cited: list[str]) -> None:
    """It is no question, unless “Yes.” follows that."""
    model = Scripted(answer=[{"answer": told, "evidence": [1, 2, 3]}])
    turn: Turn = model.run(lambda: Answer().acall((piece("fares", text),), (), "Are dogs free?", KINDS["direct"]))
    assert [each.text for each in turn.evidence] == cited


@pytest.mark.parametrize(("end", "start"), [(36, 19), (54, 26)], ids=["cut at the end", "cut at the start"])
def test_a_sentence_that_another_passage_has_whole_is_cited_from_there(end: int, start: int) -> None:
    text = "The tram is green. Adults pay 5 crowns at the machine. It runs at night."
    document = Document(id="fares", text=text)
    passages = (passage(document, 0, end), passage(document, start, len(text)))
    for cited in (2, 3):
        model = Scripted(answer=[{"answer": "They pay 5 crowns.", "evidence": [cited]}])
        turn: Turn = model.run(lambda: Answer().acall(passages, (), "What does an adult pay?", KINDS["direct"]))
        assert [each.text for each in turn.evidence] == ["Adults pay 5 crowns at the machine."]


def test_a_choice_that_completes_the_evidence_is_added() -> None:
    told = "Children pay 2 crowns, adults 5 crowns at the machine."
    model = Scripted(answer=[{"answer": told, "evidence": [2]}], evidence=[{"evidence": [3]}])
    turn: Turn = model.run(lambda: Answer().acall((FARES,), (), "What does it cost?", KINDS["direct"]))
    assert [each.text for each in turn.evidence] == ["Adults pay 5 crowns at the machine.", "A child pays 2 crowns."]


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
    turn: Turn = model.run(lambda: Answer(reasoning=False).acall((FARES,), history, ask, KINDS[kind]))
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
    turn: Turn = model.run(lambda: step.acall((FARES,), (), "What do adults pay at the machine?", KINDS["direct"]))
    assert turn.answer == TOLD
    assert remedy in model.calls[1].prompt


def test_another_sentence_joins_what_was_chosen_where_that_tells_a_part() -> None:
    parts = ["The range is 30 metres indoors.", "Up to 64 devices can be connected at a time."]
    told = "The range is 30 metres indoors, and up to 64 devices can be connected."
    model = Scripted(answer=[told], evidence=[{"evidence": [1]}])
    step, router = Answer(reasoning=False), piece("router", " ".join([*parts, "It has a lamp."]))
    turn: Turn = model.run(lambda: step.acall((router,), (), "How many devices can be connected?", KINDS["direct"]))
    assert [each.text for each in turn.evidence] == parts


def test_without_reasoning_an_answer_that_no_sentence_tells_is_incorrect() -> None:
    unit = piece("unit", "Call the ticket office of the harbour. Drivers are responsible. Fines need processing.")
    model = Scripted(answer=["The ticket office is responsible for processing."], evidence=[{"evidence": []}])
    asked = "What is the ticket office of the harbour for?"
    turn: Turn = model.run(lambda: Answer(reasoning=False).acall((unit,), (), asked, KINDS["direct"]))
    verdict = asyncio.run(GroundingJudge().judge((unit,), (), turn))
    assert (turn.evidence, turn.reasoning, verdict.label) == ((), NO_EVIDENCE, "incorrect")


def test_without_reasoning_a_refusal_that_was_not_planned_is_no_turn() -> None:
    model, step = Scripted(answer=[UNTOLD]), Answer(reasoning=False)
    with pytest.raises(Rejected) as caught:
        model.run(lambda: step.acall((FARES,), (), "Who drives it?", KINDS["direct"]))
    assert (caught.value.reason, model.stages) == (UNPLANNED, ["answer"])


@pytest.mark.parametrize("heading", ["Night bus", "## The night bus"])
def test_a_title_or_heading_is_no_evidence(heading: str) -> None:
    titled = piece("f", f"{heading}\nIt runs hourly.").model_copy(update={"title": "Night bus"})
    model, step = Scripted(answer=[{"answer": "Yes, there is a night bus.", "evidence": [1]}]), Answer()
    turn: Turn = model.run(lambda: step.acall((titled,), (), "Is there a night bus?", KINDS["direct"]))
    assert turn.evidence == ()


def test_evidence_is_chosen_where_two_sentences_tell_the_answer() -> None:
    twice = piece("twice", "Adults pay 5 crowns. A child pays 2 crowns. For adults it is 5 crowns at the machine, too.")
    model = Scripted(answer=["An adult pays 5 crowns."], evidence=[{"evidence": [1]}])
    step = Answer(reasoning=False)
    turn: Turn = model.run(lambda: step.acall((twice,), (), "What does an adult pay?", KINDS["direct"]))
    assert [each.text for each in turn.evidence] == ["Adults pay 5 crowns."]
    assert model.stages == ["answer", "evidence"]


@pytest.mark.parametrize(
    ("chosen", "cited"),
    [
        ([], ["The ferry takes 40 minutes and no cars."]),
        ([3, 1, 2], ["The ferry takes 40 minutes and no cars.", "A car waits for the barge."]),
    ],
)
def test_evidence_is_the_best_sentence_where_none_is_chosen_and_none_that_it_can_do_without(
    chosen: list[int], cited: list[str]
) -> None:
    text = "The ferry takes 40 minutes and no cars. A car waits for the barge. The ferry takes no cars."
    model = Scripted(answer=["It takes 40 minutes, and cars wait for the barge."], evidence=[{"evidence": chosen}] * 2)
    step, ferry = Answer(reasoning=False), piece("ferry", text)
    turn: Turn = model.run(lambda: step.acall((ferry,), (), "How long is the trip?", KINDS["direct"]))
    assert sorted(each.text for each in turn.evidence) == sorted(cited)


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


@pytest.mark.parametrize(
    ("message", "tells"),
    [
        ("The bus is red and fast.", True),
        ("No, I meant the bus is fast and old.", True),
        ("How is the bus? It is red, fast and old.", True),
        ("The bus is red, fast and old. Why is that?", False),
        ("No, I meant the bus.", False),
        ("Is the bus red?", False),
        ("Tell me which bus is red.", False),
    ],
)
def test_a_question_does_not_tell_what_it_should_ask_for(message: str, tells: bool) -> None:
    focus = "The bus is red, fast and old."
    fault = find_fault(message, DOCUMENTS, SAID, KINDS["follow-up"], Repetition(0.8), focus)
    assert (fault == "tells what it should ask for") == tells


@pytest.mark.parametrize("question", ["Πόσο κοστίζει η κάρτα;", "Πόσο κοστίζει η κάρτα\u037e", "Η ετήσια κάρτα Visa;"])
def test_a_greek_question_ends_in_a_semicolon(question: str) -> None:
    greek = load_language("el")
    documents = Documents(passages=(piece("card", "Πόσο κοστίζει η κάρτα. Η ετήσια κάρτα Visa."),))
    with use_languages(Languages(greek, greek)):
        asked, told = (
            find_fault(text, documents, (), KINDS["direct"], Repetition(0.8)) for text in (question, question[:-1])
        )
    assert (asked, told) == (None, "tells what it should ask for")


@pytest.mark.parametrize("text", ["I don't have information on that.", "It costs a bundle of hay."])
def test_nothing_is_asked_where_no_sentence_could_help(text: str) -> None:
    model = Scripted(answer=[{"answer": text, "evidence": []}])
    answer(model)
    assert model.stages == ["answer"]


# --- failing endpoints


@pytest.mark.parametrize(
    "error",
    [
        lm15.TransportError("the model server is gone: connection refused"),
        lm15.AuthError("HTTP 401: no key", status=401),
        lm15.BillingError("HTTP 402: no money", status=402),
        lm15.UnsupportedModelError("HTTP 404: no such model", status=404),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_endpoint_that_can_not_be_used_stops_the_run_in_one_line(error: Exception) -> None:
    with pytest.raises(ModelError) as caught:
        answer(Scripted(answer=[error]))
    assert str(error.args[0]).partition("\n")[0] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (lm15.ContextLengthError("about 9 tokens"), "context", "the next prompt does not fit lm.context"),
        (lm15.ContextLengthError("HTTP 400: too long", status=400), "context", TOO_LONG),
        (lm15.InvalidRequestError("HTTP 400: no", status=400), "model", "InvalidRequestError"),
        (lm15.RateLimitError("HTTP 429: slow down", status=429), "model", "RateLimitError"),
        (lm15.ServerError("HTTP 500: oops", status=500), "model", "ServerError"),
        (lm15.TimeoutError("no answer within 60 s"), "model", "TimeoutError"),
    ],
    ids=["context", "server's context", "400", "429", "500", "timeout"],
)
def test_a_request_that_fails_loses_its_turn_only(error: Exception, stage: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        answer(Scripted(answer=[error]))
    assert (caught.value.stage, caught.value.reason) == (stage, reason)
    assert str(error.args[0]).partition("\n")[0] in caught.value.text


def test_a_prompt_that_can_not_fit_is_not_sent() -> None:
    """The server's count of an earlier prompt decides; without one, the server is asked."""
    model = Scripted()
    model.context = 400

    async def answer_twice() -> None:
        for _ in range(2):
            await Answer().acall((TRAM, BUS), (), "Is it late?", KINDS["direct"], "tram late", ())

    with pytest.raises(Rejected) as caught:
        model.run(answer_twice)
    assert (caught.value.stage, len(model.calls)) == ("context", 1)


def test_a_bug_of_ours_is_no_drop() -> None:
    with pytest.raises(Exception, match="bug") as caught:
        answer(Scripted(answer=[KeyError("bug")]))
    assert not isinstance(caught.value, Rejected)


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
