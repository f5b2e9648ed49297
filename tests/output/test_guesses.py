"""Guessers of answerability: what they find in made sets and in the published one, and what the card says of it."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from generator.config.settings import human_corpus
from generator.output.card import Origin
from generator.output.dataset import write_dataset
from generator.output.stats.guesses import Guess, GuessTally, auc
from generator.schema import Dialog
from tests.support.records import make_dialog, make_passage, make_turn

WORDS = [f"word{number}" for number in range(200)]


def made(count: int, change: Callable[[bool, str], tuple[str, int]] = lambda hard, query: (query, 2)) -> list[Dialog]:
    """Return dialogs of one turn, a third of them unanswerable; `change` gives query and number of passages."""
    chance, dialogs = random.Random(1), []
    for number in range(count):
        hard = number % 3 == 0
        query, passages = change(hard, " ".join(chance.choices(WORDS, k=chance.randint(5, 9))))
        turn = make_turn(1, query=query, answerability="unanswerable" if hard else "answerable")
        found = [make_passage(f"p{place}", "Text.") for place in range(passages)]
        dialogs.append(make_dialog(turn, id=str(number), passages=found))
    return dialogs


def guess(dialogs: list[Dialog]) -> dict[str, Guess]:
    tally = GuessTally()
    for dialog in dialogs:
        tally.add(dialog, dialog.own_turns)
    return {each.sees: each for each in tally.guesses()}


def test_auc_counts_ties_as_half() -> None:
    assert auc(np.array([0.1, 0.5, 0.5, 0.9]), np.array([0.0, 0, 1, 1])) == 0.875


@pytest.mark.parametrize(
    ("change", "away"),
    [
        (lambda hard, query: (query, 2), []),
        (lambda hard, query: (query, 0 if hard else 3), ["number of passages"]),
        (lambda hard, query: (f"Zebras {query}" if hard else f"Ducks {query}", 2), ["question"]),
        (lambda hard, query: (f"{query} and it" if hard else f"{query} of it", 2), ["question"]),
        (lambda hard, query: (" ".join([query, *WORDS[: 9 * hard]]), 2), ["length of the question", "question"]),
    ],
)
def test_what_gives_a_set_away(change: Callable[[bool, str], tuple[str, int]], away: list[str]) -> None:
    found = guess(made(600, change))
    assert sorted(sees for sees, each in found.items() if each.gives_away) == sorted(away)
    assert {(each.answerability, each.pairs) for each in found.values()} == {("unanswerable", 200)}


def test_lengths_count_as_numbers() -> None:
    """Of 150 pairs hardly two have the same length."""
    chance = random.Random(5)

    def longer(hard: bool, _: str) -> tuple[str, int]:
        return " ".join(["word"] * max(1, round(chance.gauss(20 if hard else 12, 6)))), 2

    assert guess(made(150, longer))["length of the question"].gives_away


def test_too_few_of_a_class_tell_nothing() -> None:
    assert guess(made(57)) == {}  # 19 of them
    assert len(guess(made(60))) == 3


@pytest.mark.parametrize(("count", "said"), [(90, True), (30, False)])
def test_the_card_says_so_where_it_can_be_told(count: int, said: bool, tmp_path: Path) -> None:
    info = Origin(name="n", command="c", corpus="c", licence="MIT", source="s", language=None)
    write_dataset(made(count, lambda hard, query: (query, 0 if hard else 3)), tmp_path / "dataset", info)
    card = (tmp_path / "dataset" / "README.md").read_text(encoding="utf-8")
    assert [words in card for words in ("**This set gives itself away**: unanswerable by", "guesser")] == [said, said]


def test_questions_without_a_reference_answer_are_not_guessed(tmp_path: Path) -> None:
    def change(hard: bool, query: str) -> tuple[str, int]:
        return query, 0 if hard else 3

    unanswered = [
        dialog.model_copy(update={"turns": (dialog.turns[0].model_copy(update={"answer": ""}),)})
        for dialog in made(90, change)
    ]
    info = Origin(name="n", command="c", corpus="c", licence="MIT", source="s", language=None)
    write_dataset([*made(30, change), *unanswered], tmp_path / "dataset", info)
    assert "guesser" not in (tmp_path / "dataset" / "README.md").read_text(encoding="utf-8")


def test_the_published_set_gives_its_unanswerable_questions_away(data: Path) -> None:
    corpus = human_corpus("mtrag", str(data / "mtrag_un" / "reference_sample.jsonl"))
    tally = GuessTally()
    for dialog in corpus.dialogs():
        if isinstance(dialog, Dialog):
            tally.add(dialog, dialog.own_turns)
    found = {(each.answerability, each.sees): each.auc for each in tally.guesses()}
    assert found["unanswerable", "number of passages"] > 0.95
