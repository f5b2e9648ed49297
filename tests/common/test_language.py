"""Languages as data: words, patterns and search in the eight that are shipped with them, and in one more."""

import json
from pathlib import Path

import pytest

from generator.common.detection import detect_language, find_other_language
from generator.common.language import Language, Languages, known_codes, load_language, use_languages
from generator.common.passages import sentences, windows
from generator.common.refusals import drop_refusals, has_refusal
from generator.common.scripts import count_words, words
from generator.common.shingles import content_stems
from generator.common.support import find_unsupported, read_terms
from generator.dialogs.answer_checks import find_answer_fault
from generator.dialogs.answerability import measure_answerability
from generator.dialogs.asks_back import find_request
from generator.dialogs.checks import speaks_of_documents
from generator.errors import ConfigError

DATA = Path(__file__).parent.parent / "data/languages"
SHIPPED = ("en", "de", "fr", "es", "ar", "hi", "ja", "zh")
# Answers: one that says that it isn't known, a partial one, one that speaks of documents, a question back.
TOLD = {
    "en": (
        "I don't have information on the fee.",
        "The library opens at nine, but I don't know the price of the yearly reader ticket.",
        "According to the document, it opens at nine.",
        "Do you mean the library or the museum?",
    ),
    "de": (
        "Dazu habe ich keine Informationen.",
        "Die Bibliothek öffnet um neun Uhr und schließt abends um acht, aber die Gebühr ist mir nicht bekannt.",
        "Laut dem Dokument öffnet sie um neun Uhr.",
        "Meinen Sie die Bibliothek oder das Museum?",
    ),
    "fr": (
        "Je n'ai pas d'information sur le tarif.",
        "La bibliothèque ouvre à neuf heures et ferme le soir, mais je ne connais pas le tarif.",
        "Selon le document, elle ouvre à neuf heures.",
        "Voulez-vous parler de la bibliothèque ou du musée ?",
    ),
    "es": (
        "No tengo información sobre la tarifa.",
        "La biblioteca abre a las nueve y cierra por la tarde, pero no conozco la tarifa.",
        "Según el documento, abre a las nueve.",
        "¿Se refiere a la biblioteca o al museo?",
    ),
    "ar": (
        "ليست لدي معلومات عن الرسوم.",
        "تفتح المكتبة في التاسعة صباحا وتغلق مساء، لكن لا أعرف الرسوم.",
        "وفقا للوثيقة، تفتح المكتبة في التاسعة.",
        "هل تقصد المكتبة أم المتحف؟",
    ),
    "hi": (
        "मेरे पास इसकी जानकारी नहीं है।",
        "पुस्तकालय सुबह नौ बजे खुलता है और शाम को बंद होता है, लेकिन शुल्क की जानकारी नहीं है।",
        "दस्तावेज़ के अनुसार यह नौ बजे खुलता है।",
        "क्या आपका मतलब पुस्तकालय है या संग्रहालय?",
    ),
    "ja": (
        "それについての情報はありません。",
        "図書館は朝九時に開き、夜八時に閉館します。しかし、料金はわかりません。",
        "文書によると、九時に開きます。",
        "図書館と博物館のどちらのことでしょうか？",
    ),
    "zh": (
        "我没有关于费用的信息。",
        "图书馆早上九点开门，晚上八点关门，但是我不知道费用是多少。",
        "根据文档，九点开门。",
        "您是指图书馆还是博物馆？",
    ),
}


def both(code: str) -> Languages:
    return Languages(load_language(code), load_language(code))


@pytest.mark.parametrize("code", SHIPPED)
def test_what_answers_say_is_read_in_each_language(code: str) -> None:
    unknown, partial, scaffolding, back = TOLD[code]
    with use_languages(both(code)):
        assert has_refusal(unknown) and has_refusal(partial)
        assert len(content_stems(drop_refusals(partial))) < len(content_stems(partial))
        assert measure_answerability("?", unknown, "answerable") == "unanswerable"
        assert measure_answerability("?", partial, "answerable") == "partial"
        assert speaks_of_documents(scaffolding) and not any(map(speaks_of_documents, (unknown, partial, back)))
        assert find_answer_fault(partial, back, ()) is None
        assert find_request(back) and not find_request(partial)


@pytest.mark.parametrize("code", SHIPPED)
def test_a_real_text_is_cut_and_known_as_its_language_and_no_other(code: str) -> None:
    records = [json.loads(line) for line in (DATA / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()]
    with use_languages(both(code)):
        for record in records:
            text = record["text"]
            assert find_unsupported(text, [text]) == ((), (), ())
            spans = sentences(text)
            assert len(spans) == 2 and "".join(text[a:b] for a, b in spans) == text.replace("\n\n", "")
            assert len(read_terms(text)) >= 8
            assert [*windows(text, 10_000, 0)] == [(0, len(text))]
    texts = [record["text"] for record in records]
    assert detect_language(texts)[0] == code
    for other in SHIPPED:
        found = [find_other_language(text, load_language(other)) for text in texts]
        assert not any(found) if other == code else sum(map(bool, found)) >= 15, (other, found)


def test_words_keep_their_vowel_signs_and_letters_without_spaces_stand_alone() -> None:
    assert words("हिन्दी में Ähren 図書館") == ["हिन्दी", "में", "ähren", "図", "書", "館"]
    assert count_words("How old is it?") == 4 and count_words("図書館は") == 2


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("de", "Ja, gerne."),
        ("de", "Python, NumPy, PyTorch, JAX und TensorFlow"),
        ("ja", "Python 3.11とBM25を使います。"),
        ("en", "Sacramento, San Diego, Los Angeles, San Francisco"),
        ("zh", "PostgreSQL 15"),
        ("zh", "Maria Lindqvist"),
        ("zh", "用 `apt-get install nginx`。"),
        ("ru", "Johann Sebastian Bach"),
        ("el", "support@example.com"),
        ("ja", "東京都千代田区丸の内一丁目九番一号"),
        ("ja", "独立行政法人日本学生支援機構奨学金事業"),
    ],
)
def test_short_texts_and_names_are_in_any_language(code: str, text: str) -> None:
    assert find_other_language(text, load_language(code)) is None


def test_letters_of_another_script_are_a_slip_even_inside_a_text() -> None:
    text = "Die Gebühr ist 5 Euro。如果您需要更多信息请告诉我们。"
    assert find_other_language(text, load_language("de")) == "Chinese"


@pytest.mark.parametrize("code", ["zh", "ru", "ar", "ja", "el"])
@pytest.mark.parametrize("text", ["The backup tool keeps its data in PostgreSQL.", "Maria Lindqvist is the author."])
def test_an_english_sentence_with_a_name_is_a_slip_where_letters_are_not_latin(code: str, text: str) -> None:
    assert find_other_language(text, load_language(code)) == "English"


def test_texts_in_many_languages_or_none_have_no_language() -> None:
    assert detect_language([words for words, *_ in TOLD.values()])[0] is None
    assert detect_language(["12 34", "---"])[0] is None


def test_a_language_more_is_a_file_more(tmp_path: Path) -> None:
    (tmp_path / "sw.yaml").write_text(
        "name: Swahili\nscripts: [Latin]\nwords:\n  stop: na ya wa kwa\npatterns:\n  refusal: '\\bsijui\\b'\n",
        encoding="utf-8",
    )
    swahili = load_language("sw", tmp_path)
    with use_languages(Languages(swahili, swahili)):
        assert has_refusal("Samahani, sijui bei.") and not has_refusal("Maktaba inafunguliwa saa tatu.")
        assert [term.key for term in read_terms("bei ya kitabu")] == ["bei", "kitabu"]
    assert load_language("de", tmp_path) == load_language("de")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("name: X\nstemmer: klingon\n", "stemmer"),
        ("name: X\npatterns: {refusal: '('}\n", "refusal"),
        ("name: X\nwords: {stopp: a}\n", "words"),
        ("- X\n", "language file"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, content: str, named: str) -> None:
    (tmp_path / "xx.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=named) as raised:
        load_language("xx", tmp_path)
    assert "xx.yaml" in str(raised.value) and "\n" not in str(raised.value)


def test_every_file_of_ours_can_be_used() -> None:
    for code in known_codes():
        language = load_language(code)
        assert language.name and language.scripts and not language.matches("refusal", "")
        assert isinstance(language.stem(["a"]), list)
        assert Language.model_validate(language.model_dump()) == language
