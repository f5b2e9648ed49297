"""The question-type judge: what it learned, what it says of any text, and that its examples are mtRAG's."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from generator.schema import Dialog, Turn, Verdict
from judges.question_type import ALSO, QuestionTypeJudge, cues, examples, question_types, rules
from tests.scripted import said

TYPES = {
    *("comparative", "composite", "explanation", "factoid", "how-to"),
    *("keyword", "non-question", "opinion", "summarization", "troubleshooting"),
}


def first(query: str) -> str:
    return question_types(query)[0][0]


def verdict(query: str, history: tuple[Turn, ...] = ()) -> Verdict:
    (turn,) = said((query, "The answer."))
    return asyncio.run(QuestionTypeJudge("any-model").judge((), history, turn))


def test_the_package_carries_every_labelled_question_of_the_three_domains() -> None:
    known = examples()
    assert (len(known), len({example.conversation for example in known})) == (637, 84)
    assert {kind for example in known for kind in example.types} == TYPES
    assert sum(len(example.types) > 1 for example in known) == 173


def test_what_the_package_carries_is_what_the_benchmark_writes_from_the_data(data: Path) -> None:
    from benchmarks.question_types import SHIPPED, asked, content
    from generator.config import human_corpus

    dialogs = [found for found in human_corpus("mtrag", str(data / "mtrag")).dialogs() if isinstance(found, Dialog)]
    assert content(asked(dialogs)) == SHIPPED.read_text(encoding="utf-8")


# None of these is among the examples.
@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Who painted the ceiling of the town hall?", "factoid"),
        ("How many bridges cross the Neckar?", "factoid"),
        ("How do I repot an orchid?", "how-to"),
        ("How can I renew my library card?", "how-to"),
        ("What is the difference between a canal and a river?", "comparative"),
        ("When did the mill close, and who owned it?", "composite"),
        ("Where is the ferry? When does it leave?", "composite"),
        ("tram timetable", "keyword"),
        ("Thanks, that was very helpful.", "non-question"),
        ("Why do leaves turn red?", "explanation"),
    ],
)
def test_plain_questions_it_has_never_seen(query: str, kind: str) -> None:
    assert query not in {example.question for example in examples()}
    assert first(query) == kind


def test_more_of_the_examples_are_named_right_than_by_always_saying_factoid() -> None:
    known = examples()
    right = sum(first(example.question) in example.types for example in known)
    always = sum("factoid" in example.types for example in known)
    assert always == 230
    assert right > 1.5 * always


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "?",
        "!!!",
        "'",
        "👍",
        "🎉 why 🎉?",
        "Wie alt ist der Turm?",
        "塔は何歳ですか。",
        "a\nb?\n",
        "\x00",
        "why " * 5000,
    ],
    ids=lambda query: repr(query[:20]),
)
def test_any_text_gets_a_type(query: str) -> None:
    found = question_types(query)
    assert {kind for kind, _ in found} <= TYPES
    assert all(0 <= probability <= 1 for _, probability in found)
    assert rules(query)


def test_the_surest_comes_first_and_others_only_if_they_are_sure_enough() -> None:
    several = [found for example in examples() if len(found := question_types(example.question)) > 1]
    assert several
    for found in several:
        probabilities = [probability for _, probability in found]
        assert probabilities == sorted(probabilities, reverse=True)
        assert min(probabilities[1:]) >= ALSO
        assert len({kind for kind, _ in found}) == len(found)


def test_the_verdict_names_the_types_and_decides_nothing() -> None:
    query = next(e.question for e in examples() if len(question_types(e.question)) > 1)
    found = question_types(query)
    said_of_it = verdict(query)
    assert said_of_it.label == "+".join(kind for kind, _ in found)
    assert said_of_it.label.count("+") == len(found) - 1 > 0
    assert (said_of_it.judge, said_of_it.model, said_of_it.decides) == ("question_type", "", False)
    assert said_of_it.score == found[0][1]
    assert not QuestionTypeJudge.asks_model


def test_what_was_said_before_changes_nothing() -> None:
    history = said(("Hello.", "Which town do you mean?"))
    assert verdict("How old is it?", history) == verdict("How old is it?")


def test_letter_case_of_words_and_white_space_around_change_nothing() -> None:
    assert cues("  HOW do I park?\n") == cues("how do I park?")


def test_another_process_says_the_same_to_the_last_digit() -> None:
    queries = [example.question for example in examples()[::20]]
    program = f"from judges.question_type import question_types\nprint([question_types(q) for q in {queries!r}])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == str([question_types(query) for query in queries])
