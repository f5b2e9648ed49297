"""Numbers that a text gives to another thing than its sources do."""

import pytest

from generator.common.misattribution import find_misattributed
from tests.support.languages import speaking

HIRE = (
    "A day costs 14 euros for a city bike and 22 euros for a cargo bike. Members get the first half-day free. "
    "The battery lasts 60 kilometres on level ground, 35 kilometres in the hills. The workshop opens from 8 am to 4 pm "
    "and on Saturday from 9 am to 1 pm. Repairs take three days, those of motors within ten. Return a bike by 8 pm. "
    "Guests leave their bags at the desk at least 40 minutes before a tour. "
    "Tubes are sent by post for 6 euros for up to three; each further one costs 2 euros."
)


@pytest.mark.parametrize(
    ("text", "question", "found"),
    [
        ("14 euros for a cargo bike.", "What does it cost?", ["14 euros"]),
        ("22 euros for a cargo bike.", "What does it cost?", []),
        ("It is 14 euros a day.", "How much is a city bike?", []),
        ("It is 22 euros a day.", "No, not a city bike. How much is a cargo bike?", []),
        ("City bikes are 14 euros, cargo bikes 22.", "How much is a cargo bike?", []),
        ("City bikes are 22 euros, cargo bikes 14.", "How much is a cargo bike?", ["14"]),
        ("60 kilometres in the hills.", "How far does it go?", ["60 kilometres"]),
        ("35 kilometres uphill.", "How far does it go on level ground?", []),  # “uphill” may be another word for it
        ("From 8 am to 4 pm on Saturday.", "When does it open?", ["4:00 pm"]),
        ("From 8 am to 4 pm.", "When does the workshop open?", []),
        ("Repairs of motors take three days.", "", []),  # it says of repairs what is told of them
        ("Leave bags at the desk at least ten days before a tour.", "", ["ten days"]),  # of another sentence
        ("Up to three tubes cost 6 euros.", "What do tubes sent by post cost?", []),
        ("It isn't 14 euros for a cargo bike.", "", []),
        ("From 8 am, an hour earlier than on Saturday.", "When does it open?", []),
        ("The tour takes 90 minutes.", "How long is it?", []),  # that is nobody's
        ("Bikes cost nothing.", "How much is a cargo bike?", []),
    ],
)
def test_a_number_of_another_thing_is_found(text: str, question: str, found: list[str]) -> None:
    assert find_misattributed(text, question, [HIRE]) == found


FEES = """Item | For each day | At most

Books, sheet music | 0.20 | 8.00

New books (red dot) | 0.50 | 10.00

Journals | 0.20 | 4.00

Films and games | 0.60 | 12.00

Crowns in 2023 | 300 | 420

Room 12 | 8.00 | 9.00

Three days of grace are given for books."""


@pytest.mark.parametrize(
    ("text", "question", "found"),
    [
        ("It charges 0.20 crowns a day for books, sheet music, journals, films and games.", "", ["0.20"]),
        ("It charges 0.20 crowns a day for books, sheet music and journals.", "", []),
        ("Films and games cost 0.60, sheet music and books 0.20.", "", []),
        ("Films and games cost 0.20 crowns a day, 12 at most.", "", []),  # one number of the row may be enough
        ("New books (red dot) cost 0.50 crowns a day.", "How much are books and journals?", []),
        ("0.20 crowns a day.", "What do films and games cost?", ["0.20"]),
        ("0.20 crowns a day.", "What do journals cost?", []),
        ("Films and games have three days of grace.", "", []),  # that stands in no row
        ("Books and sheet music cost 0.20, and films and games more.", "", []),
        ("Films and games cost less than Room 12.", "", []),
        ("It had 10 crowns for things.", "", []),
        ("Journals have 4, films and games 0.20.", "", []),  # whose number that is can't be told: 4 is another's
        ("12 at most.", "What do I pay for journals, and what for films and games?", []),
    ],
)
def test_a_number_of_another_row_is_found(text: str, question: str, found: list[str]) -> None:
    assert find_misattributed(text, question, [FEES]) == found


@pytest.mark.parametrize("head", ["| For each day | At most", "|  | For each day | At most |"])
def test_a_head_may_have_no_word_in_its_first_cell(head: str) -> None:
    table = FEES.replace("Item | For each day | At most", head)
    assert find_misattributed("Books and sheet music cost 0.60.", "", [table]) == ["0.60"]


def test_a_number_that_a_sentence_beside_the_table_tells_is_that_of_no_row() -> None:
    table = "Package | Users | Size\n\niptables | 889 | 2408\n\niptstate | 3 | 119"
    page = f"{table}\n\nThe command works with Linux 2.6 and 3.x."
    assert not find_misattributed("It works with Linux 2.6 and 3.x.", "Which kernels does iptables work with?", [page])
    assert find_misattributed("It has 3 users.", "How many users does iptables have?", [page]) == ["3"]


def test_the_number_may_be_that_of_both_things() -> None:
    assert find_misattributed("14 euros for a cargo bike.", "", [HIRE])
    assert not find_misattributed("14 euros for a cargo bike.", "", [HIRE, "In winter a cargo bike costs 14 euros."])


def test_a_number_that_two_things_have_is_not_taken_for_that_of_the_other() -> None:
    museum = "The museum is open from Tuesday to Sunday, 10:00 to 18:00."
    library = "The library is open from Monday to Friday, 9:00 to 20:00, and on Saturdays from 10:00 to 16:00."
    branches = "The branches close at 18:00 and stay closed on Saturdays."
    text = "On Saturdays the museum is open from 10:00 to 18:00, longer than the library, which closes at 16:00."
    assert not find_misattributed(text, "", [museum, f"{library} {branches}"])


def test_letters_tell_no_two_things_apart() -> None:
    with speaking("ja"):
        told = "一時利用は、最初の2時間が無料で、その後は24時間ごとに100円です。駐車券をなくすと300円です。"
        asked = "桜台駅前駐車場の一時利用でかかる料金をすべて教えてください。"
        assert not find_misattributed("最初の2時間は無料です。", asked, [told])


@pytest.mark.parametrize(
    ("code", "told", "text"),
    [
        ("de", "Ein Rad kostet 14 Euro und ein Anhänger 9 Euro.", "Ein Anhänger kostet 14 Euro."),
        ("fr", "Le vélo coûte 14 euros et la remorque 9 euros.", "La remorque coûte 14 euros."),
        ("es", "La bicicleta cuesta 14 euros y el remolque 9 euros.", "El remolque cuesta 14 euros."),
        ("it", "La bicicletta costa 14 euro, il rimorchio 9 euro.", "Il rimorchio costa 14 euro."),
    ],
)
def test_other_languages(code: str, told: str, text: str) -> None:
    with speaking(code):
        assert find_misattributed(text, "", [told])
        assert not find_misattributed(told, "", [told])


def test_a_number_in_a_code_is_a_name() -> None:
    told = (
        "Renew your license by mail. 11 Send us the notice MV-2 or, if you don't have it, use the application for a "
        "license PDF [7] MV-44 and a report PDF [6] MV-619 by your doctor."
    )
    assert not find_misattributed("Use the application for a license, form MV-44.", "What form do I send?", [told])
