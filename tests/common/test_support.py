import pytest

from generator.common.support import (
    coverage,
    find_unsupported,
    read_terms,
    shares_nothing,
    stem_words,
)
from tests.support.languages import speaking

TARIFF = "The yearly pass costs 1,200 crowns. Refunds are paid within 60 days by the City Library of Brno."


def test_numbers_are_equal_however_they_are_spelt() -> None:
    for spelt in ("1,200", "1200", "1,200.00", "1.200"):
        assert find_unsupported(f"It costs {spelt} crowns", [TARIFF]) == ((), (), ())
    assert [term.key for term in read_terms("twelve in the 1980s, on the 20th, 3.50")] == ["12", "1980s", "20", "3.5"]


def test_what_no_source_has_is_named_as_it_is_spelt_and_once() -> None:
    found = find_unsupported("A pass costs 130 crowns, a surcharge of 130 goes to Prague, the surcharge.", [TARIFF, ""])
    assert found == (("surcharge", "goes"), ("130",), ("Prague",))
    assert find_unsupported("Refunds take six months", [TARIFF]) == (("take", "months"), ("six",), ())


def test_words_are_compared_by_stems_in_any_of_the_sources() -> None:
    assert find_unsupported("A refund is paid to libraries", ["refunds, paying", TARIFF]) == ((), (), ())
    assert find_unsupported("Who owns 1?", ["one of your own"]) == ((), (), ())


@pytest.mark.parametrize(
    ("short", "source"),
    [
        ("The DMV renews it.", "The Department of Motor Vehicles renews it."),
        ("It played in NYC.", "It was played in New York City, and elsewhere."),
        ("Motorhead drew on Skoda and Malaga.", "Motörhead drew on Škoda and Málaga."),
        ("Motörhead drew.", "Motorhead drew."),
        ("They met in the 70's, in the late '70s.", "They met in the late 1970s."),
        ("They met in the 1980s.", "They met in 1987."),
        ("They met in the 1980s.", "They met in the '80s."),
        ("They met in the 1990s, and in the eighties.", "They met in the nineties, and in the 1980s."),
        ("They met from 1863 to 1869.", "They met (1863-69)."),
        ("They drew 45 , 700 colors, organized at the center.", "They drew 45,700 colours, organised at the centre."),
        ("Bake 35 of 300 g.", "Bake thirty-five of three hundred g."),
        ("It has 8 GB.", "It has 8GB."),
        ("Renew 31 of 120 in the 2nd game.", "Renew thirty-one of one hundred and twenty in the second game."),
        ("Renew on the twenty-first.", "Renew on the 21st."),
        ("Renew half, 5 percent, 15 kilometres on Monday.", "Renew 50%, 5%, 15 km on Mon."),
        ("Renew until 5 pm or 17.", "Renew until 17:00."),
        ("Renew at 17:30.", "Renew at 5:30 p.m."),
        ("Renew from 9:30 to 5 pm, at 12:15.", "Renew at 12.15, 9.30-17.00."),
        ("Renew at minus 5 degrees.", "Renew at -5 °C."),
        ("Renew at 8 o'clock on Sunday.", "Renew at 8:00 on Sun."),
        ("Renew at 8.30am, or 12:15 p.m.", "Renew at 08:30, or 12:15."),
        ("Renew 2.5 of 0.5, 1½.", "Renew two and a half of 1/2, 1.5."),
        ("Renew at half past eleven, 9:00 or 17:00.", "Renew at 11:30, at nine, or till 17 on Sundays."),
        ("Open from nine o'clock to a quarter to one.", "Open from 9:00 to 12:45."),
        ("Open from 9 o’clock to quarter past seven.", "Open from nine o'clock to 19:15."),
        ("Open from 12 pm to 9 pm, or 0:00.", "Open from noon to 9 pm, or midnight."),
        ("Renew 50 sqm, 12 square kilometres.", "Renew 50 square metres, 12 km²."),
        ("Renew $11k, €2bn, 3.5M.", "Renew $11,000, 2 billion euros, 3.5 million."),
        ("Renew 5.93 million, 2 billion.", "Renew 5.93 mln, 2 bln."),
        ("Renew 3.1.2, 2.1.4 or v3.0.", "Renew v3.1.2, V2.1.4 or 3.0."),
        ("Renew on 30.06.2024, 2024-07-01.", "Renew on June 30, 2024, 1 July 2024."),
        ("Renew 14,786 or ten thousand.", "Renew 14 786 or 10 000."),
        ("Renew $45.8 billion, 25.7 million.", "Renew $45.8 (95% CI 45.4, 46.2) billion, 25.7 [25.5 (or 26)] million."),
        ("Renew 88.7 or 0.02, .5.", "Renew 88·7 or .02, 0.5."),
    ],
)
def test_short_forms_are_supported(short: str, source: str) -> None:
    assert find_unsupported(short, [source]) == ((), (), ())
    assert find_unsupported(short, ["Nobody drew, played, met, or renews late."]) != ((), (), ())


@pytest.mark.parametrize(
    ("said", "source", "missing"),
    [
        ("over 8.5 million people", "8,537,673 people", ()),
        ("some 9 million people", "8,537,673 people", ()),
        ("8,500,000 people", "8.5 million people", ()),
        ("two million people", "2,000,000 people", ()),
        ("8.336 million people", "8,336,000 people", ()),
        ("8.6 million people", "8,537,673 people", ("8.6 million",)),
        ("7 million people", "8.5 million people", ("7 million",)),
        ("8.5 billion people", "8.5 million people", ("8.5 billion",)),
        ("in 1850", "in 1851", ("1850",)),
        ("in the 1980s", "in 1990, 1979", ("1980",)),
        ("until 2012", "2014-12, call 1863-69-12", ("2012",)),
        ("after 1000 s", "after 1,000 s", ()),
        ("at 11:15 or 11", "at 11:45", ("11:15", "11")),
        ("45 rooms", "at 11:45", ("45",)),
        ("300 rooms", "in 12 300 rooms", ()),
        ("2,012,300 rooms", "in 2012 300 rooms", ("2,012,300",)),
        ("45.4 billion", "45.8 (45.4, 46.2) billion", ("45.4 billion",)),
        ("11 cups", "1½ cups", ("11",)),
        ("100Mbps", "500Mbps", ("100",)),
        ("on 05/06/2024", "on June 5, 2024", ("06",)),
        ("a million people", "1,000,000 people", ()),
        ("at 15:00", "for fifteen guests", ("15:00",)),
        ("at 8 pm", "for 8 guests", ("8:00",)),
        ("in 1.2.3 million", "7" * 5000, ("1.2.3", "million")),
    ],
)
def test_large_numbers_are_supported_by_what_they_round(said: str, source: str, missing: tuple[str, ...]) -> None:
    assert find_unsupported(said, [source]).numbers == missing


@pytest.mark.parametrize(
    ("code", "said", "source"),
    [
        ("de", "in den 1980er-Jahren, den 1970ern", "im Jahr 1987, in den 70er Jahren"),
        ("de", "einundzwanzig Kühe, 150 Schafe", "21 Kühe, hundertfünfzig Schafe"),
        ("fr", "97 vaches, 2 euros", "quatre-vingt-dix-sept vaches, 2 €"),
        ("it", "ventuno mucche", "21 mucche"),
        ("ar", "ثلاثة آلاف", "3 آلاف"),
        ("ar", "الرسوم خمسون، خمسين، مائة", "الرسوم 50، 100"),
        ("ar", "خمسة عشر، اثنتا عشرة، مئة وخمسة وعشرون، بعشرة", "15، 12، 125، 10"),
        ("ar", "15، 25، 120", "خمسة عشر، خمسة وعشرين، مئة وعشرون"),
        ("hi", "500, 2500, 1100000", "पाँच सौ, दो हज़ार पाँच सौ, ग्यारह लाख"),
        ("hi", "4.5 किलोमीटर, 3500, 1500, 250", "साढ़े चार किलोमीटर, साढ़े तीन हज़ार, डेढ़ हज़ार, ढाई सौ"),
        ("ru", "1500 рублей, 1,5 часа", "полторы тысячи рублей, полтора часа"),
        ("cs", "500 000 Kč", "půl milionu korun"),
        ("ar", "500000 درهم", "نصف مليون درهم"),
        ("ru", "500 000 рублей", "полмиллиона рублей"),
        ("zh", "25岁，12个月，365天", "二十五岁，十二个月，三百六十五天"),
        ("es", "el 14/07/2024, 2 horas y media", "el 14 de julio de 2024, 2,5 horas"),
        ("es", "21 días", "veintiún días"),
        ("de", "1’250 Franken, 1'250'000.50", "1250 Franken, 1 250 000,5"),
        ("en", "384,407.6 km", "384 407.6 km"),
    ],
)
def test_numbers_in_words_of_other_languages(code: str, said: str, source: str) -> None:
    with speaking(code):
        assert find_unsupported(said, [source]).numbers == ()
        assert find_unsupported(said, ["zzz"]).numbers != ()


@pytest.mark.parametrize(
    ("code", "said", "source", "missing"),
    [
        ("de", "drei Viertel, dreiviertel voll, 384 MB", "ca. ¾, zu 75 % voll, 384 MegaByte", ()),
        ("de", "75 %, ¾", "drei Viertel", ()),
        ("de", "Als 1980 er kam", "1987", ("1980",)),  # no decade
        ("ar", "الرسوم 3.5، ١٬٥٠٠ دينار", "الرسوم ٣٫٥، 1500 دينار", ()),
        ("ar", "الرسوم ٣٫٥، 1500 دينار", "الرسوم 3.5، ١٬٥٠٠ دينار", ()),
        ("ar", "الرسوم 5، 500 دينار", "الرسوم ٣٫٥، ١٬٥٠٠ دينار", ("5", "500")),
        ("fr", "les trois quarts, 2 Go", "75 %, 2 gigaoctets", ()),
        ("en", "three quarters of the disk, three-quarters", "¾ of the disk, 75%", ()),
        ("en", "three quarters of the disk", "half of the disk", ("0.75",)),
        ("de", "1,2 Mrd. Euro, 2,4 Mio. Gäste", "1,2 Milliarden Euro, 2,4 Millionen Gäste", ()),
        ("de", "1,2 Milliarden Euro, 2,4 Millionen Gäste", "1,2 Mrd. Euro, 2,4 Mio Gäste", ()),
        ("de", "1.200 Mio. Euro", "1,2 Milliarden Euro", ()),
        ("de", "1,2 Millionen Euro", "1,2 Mrd. Euro", ("1,2 Millionen",)),
        ("de", "1,2 Mrd. Euro", "1,2 Mio. Euro", ("1200000000",)),
        ("es", "a las siete y media, a las 8 y media", "a las 19:30, a las 8:30", ()),
        ("es", "a las siete y media", "a las 18:30", ("7:30",)),
        ("en", "384 km, 407.6 km, 512 km", "384 407.6 512", ()),
        ("es", "2,5 horas", "2 horas y media, las tapas y media docena", ()),
        ("fr", "à dix-huit heures et demie, à 9 heures et demie", "à 18h30, à 9 h 30", ()),
        ("fr", "à dix-neuf heures et demie", "à 18h30", ("19:30",)),
        ("de", "um halb neun, um halb eins, halb leer", "um 20.30 Uhr, um 12:30 Uhr", ()),
        ("de", "um halb neun", "um 9:30 Uhr", ("8:30",)),
        ("de", "von Viertel nach acht bis Viertel vor eins", "von 8:15 bis 12:45 Uhr", ()),
        ("vi", "lúc 7 giờ 15 sáng, 9 giờ 30 phút", "lúc 7:15, 9:30 sáng", ()),
        ("nl", "van kwart over acht tot kwart voor een", "van 8.15 tot 12.45 uur", ()),
        ("fr", "de huit heures et quart à neuf heures moins le quart", "de 8h15 à 8h45", ()),
        ("es", "de las ocho y cuarto a las nueve menos cuarto", "de las 8:15 a las 8:45", ()),
        ("nl", "om half zeven", "om 18.30 uur", ()),
        ("it", "alle 18:30, alle 9.05", "alle 18.30, alle 9:05", ()),
        ("es", "a las 18.30 y a las 9:05", "a las 18:30 y a las 9.05", ()),
        ("cs", "v 18.30", "v 18:30", ()),
        ("nl", "om 19:30", "om 18.30", ("19:30",)),
        ("ar", "25 درهما", "خمسة، عشرون درهما", ("25",)),  # two numbers
        ("cs", "v 19:30, ve 14 hodin, v 8.30", "v půl osmé večer, ve dvě odpoledne, v půl deváté", ()),
        ("cs", "v 9:30, za 15 dní", "v půl deváté, za tři dny", ("9:30", "15")),
        ("cs", "2,5 hodiny, v 17. století", "dvě a půl hodiny, v sedmnáctém století", ()),
        ("ru", "2,5 недели", "две с половиной недели", ()),
        ("ar", "4.5 ساعات، مئتي ريال", "أربع ساعات ونصف، 200 ريال", ()),
        ("ru", "в 21:30, в 15:00, три дня", "в половине десятого вечера, в три часа дня, 3 дня", ()),
        ("ar", "14:00، 23:00", "الثانية بعد الظهر، الحادية عشرة ليلًا", ()),
        ("hi", "10 से 17 बजे, 19:30 बजे", "सुबह दस बजे से शाम पाँच बजे, शाम साढ़े सात बजे", ()),
        ("hi", "14:00 बजे", "रात दो बजे", ("14:00",)),
        ("hi", "5 दिन", "दो तीन दिन", ("5",)),
        ("ja", "7日", "三四日", ("7",)),
        ("nl", "om 19.30", "om 18:30", ("19.30",)),
        ("en", "for 18.30, at 9:05", "at 18:30, for 9.05", ("18.30", "9:05")),
    ],
)
def test_numbers_of_other_languages_in_other_forms(code: str, said: str, source: str, missing: tuple[str, ...]) -> None:
    with speaking(code):
        assert find_unsupported(said, [source]).numbers == missing


@pytest.mark.parametrize(
    ("code", "said", "source"),
    [
        ("fr", "le coeur de ma soeur, des œufs", "le cœur de ma sœur, des oeufs"),
        ("en", "an encyclopaedia", "an Encyclopædia"),
        ("pt", "Paga R$ 50.", "Paga 50 reais."),
        ("tr", "Işığın gücü, ILIK SU", "ışığın gücü, ılık su"),
    ],
)
def test_words_in_other_letters(code: str, said: str, source: str) -> None:
    with speaking(code):
        assert find_unsupported(said, [source]) == find_unsupported(source, [said]) == ((), (), ())


def test_what_french_elides_or_joins_says_nothing() -> None:
    with speaking("fr"):
        assert read_terms("D'abord auprès de vous, tandis que") == ()
        assert [term.text for term in read_terms("Il n'y a pas d'eau à l'hôtel, j'ai vu.")] == ["eau", "hôtel", "vu"]


def test_the_numbers_of_a_list_are_no_numbers() -> None:
    text = "There are three:\n1. Brno,\n 2) Prague, and (3) Zlín, or 4) Ostrava. A pass costs 5. It has (6), too"
    assert [term.text for term in read_terms(text) if term.kind == "number"] == ["three", "5", "6"]
    text = "Do this: 1. Ask before 7. 2. Pay 12. Then go. 3. Sign"
    assert [term.text for term in read_terms(text)] == ["Ask", "7", "Pay", "12", "go", "Sign"]
    for text in ("1. Ask 2. Pay 3. Sign", "**Step 1:** Ask\n**Step 2:** Pay\n**Step 3:** Sign"):
        assert [term.text for term in read_terms(text)] == ["Ask", "Pay", "Sign"]
    assert [term.key for term in read_terms("Zone 1: free. Zone 2: 5.")] == ["zone", "1", "free", "zone", "2", "5"]
    assert [term.text for term in read_terms("It opens on May 1. Come.") if term.kind == "number"] == ["1"]


def test_short_words_that_say_something_else_support_no_unit_or_day() -> None:
    assert find_unsupported("On Sunday, 5 inches.", ["In the sun, 5 in all."]) == (("inches",), (), ("Sunday",))
    assert [term.kind for term in read_terms("It opens at 9 a.m. Bring a towel.")][-2:] == ["word", "word"]


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("Set retry_limit.", "Set max_retries and the limit to retry."),
        ("Set connectTimeout.", "Set maxRetries."),
        ("Set --force.", "Set --yes, which uses force."),
        ("Set `--force` (--now).", "Set `--yes` (--then), which uses force now."),
        ("Set info@museum.example.", "Set groups@museum.example for info."),
    ],
)
def test_a_name_made_for_programs_stands_for_no_other(said: str, source: str) -> None:
    assert find_unsupported(said, [source]).names
    assert not find_unsupported(said, [said]).names


def test_a_name_made_for_programs_says_what_it_is() -> None:
    assert not any(find_unsupported("The error goes on.", ["A UnicodeDecodeError goes on."]))
    assert find_unsupported("The error goes on.", ["An ErrorHandler goes on."]).words == ("error",)


def test_a_name_may_follow_a_title() -> None:
    assert find_unsupported("Dr. Patel treats it.", ["Dr. Miller treats it."]).names == ("Patel",)


def test_a_word_that_opens_a_sentence_is_no_name() -> None:
    assert [term.kind for term in read_terms("Refunds differ. Prague pays. In Prague")] == [*["word"] * 4, "name"]


@pytest.mark.parametrize(
    ("text", "share"), [("yearly pass", 1), ("monthly pass", 0.5), ("It is so.", 1), ("", 1), ("Rome", 0)]
)
def test_coverage_is_the_share_of_content_words_that_a_source_has(text: str, share: float) -> None:
    assert coverage(text, [TARIFF]) == share
    assert coverage(text, []) == (0 if read_terms(text) else 1)


def test_letters_are_words_where_no_spaces_part_them() -> None:
    assert coverage("図書館は九時", ["図書館は十時"]) == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("10,536", True),
        ("What do children pay for ice cream?", True),
        ("Which harbours are there?", False),
        ("At nine.", False),
        ("Yes, it does.", False),
        ("Quand est-ce que le bateau quitte le quai demain matin ?", False),
    ],
)
def test_a_text_that_shares_no_content_word_with_its_sources(text: str, nothing: bool) -> None:
    ferry = "The ferry leaves the harbour at 9. " * 6
    assert shares_nothing(text, [ferry]) is nothing
    assert not shares_nothing(text, ["The ferry leaves the harbour at nine."]), "a sentence has few words to share"
    assert not shares_nothing("Wann?", ["Die Fähre fährt um neun vom Hafen ab. " * 9])


def test_a_name_is_the_same_without_its_accents() -> None:
    for name in ("Beyoncé", "José", "Renée", "Motörhead"):
        plain = name.replace("é", "e").replace("ö", "o")
        assert coverage(f"It is {name}.", [f"It is {plain}."]) == coverage(f"It is {plain}.", [f"It is {name}."]) == 1


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("it", "Sì. No."),
        ("nl", "Ja. Nee."),
        ("pt", "Sim. Não."),
        ("ru", "Да. Нет."),
        ("sv", "Ja. Nej."),
        ("tr", "Evet. Hayır."),
    ],
)
def test_yes_and_no_say_nothing_that_a_source_could_support(code: str, answer: str) -> None:
    with speaking(code):
        assert read_terms(answer) == ()


@pytest.mark.parametrize(
    ("code", "said", "told"),
    [
        ("de", "Man zahlt, spült, kündigt.", "Bezahlen und zahlen, spülen, kündigen."),
        ("de", "Die Spülung und die Entkalkung werden gekündigt.", "Gespült, entkalkt, kündigen."),
        ("de", "Rad und Fahrer werden abgeholt.", "Wir holen Rad und Fahrer kostenlos ab."),
        ("de", "Termine abzusagen lohnt, einzulesen auch.", "Lohnt abgesagt, eingelesen; Termine."),
        ("de", "Termine werden abgesagt.", "Sagen Sie Termine bitte ab, sonst zahlen Sie."),
        ("de", "Einen Tag bezahlen, täglich.", "Man zahlt jeden Tag."),
        ("es", "Cierra, abre los días.", "Cerrado y abierto, diario."),
        ("fr", "Ils coûtent, ouvrent, ferment, restent.", "Cela coûte, ouvre, ferme, reste."),
        ("es", "Se usa, se abre, entra.", "Se usan, se abren, entran."),
        ("es", "Hay que usar, abrir, entrar.", "Se usa, se abre, entra."),
        ("it", "Si usa, si apre.", "Va usare, aprono."),
        ("pt", "Usar, abrir.", "Que use, abrem."),
        (
            "cs",
            "Zaplatíte v hotovosti; objednává se, přijímají, nemění.",
            "Platí se hotově; objednat, přijímáme, neměnit.",
        ),
        (
            "ru",
            "Заплатит, вернут; удержит, открылся, застраховали.",
            "Платят, возвращают; удерживает, открыт, страхуют.",
        ),
        ("hi", "फीस, पांच दांत, सम्बन्ध, 100 रुपए।", "फ़ीस, पाँच दाँत, संबंध, सौ रुपये।"),
    ],
)
def test_verbs_of_other_languages_are_the_same_in_each_person(code: str, said: str, told: str) -> None:
    with speaking(code):
        assert find_unsupported(said, [told]) == ((), (), ())
        assert find_unsupported(said, ["zzz"]).words


@pytest.mark.parametrize(
    ("code", "said", "source", "missing"),
    [
        ("de", "Ein Ausweis für ein Jahr, mit Frist", "Der Jahresausweis hat eine Anmeldefrist.", ()),
        ("de", "Ein Parkausweis für eine Reise", "Der Jahresausweis", ("Parkausweis", "Reise")),
        ("nl", "De kosten van een kaart", "Verzendkosten en toegangskaarten", ()),
        ("en", "A car", "A carpet", ("car",)),
    ],
)
def test_a_part_of_a_joined_word_is_supported(code: str, said: str, source: str, missing: tuple[str, ...]) -> None:
    with speaking(code):
        assert find_unsupported(said, [source]).words == missing


def test_the_arabic_article_leaves_the_stem_as_it_is() -> None:
    with speaking("ar"):
        assert len({*stem_words("فندق الفندق والفندق بالفندق للفندق".split())}) == 1  # hotel
        assert find_unsupported("وثيقتك، بديلة، يدفعها", ["الوثيقة البديلة، دفع"]) == ((), (), ())
        assert find_unsupported("الفندق", ["الفصل"]).words == ("الفندق",)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "Along with either, besides; otherwise, whenever someone …"),
        ("de", "Es findet erst dann statt, und möglichst …"),
        ("fr", "Cela veut dire que c'est possible …"),
        ("es", "No es posible …"),
        ("de", "Ja, genau, und zwar pro Person; dafür brauchen beide allerdings den ganzen und weiteren …"),
        ("fr", "Vous pouvez et devez, je peux ; il y a toutefois, cependant, en revanche, pourtant, ensuite …"),
        ("es", "Allí, siempre que esté o haya; podrá, debería; igualmente, demasiado, en ningún …"),
        ("it", "Entrambi, mentre nessuno deve fare altro; così ciascuno può, quindi va bene anche qualunque …"),
        ("pt", "Além disso, essa, que ambos têm; portanto convém, enquanto nenhum deles quiser fazer …"),
        ("cs", "Ano, takže budete mít, pokud můžete; jen všechny, vám, jeho, ještě, třeba …"),
        ("ru", "Да, если вам нужно, тоже можно; только для всех, уже, ещё, после него …"),
        ("ar", "نعم، يمكنك أيضًا، وإذا كان لديك، فهو لك تقريبًا، بينما …"),
        ("hi", "हाँ, यानी आपको लगेगा, बशर्ते …"),
    ],
)
def test_words_that_only_join_or_stress_say_nothing_that_a_source_could_support(code: str, text: str) -> None:
    with speaking(code):
        assert [term.text for term in read_terms(text)] in (["Person"], [])


@pytest.mark.parametrize(
    ("code", "text", "source"),
    [
        (
            "it",
            "Costa 5 euro, il 3 maggio 2024 il dieci per cento in meno.",
            "Costa 5 €, il 03/05/2024 il 10 % in meno.",
        ),
        ("pt", "Custa 5 euros, a 3 de maio de 2024 dez por cento.", "Custa 5 €, a 03/05/2024 10%."),
        ("nl", "Het kost 5 euro, op 3 mei 2024 tien procent.", "Het kost € 5, op 3 mei 2024 10%."),
        ("ru", "Стоит 150 рублей, за 20 минут 10 процентов.", "Стоит 150 ₽, за 20 мин. 10%."),
        ("ru", "За 20 минут сто пятьдесят рублей, 3 мая 2024.", "За двадцать минут 150 рублей, 03.05.2024."),
        ("cs", "Za 25 minut padesát korun, 3. května 2024 v osm.", "Za pětadvacet minut 50 Kč, 03.05.2024 v 8 hodin."),
        (
            "ar",
            "في 25 دقيقة نصف الثمن أو 20%، في الساعة 8.",
            "خلال خمس وعشرين دقيقة 50 في المئة من الثمن أو عشرون بالمئة، في الساعة الثامنة.",
        ),
        (
            "hi",
            "25 साल की उम्र, 50 रुपए, 20%, शाम 7:30 बजे मुफ़्त।",
            "पच्चीस वर्ष की आयु, 50 ₹, बीस प्रतिशत, शाम साढ़े सात बजे निःशुल्क।",
        ),
    ],
)
def test_units_and_signs_say_what_words_say_in_more_languages(code: str, text: str, source: str) -> None:
    with speaking(code):
        assert find_unsupported(text, [source]) == ((), (), ())
        assert find_unsupported(text.replace("5", "6").replace("20", "30"), [source]).numbers


def test_a_name_in_latin_letters_is_the_same_with_any_korean_particle() -> None:
    with speaking("ko"):
        found = find_unsupported("CSV로 저장하고 Calc에서 PDF를 봅니다.", ["CSV 저장하고 Calc의 PDF는 봅니다."])
        assert found == ((), (), ())
        assert find_unsupported("그는 Draw에서 봅니다.", ["그는 Calc에서 봅니다."]).names == ("Draw에서",)
