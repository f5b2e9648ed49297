"""Read what answers and later questions say, in each language; `tests/data/languages` has sentences of nine."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from generator.common.detection import detect_language
from generator.common.language import known_codes, load_language
from generator.common.refusals import drop_refusals, has_refusal
from generator.common.shingles import content_stems
from generator.dialogs.checks.answerability import measure_answerability
from generator.dialogs.checks.answers import find_answer_fault
from generator.dialogs.checks.asks_back import find_request
from generator.dialogs.checks.later_turns import REPEATS, find_later_fault, refers_back
from generator.dialogs.checks.questions import speaks_of_documents
from generator.prompts.sections import Documents
from judges.metrics.grounding import strip_refusal
from tests.support.languages import speaking
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
    "refers": lambda of, text: refers_back(text),
    "echoes": lambda of, question, answer: fault(answer, question) == "answers nothing",
}


@pytest.mark.parametrize(
    ("code", "check"),
    [
        *((code, check) for code in ("hi", "ja", "zh") for check in SEEN if check != "refers"),
        *((code, "refuses") for code in ("cs", "it", "ko", "nl", "pt", "ru")),
        *(("ar", check) for check in ("refuses", "clarifies")),
        *((code, "refers") for code in ("de", "es", "fr")),
    ],
)
def test_sentences_are_read_as_people_read_them(code: str, check: str) -> None:
    sentences = yaml.safe_load((DATA / f"{code}.sentences.yaml").read_text(encoding="utf-8"))
    with speaking(code) as (_, language):
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
    with speaking(code):
        assert fault(answer).endswith(f"write “{plain}”")


@pytest.mark.parametrize(
    ("code", "question", "rejected"),
    [("ja", "大人ではなく子供の料金です。", "大人"), ("hi", "बड़ों के बजाय बच्चों का शुल्क", "बड़ों")],
)
def test_what_was_not_meant_is_found(code: str, question: str, rejected: str) -> None:
    pattern = load_language(code).pattern("rejects")
    assert pattern is not None and pattern.findall(question) == [rejected]


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


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("我没有关于这方面的信息，只知道游船每人40元。", "只知道游船每人40元。"),
        ("我没有关于码头的信息，游船每人40元。", "游船每人40元。"),
        ("关于码头的信息，我不清楚。", ""),
    ],
)
def test_what_a_chinese_answer_knows_beside_what_it_does_not_is_told(answer: str, told: str) -> None:
    with speaking("zh"):
        assert drop_refusals(answer).strip() == told
        assert find_answer_fault(answer, "游船从哪个码头出发？", ()) is None


@pytest.mark.parametrize("code", TOLD)
def test_what_answers_say_is_read_in_each_language(code: str) -> None:
    unknown, partial, scaffolding, back = TOLD[code]
    with speaking(code):
        assert has_refusal(unknown) and has_refusal(partial)
        assert len(content_stems(drop_refusals(partial))) < len(content_stems(partial))
        assert measure_answerability("?", unknown, "answerable") == "unanswerable"
        assert measure_answerability("?", partial, "answerable") == "partial"
        assert speaks_of_documents(scaffolding) and not any(map(speaks_of_documents, (unknown, partial, back)))
        assert find_answer_fault(partial, f"{back} {partial}", ()) is None
        assert find_request(back) and not find_request(partial)


@pytest.mark.parametrize(
    ("code", "instruction", "back"),
    [
        ("de", "Bitte geben Sie Ihren Ausweis am Schalter ab.", "Bitte geben Sie an, welchen Ausweis Sie haben."),
        ("fr", "Veuillez présenter votre carte au guichet.", "Veuillez préciser quelle carte vous avez."),
        ("es", "Indique su nombre en el formulario.", "Por favor, indique qué carné tiene."),
    ],
)
def test_an_instruction_asks_nothing_back(code: str, instruction: str, back: str) -> None:
    with speaking(code):
        assert find_request(back) and not find_request(instruction)


@pytest.mark.parametrize("code", sorted(known_codes()))
def test_an_answer_that_begins_as_prompts_demand_says_that_it_is_not_known(code: str) -> None:
    with speaking(code) as (_, language):
        assert has_refusal(language.unknown) or not language.pattern("refusal")


@pytest.mark.parametrize(
    ("code", "partial", "told"),
    [
        ("it", "Apre alle nove e chiude di sera, ma non so quanto costa.", "Apre alle nove e chiude di sera"),
        ("nl", "Het gaat om negen uur open, maar ik weet niet wat het kost.", "Het gaat om negen uur open"),
        ("pt", "Abre às nove e fecha à noite, mas não sei quanto custa.", "Abre às nove e fecha à noite"),
    ],
)
def test_what_is_told_beside_a_refusal_stays(code: str, partial: str, told: str) -> None:
    with speaking(code):
        assert drop_refusals(partial) == told
        assert measure_answerability("?", partial, "answerable") == "partial"
        assert strip_refusal(partial, []).strip().startswith(told)
        assert not has_refusal(told)


@pytest.mark.parametrize(
    ("code", "told", "refusal"),
    [
        ("de", "Sie öffnet um neun.", "Ob Hunde hineindürfen, weiß ich nicht."),
        ("de", "Sie öffnet um neun;", "den genauen Preis kenne ich nicht."),
        ("de", "Sie öffnet um neun.", "Zur Gebühr kann ich nichts sagen."),
        ("fr", "Elle ouvre à neuf heures.", "Combien coûte l'entrée, je ne le sais pas."),
        ("fr", "Elle ouvre à neuf heures ;", "l'heure de fermeture ne m'est pas connue."),
        ("fr", "Elle ouvre à neuf heures.", "J'ignore si elle ferme à midi."),
        ("es", "Abre a las nueve.", "Lo que cuesta la entrada no lo sé."),
        ("es", "Abre a las nueve.", "No me consta que cierre a mediodía."),
    ],
)
def test_a_refusal_goes_with_what_it_names_first(code: str, told: str, refusal: str) -> None:
    with speaking(code):
        for claim in (drop_refusals(f"{told} {refusal}"), strip_refusal(f"{told} {refusal}", [told])):
            assert claim.strip(" .") == told.strip(" .")


@pytest.mark.parametrize(
    ("code", "question", "refusals"),
    [
        (
            "it",
            "Quanto costa il parcheggio?",
            ["Mi dispiace, ma non ho dettagli su questo.", "Non ho informazioni sul parcheggio."],
        ),
        (
            "nl",
            "Wat kost parkeren?",
            ["Dat weet ik niet.", "Helaas heb ik daar geen informatie over.", "Ik heb geen informatie over parkeren."],
        ),
        (
            "pt",
            "Quanto custa o estacionamento?",
            ["Lamento, não disponho dessa informação.", "Não sei quanto custa o estacionamento."],
        ),
    ],
)
def test_what_is_said_of_any_question_needs_no_word_of_it(code: str, question: str, refusals: list[str]) -> None:
    with speaking(code):
        assert [fault(refusal, question) for refusal in refusals] == [""] * len(refusals)


def test_texts_in_many_languages_or_none_have_no_language() -> None:
    assert detect_language([words for words, *_ in TOLD.values()])[0] is None
    assert detect_language(["12 34", "---"])[0] is None
