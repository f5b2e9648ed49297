"""The judge of asking back: what counts as a question to the user, and that people agree."""

import asyncio
from pathlib import Path

import pytest

from generator.dialogs.checks.asks_back import asks_alone, find_request
from generator.schema import Verdict
from judges.metrics.asks_back import AsksBackJudge
from tests.support.languages import speaking
from tests.support.scripted import said


def judge(response: str) -> Verdict:
    return asyncio.run(AsksBackJudge().judge((), (), *said(("Which pass?", response))))


@pytest.mark.parametrize(
    "response",
    [
        "There are two ferries: the early one takes bicycles, the late one doesn't. Which one do you mean?",
        "Do you mean the museum or the library?",
        "Several rooms can be booked. Would you like to know about the hall, the studio or the kitchen?",
        "Please specify which season ticket you have.",
        "Please specify the town.",
        "It depends on the ticket. Is it for an adult or a child?",
        "Did you buy it before or after May?",
        "Are you a member?",
        "That depends on your boat. Could you tell me its length?",
        "Are you asking about the pass for a day, or some other pass?",
        "Please say which town you mean.",
        "That depends on the hut: Larch Hut or Rowan Hut?",
        "Line 4, line 9 or line 12?",
        "Which of the two huts is it?",
        "It depends on the plan. Is yours Basic, Plus or Family?",
        "Dates have no colour. Could you ask that in other words?",
    ],
)
def test_a_request_to_choose_or_to_name_what_is_missing_asks_back(response: str) -> None:
    verdict = judge(response)
    assert verdict.label == "yes"
    assert verdict.explanation in response  # the sentence that asks


@pytest.mark.parametrize(
    "response",
    [
        "The ferry leaves at nine.",
        "You're welcome! Do you have any other question?",
        "It opens at nine. Would you like to know more?",
        "Ask yourself: is it worth the fee? Most members think so.",
        "I don't have your boat's length, so I can't tell.",
        "Please call the office before noon.",
        "Please provide a copy of your licence and two photos.",
        "Please give the clerk your ticket.",
        "Is it open? Only in May or June.",
        "Is there anything else I can help you with?",
        "In 2004 she sang What Do You Want from Me?",
    ],
)
def test_offers_rhetoric_and_missing_information_do_not(response: str) -> None:
    assert judge(response).label == "no"


@pytest.mark.parametrize(
    ("code", "response", "alone"),
    [
        ("en", "Is it for May? You mean the WHO?", True),
        ("en", "He hosted Who Wants to Be a Millionaire?", False),
        ("en", "Who Are You came first. Which one do you mean?", False),
        ("fr", "Vous y étiez ?", True),
    ],
)
def test_a_title_that_asks_tells_something(code: str, response: str, alone: bool) -> None:
    with speaking(code):
        assert asks_alone(response) is alone


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("Bitte sagen Sie mir, welche Fähre Sie meinen.", "yes"),
        ("Sagen Sie mir bitte, ob Sie ein Rad mitnehmen.", "yes"),
        ("Sag mir, welche Fähre du meinst.", "yes"),
        ("Bitte teilen Sie mir mit, welche Fähre gemeint ist.", "yes"),
        ("Um welche Fähre geht es?", "yes"),
        ("Es geht um die Fähre.", "no"),
        ("Bitte sagen Sie dem Personal Bescheid.", "no"),
        ("Bitte sagen Sie dem Personal, wo Sie aussteigen.", "no"),
    ],
)
def test_german_asks_back_with_a_comma(response: str, label: str) -> None:
    with speaking("de"):
        assert judge(response).label == label


def test_the_rules_agree_with_people(data: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn, which counts the agreement, isn't installed")
    from benchmarks.asks_back import SETS, measure

    for read in SETS:
        assert float(measure(list(read(data)))[-1]) > 0.9, read.__name__


def test_the_sentence_is_on_one_line() -> None:
    assert find_request("Two passes exist. Which  pass\tdo you have?") == "Which pass do you have?"
