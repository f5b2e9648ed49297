"""Where a later question starts, and how many passages a turn adds."""

import asyncio
from collections.abc import Sequence

from generator.dialogs.focus import choose_focus, count_new_passages, find_next_sentence
from generator.prompts.sections import Documents
from generator.schema import Evidence, Hit, Passage, Turn
from tests.support.records import make_evidence, make_passage, make_turn
from tests.support.scripted import Shelf, piece, said

A, B, C = (piece(name) for name in ("pier", "quay", "mole"))


def resting_on(*names: str) -> tuple[Turn, ...]:
    turns = said(*[(f"question {number}", f"it opened {number}") for number in range(len(names))])
    evidence = [(Evidence(passage_id=piece(name).id, start=0, end=3, text="The"),) if name else () for name in names]
    return tuple(turn.model_copy(update={"evidence": e}) for turn, e in zip(turns, evidence, strict=True))


def start(shelf: Shelf, passages: Sequence[object], history: Sequence[Turn], place: int = 0) -> str:
    return asyncio.run(choose_focus(shelf, 4, "train", passages, history, place or len(history)))  # type: ignore[arg-type]


def test_a_later_question_starts_from_a_passage_that_no_answer_rests_on() -> None:
    shelf = Shelf([])
    assert start(shelf, (A, B), resting_on("pier")) == "Quay: The quay opened in May. It has a blue door."
    assert shelf.asked == []
    stopped = B.model_copy(update={"title": "A trial of doors."})
    assert start(shelf, (A, stopped), resting_on("pier")).startswith("A trial of doors: The quay")


def test_a_later_question_does_not_start_from_code() -> None:
    code = B.model_copy(update={"text": "```sh\nopen the quay\n```\n\nThe quay opened in May."})
    assert start(Shelf([]), (A, code), resting_on("pier")) == "Quay: The quay opened in May."


def test_a_later_question_does_not_start_from_a_menu() -> None:
    menu = B.model_copy(update={"text": "The Quay Opened Home Skip to content Question Services Business Contact Us"})
    assert start(Shelf([]), (A, menu), resting_on("pier")) == ""


def test_a_later_question_does_not_start_from_a_heading_without_what_stands_below_it() -> None:
    long = f"It is wet {'in the winter ' * 20}."
    two = B.model_copy(update={"text": f"## Quay\n\nThe quay opened in May.\n\n## Water\n\n{long}"})
    assert start(Shelf([]), (A, two), resting_on("pier")) == "Quay: ## Quay The quay opened in May."


def test_every_other_one_starts_from_a_neighbour_rather_of_another_document() -> None:
    near = A.model_copy(update={"id": "pier:9", "text": "The pier opened."})
    shelf = Shelf([[A.model_copy(update={"id": "copy"}), near, C]])
    assert start(shelf, (A, B), resting_on("pier", "")).startswith("Mole: The mole opened")
    assert shelf.asked == [("question 1 it opened 1", 4, "train")]
    assert start(Shelf([[A, near]]), (A, B), resting_on("pier", "")) == "Pier: The pier opened."


def test_a_later_question_does_not_start_from_what_a_small_collection_brings_last() -> None:
    scored = enumerate([(A, 9.0), (B, 4.0), (C, 1.0)], 1)
    hits = tuple(Hit(passage_id=p.id, score=score, rank=rank, new=True) for rank, (p, score) in scored)
    one, two = (
        tuple(turn.model_copy(update={"hits": hits}) for turn in resting_on(*names))
        for names in (("pier",), ("pier", "quay"))
    )
    assert start(Shelf([]), (C, A, B), one).startswith("Quay: ")
    assert start(Shelf([[*[A] * 6, C]]), (A, B), two).startswith("Mole: ")
    assert start(Shelf([[*[A] * 7, C]]), (A, B), two) == ""


def test_a_later_question_does_not_start_from_what_has_hardly_a_word_of_the_last_turn() -> None:
    (turn,) = resting_on("pier")
    answer = "The council has the old wooden pier painted blue by divers, since its planks, railings and lamps rust."
    history = (turn.model_copy(update={"query": "What about the pier's paint?", "answer": answer}),)
    about = piece("mole", "The mole has the same planks, lamps and railings. It was painted last year.")
    other = piece("lane", "Lamps of houses are painted blue every year, as are their doors.")
    measured = piece("leave", "Leave takes a week, some hours, or 30 days. It is 5 metres long.")
    assert start(Shelf([]), (A, B, about), history).startswith("Mole: ")
    assert start(Shelf([[A, B]]), (A, B), history) == start(Shelf([[A, C]]), (A, B), history, 2) == ""
    assert start(Shelf([[A, other]]), (A, B), history) == ""
    weeks = (history[0].model_copy(update={"answer": f"{answer} It took a week of 40 hours, 8 metres in 3 days."}),)
    assert start(Shelf([[A, measured]]), (A, B), weeks) == ""


def test_after_a_turn_that_was_lost_the_next_one_starts_elsewhere() -> None:
    history = resting_on("pier")
    assert start(Shelf([]), (A, B, C), history, 1).startswith("Mole: ")
    assert start(Shelf([]), (A, B, C), history, 3).startswith("Mole: ")
    assert start(Shelf([[A, piece("weir")]]), (A, B, C), history, 2).startswith("Weir: ")


def test_the_next_sentence_is_one_that_no_answer_rests_on() -> None:
    title = "The new pool at Norton"
    text = f"{title}\nThe pool opens at seven. Children pay half the price. Are dogs allowed? Dogs stay at the gate."
    pool = Passage(id="pool", document_id="pool", title=title, text=text, start=0, end=len(text))
    documents = Documents(passages=(pool,))
    history = tuple(make_turn(number, evidence=documents.evidence([cited])) for number, cited in ((1, 2), (2, 3)))
    one, two = history[:1], history
    assert find_next_sentence((pool,), one, 1) == "Children pay half the price."
    assert find_next_sentence((pool,), one, 2) == "Dogs stay at the gate.", "after a skipped turn"
    assert find_next_sentence((pool,), (*two, make_turn(3, evidence=documents.evidence([5]))), 3) == ""
    assert find_next_sentence((pool,), two, 2) == "Dogs stay at the gate."
    assert find_next_sentence((), (), 0) == ""
    mixed = make_passage("pool", "```sh\npool open children half price\n```\n\nThe pool opens at seven.")
    assert {find_next_sentence((mixed,), (), place) for place in range(3)} == {"The pool opens at seven."}


def test_a_later_question_does_not_start_from_a_sentence_that_is_cut() -> None:
    first = make_passage("1", "Dogs stay at the gate. Children under six pay half")
    text = "Children under six pay half the price. It opens at seven in May."
    rest = make_passage("2", text, start=23, end=23 + len(text))
    found = {find_next_sentence((first, rest), (), place) for place in range(4)}
    assert found == {"Dogs stay at the gate.", "Children under six pay half the price.", "It opens at seven in May."}
    edges = "part of the pool is wet. Dogs stay at the gate. Children under six pay half"
    only = make_passage("3", edges, start=40, end=40 + len(edges))
    assert {find_next_sentence((only,), (), place) for place in range(4)} == {"Dogs stay at the gate."}
    behind = B.model_copy(update={"start": 400, "text": "at six. The quay opened in May. It has a blue door."})
    assert start(Shelf([]), (A, behind), resting_on("pier")) == "Quay: The quay opened in May. It has a blue door."


def test_the_next_sentence_follows_the_last_evidence_where_passages_overlap() -> None:
    one = make_passage("1", "Dogs stay at the gate. Children pay half the price. The water is warm in May.")
    other = make_passage("2", one.text[:51], start=0, end=51)
    turn = make_turn(1, evidence=Documents(passages=(one, other)).evidence([2]))
    assert find_next_sentence((one, other), (turn,), 1) == "The water is warm in May."


def test_new_passages_are_those_whose_text_no_earlier_evidence_shares() -> None:
    def cut(name: str, document_id: str, start: int, end: int) -> Passage:
        return Passage(id=name, document_id=document_id, text="t" * (end - start), start=start, end=end)

    passages = (cut("a1", "a", 0, 9), cut("a2", "a", 5, 15), cut("a3", "a", 15, 20), cut("b", "b", 0, 9))

    def count(*turns: Sequence[str]) -> list[int | None]:
        made = [make_turn(number, evidence=make_evidence(*cited)) for number, cited in enumerate(turns, 1)]
        return [count_new_passages(passages, made[:place], turn) for place, turn in enumerate(made)]

    assert count(["a1"], ["a1"], ["a2"], ["a3", "a1"], ["a2", "b"], []) == [None, 0, 0, 1, 1, None]


def test_edited_passages_of_a_document_share_no_text_since_their_offsets_are_their_own() -> None:
    passages = [make_passage("a1", "The office opens."), make_passage("a2", "Ferries leave at nine.")]
    first, second = (make_turn(place, evidence=make_evidence(f"a{place}")) for place in (1, 2))
    assert count_new_passages(passages, [first], second) == 1
