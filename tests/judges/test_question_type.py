"""The question-type judge: what it says of any text, and that its weights are what people's labels teach."""

import asyncio
from pathlib import Path

import pytest

from generator.config.settings import human_corpus
from generator.dialogs.relabel import relabel_turn
from generator.schema import Dialog
from judges.metrics.question_type import ALSO, QuestionTypeJudge, load_weights, question_types, rules
from tests.support.scripted import said

pytest.importorskip("sklearn", reason="scikit-learn, which the weights are learned with, isn't installed")
from sklearn.preprocessing import MultiLabelBinarizer

from benchmarks.question_types import SHIPPED, Question, fit, read_questions, to_json
from tests.support.languages import speaking

TYPES = {
    *("comparative", "composite", "explanation", "factoid", "how-to"),
    *("keyword", "non-question", "opinion", "summarization", "troubleshooting"),
}


def first(query: str) -> str:
    return question_types(query)[0][0]


@pytest.fixture(scope="module")
def questions(data: Path) -> list[Question]:
    """Return those that people labelled; read once, since nothing changes them."""
    corpus = human_corpus("mtrag", str(data / "mtrag"))
    return read_questions([found for found in corpus.dialogs() if isinstance(found, Dialog)])


def test_the_weights_are_what_the_benchmark_learns_from_people(questions: list[Question]) -> None:
    binarizer = MultiLabelBinarizer()
    labels = binarizer.fit_transform([item.types for item in questions]).astype(float)
    again, carried = fit(questions, labels, binarizer.classes_), load_weights()
    assert set(carried.types) == TYPES
    assert (again.types, again.cues.keys(), again.source) == (carried.types, carried.cues.keys(), carried.source)
    assert again.start == pytest.approx(carried.start, abs=0.002)
    for name, weights in again.cues.items():
        assert weights == pytest.approx(carried.cues[name], abs=0.002), name
    assert SHIPPED.read_text(encoding="utf-8") == to_json(carried)


# None of these is among those that it learned from.
@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Who painted the ceiling of the town hall?", "factoid"),
        ("How do I repot an orchid?", "how-to"),
        ("What is the difference between a canal and a river?", "comparative"),
        ("When did the mill close, and who owned it?", "composite"),
        ("Where is the ferry? When does it leave?", "composite"),
        ("tram timetable", "keyword"),
        ("Thanks, that was very helpful.", "non-question"),
        ("Why do leaves turn red?", "explanation"),
    ],
)
def test_plain_questions_it_has_never_seen(query: str, kind: str) -> None:
    assert first(query) == kind


def test_it_has_learned_something(questions: list[Question]) -> None:
    assert len(questions) == 637
    always = sum("factoid" in item.types for item in questions)
    assert sum(first(item.text) in item.types for item in questions) > 1.5 * always > 0


@pytest.mark.parametrize(
    "query",
    ["", "   ", "?", "'", "👍", "Wie alt ist der Turm?", "塔は何歳ですか。", "a\nb?\n", "\x00", "why " * 5000],
    ids=lambda query: repr(query[:20]),
)
def test_any_text_gets_a_type(query: str) -> None:
    found = question_types(query)
    assert {kind for kind, _ in found} <= TYPES
    assert all(0 <= probability <= 1 for _, probability in found)
    assert rules(query)


def test_the_surest_comes_first_and_others_only_if_they_are_sure_enough() -> None:
    for query in ("When did the mill close, and who owned it?", "Which is better, a tram or a bus?"):
        found = question_types(query)
        assert len(found) > 1
        probabilities = [probability for _, probability in found]
        assert probabilities == sorted(probabilities, reverse=True)
        assert min(probabilities[1:]) >= ALSO
        verdict = asyncio.run(QuestionTypeJudge().judge((), (), said((query, "The answer."))[0]))
        assert verdict.label == "+".join(kind for kind, _ in found)
        assert (verdict.judge, verdict.score, verdict.decides) == ("question_type", probabilities[0], False)


def test_a_question_in_another_language_keeps_the_type_that_it_was_asked_as() -> None:
    (turn,) = said(("Wie lange ist die Bücherei geöffnet?", "Bis acht."))
    with speaking("de"):
        verdict = asyncio.run(QuestionTypeJudge().judge((), (), turn))
    assert verdict.label == "unjudged"
    assert relabel_turn(turn.model_copy(update={"verdicts": (verdict,)})).question_type == turn.question_type
