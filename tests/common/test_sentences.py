"""What answers and later questions say in natural Japanese and Hindi sentences (`tests/data/languages`)."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from generator.common.language import Language, Languages, load_language, use_languages
from generator.common.refusals import has_refusal
from generator.dialogs.answer_checks import find_answer_fault
from generator.dialogs.asks_back import find_request
from generator.dialogs.later_turns import REPEATS, find_later_fault
from generator.dialogs.prompt import Documents
from tests.support.scripted import KINDS, said

DATA = Path(__file__).parent.parent / "data/languages"
NONE = Documents(passages=())


def fault(answer: str, question: str = "?") -> str:
    return find_answer_fault(answer, question, ()) or ""


def repeats(earlier: str, question: str) -> bool:
    return find_later_fault(question, NONE, said((earlier, "1890")), KINDS["follow-up"], "") == REPEATS


SEEN: dict[str, Callable[..., object]] = {
    "refuses": lambda of, text: has_refusal(text),
    "speaks_of_documents": lambda of, text: fault(text).startswith("speaks of the documents"),
    "asks_back": lambda of, text: find_request(text),
    "announces": lambda of, text: fault(text) == "answers nothing",
    "corrects_question": lambda of, text: of.matches("corrects_question", text),
    "clarifies": lambda of, text: of.matches("clarifies", text),
    "whether": lambda of, text: of.pattern("whether").match(text),
    "asks_the_same": lambda of, earlier, question: repeats(earlier, question),
    "echoes": lambda of, question, answer: fault(answer, question) == "answers nothing",
}


@pytest.mark.parametrize("check", SEEN)
@pytest.mark.parametrize("code", ["hi", "ja"])
def test_sentences_are_read_as_people_read_them(code: str, check: str) -> None:
    sentences = yaml.safe_load((DATA / f"{code}.sentences.yaml").read_text(encoding="utf-8"))
    language: Language = load_language(code)
    with use_languages(Languages(language, language)):
        for name, wanted in ((check, True), (f"{check}_not", False)):
            texts = [[each] if isinstance(each, str) else each for each in sentences[name]]
            assert [text for text in texts if bool(SEEN[check](language, *text)) != wanted] == [], name


@pytest.mark.parametrize(
    ("code", "answer", "plain"),
    [
        ("ja", "文書によると、九時に開きます。", "九時に開きます。"),
        ("hi", "दस्तावेज़ के अनुसार, यह नौ बजे खुलता है।", "यह नौ बजे खुलता है।"),
    ],
)
def test_a_leading_according_to_the_documents_is_cut(code: str, answer: str, plain: str) -> None:
    language = load_language(code)
    with use_languages(Languages(language, language)):
        assert fault(answer).endswith(f"write “{plain}”")


@pytest.mark.parametrize(
    ("code", "question", "rejected"),
    [("ja", "大人ではなく子供の料金です。", "大人"), ("hi", "बड़ों के बजाय बच्चों का शुल्क", "बड़ों")],
)
def test_what_was_not_meant_is_found(code: str, question: str, rejected: str) -> None:
    pattern = load_language(code).pattern("rejects")
    assert pattern is not None and pattern.findall(question) == [rejected]
