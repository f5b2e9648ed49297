import random

import pytest

from generator.common.passages import TOKEN, count_tokens, prose, sentences, told_in
from generator.schema import Document
from tests.support.corpora import split
from tests.support.languages import speaking
from tests.support.records import make_passage

ALPHABET = ["word", "naïve", "Köln", "😀", ",", ".", "?", " ", "  ", "\n", "\n\n", "\t", "-", ") ", "Then", "…"]


def random_text(seed: int, length: int) -> str:
    return "".join(random.Random(seed).choices(ALPHABET, k=length))


def test_a_token_is_a_word_or_a_punctuation_mark() -> None:
    assert TOKEN.findall("Don't pay £3, naïve!") == ["Don", "'", "t", "pay", "£", "3", ",", "naïve", "!"]
    assert count_tokens("Don't pay £3, naïve!") == 9
    assert count_tokens(" \n ") == 0


def test_what_no_space_parts_is_more_than_a_token() -> None:
    assert TOKEN.findall("在9点开门。ที่ 日本のバス") == [*"在9点开门。ที่日本のバス"]
    assert TOKEN.findall("한국어 문서") == ["한국어", "문서"]
    assert [len(token) for token in TOKEN.findall("x" * 64 + " " + "x" * 130)] == [64, 64, 64, 2]
    assert max(len(p.text) for p in split(Document(id="d", text="x" * 100_000))) == 512 * 64


def test_passages_are_exact_slices_with_ids_made_of_their_offsets() -> None:
    document = Document(id="doc", title="Title", url="https://example.org/", text="  One two. Three  four! ")
    (passage,) = split(document)
    assert (passage.start, passage.end) == (2, 23)
    assert passage.text == document.text[2:23]
    assert passage.id == "doc:2-23"
    assert (passage.document_id, passage.title, passage.url) == ("doc", "Title", "https://example.org/")


@pytest.mark.parametrize("seed", range(6))
def test_windows_of_any_text(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randint(1, 40)
    overlap = rng.randint(0, size - 1)
    document = Document(id="d", text=random_text(seed, 400))
    passages = split(document, size, overlap)
    tokens = TOKEN.findall(document.text)
    assert all(p.text == document.text[p.start : p.end] == p.text.strip() for p in passages)
    assert all(count_tokens(p.text) == size for p in passages[:-1])
    joined = TOKEN.findall(passages[0].text)
    for passage in passages[1:]:
        mine = TOKEN.findall(passage.text)
        assert len(mine) > overlap
        assert mine[:overlap] == joined[len(joined) - overlap :]
        joined += mine[overlap:]
    assert joined == tokens


@pytest.mark.parametrize(
    ("size", "overlap", "passages"),
    [
        (4, 1, ["It was", "was 36.3", "36.3 in", "in May."]),
        (5, 1, ["It was 36.3", "36.3 in May", "May."]),
        (3, 0, ["It was", "36.3", "in May."]),
    ],
)
def test_no_passage_begins_or_ends_within_a_number(size: int, overlap: int, passages: list[str]) -> None:
    document = Document(id="doc", text="It was 36.3 in May.")
    assert [passage.text for passage in split(document, size, overlap)] == passages


def texts(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def test_sentences_of_running_text_and_of_other_alphabets() -> None:
    assert texts(" Grüße aus Köln 😀. It costs £3.50 today.  “Really?”\n") == [
        "Grüße aus Köln 😀.",
        "It costs £3.50 today.",
        "“Really?”",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "scrapy.http.Response",
        "my_app.Field",
        "AsyncPool.Timer",
        "Menu.Item.name",
        "ssl.CERT_NONE",
        "Task.__call__",
        "Menu.MenuItem",
        ".Mapper",
        "httpx.*",
        "typer.Option()",
        "non-U.S. citizens",
    ],
)
def test_no_sentence_begins_within_a_name(name: str) -> None:
    assert texts(f"See {name} for more. It ends.") == [f"See {name} for more.", "It ends."]


def test_a_sentence_may_begin_without_a_space() -> None:
    assert texts("They set bed fires.Wildland fires spread.") == ["They set bed fires.", "Wildland fires spread."]


@pytest.mark.parametrize(
    "parts",
    [
        ['who work there ought to own them."', 'They called it "slavery. It is. We say so."', "Few did."],  # cut
        ['a mere spook." [p. 79]', 'Among the "spooks" is the state.', "So it is."],
        ['He is 6" tall.', 'She is 5" tall.'],
        ['We say ""yes"".', 'They say ""no.""', "Who is right?", 'It is "a="b. c"".', "So be it."],
        ["Is one a serf of the other?. . .", "He thinks so.", "Really?!", "Yes."],
    ],
)
def test_quotation_marks_and_dots_begin_no_sentence(parts: list[str]) -> None:
    assert texts(" ".join(parts)) == parts


def test_a_quotation_is_one_sentence_unless_it_is_too_long() -> None:
    parts = [*["Every worker of the mill knows that it is so."] * 20, "We do."]
    short, long = f"They said: “{' '.join(parts[-3:])}”", f'They said: "{" ".join(parts)}"'
    assert texts(f"{short} Then they left.") == [short, "Then they left."]
    assert texts(f"{long} Then they left.") == [f'They said: "{parts[0]}', *parts[1:-1], 'We do."', "Then they left."]


@pytest.mark.parametrize("code", ["ja", "zh"])
def test_a_sentence_may_begin_with_a_digit_or_small_letter_where_no_spaces_are_written(code: str) -> None:
    parts = [
        "月曜日は休館日です。",
        "iPhoneで開きます。",
        "5冊まで借りられます。",
        "「はい。3回です。」",
        "２０日は休みです。",
    ]
    text = "".join(parts)
    assert [text[start:end] for start, end in sentences(text, code)] == parts


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ar", "تفتح المكتبة د. سلمى في التاسعة."),
        ("de", "Im 19. Jahrhundert kostete es inkl. Frühstück 80 Taler."),
        ("de", "Nach Abs. 2 und Kap. 3 sind es ca. 5, max. 12 am 24. 12. unter Tel. 112, siehe Nr. 4."),
        ("en", "It takes approx. 20 minutes, incl. two breaks, by vol. 5, ed. 2."),
        ("en", "In Kenya An. gambiae and Ae. aegypti bite."),
        ("es", "Dura aprox. 20 minutos, de las 9 a. m. a las 5 p. m. y cuesta 5 euros en la c/ Mayor n.º 5."),
        ("fr", "Le trajet dure env. 20 minutes, selon l'art. 5, dit le Pr. Petit."),
        ("hi", "डॉ. शर्मा यहाँ हैं।"),
        ("it", "Vedi pag. 12, l'art. 5 e il n. 3, ecc. che durano ca. 20 minuti."),
        ("nl", "Mevr. Bakker vraagt 80 euro incl. Ontbijt."),
        ("tr", "Kitaplar vb. şeyler 3. katta, bkz. sayfa 5."),
        ("vi", "Thư viện ở TP. Hồ Chí Minh mở cửa."),
        ("pt", "No séc. XIX durava aprox. 20 minutos, veja a pág. 12, na Av. Liberdade, disse a Profa. Ana."),
    ],
)
def test_an_abbreviation_ends_no_sentence(code: str, text: str) -> None:
    both = f"{text} Foo!"
    assert [both[start:end] for start, end in sentences(both, code)] == [text, "Foo!"]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("de", ["Er wurde 19.", "Danach ging er."]),
        ("de", ["Sie durfte eine Brücke leiten.", "640 Arbeiter waren dabei."]),
        ("en", ["It fell within 24 h.", "Plasma rose to 5 mg/l.", "A walk took 90 min."]),
        ("es", ["Dura 20 minutos aprox.", "El museo abre a las 9 a. m.", "Cierra a las 5."]),
        ("fr", ["C'est de l'art.", "Il est là."]),
        ("pt", ["Dura 20 minutos aprox.", "O museu abre."]),
    ],
)
def test_a_sentence_may_end_in_what_could_be_an_abbreviation(code: str, parts: list[str]) -> None:
    text = " ".join(parts)
    assert [text[start:end] for start, end in sentences(text, code)] == parts


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("en", ["(III) Some cells die.", "Others stay (phase I)."]),
        ("en", ["They start at (1) 200 cells/µl, (2) 200 to 350 cells/µl, and (3) any count.", "Then they stop."]),
        ("de", ["Man zählt (1) Abzüge, (2) Ausgaben und (3) andere.", "Dann ist Schluss."]),
        ("en", ["It was <0.90 in one leg (P < 0.05).", "It rose.", "In the other it was >1."]),
    ],
)
def test_marks_of_a_list_and_less_than_neither_cut_a_sentence_nor_join_others(code: str, parts: list[str]) -> None:
    text = " ".join(parts)
    assert [text[start:end] for start, end in sentences(text, code)] == parts


def test_lines_are_sentences_unless_they_are_wrapped() -> None:
    text = "# Fees\nYou pay two\ndollars. At the desk.\r\n- a list item\n2. Second item\n2.17. A section\n\nThe end"
    assert texts(text) == [
        "# Fees",
        "You pay two\ndollars.",
        "At the desk.",
        "- a list item",
        "2. Second item",
        "2.17. A section",
        "The end",
    ]
    assert texts(" \n\t\n ") == []
    assert texts("First paragraph\n\nin lower case") == ["First paragraph", "in lower case"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Run perl Makefile.PL first.",
        "Put '!/vmlinux*' into .gitignore.",
        "A '?' (not between brackets) matches any letter.",
        "A “.” at the start, or '!' or '*', must be quoted.",
        "A script starts with the usual #! line.",
        "Use git log ..origin to see it.",
    ],
)
def test_no_sentence_ends_within_code_or_behind_a_mark_in_quotes(sentence: str) -> None:
    assert texts(f"{sentence} It ends here.") == [sentence, "It ends here."]


def test_a_heading_is_its_line() -> None:
    lines = ["## 3.1. The package name", "each package has one.", "### Chapter 4. Modules", "Text."]
    assert texts("\n".join(lines)) == lines


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


def test_a_block_of_code_is_one_sentence_and_no_prose() -> None:
    code, more = "```sh\n# Read it. Then run it.\nrun\n\n# Done.\n```", "```text\n{}\n```"
    text = f"Install it.\n\n{code}\n\nThen run it.\n\n{more}"
    assert texts(text) == ["Install it.", code, "Then run it.", more]
    assert [text[start:end] for start, end in prose(text)] == ["Install it.", "Then run it."]
    assert [code[start:end] for start, end in prose(code)] == [code], "there is nothing else"


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        ("b = 1\n```\n\nThen run it.\n\n```sh\nrun", ["Then run it."]),  # cut at both ends
        ("b = 1\n```\n\nThen run it.", ["Then run it."]),
        ("Run it:\n```\nrun\n```\nand wait.\n```\nwait\n```", ["Run it:", "and wait."]),  # no language
        ("```sh\n" + "word " * 300 + "\n```\nDone.", ["Done."]),  # longer than a sentence
        ("Use ```x``` for code.\nDone.", ["Use ```x``` for code.", "Done."]),
    ],
)
def test_code_is_told_from_prose_where_a_passage_cuts_it(passage: str, told: list[str]) -> None:
    assert [passage[start:end] for start, end in prose(passage)] == told


def test_overlong_sentences_are_cut_between_words_where_there_are_any() -> None:
    pieces = texts("cell " * 300)
    assert max(map(len, pieces)) <= 600
    assert " ".join(pieces).split() == ["cell"] * 300
    assert list(map(len, texts("x" * 1300))) == [600, 600, 100]
    assert len(texts("y" * 600)) == 1


@pytest.mark.parametrize("seed", range(6))
def test_sentences_of_any_text_are_ordered_trimmed_and_complete(seed: int) -> None:
    text = random_text(seed, 600)
    position = 0
    for start, end in sentences(text):
        assert text[position:start].strip() == ""
        assert start < end <= start + 600
        assert text[start:end].strip() == text[start:end]
        position = end
    assert text[position:].strip() == ""


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
