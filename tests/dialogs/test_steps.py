"""The steps of a dialog, each with a model that says what the test wants it to say."""

import pytest
from dspy import lm15

from generator.dialogs.checks import SCAFFOLDING
from generator.dialogs.dedup import Repetition
from generator.dialogs.prompt import Documents
from generator.dialogs.signatures import REJECTED
from generator.dialogs.steps import Answer, AskFirst, AskNext, Rewrite
from generator.errors import ModelError, Rejected
from generator.schema import Evidence, Hit, Turn
from tests.support.scripted import KINDS, Entry, Scripted, piece, said

TRAM, BUS = piece("tram", "The tram is green. It runs at night."), piece("bus", "The bus is red.")
DOCUMENTS = Documents(passages=(TRAM, BUS))
SAID = said(("Which colour is the tram?", "It is green."), ("Does it run at night?", "Yes."))
GOOD = {"question": "How old is the driver?"}


def ask_first(model: Scripted, kind: str = "direct", focus: str = "") -> str:
    question: str = model.run(lambda: AskFirst(Repetition(0.8)).acall(DOCUMENTS, KINDS[kind], focus))
    return question


def ask_next(model: Scripted, kind: str = "follow-up") -> str:
    question: str = model.run(lambda: AskNext(Repetition(0.8)).acall(DOCUMENTS, SAID, KINDS[kind]))
    return question


def answer(model: Scripted, history: tuple[Turn, ...] = (), kind: str = "direct") -> Turn:
    hits = [Hit(passage_id=BUS.id, score=1.5, rank=1, new=True)]
    turn: Turn = model.run(lambda: Answer().acall((TRAM, BUS), history, "Is it late?", KINDS[kind], "tram late", hits))
    return turn


def first_line(error: Exception) -> str:
    """What it says, without DSPy's advice."""
    return str(error.args[0]).partition("\n")[0]


def task(prompt: str) -> str:
    return prompt.partition("<task>")[2]


# --- questions that show their author had the documents


@pytest.mark.parametrize(
    "question",
    [
        "What does the passage say about ferries?",
        "What is the main point of the passage?",
        "Which date does this passage give?",
        "Who is named in the passages?",
        "What do the passages say on fees?",
        "In the two sentences, what is compared?",
        "What does sentence 4 mean?",
        "Why do sentences 3 and 4 differ?",
        "Can you explain sentence #12?",
        "What is in document 2?",
        "Is Document No. 3 right?",
        "According to the provided documents, who pays?",
        "Based on the documents, who pays?",
        "According to the text, who pays?",
        "According to the documents provided, who pays?",
        "As stated in the document, who pays?",
        "What does the text say about fees?",
        "What is mentioned in the article about fees?",
        "According to the article, when did he leave?",
        "What does the article say about his youth?",
        "Which fee is listed in the given excerpt?",
        "What does the above text tell about fees?",
        "What does the excerpt say?",
        "Who wrote [3]?",
        "Is the fee in [3] still valid?",
        "From the context, what is the fee?",
        "According to the context, what is the fee?",
        "Based on the given context, is it free?",
        "What else is in the document?",
        "Do the documents mention a fee?",
        "What information do these documents give about ferries?",
        "Which paragraph tells about fees in this document?",
        "As per the document, who pays?",
        "What is discussed in paragraph 2?",
        "Does your text say why?",
        "What is the fee based on the information given?",
        "Based on the information provided, who pays?",
        "According to the provided information, who pays?",
        "Is it free in the given context?",
        "What did the documents not mention?",
    ],
)
def test_scaffolding_is_caught(question: str) -> None:
    assert SCAFFOLDING.search(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which documents do I need for the licence?",
        "What documents must I bring?",
        "How long are the documents I must bring kept?",
        "Where do I send the documents?",
        "Do I get the documents back?",
        "Who voted for the passage of the bill?",
        "How long did the passage through the canal take?",
        "When was the passage from Dover opened?",
        "Is the passage to the island rough?",
        "How has it changed with the passage of time?",
        "Was he pleased with the article he wrote in 1990?",
        "What did the article he wrote in 1990 cause?",
        "In what context did he say it?",
        "What was the political context of the strike?",
        "How long a sentence did he get?",
        "Was the sentence reduced on appeal?",
        "Did he serve the sentence of 12 years?",
        "Was he given sentences of 3 and 5 years?",
        "Which texts did she translate?",
        "Did she write the text of the song?",
        "Can I text them in the evening?",
        "What does article 12 of the treaty forbid?",
        "What happened in the following year?",
        "How many passengers does a sailing carry?",
        "Does the secret passage lead to the cellar?",
        "Which document proves my address?",
        "Is a signed document needed?",
        "What does 3 [crowns] buy?",
        "Is it open in the summer?",
        "What's the difference between version 2 and version 3?",
        "Did the review in the Times mention her?",
        "What was his source of income?",
        "What was the role of women in the context of the war?",
        "What does exposed mean in this context?",
        "Does the text of the treaty allow it?",
        "Which date must stand in the documents I bring?",
        "From the documents that I send, what do you keep?",
        "What does paragraph 12 of the lease forbid?",
        "Where do I send these documents?",
        "Why did he write this article?",
        "Do the documents need a stamp?",
        "Who provided documents to the police?",
        "Based on the information I gave you, do I qualify?",
        "Do I need two documents or three documents?",
    ],
)
def test_the_users_own_words_are_not(question: str) -> None:
    found = SCAFFOLDING.search(question)
    assert found is None, found


def test_our_own_examples_and_phrasings_pass() -> None:
    told = [text for kind in KINDS.values() for text in (*kind.phrasings, *(e.question for e in kind.examples))]
    assert len(told) > 25
    assert not [text for text in told if SCAFFOLDING.search(text)]


# --- asking


def test_the_first_prompt_has_the_kind_and_the_focus_and_no_dialog() -> None:
    model = Scripted(ask=[GOOD])
    assert ask_first(model, focus="It runs at night.") == "How old is the driver?"
    (prompt,) = model.prompts("ask")
    assert KINDS["direct"].prompt() in task(prompt)
    assert "It runs at night." in task(prompt)
    assert "<dialog>\n</dialog>" in prompt
    assert REJECTED not in prompt
    assert [(made.profile, made.turn) for made in model.calls] == [("greedy", 1)]


def test_without_a_focus_the_prompt_names_none() -> None:
    model = Scripted(ask=[GOOD])
    ask_first(model)
    assert "touch on this" not in model.prompts("ask")[0]


def test_the_next_prompt_has_the_kind_the_dialog_and_what_was_asked() -> None:
    model = Scripted(ask=[GOOD])
    ask_next(model)
    (prompt,) = model.prompts("ask")
    assert KINDS["follow-up"].prompt() in task(prompt)
    assert "User: Which colour is the tram?" in prompt and "User: Does it run at night?" in prompt
    assert "Agent: Yes.\n</dialog>" in prompt
    assert [(made.profile, made.turn) for made in model.calls] == [("greedy", 3)]


BAD = {
    "repeated": ("Which colour is the tram?", "repeats an earlier question"),
    "repeated, other case": ("which COLOUR is the tram", "repeats an earlier question"),
    "reworded": ("And which colour is that tram, please?", "repeats an earlier question"),
    "scaffolding": ("What does the passage say?", "speaks of the documents"),
    "an example": ("Why did he do that?", "copies an example"),
    "the topic of an example": ("Why did her uncle leave the bike shop?", "is on the topic of an example"),
    "a phrasing as it stands": ("Does that mean … ?", "leaves the gap of a phrasing"),
    "a phrasing up to its gap": ("How long did that?", "is only the beginning of a question"),
    "a phrasing with another ellipsis": ("Why did ... change it?", "leaves the gap of a phrasing"),
    "marks": ("…?", "no question"),
    "nothing": ("", "no question"),
}


@pytest.mark.parametrize(("bad", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_question_is_asked_again_with_the_reason(bad: str, why: str) -> None:
    model = Scripted(ask=[{"question": bad}, GOOD])
    assert ask_next(model) == "How old is the driver?"
    first, second = model.prompts("ask")
    assert REJECTED not in first
    assert f"{REJECTED}:\n“{bad}”: {why}" in second
    assert second.partition("<task>")[0] == first.partition("<task>")[0]


@pytest.mark.parametrize(("bad", "why"), BAD.values(), ids=BAD.keys())
def test_it_is_asked_again_only_twice(bad: str, why: str) -> None:
    model = Scripted(ask=[*[GOOD | {"question": f"Is [{number}] so?"} for number in (1, 2)], {"question": bad}, GOOD])
    with pytest.raises(Rejected) as caught:
        ask_next(model)
    assert (caught.value.stage, caught.value.reason, caught.value.text) == ("ask", why, bad)
    assert len(model.calls) == 3
    assert "“Is [1] so?”: speaks of the documents\n“Is [2] so?”: speaks of the documents" in model.prompts("ask")[2]


def test_a_beginning_must_be_gone_on_with() -> None:
    model = Scripted(ask=[{"question": "How long did that?"}, GOOD])
    ask_next(model)
    first, second = (call.schema["properties"]["question"] for call in model.calls)
    assert second == first | {"minLength": len("How long did that?") + 4}


def test_a_first_question_is_asked_again_too() -> None:
    model = Scripted(ask=[{"question": "What does sentence 2 say?"}, GOOD])
    assert ask_first(model) == "How old is the driver?"
    assert "speaks of the documents" in model.prompts("ask")[1]


def test_a_question_on_another_side_of_the_same_thing_is_no_repetition() -> None:
    model = Scripted(ask=[{"question": "Which colour is the bus?"}])
    assert ask_next(model) == "Which colour is the bus?"


def test_the_same_after_the_beginning_of_another_kind_is_a_repetition() -> None:
    model = Scripted(ask=[{"question": "No, I meant: which colour is the tram?"}, GOOD])
    assert ask_next(model, "correction") == "How old is the driver?"
    assert "repeats an earlier question" in model.prompts("ask")[1]


def test_white_space_around_a_question_is_none_of_it() -> None:
    assert ask_next(Scripted(ask=[{"question": " How old\n is it? \n"}])) == "How old is it?"
    assert ask_first(Scripted(ask=[{"question": " How old\n is it? \n"}])) == "How old is it?"


def test_only_kinds_that_may_be_missing_can_be_declined() -> None:
    model = Scripted(ask=[GOOD, GOOD])
    ask_first(model, "comparative")
    ask_first(model, "direct")
    comparative, direct = model.calls
    assert comparative.schema["properties"]["can_ask"] == {"title": "Can Ask", "type": "boolean"}
    assert '"can_ask"' in comparative.prompt
    assert "can_ask" not in direct.schema["properties"]
    assert "can_ask" not in direct.prompt


def test_a_declined_question_ends_the_dialog() -> None:
    model = Scripted(ask=[GOOD | {"can_ask": False, "explanation": "Only one tram is told of."}])
    with pytest.raises(Rejected) as caught:
        ask_first(model, "comparative")
    assert (caught.value.stage, caught.value.reason) == ("ask", "declined: nothing comparative to ask")
    assert caught.value.text == "Only one tram is told of."


@pytest.mark.parametrize("question", ["", "n/a", "The passage compares nothing."])
def test_who_declines_need_not_write_a_good_question(question: str) -> None:
    declined = {"question": question, "can_ask": False, "consistent": False}
    model = Scripted(ask=[declined, GOOD | {"can_ask": True}])
    with pytest.raises(Rejected, match="declined"):
        ask_first(model, "aggregate")
    assert len(model.calls) == 1


def test_a_first_question_whose_draft_is_inconsistent_is_rejected() -> None:
    model = Scripted(ask=[GOOD | {"consistent": False}])
    with pytest.raises(Rejected) as caught:
        ask_first(model)
    assert (caught.value.stage, caught.value.reason) == ("ask", "inconsistent by its own check")
    assert caught.value.text == "How old is the driver?"


# --- rewriting


def test_a_rewritten_query_is_sampled_and_stripped() -> None:
    model = Scripted(rewrite=[{"query": " driver of the tram, age "}])
    query = model.run(lambda: Rewrite().acall(DOCUMENTS, SAID, "How old is she?"))
    assert query == "driver of the tram, age"
    assert [(c.stage, c.turn, c.profile) for c in model.calls] == [("rewrite", 3, "sampled")]
    assert "How old is she?" in task(model.calls[0].prompt)


def test_an_empty_query_falls_back_on_the_question() -> None:
    model = Scripted(rewrite=[{"query": "  "}])
    assert model.run(lambda: Rewrite().acall(DOCUMENTS, SAID, "How old is she?")) == "How old is she?"


# --- answering


def test_an_answer_becomes_a_whole_turn() -> None:
    entry: Entry = {
        "reasoning": "Sentences 3 and 1.",
        "answerability": "partial",
        "answer": " It may be. ",
        "consistent": True,
        "evidence": [3, 1, 3],
    }
    turn = answer(Scripted(answer=[entry]), SAID, "correction")
    assert turn == Turn(
        turn=3,
        query="Is it late?",
        question_type="correction",
        multi_turn_type="correction",
        answerability="partial",
        retrieval_query="tram late",
        hits=(Hit(passage_id=BUS.id, score=1.5, rank=1, new=True),),
        reasoning="Sentences 3 and 1.",
        answer="It may be.",
        consistent=True,
        evidence=(
            Evidence(passage_id=BUS.id, start=0, end=15, text="The bus is red."),
            Evidence(passage_id=TRAM.id, start=0, end=18, text="The tram is green."),
        ),
    )


def test_the_first_turn_has_no_multi_turn_type() -> None:
    turn = answer(Scripted(answer=[{"evidence": []}]))
    assert (turn.turn, turn.question_type, turn.multi_turn_type, turn.evidence) == (1, "direct", None, ())


def test_answers_are_greedy() -> None:
    model = Scripted()
    answer(model, SAID)
    assert [(c.stage, c.turn, c.profile) for c in model.calls] == [("answer", 3, "greedy")]


def test_an_inconsistent_answer_is_rejected_with_its_text() -> None:
    with pytest.raises(Rejected) as caught:
        answer(Scripted(answer=[{"consistent": False, "answer": "It is blue."}]))
    assert (caught.value.stage, caught.value.reason) == ("answer", "inconsistent by its own check")
    assert caught.value.text == "It is blue."


@pytest.mark.parametrize("nothing", ["", " \n", "…"])
def test_an_empty_answer_is_rejected(nothing: str) -> None:
    with pytest.raises(Rejected, match="empty answer"):
        answer(Scripted(answer=[{"answer": nothing}]))


# --- what a failing endpoint means


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
def test_an_endpoint_that_is_gone_stops_the_run_in_one_line(error: Exception) -> None:
    with pytest.raises(ModelError) as caught:
        answer(Scripted(answer=[error]))
    assert first_line(error) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "stage", "reason"),
    [
        (lm15.ContextLengthError("HTTP 400: too long"), "context", "the next prompt does not fit lm.context"),
        (lm15.InvalidRequestError("HTTP 400: no", status=400), "model", "InvalidRequestError"),
        (lm15.RateLimitError("HTTP 429: slow down", status=429), "model", "RateLimitError"),
        (lm15.ServerError("HTTP 500: oops", status=500), "model", "ServerError"),
        (lm15.TimeoutError("no answer within 60 s"), "model", "TimeoutError"),
    ],
    ids=["context", "400", "429", "500", "timeout"],
)
def test_a_request_that_fails_costs_its_turn_only(error: Exception, stage: str, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        answer(Scripted(answer=[error]))
    assert (caught.value.stage, caught.value.reason) == (stage, reason)
    assert first_line(error) in caught.value.text


def test_a_prompt_that_can_not_fit_is_not_even_sent() -> None:
    """As far as the server's count of a prompt before it tells; until there is one, the server is asked."""
    model = Scripted()
    model.context = 400

    async def answers() -> None:
        for _ in range(2):
            await Answer().acall((TRAM, BUS), (), "Is it late?", KINDS["direct"], "tram late", ())

    with pytest.raises(Rejected) as caught:
        model.run(answers)
    assert caught.value.stage == "context"
    assert len(model.calls) == 1


def test_a_mistake_of_ours_is_no_drop() -> None:
    model = Scripted(answer=[KeyError("bug")])
    with pytest.raises(Exception, match="bug") as caught:
        answer(model)
    assert not isinstance(caught.value, Rejected)


def test_nothing_of_a_dialog_stays_in_a_module() -> None:
    """All dialogs of a run share them."""
    module = AskFirst(Repetition(0.8))
    before = repr(module.dump_state())
    Scripted(ask=[GOOD]).run(lambda: module.acall(DOCUMENTS, KINDS["direct"], "focus"))
    Scripted(ask=[GOOD]).run(lambda: module.acall(DOCUMENTS, KINDS["comparative"], "focus"))
    assert repr(module.dump_state()) == before
