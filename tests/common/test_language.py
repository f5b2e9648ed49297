"""Languages as data: words, patterns and search in the eight that are shipped with them, and in one more."""

import json
from pathlib import Path

import pytest

from generator.common.detection import detect_language, find_other_language
from generator.common.language import Languages, known_codes, load_language, use_languages
from generator.common.language_file import Language
from generator.common.passages import find_tokens, windows
from generator.common.refusals import has_refusal
from generator.common.scripts import count_words, find_runs, words
from generator.common.sentences import sentences
from generator.common.support import find_unsupported, read_terms
from generator.errors import ConfigError
from tests.support.languages import speaking

DATA = Path(__file__).parent.parent / "data/languages"
SHIPPED = ("en", "de", "fr", "es", "ar", "hi", "ja", "zh")


@pytest.mark.parametrize("code", SHIPPED)
def test_a_real_text_is_cut_and_known_as_its_language_and_no_other(code: str) -> None:
    records = [json.loads(line) for line in (DATA / f"{code}.jsonl").read_text(encoding="utf-8").splitlines()]
    with speaking(code):
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
    assert words("за\u0301мок Ve\u0301 n\u0308x") == ["за\u0301мок", "vé", "n\u0308x"]
    assert [token.group() for token in find_tokens("Ve\u0301, ca\u0323\u0302p!")] == [
        "Ve\u0301",
        ",",
        "ca\u0323\u0302p",
        "!",
    ]
    assert words("İskele, ISKELE") == ["iskele", "iskele"] and find_runs("İskele") == [("iskele", "")]
    assert count_words("How old is it?") == 4 and count_words("図書館は") == 2
    assert count_words("ตั๋วเด็กของเรือท่าเขียวราคาเท่าไร") == 9  # seven for a reader
    assert count_words("Combien coûte la formule « Fidèle » ?") == 5
    assert count_words("みどり台病院の胃内視鏡検査の費用はいくらですか？") == 10  # marks are no words
    assert count_words("大根は、何分下ゆでしますか？") == count_words("大根は何分下ゆでしますか")
    assert count_words("4時間あければ1日4回飲めるということですか？") == 9  # of 22 letters and digits
    assert count_words("SK-310：价格多少？") == 3 and count_words("時々、様々な人々") == 3


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
        ("name: X\nscripts: [latin]\n", "unknown script latin"),
        ("name: X\nmonths: jan feb\n", "months"),
        ("- X\n", "language file"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, content: str, named: str) -> None:
    (tmp_path / "xx.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=named) as raised:
        load_language("xx", tmp_path)
    assert "xx.yaml" in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(ConfigError, match="no such folder"):
        load_language("xx", tmp_path / "langs")


def test_every_file_of_ours_can_be_used() -> None:
    for code in known_codes():
        language = load_language(code)
        assert language.name and language.scripts and not language.matches("refusal", "")
        assert isinstance(language.stem(["a"]), list)
        assert Language.model_validate(language.model_dump(), context=True) == language
