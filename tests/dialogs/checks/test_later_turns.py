"""Later questions that aren't of their type, each beside a near miss that is."""

import pytest

from generator.dialogs.checks.later_turns import ASKS_TOLD, LEAVES, REPEATS, content_of, find_later_fault
from generator.dialogs.checks.questions import find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.users import localise
from generator.prompts.sections import Documents
from generator.schema import Turn
from tests.support.languages import speaking
from tests.support.records import make_turn
from tests.support.scripted import KINDS, piece, said

PENSION = piece("pension", "The state pension starts at 67. Contributions are due monthly. Widows get a supplement.")
ROUTER = piece("router", "The lamp of the router is green when it is online, and red when it isn't.")
DOCUMENTS = Documents(passages=(PENSION, ROUTER))
EVIDENCE = Documents(passages=(PENSION,)).evidence([1])
HISTORY = (
    make_turn(
        1,
        query="When does the state pension start?",
        answer="It starts at 67, or earlier with a deduction.",
        evidence=EVIDENCE,
    ),
)
REPAIR = said(("What is the cost of the repair?", "It is 60 crowns, due on collection."))


def fault(question: str, question_type: str, history: tuple[Turn, ...] = HISTORY, focus: str = "") -> str | None:
    return find_later_fault(question, DOCUMENTS, history, KINDS[question_type], focus)


@pytest.mark.parametrize(
    "question",
    [
        "No, I meant the lamp on my router. What does red mean?",
        "No, I meant the lamp on my router.",
        "No, I meant something else: what do widows get?",  # which tells nothing of what was meant before
        "Sorry, I was asking about this: What do widows get?",
        "Tell me about the supplement for widows",  # an order, which names another matter
        "I didn't know about this.",
    ],
)
def test_a_correction_takes_up_the_question_before(question: str) -> None:
    assert fault(question, "correction") == "takes up nothing of the last question"


@pytest.mark.parametrize(
    "question",
    [
        "No, I meant the widow's pension. What is it?",
        "No, I meant the supplement for widows: how high is it?",
        "No, I meant the supplement for widows.",  # only the thing that was meant
        "Sorry, I was asking about widows. What do they get?",
        "No, I meant if my husband dies. Do widows get more?",  # in words that no passage has
        "That's not what I asked.",
    ],
)
def test_a_correction_that_takes_it_up_is_accepted(question: str) -> None:
    assert fault(question, "correction") is None


@pytest.mark.parametrize("code", ["en", "de", "fr", "es", "ar", "hi", "ja", "zh"])
def test_beginnings_of_later_questions_have_no_content_word(code: str) -> None:
    asks_for_time = {"long", "temp", "tiemp", "समय"}
    with speaking(code):
        for kind in ("follow-up", "clarification", "correction"):
            for phrasing in localise(KINDS[kind]).phrasings:
                assert content_of(phrasing.replace("…", " ")) <= asks_for_time, phrasing


@pytest.mark.parametrize(
    ("code", "asked", "fee", "question"),
    [
        ("de", "Was kostet es?", "Der Eintritt kostet 4 Euro.", "Heißt das, dass mein Sohn nichts zahlt?"),
        ("fr", "Combien ?", "L'entrée coûte 4 euros.", "Est-ce que cela veut dire que mon fils paie ?"),
        ("es", "¿Cuánto cuesta?", "La entrada cuesta 4 euros.", "¿Eso significa que los niños no pagan?"),
    ],
)
def test_a_clarification_may_share_no_word_with_the_dialog(code: str, asked: str, fee: str, question: str) -> None:
    documents = Documents(passages=(piece("fee", f"{fee} " * 12),))
    with speaking(code):
        kind = localise(KINDS["clarification"])
        assert find_fault(question, documents, said((asked, fee)), kind, Repetition(0.8)) is None


def test_a_clarification_does_not_ask_whether_all_of_the_answer_is_so() -> None:
    history = said(("Where does the trail end?", "It ends in Port Weir."))
    assert fault("Does that mean the trail ends in Port Weir?", "clarification", history) == "repeats the last answer"
    assert fault("Do you mean Port Weir or the old port?", "clarification", history) is None
    longer = said(("Where does the trail end?", "It ends in Port Weir, behind the lighthouse at the northern mole."))
    assert fault("Does that mean it ends in Port Weir behind the lighthouse?", "clarification", longer) == ASKS_TOLD
    assert fault("Do you mean the northern mole?", "clarification", longer) is None
    assert fault("Is it earlier with a deduction?", "clarification") is None


def test_a_question_does_not_hold_the_answer_before_it() -> None:
    told = "Forms are filed Monday through Friday before noon at the counter of the court, with a copy of the order."
    history = said(("When can I file my forms?", told))
    assert fault(f"Why are f{told[1:-1]}?", "follow-up", history) == "repeats the last answer"
    assert fault("Why must forms be filed before noon at the counter?", "follow-up", history) is None
    short = said(("Which is older?", "The paper bin is two years older than the container bin."))
    again = "Why is the paper bin two years older than the container bin?"
    assert fault(again, "follow-up", short) == "repeats the last answer"


def test_a_clarification_takes_up_the_answer_before() -> None:
    unheard = "takes up nothing of the last answer"
    assert fault("Do you mean widows get a supplement?", "clarification") is None  # of what the documents tell of
    assert fault("What exactly is a contribution?", "clarification") == unheard
    assert fault("What exactly is a deduction?", "clarification") is None
    assert fault("Do you mean 67 on the day that I apply?", "clarification") is None
    assert fault("Do you mean Monday to Friday?", "clarification") is None
    assert fault("Do you mean lemonade from orchards near Palermo?", "clarification") == LEAVES
    assert fault("Does that mean I lose money?", "clarification") is None
    assert fault("What do you mean?", "clarification") is None
    assert fault("Could you explain?", "clarification") is None


def test_a_follow_up_is_neither() -> None:
    assert fault("No, I meant the widow's pension?", "follow-up") == (
        "corrects the last question in place of asking for something new"
    )
    assert fault("Do you mean 67 for everyone?", "follow-up") == (
        "asks what the last answer means in place of something new"
    )
    assert fault("Is it earlier with a deduction?", "follow-up") == ASKS_TOLD
    assert fault("Is it earlier for widows?", "follow-up") is None
    assert fault("How large is the deduction?", "follow-up") is None
    meant = "asks what the last answer means in place of something new"
    assert fault("What does a deduction mean?", "follow-up") == fault("What does that mean?", "follow-up") == meant
    assert fault("Do you mean the fee for widows?", "follow-up") == meant
    assert fault("What does a deduction mean for widows?", "follow-up") is None, "it asks for an effect"
    assert fault("What does a supplement mean?", "follow-up") is None, "the answer wasn't about it"


def test_a_follow_up_does_not_ask_for_the_number_that_was_just_told() -> None:
    history = said(("When is the pension paid?", "The pension is paid for 12 months. It falls after a deduction."))
    assert fault("For how many months is the pension paid?", "follow-up", history) == ASKS_TOLD
    assert fault("How much is the pension paid in a month?", "follow-up", said(("Is it paid?", "Yes."))) is None
    assert fault("How much is the deduction of the pension?", "follow-up", history) is None
    assert fault("How much is the pension paid?", "follow-up", history) is None
    told = said(("Is it paid?", "A pension of 900 crowns is paid."))
    assert fault("How much is the pension paid?", "follow-up", told) == ASKS_TOLD


def test_a_remark_in_between_is_no_last_turn() -> None:
    thanks = make_turn(2, query="Thanks!", answer="You're welcome.", answerability="conversational")
    assert fault("What exactly is a deduction?", "clarification", (*HISTORY, thanks)) is None


@pytest.mark.parametrize(
    "question",
    [
        "What about the cost of the repair?",
        "And the repair costs?",
        "Sorry, what is the cost of a repair?",
        "Can you tell me what the cost of the repair is?",
    ],
)
def test_the_same_content_behind_another_opening_is_a_repetition(question: str) -> None:
    assert fault(question, "follow-up", REPAIR) == REPEATS


def test_a_question_that_only_names_what_was_meant_is_a_repetition() -> None:
    museum = said(
        ("Where is the museum?", "It is at the quay, beside the café."), ("When is it open?", "From nine to five.")
    )
    assert fault("When is the museum open?", "follow-up", museum) == REPEATS
    assert fault("When is the café open?", "follow-up", museum) is None
    assert fault("When is the museum open on Sundays?", "follow-up", museum) is None
    assert fault("Why is the museum open?", "follow-up", museum) is None


@pytest.mark.parametrize(
    "remark", ["Thanks!", "Great.", "That's great, thank you.", "Okay, thanks a lot!", "I see.", "That makes sense."]
)
def test_a_remark_is_no_question(remark: str) -> None:
    assert fault(remark, "follow-up") == "is courtesy alone"


@pytest.mark.parametrize("request_", ["Tell me more.", "Please explain.", "Why?", "Is that good?"])
def test_a_short_request_is_a_question(request_: str) -> None:
    assert fault(request_, "follow-up") is None


def test_how_much_is_no_content_of_a_question() -> None:
    paid = said(("How much is admission?", "It is 18 crowns."))
    assert fault("And admission?", "follow-up", paid) == REPEATS
    assert fault("How much are lockers?", "follow-up", paid) is None


@pytest.mark.parametrize(
    "question",
    [
        "What about the cost of the towing?",
        "What is the cost of the repair at weekends?",
        "Who bears the cost of the repair?",
        "When is the cost of the repair due?",
        "What about its cost?",
        "Why?",
    ],
)
def test_something_new_about_the_same_is_no_repetition(question: str) -> None:
    assert fault(question, "follow-up", REPAIR) is None


def test_a_question_about_a_part_is_a_repetition_unless_it_corrects() -> None:
    trip = said(("What do the ferry and the train to Orrin cost?", "They cost 12 crowns."))
    assert fault("What about the ferry to Orrin?", "follow-up", trip) == REPEATS
    assert fault("No, I meant the ferry to Orrin.", "correction", trip) is None
    opened = said(("When did the ferry to Orrin open?", "In May."))
    assert fault("Tell me about the ferry to Orrin.", "follow-up", opened) is None, "which asks for more"


@pytest.mark.parametrize(
    ("question", "corrects"),
    [
        ("No, I meant the repair.", False),
        ("Sorry, I was asking about the cost of the repair.", False),
        ("No, I meant when the repair is due.", True),
        ("No, I meant the towing.", True),
        ("No, I meant its cost.", True),
    ],
)
def test_a_correction_means_something_else_than_was_asked(question: str, corrects: bool) -> None:
    towing = (*said(("Who tows my car?", "A garage does the towing.")), *REPAIR)
    assert fault(question, "correction", towing) == (None if corrects else REPEATS)


def test_what_a_question_calls_it_makes_no_part_of_it_new() -> None:
    parked = said(("How much does it cost to park at the harbour?", "It costs two crowns a day."))
    assert fault("No, I meant parking.", "correction", parked) == REPEATS
    assert fault("No, I meant mooring.", "correction", parked) != REPEATS


def test_a_clarification_may_be_cut_short() -> None:
    assert fault("Every month?", "clarification") is None
    assert fault("Is the lamp green?", "clarification") == "takes up nothing of the last answer"


def test_a_question_that_names_hardly_anything_stays_in_its_dialog() -> None:
    for question in ("How many of us can come at once?", "What else should we do without help?"):
        assert find_fault(question, DOCUMENTS, HISTORY, KINDS["follow-up"], Repetition(0.8)) is None


def test_a_question_leaves_the_subject_unless_that_was_planned() -> None:
    assert fault("Why is the lamp of the router red?", "follow-up") == LEAVES
    assert fault("Why is the lamp of the router red?", "follow-up", focus=ROUTER.text) is None
    assert fault("Do widows get a supplement?", "follow-up") is None, "of a document that an answer rests on"
    assert fault("Why is that lamp of the router red?", "follow-up") is None, "refers to the dialog"
    assert fault("How much?", "follow-up") is None, "too bare to leave it"


def test_before_an_answer_rests_on_a_document_all_of_them_are_the_subject() -> None:
    history = (HISTORY[0].model_copy(update={"evidence": ()}),)
    assert fault("Why is the lamp of the router red?", "follow-up", history) is None


def test_a_type_that_names_no_part_is_held_to_none() -> None:
    assert fault("Do you mean 67 for everyone?", "factoid") is None
    assert fault("Why is the lamp of the router red?", "factoid") == LEAVES


def test_a_question_in_another_language_is_not_checked() -> None:
    history = said(("Wann kommt der Monteur?", "Am Montag um acht."))
    assert fault("Wieviel kostet die Reparatur der Waschmaschine?", "correction", history) is None


def test_the_examples_of_later_types_are_of_their_types() -> None:
    examples = [(kind, example) for kind in KINDS.values() for example in kind.examples]
    assert len(examples) >= 8
    for kind, example in examples:
        history = said(*((pair.user, pair.agent) for pair in example.dialog))
        assert fault(example.question, kind.name, history) is None, example.question
