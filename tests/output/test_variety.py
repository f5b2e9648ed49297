"""Repeated questions in a set of dialogs."""

import random

from generator.config.settings import near_duplicates
from generator.dialogs.dedup import Repetition
from generator.output.stats.variety import VarietyTally
from tests.support.records import make_dialog, make_turn


def test_repeated_questions_of_a_set_are_as_many_as_a_comparison_of_all_finds() -> None:
    rng = random.Random(3)
    vocabulary = [f"w{number}" for number in range(60)]
    originals = [rng.choices(vocabulary, k=rng.randint(1, 10)) for _ in range(100)]
    questions = []
    for _ in range(500):
        words = list(rng.choice(originals))
        if rng.random() < 0.5:
            words[rng.randrange(len(words))] = rng.choice(vocabulary)
        questions.append(" ".join(words))
    dialogs = [questions[first : first + 10] for first in range(0, 500, 10)]
    tally, repetition = VarietyTally(), Repetition(near_duplicates().threshold)
    for dialog in dialogs:
        tally.add(make_dialog(*(make_turn(number, query=query) for number, query in enumerate(dialog, start=1))))
    found = tally.variety()
    everywhere = sum(repetition.find(q, questions[:n]) is not None for n, q in enumerate(questions))
    inside = sum(repetition.find(q, dialog[:n]) is not None for dialog in dialogs for n, q in enumerate(dialog))
    assert 0 < inside < everywhere < 499
    assert found.repeated_in_dialog == inside / 500
    assert found.repeated is not None and 0.98 * everywhere / 500 <= found.repeated <= everywhere / 500
