"""`taxonomy=mtrag`: what is planned for each turn, how it is asked for, and how the outcome is labelled."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.config.choices import compose_choice
from generator.dialogs.dedup import Repetition
from generator.dialogs.focus import choose_focus
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.program import Draft
from generator.dialogs.relabel import relabel_turn
from generator.schema import Evidence, QueryForm, Turn, Verdict
from taxonomy import Mix, QuestionType, Target, Taxonomy, first_type, load, read_facets, turn_types
from tests.support.openai_server import Body, OpenAIServer
from tests.support.runs import Site, replying
from tests.support.runs import turn as number_of
from tests.support.scripted import KINDS, Scripted, Shelf, piece, said, task

SETTINGS = {key: value for key, value in compose_choice("taxonomy", "mtrag").items() if key != "_target_"}
LINKS, AIMS = read_facets("multi_turn"), read_facets("answerability")


def mtrag(**changes: object) -> Taxonomy:
    return load(Mix.model_validate(SETTINGS | changes))


def dialogs(taxonomy: Taxonomy, count: int, turns: int = 8, seed: int = 5) -> list[tuple[QuestionType, ...]]:
    return [turn_types(taxonomy, seed, i, first_type(taxonomy, seed, i), turns) for i in range(count)]


def plans(taxonomy: Taxonomy, count: int, turns: int = 8) -> list[list[Target]]:
    return [[kind for kind in dialog if isinstance(kind, Target)] for dialog in dialogs(taxonomy, count, turns)]


# --- what is planned


def test_every_dimension_meets_its_shares() -> None:
    made = plans(mtrag(), 500)
    turns = [target for dialog in made for target in dialog]
    later = [target for dialog in made for target in dialog[1:]]
    aims = Counter(target.aim.name for target in turns if target.aim)
    assert {name: count / len(turns) for name, count in aims.items()} == pytest.approx(
        SETTINGS["answerability"], abs=0.002
    )
    links = Counter(target.multi_turn.name for target in later if target.multi_turn)
    assert {name: count / len(later) for name, count in links.items()} == pytest.approx(
        SETTINGS["multi_turn"], abs=0.002
    )
    assert sum(not target.standalone for target in later) / len(later) == pytest.approx(0.18, abs=0.002)
    types = Counter(target.name for target in later)
    shares = {name: types[name] / len(later) for name in SETTINGS["later"]}
    assert shares == pytest.approx(SETTINGS["later"], abs=0.012), "a remark takes the place of some other type"
    assert {t.multi_turn for t in (dialog[0] for dialog in made)} == {None}


def test_what_asks_for_nothing_is_a_later_turn_and_no_question() -> None:
    made = plans(mtrag(answerability={"answerable": 0.6, "conversational": 0.4}), 60, 5)
    remarks = [(place, target) for dialog in made for place, target in enumerate(dialog) if target.is_conversational]
    assert len(remarks) == pytest.approx(60 * 5 * 0.4, rel=0.05)
    assert {target.name for _, target in remarks} == {"non-question"}
    assert {place for place, _ in remarks} == {1, 2, 3, 4}


def test_what_leans_on_the_dialog_is_a_clarification_first() -> None:
    shares = {"follow-up": 0.5, "clarification-of-intent": 0.25, "clarification-of-answer": 0.25}
    for dialog in plans(mtrag(multi_turn=shares, non_standalone=0.5), 40, 9):
        leaning = {target.multi_turn.kind for target in dialog[1:] if target.multi_turn and not target.standalone}
        assert leaning == {"clarification"}
        assert sum(not target.standalone for target in dialog[1:]) == 4
        assert dialog[0].standalone is None


# --- what is asked


def target(
    name: str = "factoid", link: str | None = "follow-up", aim: str = "answerable", alone: bool = True
) -> Target:
    return Target(**dict(KINDS[name]), multi_turn=LINKS[link] if link else None, aim=AIMS[aim], standalone=alone)


A, B, C = (piece(name) for name in ("pier", "quay", "mole"))


def multi(
    model: Scripted, shelf: Shelf, wanted: Sequence[Target], moving: bool = False, query: QueryForm = "last_turn"
) -> Draft:
    program = MultiDocumentDialog(Repetition(0.8), shelf, 2, query, planned=True, moving=moving)
    draft: Draft = model.run(lambda: program.acall(A, wanted, "", "train"))
    return draft


def asks(*questions: str) -> list[dict[str, object]]:
    return [{"question": question, "consistent": True} for question in questions]


def test_the_prompt_of_a_question_tells_all_that_is_planned() -> None:
    wanted = [
        target(link=None),
        target("how-to", aim="partial"),
        target("opinion", "clarification-of-answer", alone=False),
    ]
    model = Scripted(ask=asks("When did the pier open?", "How do I paint it?", "Is that blue?"))
    draft = multi(model, Shelf([[A], [B], [C]]), wanted)
    assert len(draft.turns) == 3
    first, second, third = model.prompts("ask")
    assert "leave out" not in task(first)
    for step in (*AIMS["partial"].steps, *LINKS["follow-up"].steps, KINDS["how-to"].definition):
        assert step in task(second)
    assert "can be understood with nothing before it" in task(second)
    assert "makes no sense without that answer" in task(third)
    assert [turn.multi_turn_type for turn in draft.turns] == [None, "follow-up", "clarification"]
    planned = [turn.planned for turn in draft.turns]
    assert [p.question_type for p in planned if p] == ["factoid", "how-to", "opinion"]
    assert [p.answerability for p in planned if p] == ["answerable", "partial", "answerable"]
    assert [p.multi_turn_type for p in planned if p] == [None, "follow-up", "clarification-of-answer"]


def test_a_question_that_stands_alone_is_not_rewritten() -> None:
    wanted = [target(link=None), target("how-to"), target("opinion", alone=False)]
    questions = ("When did the pier open?", "How do I paint a quay?", "Is it blue?")
    model = Scripted(ask=asks(*questions), rewrite=[{"query": "Is the quay blue?"}])
    shelf = Shelf([[A], [B], [C]])
    multi(model, shelf, wanted, query="rewrite")
    assert [query for query, _, _ in shelf.asked] == [*questions[:2], "Is the quay blue?"]
    assert len(model.of("rewrite")) == 1


def test_a_remark_is_answered_with_courtesy_and_nothing_is_retrieved() -> None:
    wanted = [target(link=None), target("non-question", aim="conversational"), target()]
    model = Scripted(
        ask=[*asks("When did the pier open?"), {"question": "Is it?"}, *asks("Thanks!", "Who built the pier?")],
        answer=[{"answer": "In May.", "consistent": True}, {"answer": "You are welcome."}],
    )
    shelf = Shelf([[A], [B]])
    draft = multi(model, shelf, wanted)
    assert [turn.query for turn in draft.turns] == ["When did the pier open?", "Thanks!", "Who built the pier?"]
    remark = draft.turns[1]
    assert (remark.answer, remark.answerability, remark.hits) == ("You are welcome.", "conversational", ())
    assert len(shelf.asked) == 2


# --- where later questions start


def resting_on(*names: str) -> tuple[Turn, ...]:
    turns = said(*[(f"question {number}", f"answer {number}") for number in range(len(names))])
    evidence = [(Evidence(passage_id=piece(name).id, start=0, end=3, text="The"),) if name else () for name in names]
    return tuple(turn.model_copy(update={"evidence": e}) for turn, e in zip(turns, evidence, strict=True))


def start(shelf: Shelf, passages: Sequence[object], history: Sequence[Turn], place: int = 0) -> str:
    return asyncio.run(choose_focus(shelf, 4, "train", passages, history, place or len(history)))  # type: ignore[arg-type]


def test_a_later_question_starts_from_a_passage_that_no_answer_rests_on() -> None:
    shelf = Shelf([])
    assert start(shelf, (A, B), resting_on("pier")) == "Quay: The quay opened in May. It has a blue door."
    assert shelf.asked == []


def test_a_later_question_does_not_start_from_code() -> None:
    code = B.model_copy(update={"text": "```sh\nopen the quay\n```\n\nThe quay opened in May."})
    assert start(Shelf([]), (A, code), resting_on("pier")) == "Quay: The quay opened in May."


def test_every_other_one_starts_from_a_neighbour_rather_of_another_document() -> None:
    near = A.model_copy(update={"id": "pier:9", "text": "The pier is long."})
    shelf = Shelf([[A.model_copy(update={"id": "copy"}), near, C]])
    assert start(shelf, (A, B), resting_on("pier", "")).startswith("Mole: The mole opened")
    assert shelf.asked == [("question 1 answer 1", 4, "train")]
    assert start(Shelf([[A, near]]), (A, B), resting_on("pier", "")) == "Pier: The pier is long."


def test_after_a_turn_that_was_lost_the_next_one_starts_elsewhere() -> None:
    history = resting_on("pier")
    assert start(Shelf([]), (A, B, C), history, 1).startswith("Mole: ")
    assert start(Shelf([]), (A, B, C), history, 3).startswith("Mole: ")
    assert start(Shelf([[A, piece("weir")]]), (A, B, C), history, 2).startswith("Weir: ")


def test_the_start_stands_in_the_prompt_only_if_conversations_are_to_move() -> None:
    for moving in (True, False):
        model = Scripted(ask=asks("When did the pier open?", "Who built the quay?"))
        multi(model, Shelf([[A, B], [C]]), [target(link=None), target()], moving)
        second = task(model.prompts("ask")[1])
        assert ("The quay opened in May." in second or "The pier opened in May." in second) == moving


@pytest.mark.parametrize(("again", "kept"), [(4, "Is the quay blue?"), (1, "Is the pier blue?")])
def test_a_turn_on_passages_of_earlier_answers_is_begun_once_more(again: int, kept: str) -> None:
    questions = ("When did the pier open?", "Is the pier blue?", "Is the quay blue?")
    told = {"The pier opened in May.": 1, "The pier has a blue door.": 2, "The quay has a blue door.": again}
    answers = [{"answer": text, "evidence": [place]} for text, place in told.items()]
    model = Scripted(ask=asks(*questions), answer=answers)
    draft = multi(model, Shelf([[A, B], [A], [C], [B]]), [target(link=None), target()], moving=True)
    assert [turn.query for turn in draft.turns] == [questions[0], kept]
    assert len(model.of("ask")) == 3


# --- the outcome


def judged(found: str | None, says: str | None, own: str = "answerable") -> Turn:
    labels = {"answerability": found, "idk": says, "question_type": "how-to+factoid"}
    verdicts = tuple(
        Verdict(judge=judge, label=label, explanation="", model="m", decides=False)
        for judge, label in labels.items()
        if label
    )
    (turn,) = said(("Why?", "Because."))
    return relabel_turn(turn.model_copy(update={"answerability": own, "verdicts": verdicts}))


CELLS = {
    ("answerable", "no"): "answerable",
    ("answerable", "partial"): "partial",
    ("answerable", "yes"): None,
    ("partial", "no"): None,
    ("partial", "partial"): "partial",
    ("partial", "yes"): None,
    ("unanswerable", "no"): None,
    ("unanswerable", "partial"): "partial",
    ("unanswerable", "yes"): "unanswerable",
}


@pytest.mark.parametrize(("found", "says"), CELLS)
def test_passages_and_answer_together_give_the_label(found: str, says: str) -> None:
    turn, label = judged(found, says), CELLS[found, says]
    assert turn.answerability == (label or found)
    refused = [v for v in turn.verdicts if v.judge == "agreement"]
    assert [v.label for v in refused] == ([] if label else ["incorrect"])
    assert turn.question_type == "how-to+factoid"


def test_a_judge_that_fails_changes_nothing() -> None:
    assert judged("unjudged", "unjudged", "partial").answerability == "partial"
    assert judged("unanswerable", "unjudged").answerability == "unanswerable"
    assert judged("unjudged", "yes", "unanswerable").answerability == "unanswerable"
    assert judged(None, None, "partial").answerability == "partial"


# --- a whole run


def measuring(body: Body) -> dict[str, object]:
    """Label two turns in three as unanswerable; one of them says that it doesn't know."""
    label = body["response_format"]["json_schema"]["schema"]["properties"]["label"]
    odd = number_of(body) % 3
    if "unanswerable" in label.get("enum", ()):
        return {"label": "unanswerable" if odd else "answerable"}
    if "yes" in label.get("enum", ()):
        return {"label": "yes" if odd == 1 else "no"}
    return {"label": "correct"}


def test_a_run_plans_measures_and_relabels(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer(replying(judge=measuring)) as server:
        ended = site.run(server, "taxonomy=mtrag", "dialogs=9", "turns=8", "dedup=none", "retriever.k=2")
        assert ended.code == 0, ended.err
        site.check_ledger()
    turns = [turn for dialog in site.dialogs() for turn in dialog["turns"]]
    assert len(turns) > 6 * 9, "but for those that a dialog moved on from"
    asked = [turn for turn in turns if turn["answerability"] != "conversational"]
    assert all({v["judge"] for v in turn["verdicts"]} >= {"correctness", "answerability", "idk"} for turn in asked)
    for turn in asked:
        labels = {v["judge"]: v["label"] for v in turn["verdicts"]}
        assert turn["answerability"] == labels["answerability"], "relabelled, whatever was planned"
        refused = (labels["answerability"], labels["idk"]) == ("unanswerable", "no")
        assert (labels.get("agreement") == "incorrect") == refused
        assert turn["planned"]["answerability"] in AIMS
    assert {turn["answerability"] for turn in asked} == {"answerable", "unanswerable"}
    summary = site.summary()
    refused = sum(any(v["judge"] == "agreement" for v in turn["verdicts"]) for turn in turns)
    assert summary["dropped_pairs"]["judge"]["judged incorrect"] == refused > 0
    measured = sum(turn["answerability"] == "unanswerable" for turn in turns)
    achieved = summary["answerability"]["unanswerable"]
    assert (achieved["target"], achieved["turns"]) == (0.07, measured)
    assert summary["multi_turn_types"].keys() == {"follow-up", "clarification"}
    assert summary["question_types"]["factoid (first)"]["target"] == 0.28


def test_in_plain_words_a_target_tells_its_type_and_what_else_it_is() -> None:
    kind, keyword = KINDS["factoid"], KINDS["keyword"]
    plain, target = kind.brief(), Target(**dict(kind), aim=AIMS["unanswerable"], multi_turn=LINKS["follow-up"])
    assert kind.definition in plain and "It begins like" in plain and kind.steps[0] not in plain
    assert kind.definition in target.brief() and AIMS["unanswerable"].definition in target.brief()
    assert "It begins like" in target.brief()
    assert not any("It begins like" in KINDS[name].brief() for name in ("follow-up", "non-question"))
    assert keyword.steps[1] in keyword.brief(), "without beginnings, its steps show what it looks like"
    assert (kind.expected, target.expected) == ("answerable", "unanswerable")
