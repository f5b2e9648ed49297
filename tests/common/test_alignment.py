"""Words of a text where its sources have others between the same words."""

import pytest

from generator.common.alignment import find_swaps
from tests.support.languages import speaking

FERRY = (
    "Tickets cost 11 pounds for adults and 5 pounds for children aged 4 to 15. Tours (on request) are exempt from "
    "state tax but not from federal tax. Bring boots, a warm jacket and a torch. The U.S. Navy runs the ferry. "
    "The captain decides whether boats sail in strong wind. Once opened, the bottle of drops is good for six weeks (in "
    "the dark it stays good for eight months). Passengers may stand on deck. Salt makes tablets weaker."
)


@pytest.mark.parametrize(
    ("text", "swapped"),
    [
        ("Tickets cost 15 pounds for adults and 5 pounds for children.", [("15", "11")]),
        ("Tickets cost 9 pounds for adults.", []),
        ("Tours are exempt from federal tax but not from state tax.", [("federal", "state")]),
        ("Tours are exempt from local tax but not from federal tax.", []),
        ("Tours are exempt from state tax.", []),
        ("Bring a torch, a warm jacket and boots.", []),  # the same list
        ("The United States Navy runs the ferry.", []),
        ("Children pay less.", []),
        ("Passengers decide whether boats sail in strong wind.", [("Passengers", "captain")]),
        ("Once opened, the tablets are good for six weeks.", [("tablets", "bottle drops")]),
        ("In the dark it stays good for six months.", [("six", "eight")]),
        ("The ferry captain decides whether to sail when there's strong wind.", []),
    ],
)
def test_what_stands_in_place_of_other_words_is_found(text: str, swapped: list[tuple[str, str]]) -> None:
    found = [swap[:2] for swap in find_swaps(text, [FERRY])]
    assert found[: len(swapped)] == swapped and bool(found) == bool(swapped)


def test_words_that_a_source_has_in_the_same_place_are_no_swap() -> None:
    other = "Tickets cost 15 pounds for adults in winter."
    assert not find_swaps("Tickets cost 15 pounds for adults.", [FERRY, other])


def test_a_title_ends_what_stands_before_its_passage() -> None:
    told = "An adult pays {} crowns for a day ticket at the off-peak rate. The rate is the fare before noon."
    other = f"Corrin Pool\nIt has a door.\n\n{told.format(6)}"
    assert not find_swaps("An adult pays 59 crowns for a day ticket.", [f"Yarrow Museum\n{told.format(59)}", other])


def test_swaps_are_found_in_other_languages() -> None:
    with speaking("es"):
        told = ["Los adultos toman 10 ml tres veces al día; los niños, 5 ml."]
        assert [swap[:2] for swap in find_swaps("Los niños toman 10 ml tres veces al día.", told)] == [
            ("niños", "adultos")
        ]
