"""Sentences begin and end where a reader sees it."""

import pytest

from generator.common.sentences import sentences
from tests.support.corpora import list_sentences, random_text

NAMES = (
    "scrapy.http.Response my_app.Field AsyncPool.Timer Menu.Item.name ssl.CERT_NONE Task.__call__ Menu.MenuItem".split()
)
NAMES += [".Mapper", "httpx.*", "typer.Option()", "non-U.S. citizens"]


def test_sentences_of_running_text_and_of_other_alphabets() -> None:
    assert list_sentences(" Grüße aus Köln 😀. It costs £3.50 today.  “Really?”\n") == [
        "Grüße aus Köln 😀.",
        "It costs £3.50 today.",
        "“Really?”",
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "exception queue.Empty: Raised by get().",
        "## signal.SIGINT",
        "logging.info() logs; write a logging.Handler for more.",
    ],
)
def test_no_sentence_begins_behind_the_dot_of_a_module(sentence: str) -> None:
    assert list_sentences(f"{sentence}\n\nIt ends here.") == [sentence, "It ends here."]


def test_a_sentence_may_begin_without_a_space() -> None:
    assert list_sentences("They set bed fires.Wildland fires spread.") == [
        "They set bed fires.",
        "Wildland fires spread.",
    ]


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
    assert list_sentences(" ".join(parts)) == parts


def test_a_quotation_is_one_sentence_unless_it_is_too_long() -> None:
    parts = [*["Every worker of the mill knows that it is so."] * 20, "We do."]
    short, long = f"They said: “{' '.join(parts[-3:])}”", f'They said: "{" ".join(parts)}"'
    assert list_sentences(f"{short} Then they left.") == [short, "Then they left."]
    assert list_sentences(f"{long} Then they left.") == [
        f'They said: "{parts[0]}',
        *parts[1:-1],
        'We do."',
        "Then they left.",
    ]


@pytest.mark.parametrize("code", ["ja", "zh"])
def test_a_sentence_may_begin_with_a_digit_small_letter_or_quotation_where_no_spaces_are_written(code: str) -> None:
    parts = [
        "月曜日は休館日です。",
        "iPhoneで開きます。",
        "5冊まで借りられます。",
        "「はい。3回です。」",
        "２０日は休みです。",
        '"LANG=C" と "LANG=ja" は違います。',
        '文件"/etc/hosts"的权限是"644"。',
        '"root"可以写。',
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
        ("es", ["Puede instalarlo o no.", "Funciona igual de bien.", "No hay nada en contra."]),
        ("fr", ["C'est de l'art.", "Il est là."]),
        ("it", ["Salva nel file.", "È in RGB.", "Passa alla GUI.", "Non finisce mai.", "Chiude."]),
        ("it", ["Lo dicono gli AA. VV. nel libro loro."]),
        ("pt", ["Dura 20 minutos aprox.", "O museu abre."]),
        # Marks of a list, and “less than”, neither cut a sentence nor join others.
        ("en", ["(III) Some cells die.", "Others stay (phase I)."]),
        ("en", ["They start at (1) 200 cells/µl, (2) 200 to 350 cells/µl, and (3) any count.", "Then they stop."]),
        ("de", ["Man zählt (1) Abzüge, (2) Ausgaben und (3) andere.", "Dann ist Schluss."]),
        ("en", ["It was <0.90 in one leg (P < 0.05).", "It rose.", "In the other it was >1."]),
    ],
)
def test_a_sentence_ends_neither_early_nor_late(code: str, parts: list[str]) -> None:
    text = " ".join(parts)
    assert [text[start:end] for start, end in sentences(text, code)] == parts


def test_lines_are_sentences_unless_they_are_wrapped() -> None:
    text = "# Fees\nYou pay two\ndollars. At the desk.\r\n- a list item\n2. Second item\n2.17. A section\n\nThe end"
    assert list_sentences(text) == [
        "# Fees",
        "You pay two\ndollars.",
        "At the desk.",
        "- a list item",
        "2. Second item",
        "2.17. A section",
        "The end",
    ]
    assert list_sentences(" \n\t\n ") == []
    assert list_sentences("First paragraph\n\nin lower case") == ["First paragraph", "in lower case"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Run perl Makefile.PL first.",
        "Put '!/vmlinux*' into .gitignore.",
        "A '?' (not between brackets) matches any letter.",
        "A “.” at the start, or '!' or '*', must be quoted.",
        "A script starts with the usual #! line.",
        "Use git log ..origin to see it.",
        *(f"See {name} for more." for name in NAMES),
    ],
)
def test_no_sentence_ends_within_a_name_or_code_or_behind_a_mark_in_quotes(sentence: str) -> None:
    assert list_sentences(f"{sentence} It ends here.") == [sentence, "It ends here."]


def test_no_sentence_begins_with_what_parts_the_cells_of_a_row() -> None:
    row = "freecad | I:16 | Qt-Appl. | System for design. It is large."
    assert list_sentences(f"{row}\nkicad | I:14 | GTK | Draws.") == [
        "freecad | I:16 | Qt-Appl. | System for design.",
        "It is large.",
        "kicad | I:14 | GTK | Draws.",
    ]


def test_a_heading_is_its_line() -> None:
    lines = [
        "## 3.1. The package name",
        "each package has one.",
        "### Chapter 4. Modules",
        "Text.",
        "Table 10.6. List of tools",
    ]
    assert list_sentences("\n".join(lines)) == lines


def test_overlong_sentences_are_cut_between_words_where_there_are_any() -> None:
    pieces = list_sentences("cell " * 300)
    assert max(map(len, pieces)) <= 600
    assert " ".join(pieces).split() == ["cell"] * 300
    assert list(map(len, list_sentences("x" * 1300))) == [600, 600, 100]
    assert len(list_sentences("y" * 600)) == 1


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
