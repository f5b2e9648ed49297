"""Numbers with units: the same measure in others, and other units for the same number."""

import pytest

from generator.common.support import find_unsupported
from generator.common.units import convert_units, find_other_units, find_sums
from tests.support.languages import speaking

TERMS = "Give notice three months before. Guests stay three nights a month. The fee is 120 crowns, due within 10 days."


@pytest.mark.parametrize(
    ("code", "said", "source", "same"),
    [
        ("en", "Pay within two weeks.", "You have 14 days.", True),
        ("en", "The two-year warranty", "24 months", True),
        ("en", "1,500 m", "1.5 km", True),
        ("en", "2.4 tonnes, 30 cents", "2,400 kg, $0.30", True),
        ("de", "30 Cent, 2,4 Tonnen", "0,30 Euro, 2.400 kg", True),
        ("en", "120 euros", "2 hours", False),
        ("en", "120 seconds", "120 minutes", False),
        ("de", "Das dauert zwei Wochen.", "14 Tage", True),
        ("fr", "deux ans", "24 mois", True),
        ("es", "dos horas", "120 minutos", True),
        ("hi", "एक सप्ताह, आधे घंटे में", "सात दिनों, तीस मिनट", True),
        ("ar", "لمدة أسبوع، ثلاثين دقيقة", "سبعة أيام، نصف ساعة", True),
        ("ar", "مدته سبعة أيام", "يستمر أسبوعًا", True),
        ("cs", "za týden, čtvrt hodiny", "7 dní, patnáct minut", True),
        ("ru", "за полчаса", "30 минут", True),
    ],
)
def test_a_measure_may_be_given_in_another_unit(code: str, said: str, source: str, same: bool) -> None:
    with speaking(code):
        assert (convert_units(said, [source]) != said) == same
        assert bool(find_unsupported(convert_units(said, [source]), [source]).numbers) == (said == "120 euros")


@pytest.mark.parametrize(
    ("code", "said", "source", "same"),
    [
        ("en", "It grew by about 12%, more than 12 percent.", "It grew by 12.4%.", True),
        (
            "en",
            "Nearly 1,000 people, almost 1500 houses, just under 100 metres",
            "987 people, 1,482 houses, 98.6 m",
            True,
        ),
        ("en", "It grew by 12%.", "It grew by 12.4%.", False),
        ("en", "about 12 minutes, about 300 km, over 1,000 people", "12.4%, 251 km, 987 people", False),
        ("en", "around 1850", "1846 1860 1784", True),
        ("en", "around 1850", "1839 1860", False),
        ("de", "rund 250 km, knapp 1000 Einwohner", "251 km, 987 Einwohner", True),
        ("fr", "environ 12 %, près de 1 000 habitants", "12,4 %, 987 habitants", True),
        ("es", "unos 250 km, casi 1000 habitantes", "251 km, 987 habitantes", True),
    ],
)
def test_a_number_may_be_said_to_be_rounded(code: str, said: str, source: str, same: bool) -> None:
    with speaking(code):
        missing = find_unsupported(convert_units(said, [source]), [source])
        assert (not missing.numbers and not find_other_units(convert_units(said, [source]), [source])) == same


def test_a_price_has_a_currency_for_its_unit_whatever_follows() -> None:
    assert find_other_units("The $29.90 monthly fee", ["It is $29.90."]) == ()
    assert find_other_units("The $29.90 monthly fee", ["It is 29.90 kg."]) == ("$29.90",)
    assert find_other_units("A discount of 20% 3 months on", ["20% in 3 months"]) == ()


@pytest.mark.parametrize(
    ("said", "source", "other"),
    [
        ("Custa US$ 50.", "Custa R$ 50.", True),
        ("Custa 50 reais.", "Custa US$ 50.", True),
        ("Custa 50 dólares.", "Custa US$ 50.", False),
        ("Custa 50 reais.", "Custa R$ 50.", False),
    ],
)
def test_the_letters_before_a_sign_tell_the_currency(said: str, source: str, other: bool) -> None:
    with speaking("pt"):
        assert bool(find_other_units(said, [source])) == other


def test_what_sources_say_in_words_alone_may_be_another_unit() -> None:
    assert find_other_units("It takes 50 minutes.", ["Children pay half."]) == ("50 minutes",)
    assert find_other_units("It takes 12 minutes.", ["It leaves at noon."]) == ("12 minutes",)
    assert find_other_units("50 guests came.", ["Half of the guests came."]) == ("50",)
    assert find_other_units("Children pay 50% until 12 pm.", ["Children pay half until noon."]) == ()


@pytest.mark.parametrize(
    ("said", "sums"),
    [
        ("It's six months: two terms of three months.", {"6"}),
        ("Rooms are let for six months.", set()),  # that it is twice three nobody says
        ("Rooms are let for three years.", set()),
        ("It costs 130 crowns (120 + 10 surcharge).", set()),  # the 10 are days
    ],
)
def test_a_sum_is_of_numbers_with_a_unit_that_the_text_names(said: str, sums: set[str]) -> None:
    assert set(find_sums(said, [TERMS])) == sums


@pytest.mark.parametrize(
    ("said", "sources", "computed"),
    [
        ("20% of 40,000 is 8,000 euros.", ["The sum is 40,000 euros.", "Watches are covered up to 20% of it."], "8000"),
        ("It rises from 85 to 95 euros, by 10 euros.", ["They raise the fee from 85 to 95 euros."], "10"),
        ("The trike weighs 64 kg, 30 kg more than the bike's 34.", ["The bike: 34 kg.", "The trike: 64 kg."], "30"),
        ("Of 3.8 million they pay 2.6 million, so 1.2 million is left.", ["£3.8 million", "£2.6 million"], "1200000"),
        ("Of the 212 nurses 40 left, so 172 stayed.", ["212 nurses took part.", "40 of them left."], "172"),
        ("Adults pay 16 euros, children from 4 to 12 pay 8 euros.", ["16 euros, half from 4 to 12."], "8"),
        ("Adults pay 16 euros, children from 4 to 12 pay 8 euros.", ["16 euros, less from 4 to 12."], ""),
        ("You start with four, in a game of two, and can have six.", ["Take four coins.", "You can have six."], ""),
        ("It rises from 85 to 95 euros, by 15 euros.", ["They raise the fee from 85 to 95 euros."], ""),
        ("Founded in 1475, it moved 30 years later, in 1505.", ["It was founded in 1475.", "It moved in 1505."], "30"),
        ("It costs 10 euros.", ["They raise the fee from 85 to 95 euros."], ""),  # from nothing that it says
    ],
)
def test_a_number_may_be_a_difference_or_a_percentage(said: str, sources: list[str], computed: str) -> None:
    found = find_sums(said, sources)
    assert computed in found if computed else not found


def test_a_computed_number_is_none_with_another_unit() -> None:
    sources = ["Roofs saved 18 percent, walls another 7 percent.", "The garage costs 25 euros."]
    assert find_other_units("Roofs saved 18 and walls 7 percent, so 25 percent in all.", sources) == ()
    assert find_other_units("They saved 26 percent.", ["The garage costs 26 euros."]) == ("26 percent",)


@pytest.mark.parametrize(
    ("code", "said", "source"),
    [
        ("cs", "Vstup od 8 s dětmi.", "Od 8 hodin, s dětmi."),
        ("ru", "Приходите в 9 с друзьями.", "В 9 часов, с друзьями."),
    ],
)
def test_a_word_of_one_letter_is_no_unit(code: str, said: str, source: str) -> None:
    with speaking(code):
        assert find_other_units(said, [source]) == ()
