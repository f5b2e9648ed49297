"""The grounding judge: what it makes of answers, what a run makes of it, and that its weights are what people teach."""

import asyncio
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from generator.common.language import Languages, load_language, use_languages
from generator.common.support import find_unsupported
from generator.dialogs.columns import deciding_verdict, verdict_label
from generator.dialogs.filter import filter_pairs
from generator.schema import Planned, Verdict
from judges.metrics.grounding import GroundingJudge, load_weights
from tests.support.languages import speaking
from tests.support.records import make_dialog, make_evidence, make_evidence_of, make_passage, make_turn
from tests.support.scripted import piece

PLANNED = Planned(question_type="direct")
PASS = make_passage(
    "pass",
    "The yearly pass costs 120 crowns. Refunds are paid within 60 days, by bank transfer. The hall seats six people.",
    title="City Library",
)
CARD = make_passage("card", "Die Jahreskarte kostet 120 Kronen. Die Bibliothek öffnet um neun Uhr.")


def verdict(answer: str, query: str = "And then?", passage: object = PASS) -> Verdict:
    return GroundingJudge().judge_answer(answer, [passage] if passage else [], [query])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "answer",
    [
        "The yearly pass costs 120 crowns.",
        "Refunds are paid within 60 days, by bank transfer.",
        "The City Library seats six people.",
        "For everyone, the pass costs at least 120 crowns annually.",
        "There are several passes. Which one do you mean?",
        "Several things could be meant: a yearly pass costs 120 crowns. Which one do you mean?",
        "The yearly pass or the hall could be meant. Which one do you want to know about?",
        "That depends. Do you have a particular pass in mind?",
        "The yearly pass costs 120 crowns [1][2]. Refunds are paid within 60 days [^3], [Doc 1, 2] (Passages 4 and 5).",
        "According to the passages, refunds are paid within 60 days, based on the context provided.",
        "Sorry, but I do not have the name of its owner.",
        "How interesting! Do you mean the yearly pass?",
        "I don't know if I have a room left for the night that you ask about in the other house.",
        "I'm not sure, but refunds are paid within 60 days.",
        "You are welcome.",
        "Unfortunately, I do not have information on parking.",
        "I'm sorry, but I don't have an answer to that.",
        "The documents do not include information on parking.",
        "No information about parking is available.",
        "Nothing is said about the price of parking.",
        "You're welcome! Let me know if you have any other questions.",
        "It isn't stated whether there is parking.",
        "Sorry, no clue.",
        "We can't provide that.",
        "Details about parking have not been provided.",
        "I wish I could tell you, but I can't.",
        "Thank you for your patience.",
        "Which of these do you mean? Could you tell me what you want to park?",
        "Refunds are paid: 1) within 60 days, 7) by bank transfer. Which one are you referring to?",
        "As an AI language model, I don't have information on that.",
        "As an AI, I can't form opinions, but the yearly pass costs 120 crowns.",
        "I'm just a bot, but refunds are paid within 60 days.",
        "As a virtual assistant, I don't have personal opinions. The hall seats six people.",
        "The description doesn't mention parking or the distance to the station.",
        "That isn't covered by the information I have. You may want to contact the library directly.",
        "Based on the information provided, I cannot determine whether there is a garage for bicycles.",
        "As far as I can see, nothing about parking is stated.",
        "The brochure is silent on parking, and its page says nothing about bicycles.",
        "There isn't any information about parking for the guests of the hall in the evening.",
        "There's no mention of parking for guests. The yearly pass costs 120 crowns.",
        "There are no details on parking, but the hall seats six people.",
        "While I don't have details about parking, the hall seats six people.",
        "I don't have details on parking. What I can tell you is that the hall seats six people.",
    ],
)
def test_a_copied_answer_a_refusal_and_a_courtesy_are_correct(answer: str) -> None:
    assert verdict(answer, "Is there parking?").label == "correct"


@pytest.mark.parametrize(
    ("answer", "label", "named"),
    [
        ("The yearly pass costs 130 crowns (120 + 10 surcharge).", "incorrect", ("130", "surcharge")),
        ("I don't have information on parking, but a garage has 200 places.", "incorrect", ("200", "garage")),
        ("I'm not sure, it costs 19 crowns.", "incorrect", ("19",)),
        ("I don't know who built the hall, it was sold to the Dalbys in 1902.", "incorrect", ("Dalbys", "1902")),
        ("As an AI, I don't have opinions, but parking costs 19 crowns.", "incorrect", ("parking", "19")),
        ("As a virtual tour guide, you greet visitors.", "incorrect", ("guide", "visitors")),
        ("It doesn't contain alcohol.", "incorrect", ("alcohol",)),
        ("Your data isn't provided to third parties.", "incorrect", ("third", "parties")),
        ("Bookings cannot be confirmed by phone.", "incorrect", ("Bookings", "phone")),
        ("We do not provide towels.", "incorrect", ("provide", "towels")),
        ("We can't give discounts.", "incorrect", ("discounts",)),
        ("We don't have a sauna.", "incorrect", ("sauna",)),
        ("I don't have any towels.", "incorrect", ("towels",)),
        ("There are several saunas. What do you think of them?", "incorrect", ("saunas",)),
        ("While I don't have details about a pool, the sauna is heated with logs.", "incorrect", ("sauna", "heated")),
        ("There is no garage for bicycles.", "incorrect", ("garage", "bicycles")),
        ("The price doesn't include any drinks.", "incorrect", ("drinks",)),
        ("That isn't included in the tourist tax.", "incorrect", ("tourist",)),
        ("The hall of Berlin seats six people.", "unjudged", ("Berlin",)),
        ("The hall K12 seats six people.", "unjudged", ("K12",)),
        ("The yearly pass costs 20 crowns.", "incorrect", ("20",)),
        ("Router lamps blink when pensions are late.", "incorrect", ("Router", "pensions")),
    ],
)
def test_what_no_passage_has_is_named(answer: str, label: str, named: tuple[str, ...]) -> None:
    found = verdict(answer)
    assert found.label == label
    assert found.explanation.startswith("words without support: ") and all(word in found.explanation for word in named)


def test_the_example_of_the_manual_says_what_it_says() -> None:
    page = (Path(__file__).parents[2] / "docs/judging.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    verdict, told = names["verdict"], code.rpartition("# ")[2]
    assert told.strip() == f'("{verdict.label}", "{verdict.explanation}")'


def test_a_part_of_a_number_supports_no_other_and_a_verb_no_month() -> None:
    ticket = make_passage("t", "The ticket costs 19.99 euros since 2021 and may be returned.")
    for wrong in ("The ticket costs 99 euros.", "The ticket costs 19 euros."):
        assert verdict(wrong, passage=ticket).label == "incorrect"
    assert verdict("The ticket costs 19.99 euros since May 2021.", passage=ticket).label == "unjudged"
    assert verdict("The ticket costs 19,99 euros.", passage=ticket).label == "correct"


def test_a_number_of_the_question_alone_makes_nothing_correct() -> None:
    answer = "Yes, refunds are paid within 30 days, by bank transfer."
    assert verdict(answer, "So refunds are paid within 30 days?").label == "unjudged"


def test_a_digit_of_a_decimal_is_no_number_in_words() -> None:
    entry = make_passage("e", "Entry costs 6.50 euros and needs Python 3.12.")
    for wrong in ("Entry costs 50 euros.", "Entry needs Python 12."):
        assert verdict(wrong, passage=entry).label == "incorrect"


@pytest.mark.parametrize(
    ("code", "told", "answer"),
    [
        (
            "de",
            "Der Kurs der Volkshochschule findet mittwochs im Juli statt.",
            "Der Kurs findet freitags im Juli statt.",
        ),
        ("fr", "Le cours a lieu le mardi à Lyon, au centre.", "Le cours a lieu le jeudi à Lyon, au centre."),
        ("es", "El curso es en julio en el centro.", "El curso es en agosto en el centro."),
    ],
)
def test_another_day_or_month_is_not_correct(code: str, told: str, answer: str) -> None:
    with speaking(code):
        assert verdict(told, told, make_passage("c", told)).label == "correct"
        assert verdict(answer, "", make_passage("c", told)).label != "correct"


@pytest.mark.parametrize("answer", ["5.2bn km", "50%", "Two weeks.", "It takes two weeks."])
def test_a_short_answer_in_another_form_is_grounded(answer: str) -> None:
    probe = make_passage(
        "p", "It travelled 5.2 billion kilometres in 14 days, and half of the dust is lost. It takes time."
    )
    assert verdict(answer, passage=probe).label == "correct"


@pytest.mark.parametrize(
    ("code", "told", "answer", "label"),
    [
        ("en", "The lamp goes off after 30 minutes.", "The lamp goes off after half an hour.", "correct"),
        ("en", "The lamp goes off after half an hour.", "The lamp goes off after 30 minutes.", "correct"),
        ("en", "The lamp goes off after 15 minutes.", "The lamp goes off after a quarter of an hour.", "correct"),
        ("en", "The lease runs for a year.", "The lease runs for 12 months.", "correct"),
        ("en", "The lease runs for a decade.", "The lease runs for ten years.", "correct"),
        ("en", "The lease runs for 200 years.", "The lease runs for two centuries.", "correct"),
        ("en", "The lease began in the 20th century.", "The lease began in the 19th century.", "incorrect"),
        ("en", "The offer ends after 7 days.", "The offer ends after one week.", "correct"),
        ("en", "The lamp goes off after an hour.", "The lamp goes off after 30 minutes.", "incorrect"),
        ("en", "The lamp goes off after an hour and a half.", "The lamp goes off after 60 minutes.", "incorrect"),
        ("en", "The desk opens once a day.", "The desk opens 24 hours.", "incorrect"),
        ("de", "Die Lampe erlischt nach einer halben Stunde.", "Die Lampe erlischt nach 30 Minuten.", "correct"),
        ("fr", "La lampe s'éteint après une demi-heure.", "La lampe s'éteint après 30 minutes.", "correct"),
        ("es", "La lámpara se apaga tras media hora.", "La lámpara se apaga tras 30 minutos.", "correct"),
    ],
)
def test_one_half_or_a_quarter_of_a_unit_is_a_measure(code: str, told: str, answer: str, label: str) -> None:
    with speaking(code):
        found = verdict(answer, passage=make_passage("l", told))
    assert found.label == label, found.explanation


def test_a_number_with_a_unit_supports_it_with_no_other_unit() -> None:
    museum = make_passage(
        "m",
        "Adults pay $18. Tours last 75 minutes, and 40% of the visitors take one. "
        "The film lasts 30 seconds, and the map costs 20 cents.",
    )
    for answer, label in (
        ("75% of the visitors take one.", "incorrect"),
        ("Tours last 40 minutes.", "incorrect"),
        ("The film lasts 30 minutes.", "incorrect"),
        ("The film lasts 30 seconds.", "correct"),
        ("The map costs 20 dollars.", "incorrect"),
        ("Adults pay 18 dollars.", "correct"),
        ("Tours last 75 minutes, and 40 percent of the visitors take one.", "correct"),
    ):
        found = verdict(answer, passage=museum)
        assert found.label == label, found.explanation
    assert "75%" in verdict("75% of the visitors take one.", passage=museum).explanation


def test_a_number_of_something_else_supports_nothing() -> None:
    hire = make_passage("h", "A day costs 14 euros for a city bike and 22 euros for a cargo bike.")
    found = verdict("14 euros for a cargo bike.", "How much is a cargo bike?", hire)
    assert (found.label, found.explanation) == ("incorrect", "words without support: 14 euros")
    assert verdict("14 euros for a city bike.", "How much is a city bike?", hire).label == "correct"


@pytest.mark.parametrize(
    ("answer", "label", "why"),
    [
        ("That's 23 euros: 9 for each adult and 5 for the child.", "unjudged", "23 euros = 5 + 9 + 9"),
        ("The yearly pass would come to 480 euros.", "incorrect", "480"),  # it doesn't say of what
        ("That's 24 euros: 9 for each adult and 5 for the child.", "incorrect", "24"),
        ("Children of 23 pay 5 euros.", "incorrect", "23"),  # a number without a unit
    ],
)
def test_a_sum_of_amounts_that_the_answer_names_is_left_to_other_judges(answer: str, label: str, why: str) -> None:
    told = "Adults pay 9 euros each. A child pays 5 euros. A pass costs 40 euros a month."
    fares = piece("fares", told)
    asked = "What is it for two adults and a child?"
    found = verdict(answer, asked, fares)
    assert found.label == label and why in found.explanation
    turn = make_turn(1, query=asked, answer=answer, evidence=(make_evidence_of(fares, told),), planned=PLANNED)
    assert asyncio.run(GroundingJudge().judge((fares,), (), turn)).label == label


def test_a_number_that_is_computed_may_be_in_millions() -> None:
    bridge = piece("bridge", "The repair of the bridge costs 3.8 million pounds. The county pays 2.6 million pounds.")
    told = "The repair costs 3.8 million pounds. The county pays 2.6 million, and {} million remain for others to pay."
    assert verdict(told.format("1.2"), "Who pays?", bridge).label == "unjudged"
    assert verdict(told.format("1.4"), "Who pays?", bridge).label == "incorrect"


def test_a_german_word_after_a_number_makes_no_time_of_it() -> None:
    with speaking("de"):
        told = ["Am stärksten betroffen sind 3 Bezirke, für die eine Regel gilt."]
        assert not find_unsupported("Die Regel gilt für die 3 am stärksten betroffenen Bezirke.", told).numbers


@pytest.mark.parametrize(
    ("code", "polite"),
    [
        ("fr", "N'hésitez pas à me contacter si vous avez d'autres questions."),
        ("fr", "Je vous souhaite une bonne journée !"),
        ("es", "Espero haberte ayudado."),
        ("es", "¡De nada! Que tengas un buen día."),
        ("de", "Melde dich gern, wenn du weitere Fragen hast."),
    ],
)
def test_courtesy_of_other_languages_claims_nothing(code: str, polite: str) -> None:
    with speaking(code):
        assert verdict(polite).explanation == "claims nothing"


@pytest.mark.parametrize("answer", ["", " \n", "…"])
def test_no_answer_is_not_judged(answer: str) -> None:
    for passage in (PASS, None):
        found = verdict(answer, passage=passage)
        assert (found.label, found.explanation, found.score) == ("unjudged", "no answer", None)


@pytest.mark.parametrize("polite", ["I hope this helps!", "Let me know if you have any other questions."])
def test_courtesy_around_an_answer_claims_nothing(polite: str) -> None:
    assert verdict(f"The yearly pass costs 120 crowns. {polite}") == verdict("The yearly pass costs 120 crowns.")


@pytest.mark.parametrize(
    "phrase", ["I'm afraid not:", "I mean,", "Good news:", "No need to panic:", "As a result,", "In most cases,"]
)
def test_a_phrase_that_leads_to_a_claim_is_none(phrase: str) -> None:
    assert verdict(f"{phrase} the yearly pass costs 120 crowns.") == verdict("The yearly pass costs 120 crowns.")


def test_options_that_are_asked_back_about_are_not_made_up() -> None:
    def label(answer: str) -> str:
        return verdict(answer, "What does it cost?").label

    assert label("Which one do you mean, the yearly pass or the hall?") == "correct"
    assert label("Which one do you mean, the Titanium card or the Gold Elite?") == "unjudged"
    assert label("There are passes for 120 and 900 crowns. Which one do you mean?") == "incorrect"


def test_the_opposite_of_what_is_told_is_unjudged() -> None:
    pool = make_passage("p", "The pool is open in July for all visitors.")
    assert verdict("The pool is closed in July for all visitors.", "When is it open?", passage=pool).label == "unjudged"
    assert verdict("The pool is open in July for all visitors.", "When is it open?", passage=pool).label == "correct"


def test_what_holds_for_some_is_not_said_of_all() -> None:
    tram = make_passage("t", "Guide dogs ride for free on the tram.")
    assert verdict("Guide dogs ride for free.", passage=tram).label == "correct"
    found = verdict("All dogs ride for free.", passage=tram)
    assert (found.label, found.explanation) == ("unjudged", "words without support: all")
    assert verdict("Yes, all guide dogs ride for free.", "Do all guide dogs?", tram).label == "correct"


def test_a_number_of_things_in_another_word_is_correct() -> None:
    club = make_passage("c", "The four tennis clubs of Ahrfeld share six green courts by the river, with lights.")
    assert verdict("The clubs of Ahrfeld share six facilities by the river.", passage=club).label == "correct"


def test_an_instruction_is_a_claim() -> None:
    assert verdict("Please provide a copy of your licence and two photos.").label == "incorrect"


def test_an_invitation_that_tells_something_is_no_courtesy() -> None:
    for told in ("Feel free to use the information desk of Berlin.", "Feel free to ask for the 40 free lockers."):
        assert verdict(f"The yearly pass costs 120 crowns. {told}") != verdict("The yearly pass costs 120 crowns.")


def test_a_list_stays_a_list_beside_courtesy() -> None:
    listed = "Here it is:\n1. The yearly pass costs 120 crowns.\n5. The hall seats six people.\nI hope this helps!"
    assert "5" not in verdict(listed).explanation
    assert "5" not in verdict(f"{listed} Which one do you mean?").explanation


def test_percent_in_two_words_is_no_other_number() -> None:
    offer = make_passage("o", "Une réduction de 20 % est accordée aux élèves de la ville.")
    with speaking("fr"):
        found = verdict("Une réduction de 20 pour cent est accordée aux élèves.", passage=offer)
    assert found.label == "correct", found.explanation


def test_a_number_that_the_user_said_needs_no_passage() -> None:
    told = "Since there are two of you: the hall seats six people, and the yearly pass costs 120 crowns."
    said, unsaid = verdict(told, "We are two. And then?"), verdict(told)
    assert (said.label, unsaid.label) == ("correct", "unjudged")


@pytest.mark.parametrize(
    ("answer", "label", "named"),
    [
        ("Tickets cost 15 pounds for adults.", "incorrect", "15 for 11"),  # another number of the passage
        ("Tours are exempt from federal tax but not from state tax.", "unjudged", "federal for state"),
        ("Late claims are backdated.", "unjudged", "backdated"),
        ("Dogs are not allowed on the outer deck.", "unjudged", "not allowed"),
    ],
)
def test_the_passage_s_words_put_together_wrongly_are_not_correct(answer: str, label: str, named: str) -> None:
    rules = make_passage(
        "r",
        "Tickets cost 11 pounds for adults and 5 pounds for children aged 4 to 15. Tours are exempt from state tax but "
        "not from federal tax. Late claims are never backdated. Dogs are allowed on the outer deck.",
    )
    found = verdict(answer, passage=rules)
    assert found.label == label
    assert named in found.explanation


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (
            "There are four ways to pay:\n\n1. By bank transfer\n2. The yearly pass\n\n3. In crowns\n4. Within days",
            "correct",
        ),
        (
            "**There are four ways to pay:**\n- By bank transfer\n  (within 60 days)\n- Pass\n- In crowns\n- Days",
            "correct",
        ),
        (
            "There are five ways to pay:\n\n1. By bank transfer\n2. The yearly pass\n3. In crowns\n4. Within days",
            "incorrect",
        ),
        ("There are 4 ways to pay: bank transfer, the yearly pass, crowns, or days.", "correct"),
        ("There are 7 ways to pay: bank transfer, the yearly pass, crowns, or days.", "incorrect"),
        ("You pay within four days: bank transfer, the yearly pass, crowns, or days.", "incorrect"),
        ("Yes, four. They are bank transfer, the yearly pass, crowns and days.", "correct"),
        ("Yes, nine. They are bank transfer, the yearly pass, crowns and days.", "incorrect"),
    ],
)
def test_the_number_of_things_that_an_answer_lists_needs_no_passage(answer: str, label: str) -> None:
    assert verdict(answer, "How can I pay?").label == label


def test_names_that_an_answer_lists_are_counted() -> None:
    parents = make_passage("parents", "Their children are a son, Max, and three daughters, Ann, Eve and Joy Lee.")
    for count, label in (("four", "correct"), ("seven", "incorrect")):
        answer = f"Yes, {count}. They have a son, Max, and three daughters, Ann, Eve and Joy Lee."
        assert verdict(answer, "Do they have children?", parents).label == label


@pytest.mark.parametrize(
    ("code", "told", "spoken"),
    [
        ("en", "Yearly pass costs 120 crowns.", "Your yearly pass'll cost you 120 crowns."),
        ("de", "Jahreskarten kosten 120 Kronen.", "Deine Jahreskarten kosten dich 120 Kronen."),
        ("fr", "L'abonnement coûte 120 couronnes.", "Votre abonnement vous coûte 120 couronnes."),
        ("es", "La tarjeta anual cuesta 120 coronas.", "Tu tarjeta anual te cuesta 120 coronas."),
    ],
)
def test_how_an_answer_speaks_to_the_user_is_no_claim(code: str, told: str, spoken: str) -> None:
    passage = make_passage("c", told)
    with speaking(code):
        assert verdict(spoken, passage=passage).score == verdict(told, passage=passage).score


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Once the drive runs out of space, the program removes the oldest versions first, displaying {}.", "unjudged"),
        (
            "Once the drive runs out of space, the program removes the oldest 12 versions first, displaying {}.",
            "incorrect",
        ),
        ("Once the drive runs out of space, Wendy removes the oldest versions first, displaying {}.", "incorrect"),
        ("I love how my drive removes the oldest versions first once out of space, displaying {}.", "incorrect"),
        (
            "The program deletes the oldest versions and shows a warning. Bills are due by post twice yearly.",
            "incorrect",
        ),
    ],
)
def test_an_answer_in_other_words_is_not_incorrect_without_a_fact_of_its_own(answer: str, label: str) -> None:
    told = "If the target drive is full, the program deletes the oldest versions first and shows a warning."
    space = make_passage("drive", f"{told} Backups take little space on the screen.")
    assert verdict(answer.format("a warning that pops up on screen"), "What if it is full?", space).label == label


def test_an_explanation_never_contradicts_its_label() -> None:
    seats = make_passage("s", "The stadium of Torvale seats 41,200 spectators.")
    for answer in ("41200", "There are 41200.", "It is 41,200, and it was that before."):
        found = verdict(answer, passage=seats)
        assert found.label != "incorrect"
        assert (found.explanation == "all of its content words are supported") == (found.label == "correct")


@pytest.mark.parametrize("answer", ["Yes.", "It was.", "No, it isn't."])
def test_a_reply_without_a_telling_word_is_not_judged(answer: str) -> None:
    assert verdict(answer, "Does the hall seat six people?").label == "unjudged"


def test_the_words_of_a_question_are_no_passage() -> None:
    claim = "The pass is valid in Prague, Vienna and Berlin trams."
    asked, unasked = verdict(claim, claim), verdict(claim)
    assert (asked.score or 0) > (unasked.score or 0)
    assert asked.label != "correct"


def test_a_reply_that_declines_is_left_to_other_judges_unless_it_makes_something_up() -> None:
    def label(answer: str, answerability: str) -> str:
        turn = make_turn(1, query="Draw me the hall.", answer=answer, answerability=answerability)
        return asyncio.run(GroundingJudge().judge([PASS], [], turn)).label

    answer = "I'm sorry, I can't draw pictures; I can only reply in text."
    assert (label(answer, "unanswerable"), label(answer, "answerable")) == ("unjudged", "incorrect")
    assert label("I can't draw pictures, but call Berlin at 4471.", "unanswerable") == "incorrect"


def test_what_an_earlier_answer_made_up_supports_no_later_one() -> None:
    made_up = "Holders of the yearly pass park their bicycles in the garage."
    turn = make_turn(2, answer=made_up)
    own, elsewhere = (make_turn(1, answer=made_up, evidence=make_evidence(name)) for name in ("pass", "other"))
    found = [asyncio.run(GroundingJudge().judge([PASS], [earlier], turn)) for earlier in (own, elsewhere)]
    assert (found[0].score or 0) < (found[1].score or 0)


def test_german_is_judged_and_text_without_spaces_is_not() -> None:
    assert verdict("Die Jahreskarte kostet 120 Kronen.", passage=CARD).label == "correct"
    assert "130" in verdict("Die Jahreskarte kostet 130 Kronen.", passage=CARD).explanation
    assert verdict("図書館は九時に開きます。").explanation.endswith("a judge that asks a model does not")
    assert verdict("It costs 120 crowns.", passage=None).explanation == "no passages"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("The baths open at 8:30 am every day.", "The baths open at 20:30 every day."),
        ("The baths open at 15:00 every day.", "The baths open for fifteen guests every day."),
        ("Adults need a pill of Vitamin D with every meal.", "Adults need a pill of Vitamin C with every meal."),
        ("The flight to Oslo leaves from Gate 12a today.", "The flight to Oslo leaves from Gate 12b today."),
        ("The vaccine is stored at -5 °C in the dark.", "The vaccine is stored at 5 °C in the dark."),
        ("The vaccine is stored at 5 °C in the dark.", "The vaccine is stored at minus 5 °C in the dark."),
        ("The park covers 12 km of woods.", "The park covers 12 km² of woods."),
        ("Seventy-five percent of the guests take the tour.", "Of the guests some take the tour of 75 minutes."),
        ("Christopher Lloyd is older than Steven Levitan.", "It was created by Christopher Lloyd and Steven Levitan."),
    ],
)
def test_a_small_change_is_not_correct(answer: str, told: str) -> None:
    assert verdict(answer, passage=make_passage("p", told)).label != "correct"
    assert verdict(answer, passage=make_passage("p", answer)).label == "correct"


def test_a_time_that_nothing_supports_is_named_once() -> None:
    found = verdict("It starts at 15:00.", passage=make_passage("p", "It costs 15 pounds."))
    assert found.explanation == "words without support: 15:00, starts"


def test_an_answer_from_a_passage_in_another_language_is_not_judged() -> None:
    told = "Die Jahreskarte kostet 120 Kronen und ist für Schüler kostenlos. Wer ein Buch zu spät zurückgibt, zahlt"
    passage = make_passage("karte", f"{told} eine Krone am Tag.")
    found = verdict("The yearly card is free for pupils, and a late book costs a crown a day.", passage=passage)
    assert (found.label, "German" in found.explanation) == ("unjudged", True)


@pytest.mark.parametrize(
    ("code", "told", "answer", "label"),
    [
        ("it", "This can cause noticeable changes in your image.", "Sì, l'aspetto può cambiare molto.", "unjudged"),
        ("ru", "This can cause noticeable changes in your image.", "Да, вид может заметно измениться.", "unjudged"),
        (
            "es",
            "A limitation of gif images is, that it supports a maximum of 256 colors.",
            "No admite nada por encima de las 512 tonalidades.",
            "incorrect",
        ),
        (
            "it",
            "Così si perdono i livelli e la trasparenza del disegno.",
            "Sì, l'aspetto può cambiare molto.",
            "incorrect",
        ),
    ],
)
def test_evidence_in_another_language_than_its_document_is_compared_by_figures_alone(
    code: str, told: str, answer: str, label: str
) -> None:
    """Of manuals that are translated in part, a passage has sentences in two languages."""
    around = {
        "it": "Il comando esporta il disegno nel formato scelto, che non conserva tutte le sue proprietà.",
        "es": "La orden exporta el dibujo en el formato elegido, que no conserva todas las propiedades del original.",
        "ru": "Команда сохраняет рисунок в выбранном формате, который поддерживает не все его свойства.",
    }[code]
    page = piece("page", f"{around} {told}")
    cited = (make_evidence_of(page, told),)
    with speaking(code):
        turn = make_turn(1, query="?", answer=answer, evidence=cited, planned=PLANNED, reasoning=told)
        assert asyncio.run(GroundingJudge().judge((page,), (), turn)).label == label


@pytest.mark.parametrize(
    ("code", "answer", "label"),
    [
        ("de", "Ich weiß leider nicht, ob es in der Bücherei einen Kaffeeautomaten für die Besucher gibt.", "correct"),
        ("de", "Leider liegen mir keine Angaben zu einem Café vor.", "correct"),
        ("de", "Obwohl ich nicht weiß, ob es ein Café gibt, ist die Sauna mit Holz geheizt.", "incorrect"),
        ("de", "Zum Café liegen keine Angaben vor.", "correct"),
        ("de", "Die vorliegenden Informationen enthalten keine Angaben zu einem Café.", "correct"),
        ("fr", "La description ne mentionne pas de piscine.", "correct"),
        ("fr", "Rien n'est dit sur une piscine.", "correct"),
        ("es", "Lamentablemente no dispongo de ese dato. Le recomiendo que llame a la pensión.", "correct"),
        ("de", "Wie lange das dauert, geht aus den Angaben nicht hervor.", "correct"),
        ("fr", "Je ne sais pas si les casques sont fournis avec les vélos dans toutes les stations.", "correct"),
        ("es", "Lo siento, no sé si los pendientes de plata se pueden devolver en la tienda.", "correct"),
        ("it", "Purtroppo non so se i caschi siano forniti con le biciclette in tutte le stazioni.", "correct"),
        ("nl", "Sorry, ik weet niet of er bij alle stations helmen met de fietsen worden meegegeven.", "correct"),
        ("pt", "Infelizmente não sei se os capacetes são dados com as bicicletas em todas as estações.", "correct"),
        ("it", "Mi dispiace, ma non ho dettagli su questo punto.", "correct"),
        ("nl", "Het spijt me, maar ik heb daar geen gegevens over.", "correct"),
        ("pt", "Sinto muito, mas não tenho detalhes sobre esse ponto.", "correct"),
        ("ko", "죄송하지만 모든 역에서 자전거를 빌릴 때 안전모도 무료로 빌려주는지 제가 잘 모르겠습니다.", "correct"),
        ("sv", "Jag har ingen information om parkering.", "unjudged"),  # it has no patterns for refusals
        ("it", "Il museo apre alle 99.", "incorrect"),
    ],
)
def test_an_honest_refusal_is_never_incorrect(code: str, answer: str, label: str) -> None:
    with speaking(code):
        assert verdict(answer, passage=make_passage("m", "1 2 3")).label == label


@pytest.mark.parametrize(
    ("code", "answer", "label"),
    [
        ("sv", "Barn under 12 år åker gratis med färjan.", "unjudged"),
        ("sv", "Barn under 120 år åker gratis med färjan.", "incorrect"),
        ("sv", "Barn under 12 år åker gratis med färjan klockan 7:30.", "incorrect"),
        ("sv", "Barn under 12 år åker gratis med färjan i Malmö.", "incorrect"),
        ("ar", "يسافر الأطفال دون 35 سنة مجانا في العبارة.", "correct"),  # its list has the parts
        ("da", "Barn under 13 år åker gratis med färjan.", "incorrect"),  # text2num knows its numbers
    ],
)
def test_a_small_number_may_stand_in_words_that_are_not_known(code: str, answer: str, label: str) -> None:
    with speaking(code):
        texts = {"ar": "يسافر الأطفال دون خمس وثلاثين سنة مجانا في العبارة."}
        told = make_passage("f", texts.get(code, "Barn som inte har fyllt tolv år åker gratis med färjan."))
        assert verdict(answer, passage=told).label == label


def test_only_a_sure_verdict_decides_beside_another_judge() -> None:
    correct = Verdict(judge="correctness", label="correct", explanation="", model="m")
    for answer, label in (("Refunds are paid within six months.", "correct"), ("It costs 130 crowns.", "incorrect")):
        given = asyncio.run(GroundingJudge().judge([PASS], (), make_turn(1, answer=answer)))
        decided = deciding_verdict(make_turn(1, answer=answer, verdicts=(correct, given)))
        assert decided is not None and decided.label == label


def test_what_the_judge_alone_cannot_tell_is_kept_as_unjudged() -> None:
    given = asyncio.run(GroundingJudge().judge([PASS], (), make_turn(1, answer="Yes.")))
    turn = make_turn(1, answer="Yes.", verdicts=(given,))
    assert verdict_label(turn) == "unjudged"
    assert [kept.turn for kept in filter_pairs(make_dialog(turns=(turn,)), "verified")[0]] == [1]


def test_the_weights_are_what_the_benchmark_learns_from_people(data: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn, which the weights are learned with, isn't installed")
    from benchmarks.grounding import SHIPPED, TESTED_ONLY, fit, read_responses, to_json

    responses = list(read_responses(data))
    again, carried = fit([one for one in responses if one.source not in TESTED_ONLY]), load_weights()
    assert again.weights == pytest.approx(carried.weights, abs=0.002)
    assert again.start == pytest.approx(carried.start, abs=0.002)
    assert SHIPPED.read_text(encoding="utf-8") == to_json(carried)


def test_an_answer_that_its_evidence_does_not_cover_is_incorrect_by_grounding() -> None:
    passage = piece("tram", "The tram is green. An adult's ticket costs 5 crowns from a machine.")
    told = "A ticket costs 5 crowns from a machine."
    colour = make_evidence_of(passage, "The tram is green.")
    price = make_evidence_of(passage, "An adult's ticket costs 5 crowns from a machine.")
    generated = ({"planned": PLANNED}, {"reasoning": "Sentence 2 tells the price."})
    for (evidence, label), marks in product(
        (((), "incorrect"), ((colour,), "incorrect"), ((price,), "correct")), generated
    ):
        turn = make_turn(1, query="What does a ticket for the tram cost?", answer=told, evidence=evidence, **marks)
        verdict = asyncio.run(GroundingJudge().judge((passage,), (), turn))
        assert (verdict.label, verdict.decides) == (label, True)
        if label == "incorrect":
            assert verdict.explanation == "the evidence doesn't cover: 5, crowns, machine"
            people = turn.model_copy(update={"planned": None, "reasoning": ""})
            assert asyncio.run(GroundingJudge().judge((passage,), (), people)).label == "correct"


@pytest.mark.parametrize("code", ["pl", "tr", "fi", "vi"])  # without patterns for refusals, or numbers in words
def test_a_refusal_or_small_number_that_no_pattern_tells_is_left_to_other_judges(code: str) -> None:
    texts = {
        "pl": ("Bilet dla dziecka kosztuje sześć złotych.", "Bilet dla dziecka kosztuje 6 złotych.", "Tego nie wiem."),
        "tr": ("Çocuk bileti altı liradır.", "Çocuk bileti 6 liradır.", "Bilmiyorum, bilgi yok."),
        "fi": ("Lasten lippu maksaa kuusi euroa.", "Lasten lippu maksaa 6 euroa.", "En tiedä, siitä ei ole tietoa."),
        "vi": ("Vé trẻ em giá sáu đồng.", "Vé trẻ em giá 6 đồng.", "Tôi không biết điều đó."),
    }
    told, answer, refusal = texts[code]
    passage, language = piece("fares", told), load_language(code)
    turn = make_turn(1, query="?", answer=answer, evidence=(make_evidence_of(passage, told),), planned=PLANNED)
    refuses = turn.model_copy(update={"answer": refusal, "evidence": (), "answerability": "unanswerable"})
    uncited = refuses.model_copy(update={"answerability": "answerable"})
    with use_languages(Languages(language, language)):
        for each, label in ((turn, "unjudged"), (refuses, "unjudged"), (uncited, "incorrect")):
            assert asyncio.run(GroundingJudge().judge((passage,), (), each)).label == label


@pytest.mark.parametrize(
    ("code", "told", "answer"),
    [
        ("ar", "تغادر العبّارة إلى الجزيرة في الساعة 7:15 صباحا.", "تغادر العبّارة في الساعة ٧:١٥."),
        ("fa", "قایق هر روز ساعت ۷:۱۵ به جزیره می‌رود.", "قایق ساعت 7:15 به جزیره می‌رود."),
        ("hi", "नाव सुबह ७:१५ बजे चलती है और भ्रमण नब्बे मिनट का है।", "नाव 7:15 बजे चलती है और भ्रमण 90 मिनट का है।"),
    ],
)
def test_digits_of_other_scripts_are_the_same_numbers(code: str, told: str, answer: str) -> None:
    with speaking(code):
        assert verdict(answer, passage=make_passage("b", told)).label == "correct"
