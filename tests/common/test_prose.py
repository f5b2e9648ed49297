"""Sentences that tell something are told from the others."""

import pytest

from generator.common.prose import prose, told_in
from tests.support.corpora import list_sentences
from tests.support.languages import speaking
from tests.support.records import make_passage


def test_no_question_starts_from_a_source() -> None:
    told = [
        "Stars guide boats, says Feinberg (1998).",
        "Berlin, Germany, 1945: a city in ruins.",
        "Plan B, C. or D is 5.",
    ]
    sources = [
        "- Rensch, K. H. (1994). Fish names",
        "Feinberg, Richard. 1998. Seafaring",
        "[3]: Choi et al., QuAC",
        "• Choi et al. (2018) Eunsol Choi and He He",
        "In Proceedings of the 2018 Conference on Methods",
        "Tides: an almanac, Leiden 1884, pp. 47-50",
        "A study of tides, pages 105–32",
        "The moon, ISBN 0-87338-352-4",
    ]
    text = "\n".join([*told, *sources])
    assert [text[start:end] for start, end in prose(text)] == told
    assert len(prose(sources[0])) > 0


def test_no_question_starts_from_a_menu() -> None:
    told = ["The State of New York Office of Parks and Trails Historic Sites Unit is in Albany.", "Bring a map."]
    menu = "Home Skip to main content Services Business Culture & Recreation Education Health Licenses Contact Us"
    text = "\n".join([told[0], menu, told[1]])
    assert [text[start:end] for start, end in prose(text)] == told
    assert len(prose(menu)) == 1, "there is nothing else"


@pytest.mark.parametrize(
    ("code", "points", "tells"),
    [
        ("en", "(See also Section 9.9, “Encryption”.)", "See your doctor if it hurts."),
        ("en", "Please refer to crypt(3).", "Refer the patient to a doctor."),
        ("en", "See the wiki for more details.", "Section 5 bans dogs."),
        ("de", "Siehe Abschnitt 1.1, „Dynamik“", "Siehe da, es geht."),
        ("fr", "Consultez polkit(8).", "Voyez comme l’image change."),
        ("es", "Véase la sección «Texto».", "Vea cómo cambia la imagen."),
        ("it", "Vedere anche Sezione 2, «Testo»", "Vedere il mare costa poco."),
        ("pt", "Veja também a Secção 6.5.", "Veja como a imagem muda."),
        ("ja", "修飾キーについては「共通機能」をご覧ください。", "共通機能には修飾キーがあります。"),
        ("zh", "详见“共通功能”一节。", "共通功能有修饰键。"),
    ],
)
def test_no_question_starts_from_what_only_points_elsewhere(code: str, points: str, tells: str) -> None:
    text = f"{tells}\n{points}\n"
    with speaking(code):
        assert [text[start:end] for start, end in prose(text)] == [tells]


def test_no_question_starts_from_a_word() -> None:
    assert prose("Note\nIt opens in May.\n``") == ((5, 21),)
    assert len(prose("Note")) == 1, "there is nothing else"


def test_a_block_of_code_is_one_sentence_and_no_prose() -> None:
    code, more = "```sh\n# Read it. Then run it.\nrun\n\n# Done.\n```", "```text\n{}\n```"
    text = f"Install it.\n\n{code}\n\nThen run it.\n\n{more}"
    assert list_sentences(text) == ["Install it.", code, "Then run it.", more]
    assert [text[start:end] for start, end in prose(text)] == ["Install it.", "Then run it."]
    assert [code[start:end] for start, end in prose(code)] == [code], "there is nothing else"


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        ("b = 1\n```\n\nThen run it.\n\n```sh\nrun", ["Then run it."]),  # cut at both ends
        ("b = 1\n```\n\nThen run it.", ["Then run it."]),
        ("Read it.\n\nThen run it:\n\n```", ["Read it.", "Then run it:"]),  # cut before the language
        ("b = 1\n```\n\nThen run it:\n\n```", ["Then run it:"]),
        ("Then run it.\n\n```sh\nrun\n\nb = 1\n```", ["Then run it."]),
        ("Run it:\n```\nrun\n```\nand wait.\n```\nwait\n```", ["Run it:", "and wait."]),  # no language
        ("```sh\n" + "word " * 300 + "\n```\nThen go.", ["Then go."]),  # longer than a sentence
        ("Use ```x``` for code.\nThen go.", ["Use ```x``` for code.", "Then go."]),
    ],
)
def test_code_is_told_from_prose_where_a_passage_cuts_it(passage: str, told: list[str]) -> None:
    assert [passage[start:end] for start, end in prose(passage)] == told


def test_a_heading_of_plain_text_tells_nothing() -> None:
    told = ["You may help another person.", "Write or call.", "Anna Smith Leads", "Karl Weber", "The Pool Is Closed."]
    text = f"{told[0]}\n\nApply With Your Local Office (ALO) \n{told[1]}\n\n{told[2]}\n{told[3]}\n\n{told[4]}\nIn May."
    assert told_in(make_passage("office", text)) == [*told, "In May."]


def test_a_question_tells_nothing_unless_its_answer_needs_it() -> None:
    passage = make_passage("fares", "Is it free? Yes. What does it cost? It costs 5 crowns. He asked, “Why?”")
    assert told_in(passage) == ["Is it free?", "Yes.", "It costs 5 crowns.", "He asked, “Why?”"]
    page = "Theft helpline: 1-855-578-5492 Hours of operation: Monday to Friday, 8 to 20 h What is identity theft?"
    assert told_in(make_passage("page", page)) == [page]
    with speaking("el"):
        told = told_in(make_passage("card", "Πόσο κοστίζει; Η κάρτα κοστίζει δώδεκα ευρώ τον χρόνο."))
    assert told == ["Η κάρτα κοστίζει δώδεκα ευρώ τον χρόνο."]
