"""An answer is labelled by how much of the question it gives, whatever its writer called it."""

import pytest

from generator.dialogs.checks.answerability import measure_answerability

QUERY = "What does a pass cost for students, and can they share it?"


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("A pass costs students 12 crowns, and up to three may share it.", "answerable"),
        ("No, they can't share it, and the pass isn't sold to students.", "answerable"),  # a negative fact is no gap
        ("I don't have information on that.", "unanswerable"),
        ("The rules of the pool don't say whether students may share a pass.", "unanswerable"),
        ("I'm sorry, I don't know what a pass costs for students or whether they can share it.", "unanswerable"),
        ("Students pay 12 crowns a month at the counter. I don't have information on sharing it.", "partial"),
        ("I don't have information on students, but adults pay 20 crowns a month and retired people 8.", "partial"),
        ("It costs 12 crowns, but I don't know about sharing.", "partial"),
        ("Children swim there free of charge, so I don't know whether a pass helps.", "partial"),
        ("I don't know about sharing. You can visit us from 2 pm to 4 pm and pay as a student.", "partial"),
        ("They pay a fee. I don't know whether they can share it.", "partial"),
        ("I don't know whether they can share it. They pay a fee.", "unanswerable"),  # the nearest thing
        ("I don't know about sharing. Please ask at the counter.", "unanswerable"),
        ("Yes, students share a pass. I don't know what it does cost.", "partial"),
        ("No, students can't share a pass. I don't know what it does cost.", "partial"),
        ("Yes, but I don't know what a pass does cost.", "partial"),
        ("No, I don't know what a pass costs for students.", "unanswerable"),
        ("No. I don't have information on that.", "unanswerable"),
    ],
)
def test_an_answer_is_partial_only_if_it_gives_a_part_and_says_what_is_missing(answer: str, label: str) -> None:
    for own in ("answerable", "partial", "unanswerable"):
        assert measure_answerability(QUERY, answer, own) == label


def test_in_another_language_the_models_own_word_stays() -> None:
    assert (
        measure_answerability("Was kostet die Karte?", "Dazu weiß ich leider nichts.", "unanswerable") == "unanswerable"
    )
