"""What a text denies and its sources say, and the other way round."""

import pytest

from generator.common.denials import find_flips
from generator.common.language import Languages, load_language, use_languages

RULES = (
    "Dogs are allowed on the outer deck. Late claims are paid from the month in which they arrive and are never "
    "backdated. Cars cannot be taken on board. The act prohibits taxis from being used for tours."
)


@pytest.mark.parametrize(
    ("text", "flips"),
    [
        ("Dogs aren't allowed on the deck.", ["not allowed"]),
        ("Late claims are backdated.", ["backdated"]),
        ("Yes, cars can be taken on board.", ["taken"]),
        ("Dogs are allowed on deck.", []),
        ("Late claims won't be backdated.", []),
        ("No, you can't take cars on board.", []),
        ("A taxi may not be used for tours.", []),  # both deny something
        ("Not only are dogs allowed on the deck.", []),
        ("It costs nothing.", []),
    ],
)
def test_a_not_too_many_or_too_few_is_found(text: str, flips: list[str]) -> None:
    assert find_flips(text, [RULES]) == flips


def test_a_sentence_that_agrees_suffices() -> None:
    assert not find_flips("Dogs aren't allowed on the deck.", [RULES, "Dogs are not allowed on the inner deck."])


@pytest.mark.parametrize(
    ("code", "told", "text", "flips"),
    [
        ("de", "Hunde sind auf dem Gelände nicht erlaubt.", "Hunde sind auf dem Gelände erlaubt.", ["erlaubt"]),
        ("fr", "Les chiens sont acceptés à bord.", "Les chiens ne sont pas acceptés à bord.", ["not acceptés"]),
        ("es", "El jarabe no se debe usar durante la noche.", "El jarabe se debe usar durante la noche.", ["usar"]),
        ("it", "I cani sono ammessi a bordo.", "I cani non sono ammessi a bordo.", []),  # it has no such pattern
    ],
)
def test_denials_of_other_languages(code: str, told: str, text: str, flips: list[str]) -> None:
    language = load_language(code)
    with use_languages(Languages(language, language)):
        assert find_flips(text, [told]) == flips
