"""Questions said again in other words."""

import pytest
from dspy import lm15

from generator.dialogs.dedup import Repetition
from generator.dialogs.program import Options
from generator.dialogs.rewording import ANOTHER
from generator.dialogs.single import SingleDocumentDialog
from tests.support.scripted import Entry, Scripted, kinds, piece, plan

FERRY = piece("ferry", "The Lindau ferry runs since 1963. A return ticket costs 15 euros, and dogs travel free.")
ASKED = "What does a return ticket of the Lindau ferry cost since 1963?"


def ask(question: str, *replies: Entry, kind: str = "direct") -> tuple[str, Scripted]:
    """Return the question of a turn, whose model replies so to the request for other words."""
    later = kind != "direct"
    asked = ["When does the ferry run?", question] if later else [question]
    answers = ["It runs since 1963.", "It costs 15 euros."]
    model = Scripted(
        ask=[{"question": text} for text in asked], answer=[{"answer": text} for text in answers], reword=replies
    )
    program = SingleDocumentDialog(Repetition(0.8), Options(rewording=True))
    types = kinds("direct", kind) if later else kinds(kind)
    draft = model.run(lambda: program.write(plan(FERRY, types), {}))
    return draft.turns[-1].query, model


def test_the_model_sees_the_question_alone_and_the_answer_is_to_its_words() -> None:
    other = "How much is the Lindau ferry there and back since 1963?"
    question, model = ask(ASKED, f"“{other}”")
    assert question == other
    (request,) = (call.request for call in model.of("reword"))
    (message,) = request.messages
    assert message.content.endswith(f":\n{ASKED}") and "15 euros" not in message.content
    assert "12 words at most" in message.content, "as long as a direct question may be"
    assert not request.response_format and other in model.prompts("answer")[0]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("How much is it to go there and back since 1963?", id="a name is lost"),
        pytest.param("How much is a return on the Lindau ferry?", id="a number is lost"),
        pytest.param("How much is the Lindau ferry from Bern back since 1963?", id="a name of its own"),
        pytest.param("A return on the Lindau ferry costs 15 euros since 1963.", id="an answer"),
        pytest.param("According to the passage, how much is the Lindau ferry since 1963?", id="fails a check"),
        pytest.param("What cost a return ticket of the Lindau ferry since 1963?", id="the same words"),
        pytest.param("", id="nothing"),
        pytest.param(lm15.ServerError("HTTP 500: oops", status=500), id="no reply"),
    ],
)
def test_a_question_stays_where_other_words_ask_for_something_else_or_fail(reply: Entry) -> None:
    question, model = ask(ASKED, *[reply] * 3)
    assert question == ASKED and len(model.of("reword")) == (1 if isinstance(reply, Exception) else 3)


def test_a_long_question_may_stay_long_and_two_may_be_both() -> None:
    asked = "Do the two of us pay for a return ticket of the Lindau ferry, and our dogs as well?"
    other = "Is a return on the Lindau ferry something that we both must pay for, dogs included?"
    model = Scripted(ask=[{"question": asked}] * 3, answer=[{"answer": "Dogs travel free."}], reword=[other])
    program = SingleDocumentDialog(Repetition(0.8), Options(rewording=True))
    draft = model.run(lambda: program.write(plan(FERRY, kinds("direct")), {}))
    assert draft.turns[0].query == other and "24 words at most" in model.prompts("reword")[0]


def test_the_next_attempt_is_told_why_the_last_was_refused() -> None:
    other = "How much is the Lindau ferry there and back since 1963?"
    question, model = ask(ASKED, "How much is a return on the Lindau ferry?", other)
    first, second = (call.request.messages[-1].content for call in model.of("reword"))
    assert question == other and ANOTHER not in first and ANOTHER in second


def test_other_words_have_one_of_the_questions() -> None:
    assert ask("What does a return ticket cost?", *["How much is it to take dogs?"] * 3)[0].startswith("What does")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        pytest.param("No, I meant the ferry back. What does it cost?", "correction", id="takes up the last turn"),
        pytest.param("And how much is it?", "follow-up", id="has no content word that other words could have"),
    ],
)
def test_nobody_is_asked_for_other_words_of_a_question_that(question: str, kind: str) -> None:
    asked, model = ask(question, kind=kind)
    assert asked == question and {call.turn for call in model.of("reword")} == {1}
