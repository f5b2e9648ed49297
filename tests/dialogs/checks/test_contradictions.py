"""Answers that can't be true if their passages are."""

import pytest

from generator.dialogs.checks.answers import find_answer_fault
from tests.support.scripted import piece


@pytest.mark.parametrize(
    ("answer", "contrary"),
    [
        ("Yes, lost keys are refunded.", "refunded"),
        ("No, full months are not refunded.", "not refunded"),
        ("At least five lockers are open in July.", "At least five"),
        ("The pool is closed in July.", "closed"),
        ("No, lost keys aren't refunded.", ""),
        ("Full months are refunded, but lost keys are not.", ""),
        ("The pool is open in July.", ""),
        ("It is not refunded if you never paid anything at the desk.", ""),  # in other words than the pool's
    ],
)
def test_an_answer_does_not_say_the_contrary_of_what_is_told(answer: str, contrary: str) -> None:
    text = "The pool is open in July. At most five lockers are open then. Full months are refunded. Lost keys are not "
    pool = piece("pool", f"{text}refunded.")
    found = find_answer_fault(answer, "What about July, keys and full months?", (), [pool]) or ""
    assert found.endswith(f": “{contrary}”") if contrary else not found


def test_a_number_is_not_that_of_something_else() -> None:
    hire = piece("hire", "A day costs 14 euros for a city bike and 22 euros for a cargo bike.")
    question = "How much is a cargo bike for a day?"
    assert "“14 euros”" in (find_answer_fault("14 euros a day.", question, (), [hire]) or "")
    assert find_answer_fault("22 euros a day.", question, (), [hire]) is None


@pytest.mark.parametrize(
    ("question", "answer", "condition"),
    [
        ("When?", "If you are late, you get your money back at the desk.", "If we cancel a crossing"),
        ("What if I am late?", "You get your money back at the desk.", "If we cancel a crossing"),
        ("What if you cancel?", "You get your money back at the desk.", ""),
        ("When?", "If a crossing doesn't take place, you get your money back at the desk.", ""),
        ("What if I am late?", "You can take the next boat to the island.", ""),  # without a condition
    ],
)
def test_an_answer_gives_nothing_under_another_condition(question: str, answer: str, condition: str) -> None:
    text = "If we cancel a crossing, you get your money back at the desk. You can take the next boat to the island."
    found = find_answer_fault(answer, question, (), [piece("ferry", text)]) or ""
    assert found.endswith(f": “{condition}”") if condition else not found


def test_a_condition_may_be_told_in_other_words_beside_another_one() -> None:
    policy = piece("policy", "E-bikes in the home are covered only if you have chosen the Mobility option.")
    answer = "E-bikes in the home are only covered with the Mobility option, and pipes aren't if it is empty."
    assert find_answer_fault(answer, "What is covered?", (), [policy]) is None
    assert find_answer_fault("E-bikes in the home are covered if it is empty.", "What is covered?", (), [policy])


def test_a_condition_in_the_question_may_share_a_word_with_the_answer() -> None:
    leaflet = piece("leaflet", "Stop taking the tablets and see a doctor at once if your face swells.")
    answer = "Then stop taking the tablets and see a doctor at once."
    found = find_answer_fault(answer, "And if I did take two by accident?", (), [leaflet])
    assert found == "gives under another condition what is told: “if your face swells”"
    assert find_answer_fault(answer, "And if my face swells after I take one?", (), [leaflet]) is None
