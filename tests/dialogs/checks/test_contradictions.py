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
