"""Clauses that say that something isn't known."""

import pytest

from generator.common.refusals import drop_refusals


@pytest.mark.parametrize(
    "answer",
    [
        "I don't have information on the fee.",
        "I’m sorry, I do not have any specific details about that.",
        "We have no data on tickets, fares, or seats.",
        "Unfortunately, I can't say when it opened.",
        "I'm not sure.",
        "The price is not specified.",
        "It is unclear who built it.",
        "There is no information available on the price.",
        "Nobody knows.",
        "There's nothing about parking in what I have.",
        "The opening hours are not given.",
        "I'd need more information to answer that.",
        "I don't know whether there is parking. Please contact the pool directly.",
        "Parking isn't mentioned, so I can't tell you. I can tell you the opening hours if you like.",
    ],
)
def test_a_refusal_claims_nothing(answer: str) -> None:
    assert drop_refusals(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "The pass is not available on Sundays.",
        "You can't bring a dog.",
        "Breakfast isn't included.",
        "I know the answer: it opened in May.",
        "The clerk will inform you of the details.",
        "Please contact the clerk.",
        "You can ask at the desk until 9 pm.",
    ],
)
def test_a_claim_stays(answer: str) -> None:
    assert drop_refusals(answer) == answer


def test_what_a_refusal_adds_stays() -> None:
    assert drop_refusals("I don't know the fee, but a child pays half.") == "a child pays half."
    assert drop_refusals("Although I lack details on the fee, a child pays half.") == "a child pays half."
    assert drop_refusals("I have no information on the fee. It was raised in May.") == "It was raised in May."
