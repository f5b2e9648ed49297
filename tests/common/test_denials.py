"""What a text denies and its sources say, and the other way round."""

import pytest

from generator.common.denials import find_flips
from tests.support.languages import speaking

RULES = (
    "Dogs are allowed on the outer deck. Late claims are paid from the month in which they arrive and are never "
    "backdated. Cars cannot be taken on board. The act prohibits taxis from being used for tours. Do not take more "
    "than two bags on board. Groups of at least twelve people pay less. You pay before breakfast. Guides are 18 or "
    "older. The flag may be red for an hour: do not swim in that first hour. Claims above 900 euros are heard by "
    "the court in the old town hall. Vinegar must not be used, since it damages the seals. A machine comes with a jug."
)
COTTON = "And with that, Cotton's mother dropped her into a bucket of water."


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
        ("That doesn't mean that dogs aren't allowed on the deck.", []),
        ("Take at least two bags on board.", ["at least two"]),
        ("You may take up to two bags on board.", []),
        ("Groups of at most twelve people pay less.", ["at most twelve"]),
        ("Groups of twelve people pay less.", []),
        ("You pay after breakfast.", ["after breakfast"]),
        ("Guides are under 18.", ["under 18"]),
        ("Nobody under 18 may be a guide.", []),
        ("Not while the flag is red.", []),  # what is denied stood in the question
        ("Wait an hour before you swim.", []),  # nobody says that you swim
        ("Because vinegar damages the seals.", []),  # the “not” before is of “used”
        ("Vinegar must not be used in the machine.", []),
        ("Vinegar may be used.", ["used"]),
    ],
)
def test_what_the_rules_deny_or_limit_otherwise_is_found(text: str, flips: list[str]) -> None:
    assert find_flips(text, [RULES]) == flips


@pytest.mark.parametrize(
    ("told", "text", "flips"),
    [
        ("Letters that are not answered within ten days are sent again.", "Answer letters within ten days.", []),
        ("Guests who have not registered can't use the pool.", "Guests who have registered can use the pool.", []),
        ("Letters within ten days are not answered again.", "Letters within ten days are answered.", ["answered"]),
        ("A bike in the yard is insured if it was locked.", "A bike that wasn't locked in the yard isn't insured.", []),
        ("Letters are sent by post, which isn't answered for.", "Letters sent by post are answered for.", ["answered"]),
        ("Old roofs saved less than those without, while old walls saved 7.", "Old walls saved another 7.", []),
        ("Missed evenings can't be made up, but notes are sent.", "They can't, but notes of the evening are sent.", []),
        ("The guide can be downloaded at no charge.", "Anyone may download the guide free of charge.", []),
        ("The guide can be downloaded free of charge.", "The guide can be downloaded without any charge.", []),
        ("The guide is downloaded free of charge.", "The guide is downloaded for a charge.", ["charge"]),
        ("The fee doesn t change on Sundays.", "The fee doesn't change on Sundays.", []),
        ("Enzyme activities were undetectable in ripe pollen.", "No enzyme activity is left in ripe pollen.", []),
        ("No enzyme activity is left in ripe pollen.", "In ripe pollen enzyme activity is absent.", []),
        ("Loads of bacteria rise if the gene is deleted.", "Without the gene, loads of bacteria rise.", []),
        ("The gene is deleted in these mice.", "The gene isn't deleted in these mice.", ["not deleted"]),
        ("Traders arent buying a stock every day.", "Traders aren't buying a stock every day.", []),
        (
            "The strict rules did not exist, so she judged the forms of the other rules which did.",
            "She judged the forms of other rules that existed. The strict ones did not exist.",
            [],
        ),
        ("The bag is sent with its keys.", "The bag is sent whether or not its keys are known.", []),
        ("A card not expired for more than 2 years is valid.", "A card that hasn't expired for more than 2 years.", []),
        (
            "Letters in the box before 4 pm, excluding holidays, are read at once. Those in the box after 4 pm wait.",
            "Letters put in the box before 4 pm are read at once.",
            [],
        ),
        ("The council failed to reach a firm decision.", "The council reached a firm decision.", ["reached"]),
        ("The loan is for the house, not the garden.", "The loan is for the house rather than the garden.", []),
        ("Pay in cash rather than by card, for a lower price.", "Not paying by card gets you a lower price.", []),
        ("Can I book trips abroad? No.", "You can't book trips abroad.", []),
        ("The council failed to reach a firm decision.", "The council reached no firm decision.", []),
        ("A film, banning by the city council.", "The film was banned by the city council.", []),
        ("An appeal is not:\n- A new trial\n- A review of facts", "An appeal isn't a review of facts.", []),
        ("An appeal is not:\n- A new trial\n- A review of facts", "An appeal is a new trial.", ["new"]),
        ("Is it open? The pool is, no: the water is cold.", "The water is cold.", []),
        ("Pupils who choose not to learn Latin take Greek.", "Pupils should learn Latin or Greek.", []),
        ("He chose not to run for office.", "He did run for office.", ["run"]),
        ("The rate rose by no more than 2%.", "The rate rose by hardly more than 2%.", []),
        ("The tram isn't £6. Tables are booked by telephone.", "Tables aren't booked by telephone.", ["not booked"]),
        *((f"{closed} {COTTON}", COTTON, []) for closed in ("“We would never want it”.", "They do not (see below).")),
        ("Walkers can use a footbridge.", "Walkers can't use the bridge, but there is a footbridge.", []),
    ],
)
def test_a_denial_is_of_what_it_stands_by_and_not_of_the_rest(told: str, text: str, flips: list[str]) -> None:
    assert find_flips(text, [told]) == flips


def test_a_shorter_sentence_that_agrees_suffices() -> None:
    claim = "Yes, the court in the old town hall hears your case, as it takes claims of up to 900 euros."
    assert find_flips(claim, [RULES]) == ["up to 900"]
    assert not find_flips(claim, [RULES, "It takes claims of up to 900 euros."])


def test_a_sentence_that_agrees_suffices() -> None:
    assert not find_flips("Dogs aren't allowed on the deck.", [RULES, "Dogs are not allowed on the inner deck."])


@pytest.mark.parametrize(
    ("code", "told", "allowed"),
    [
        (
            "en",
            "Tickets aren't refunded, unless the crossing is cancelled because of storms.",
            "Tickets are refunded if the crossing is cancelled.",
        ),
        (
            "de",
            "Hunde dürfen nicht in die Praxis mitgebracht werden, ausgenommen Blindenhunde.",
            "Ja, Hunde dürfen in die Praxis mitgebracht werden, wenn es Blindenhunde sind.",
        ),
        (
            "fr",
            "Le télétravail à l'étranger n'est pas admis, sauf dix jours par an en Europe.",
            "Le télétravail à l'étranger est admis en Europe.",
        ),
        (
            "es",
            "No se devuelve el dinero del billete, salvo si la travesía se cancela.",
            "Se devuelve el dinero si la travesía se cancela.",
        ),
    ],
)
def test_what_is_excepted_may_be_said(code: str, told: str, allowed: str) -> None:
    with speaking(code):
        assert not find_flips(allowed, [told]) and not find_flips(told, [told])


@pytest.mark.parametrize(
    ("code", "told", "text", "flips"),
    [
        ("de", "Hunde sind auf dem Gelände nicht erlaubt.", "Hunde sind auf dem Gelände erlaubt.", ["erlaubt"]),
        ("fr", "Les chiens sont acceptés à bord.", "Les chiens ne sont pas acceptés à bord.", ["not acceptés"]),
        ("es", "El jarabe no se debe usar durante la noche.", "El jarabe se debe usar durante la noche.", ["usar"]),
        (
            "de",
            "Gruppen ab 12 Personen zahlen weniger.",
            "Gruppen von höchstens 12 Personen zahlen weniger.",
            ["höchstens 12"],
        ),
        ("fr", "Les groupes paient avant le repas.", "Les groupes paient après le repas.", ["après repas"]),
        ("es", "Los grupos pagan antes de la comida.", "Los grupos pagan después de la comida.", ["después de comida"]),
        ("it", "I cani sono ammessi a bordo.", "I cani non sono ammessi a bordo.", ["not ammessi"]),
        ("it", "I cani sono ammessi a bordo e sul molo.", "I cani sono ammessi non solo a bordo.", []),
        ("it", "È vietato fumare in cabina.", "In cabina non si può fumare.", []),
        ("it", "I gruppi pagano prima del pranzo.", "I gruppi pagano dopo il pranzo.", ["dopo pranzo"]),
        ("pt", "O servidor não suporta o protocolo antigo.", "O servidor suporta o protocolo antigo.", ["suporta"]),
        ("pt", "É proibido fumar nas cabinas.", "Não se pode fumar nas cabinas.", []),
        ("ru", "История не сохраняется с рисунком.", "История сохраняется с рисунком.", ["сохраняется"]),
        ("ru", "В каютах нельзя курить.", "В каютах запрещено курить.", []),
        ("nl", "Honden mogen aan boord.", "Honden mogen niet aan boord.", []),  # it has no such pattern
        ("fr", "Le phare se visite d'avril à octobre.", "Il ne se visite que d'avril à octobre.", []),  # only then
        ("fr", "Le phare se visite d'avril à octobre.", "Le phare n'est ouvert à la visite qu'en octobre.", []),
        ("fr", "Le phare se visite quand il fait beau.", "Il ne se visite pas quand il fait beau.", ["not visite"]),
        ("es", "El faro se visita los martes.", "El faro no se visita más que los martes.", []),
        ("de", "Einen Grill gibt es nicht, doch darf man einen mitbringen.", "Sie dürfen einen Grill mitbringen.", []),
        ("de", "Hunde auf der Wiese sind untersagt.", "Hunde dürfen nicht auf die Wiese.", []),
        ("de", "Gasgrills zu benutzen ist hier verboten.", "Gasgrills darf man hier nicht benutzen.", []),
        ("fr", "Il est interdit de fumer dans les voitures.", "Vous ne pouvez pas fumer dans les voitures.", []),
        ("fr", "Il est interdit de fumer dans les voitures.", "Vous pouvez fumer dans les voitures.", ["fumer"]),
        ("es", "Queda prohibido comer en las salas.", "No se puede comer en las salas.", []),
        ("es", "Queda prohibido comer en las salas.", "Se puede comer en las salas.", ["comer"]),
        ("de", "Einen Grill darf man nicht mitbringen.", "Sie dürfen einen Grill mitbringen.", ["mitbringen"]),
    ],
)
def test_denials_of_other_languages(code: str, told: str, text: str, flips: list[str]) -> None:
    with speaking(code):
        assert find_flips(text, [told]) == flips
