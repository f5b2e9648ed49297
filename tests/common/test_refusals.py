"""Clauses that say that something isn't known."""

from time import process_time

import pytest

from generator.common.refusals import drop_closings, drop_refusals
from generator.common.support import read_terms
from tests.support.languages import speaking


@pytest.mark.parametrize(
    "answer",
    [
        "I don't have information on the fee.",
        "It is unclear who built it.",
        "Nobody knows.",
        "The opening hours are not given.",
        "It doesn't say how long it is open.",
        "The rules do not mention parking.",
        "They don't say anything about parking.",
        "That is not addressed in the rules.",
        "There's nothing here about parking, I'm afraid.",
        "I'd need more information to answer that.",
        "I don't know whether there is parking. Please contact the pool directly.",
        "That information isn't available.",
        "I can't give medical advice.",
        "That is outside my knowledge.",
        "Neither the price nor the timetable is known.",
        "I don't know what parking costs. You could look at the website or call the pool.",
        "I don't know what parking costs. It would be best to call the pool.",
        "Parking isn't mentioned, so I can't tell you. I can tell you the opening hours if you like.",
        "The passages do not hold the answer to this question.",
        "The passage gives no indication of the price.",
        "The answer is not in the passage.",
        "Nothing in the text says what it costs.",
        "There's nothing in the passage about it.",
        "It doesn't say what it costs.",
        "Not specified.",
        "Since which version this is so I don't know.",
        "I'm not sure and don't have details about it.",
        "The cause is unknown to the office.",
    ],
)
def test_a_refusal_claims_nothing(answer: str) -> None:
    assert drop_refusals(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "The pass is not available on Sundays.",
        "You can't bring a dog.",
        "Tests with unknown restrictions are skipped.",
        "It shouldn't include instructions for the use of the package.",
        "A page must not contain data of users.",
        "Don't give details of your account.",
        "Breakfast isn't included.",
        "The mayor did not mention the bridge.",
        "Don't say yes too early.",
        "I know the answer: it opened in May.",
        "The clerk will inform you of the details.",
        "Please contact the clerk.",
        "You can ask at the desk until 9 pm.",
        "Visit the castle.",
        "The key is not in the drawer.",
        "Nothing in the shop costs more.",
        "It doesn't cover theft.",
        "The passage has no windows.",
        "If the name is not specified, the user's name is used.",
        "Ask at the desk if you don't know the number.",
        "Wash your hands and don't have dogs with you.",
        "You can't use the bridge, but there is a ferry.",
    ],
)
def test_a_claim_stays(answer: str) -> None:
    assert drop_refusals(answer) == answer


def test_a_refusal_may_go_on_with_the_subject_of_what_is_told() -> None:
    assert drop_refusals("I only know of copies of pages, and don't have information on books.") == (
        "I only know of copies of pages"
    )


@pytest.mark.parametrize(
    "claim",
    [
        "You can visit from 2 pm to 4 pm.",
        "Call the office on 555 0100.",
        "Visiting hours end in the evening.",
        "Checking a bag costs extra.",
    ],
)
def test_what_is_told_beside_a_refusal_sends_nobody_elsewhere(claim: str) -> None:
    assert drop_refusals(f"I don't have information on parking. {claim}") == claim


@pytest.mark.parametrize(
    ("code", "refused", "claimed"),
    [
        ("de", "Informationen dazu sind nicht verfügbar.", "Der Raum ist nicht verfügbar."),
        ("de", "Ich weiß nicht, ob er öffnet.", "Wenn der Preis nicht bekannt ist, zahlt man zwei Euro."),
        ("fr", "Je ne sais pas si le bar ouvre.", "Si le nom n'est pas précisé, on prend celui du père."),
        ("es", "No sé si abre.", "Si no se especifica el nombre, se usa el del padre."),
        ("it", "Non so se il bar apre.", "Se il nome non è specificato, si usa quello del padre."),
        ("pt", "Não sei se o bar abre.", "Se o nome não é especificado, usa-se o do pai."),
        ("nl", "Ik weet niet of het open is.", "Als de prijs niet is vermeld, betaalt u twee euro."),
        ("es", "El precio no está indicado.", "El paseo no está indicado para niños."),
        ("fr", "Le prix n'est pas indiqué.", "La promenade n'est pas indiquée pour les enfants."),
        ("de", "Der Architekt ist unbekannt.", "Der Künstler blieb lange unbekannt, bis er 1920 entdeckt wurde."),
        ("fr", "Cette information n’est pas disponible.", "Le guide n’est pas disponible le lundi."),
        ("fr", "Les données ne sont pas fournies.", "Les informations sont disponibles."),
        ("es", "Esa información no está disponible.", "El guía no está disponible los lunes."),
        ("es", "Los datos no están disponibles.", "La oficina de información no está abierta."),
    ],
)
def test_in_other_languages_what_is_not_there_is_told_from_what_is_not_known(
    code: str, refused: str, claimed: str
) -> None:
    with speaking(code):
        assert drop_refusals(f"{claimed} {refused}") == claimed


@pytest.mark.parametrize(
    ("code", "disclaimer"),
    [
        ("en", "As an AI language model,"),
        ("en", "I am just a chatbot, but"),
        ("de", "Als KI-Sprachmodell"),
        ("de", "Ich bin nur ein Bot, aber"),
        ("fr", "En tant qu'IA,"),
        ("fr", "Je ne suis qu’un chatbot, mais"),
        ("es", "Como modelo de lenguaje,"),
        ("es", "Solo soy un bot, pero"),
    ],
)
def test_a_disclaimer_claims_nothing(code: str, disclaimer: str) -> None:
    with speaking(code):
        assert drop_closings(f"{disclaimer} 12 crowns. And 20.") == " 12 crowns. And 20."
        assert drop_closings(f"12 crowns, {disclaimer}") == f"12 crowns, {disclaimer}"


@pytest.mark.parametrize(
    ("code", "polite", "told"),
    [
        ("en", "Yes, of course. It costs 12 crowns. Hope this helps!", ["costs", "12", "crowns"]),
        ("en", "That's right: 12 crowns. If you have more questions, feel free to ask!", ["12", "crowns"]),
        ("en", "In that case, note that it costs 12 crowns.", ["costs", "12", "crowns"]),
        ("de", "Ja, selbstverständlich. Zum Beispiel kostet es 12 Kronen.", ["kostet", "12", "Kronen"]),
        ("es", "Sí, por supuesto. En general cuesta 12 coronas.", ["cuesta", "12", "coronas"]),
        ("fr", "Oui, bien sûr. Par exemple, il coûte 12 couronnes.", ["coûte", "12", "couronnes"]),
    ],
)
def test_polite_phrases_need_no_support(code: str, polite: str, told: list[str]) -> None:
    with speaking(code):
        assert [term.text for term in read_terms(drop_closings(polite))] == told


def test_phrases_stay_where_nothing_else_is_said() -> None:
    assert drop_closings("Of course!") == "Of course!"


@pytest.mark.parametrize(
    ("code", "answer"),
    [("en", "I do not "), ("de", "Es gibt keine Gebühr und "), ("fr", "Il n'y a pas "), ("es", "No puedo y no se ")],
)
def test_a_text_that_goes_round_in_circles_is_read_in_no_time(code: str, answer: str) -> None:
    start = process_time()
    with speaking(code):
        drop_refusals(answer * 1000)
    assert process_time() - start < 2


def test_what_a_refusal_adds_stays() -> None:
    assert drop_refusals("I don't know the fee, but a child pays half.") == "a child pays half."
    assert drop_refusals("Although I lack details on the fee, a child pays half.") == "a child pays half."
    assert drop_refusals("I have no information on the fee. It was raised in May.") == "It was raised in May."
