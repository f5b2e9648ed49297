"""Opposites: where a text has the contrary of a word of its sources."""

import pytest

from generator.common.opposites import find_opposites
from tests.support.languages import speaking

TOLD = (
    "Maps aren't sold at the gate, and it is difficult to find the gate without one. "
    "The pool is open in July. The water is warmer in the small basin than in the large one. The yard lies south of "
    "the town. If your income falls, your benefit increases. Interest stops during deferment. Dogs are kept on a "
    "leash. Boats for three guests or more have a cabin. The desk is open from 9 am to 6 pm, on Sunday until 4 pm. "
    "Children are not to be "
    "included in the count of guests. The picture was shown in Vienna and sold to a soap maker."
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The pool is closed in July.", ["closed"]),
        ("In July the pool is closed.", ["closed"]),
        ("The pool is open in July.", []),
        ("The pool isn't closed in July.", []),
        ("The pool is closed in August and open in July.", []),
        ("The water is colder in the small basin than in the large one.", ["colder"]),
        ("The water is colder in the large basin than in the small one.", []),
        ("The yard lies north of the town.", ["north"]),
        ("If your income falls, your benefit decreases.", ["decreases"]),
        ("If your income rises, your benefit increases.", ["rises"]),
        ("Interest continues during deferment.", ["continues"]),
        ("Boats for at least three guests have a cabin.", []),  # a limit, which `denials` compares
        ("On Saturday, when it closes at 6 pm in place of 4 pm.", []),  # numbers alone don't tell what is meant
        ("Maps aren't sold there; it is not easy to find the gate without one.", []),
        ("Nobody counts children: the count of guests excludes them.", []),
        ("Children aren't in the count of guests: it excludes them.", []),
        ("A few of the boats have a cabin for guests.", []),
        ("The soap maker had bought the picture, which was shown in Vienna.", []),  # two sides of one event
        ("The pool is closed.", []),  # one word says too little of what is meant
    ],
)
def test_the_opposite_of_what_is_told_is_found(text: str, found: list[str]) -> None:
    assert find_opposites(text, [TOLD]) == found


def test_a_sentence_that_has_the_word_suffices() -> None:
    assert not find_opposites("The pool is closed in July.", [TOLD, "The old pool is closed in July."])


def test_a_word_and_the_next_may_be_told_of_something_else() -> None:
    told = ["Pick the log file with the same date as the saved file you opened. Save that file under a different name."]
    text = "Or open a .gnucash backup file with the date you want and save it under a different name."
    assert not find_opposites(text, told)
    assert find_opposites("Pick the log file with a different date.", told) == ["different"]


def test_a_word_of_a_name_is_no_opposite() -> None:
    told = ["A law signed in 1997 requires the safety programme for riders in New York."]
    text = "The helmet law is older, while the safety programme for riders was required by a law signed in 1997."
    assert not find_opposites(text, told)
    assert find_opposites("The old law requires the programme.", ["The new law requires the programme."]) == ["old"]


def test_a_not_denies_the_next_word_that_tells_something() -> None:
    told = ["In the rooms above the deck one may not smoke."]
    assert find_opposites("Not in the rooms below the deck.", told) == ["below"]


@pytest.mark.parametrize(
    ("code", "told", "text", "found"),
    [
        ("de", "Die Kasse steht links vom Eingang.", "Die Kasse steht rechts vom Eingang.", ["rechts"]),
        ("de", "Hunde sind an Deck erlaubt.", "Hunde sind an Deck verboten.", ["verboten"]),
        ("de", "Hunde sind an Deck nicht verboten.", "Hunde sind an Deck erlaubt.", []),
        ("fr", "La piscine est ouverte en juillet.", "La piscine est fermée en juillet.", ["fermée"]),
        ("es", "La piscina está abierta en julio.", "La piscina está cerrada en julio.", ["cerrada"]),
        ("it", "La piscina è aperta in luglio.", "La piscina è chiusa in luglio.", ["chiusa"]),
        ("it", "La piscina non è mai chiusa in luglio.", "La piscina è aperta in luglio.", []),
        ("pt", "Este script de Perl é rápido.", "Este script de Perl é lento.", ["lento"]),
        ("ru", "Чем выше порог, тем больше искр.", "Чем ниже порог, тем больше искр.", ["ниже"]),
        ("nl", "Het zwembad is in juli geopend.", "Het zwembad is in juli gesloten.", []),  # it has no such list
    ],
)
def test_opposites_are_those_of_the_language(code: str, told: str, text: str, found: list[str]) -> None:
    with speaking(code):
        assert find_opposites(text, [told]) == found
