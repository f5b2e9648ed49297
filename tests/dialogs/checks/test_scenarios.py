"""Sets of questions that can't be used, and why; the published examples of each scenario can."""

import pytest

from generator.dialogs.checks.scenarios import find_set_fault
from generator.dialogs.dedup import Repetition
from taxonomy import Scenario, read_scenarios
from tests.support.languages import speaking
from tests.support.scripted import piece

SCENARIOS = read_scenarios()
NORREY = piece("norrey", "The mill on Norrey burnt down.")
NEWS = (
    "Sum up the fire at Norrey mill in five points of 20 words each.",
    "Work in what the fire brigade said about the cause.",
    "Add what the owners plan for the site.",
)
TRAVEL = (
    "Plan three days on Norrey for two of us, from 6 June.",
    "We can spend 300 pounds. Please keep to that.",
    "It must be a heated cottage near a beach. What is the final plan?",
)


def fault(scenario: str, questions: tuple[str, ...], *earlier: tuple[str, ...]) -> str | None:
    sets = [[(question, "") for question in each] for each in (questions, *earlier)]
    found = find_set_fault(sets[0], SCENARIOS[scenario], NORREY, sets[1:], Repetition(0.8))
    return found[0] if found else None


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_examples_of_a_scenario_pass_its_checks_unless_they_are_copied(scenario: Scenario) -> None:
    alone = scenario.model_copy(update={"examples": ()})
    for example in scenario.examples:
        asked = [(each.question, each.query) for each in example.questions]
        assert find_set_fault(asked, alone, NORREY, [], Repetition(0.8)) is None
        assert find_set_fault(asked, scenario, NORREY, [], Repetition(0.8)) == ("copies an example", asked[0][0])


@pytest.mark.parametrize(
    ("scenario", "place", "question", "reason"),
    [
        ("news", 1, " … ", "an empty question"),
        ("news", 1, f"Add {'and more ' * 40}"[:300], "a question breaks off"),
        ("news", 1, "Turn 2: Work in the cause.", "a label or a gap in a question"),
        ("news", 2, "Add what the document says about the owners.", "speaks of the documents"),
        ("news", 2, "Work in what the fire brigade said about the cause!", "repeats an earlier question"),
        (
            "news",
            0,
            "What happened at Norrey mill?",
            "the first question asks for no text, such as a summary or a table",
        ),
        ("news", 1, "Make a table of what the fire brigade said.", "a later question names a form"),
        ("news", 2, "Add in 50 words what the owners plan.", "a later question names a form"),
        ("news", 2, "Add what shop owners say about the ferry on both banks.", "is on the topic of an example"),
        ("travel", 1, "Please plan the trip now.", "a later question adds no condition"),
        ("travel", 1, "Plan three days on Norrey for the two of us and a dog.", "a later question repeats conditions"),
        ("travel", 2, "A heated cottage for at most 300.", "a later question repeats a number"),
    ],
)
def test_what_makes_a_set_unusable(scenario: str, place: int, question: str, reason: str) -> None:
    good = {"news": NEWS, "travel": TRAVEL}[scenario]
    assert fault(scenario, good) is None
    assert fault(scenario, (*good[:place], question, *good[place + 1 :])) == reason


def test_a_day_an_age_and_an_hour_are_no_repeated_number() -> None:
    first = "Plan a day on Norrey for 12 pupils, on 14 June."
    assert fault("travel", (first, "They are 10 and 11 years old.", "Lunch by 12:10, please: the final plan?")) is None


def test_words_about_the_form_are_no_topic_of_an_example() -> None:
    last = "End the article with why some mills burn. Write in two paragraphs of about 80 words."
    asked = ("Write an article about the fire.", "Go on with the mill.", last)
    assert fault("education", asked) == "a later question names a form"


def test_a_later_question_may_speak_of_the_text_there_is() -> None:
    assert fault("news", (*NEWS[:2], "Now include the cost of the site in the summary.")) is None
    assert (
        fault("news", (*NEWS[:2], "Now put the cost of the site in short points.")) == "a later question names a form"
    )
    assert fault("news", ("Draw up a press release on the fire at Norrey mill.", *NEWS[1:])) is None


@pytest.mark.parametrize(
    "question",
    [
        "Now work in what an engineering report recommended, and why nothing was done.",
        "Add the findings of the two reports on the site.",
        "Please add what the owners said in a letter to the town.",
        "Now bring in what a survey of 1,200 households found.",
        "Add what happened after an article in the local paper.",
        "Close it with a review by the ministry and what it leaves open.",
    ],
)
def test_a_later_question_may_be_about_what_a_report_or_a_letter_says(question: str) -> None:
    assert fault("news", (*NEWS[:2], question)) is None


@pytest.mark.parametrize(
    "question",
    ["Add what it costs as a table.", "End with an outlook in one paragraph.", "Write a letter to the owners."],
)
def test_a_later_question_names_no_form_in_other_words_either(question: str) -> None:
    assert fault("news", (*NEWS[:2], question)) == "a later question names a form"


@pytest.mark.parametrize(
    "question",
    [
        "Give me the gist of the fire at Norrey mill in three sentences.",
        "I need a quick rundown of the fire at Norrey mill, four lines at most.",
        "Please prepare a one-page primer on the fire at Norrey mill.",
        "Could you put together a TL;DR about the fire at Norrey mill?",
    ],
)
def test_a_first_question_that_fixes_a_length_or_wants_a_tldr_asks_for_a_text(question: str) -> None:
    assert fault("news", (question, *NEWS[1:])) is None


def test_words_of_a_request_are_looked_for_in_english_only() -> None:
    asked = ("Schreib mir eine Zusammenfassung in 80 Wörtern.", "Ergänze die Ursache.", "Und die Pläne der Eigentümer.")
    assert fault("news", asked)
    with speaking("de"):
        assert fault("news", asked) is None
        assert fault("news", (*asked[:2], asked[1])) == "repeats an earlier question"


def test_a_set_may_not_resemble_one_before() -> None:
    others = ("Write a summary of the ferry's new timetable.", NEWS[1], "Add the fares.")
    assert fault("news", NEWS, others) == "repeats a question of an earlier set"
    assert (
        fault("news", NEWS, ("Write a summary of the ferry's new timetable.", "Add the ports.", "And fares.")) is None
    )
