"""`taxonomy=mtrag`: how what is planned for a turn is asked for, and a run that measures what came of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.dialogs.checks.questions import find_fault
from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.program import Draft, Options
from generator.prompts.sections import Documents
from generator.schema import QueryForm
from taxonomy import Target, read_facets
from tests.support.openai_server import Body, OpenAIServer
from tests.support.runs import Site, replying
from tests.support.runs import turn as number_of
from tests.support.scripted import KINDS, Scripted, Shelf, piece, plan, said, task

LINKS, AIMS = read_facets("multi_turn"), read_facets("answerability")


def target(
    name: str = "factoid", link: str | None = "follow-up", aim: str = "answerable", alone: bool = True
) -> Target:
    return Target(**dict(KINDS[name]), multi_turn=LINKS[link] if link else None, aim=AIMS[aim], standalone=alone)


A, B, C = (piece(name) for name in ("pier", "quay", "mole"))


def multi(
    model: Scripted, shelf: Shelf, wanted: Sequence[Target], moving: bool = False, query: QueryForm = "last_turn"
) -> Draft:
    program = MultiDocumentDialog(Repetition(0.8), shelf, 2, query, Options(planned=True, moving=moving))
    return model.run(lambda: program.write(plan(A, wanted), {}))


def asks(*questions: str) -> list[dict[str, object]]:
    return [{"question": question, "consistent": True} for question in questions]


def test_a_statement_may_begin_as_its_prompt_proposes() -> None:
    begun = target("non-question").beginnings()
    faults = {
        words: find_fault(
            f"{words} the blue pier.",
            Documents(passages=(A,)),
            said(("When did the pier open?", "The pier opened in May.")),
            target("non-question"),
            Repetition(0.8),
        )
        for words in begun
    }
    assert len(begun) > 2 and faults == dict.fromkeys(begun)


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


@pytest.mark.parametrize(
    ("name", "link", "question"),
    [
        ("factoid", "clarification-of-intent", "No, I meant the pier's door."),
        ("non-question", "follow-up", "I painted it blue myself."),
    ],
)
def test_what_goes_back_to_the_last_turn_is_rewritten_whatever_is_planned(name: str, link: str, question: str) -> None:
    answers = [{"answer": text} for text in ("The pier opened in May, with a blue door.", "It is blue.")]
    rewritten = {"query": "Which colour has the pier's door?"}
    model = Scripted(ask=asks("When did the pier open?", question), answer=answers, rewrite=[rewritten])
    shelf = Shelf([[A, B], [A]])
    multi(model, shelf, [target(link=None), target(name, link, alone=True)], query="rewrite")
    assert [query for query, _, _ in shelf.asked] == ["When did the pier open?", rewritten["query"]]
    assert "can be understood with nothing before it" not in task(model.prompts("ask")[1])


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


def test_the_start_stands_in_the_prompt_only_if_conversations_are_to_move() -> None:
    for moving in (True, False):
        model = Scripted(ask=asks("When did the pier open?", "Who built the quay?"))
        multi(model, Shelf([[A, B], [C]]), [target(link=None), target()], moving)
        second = task(model.prompts("ask")[1])
        assert ("The quay opened in May." in second or "The pier opened in May." in second) == moving


@pytest.mark.parametrize(("again", "kept", "calls"), [(4, "Is the quay blue?", 2), (1, "Is the pier blue?", 3)])
def test_a_turn_on_passages_of_earlier_answers_is_begun_once_more(again: int, kept: str, calls: int) -> None:
    questions = ("When did the pier open?", "Is the pier blue?", "Is the quay blue?")
    told = {"The pier opened in May.": 1, "The pier has a blue door.": 2, "The quay has a blue door.": again}
    answers = [{"answer": text, "evidence": [place]} for text, place in told.items()]
    model = Scripted(ask=asks(*questions), answer=answers)
    draft = multi(model, Shelf([[A, B], [A], [C], [B]]), [target(link=None), target()], moving=True)
    assert [turn.query for turn in draft.turns] == [questions[0], kept]
    assert len(model.of("ask")) == 3
    (other,) = draft.unused
    assert (other.turn, other.why.stage, other.why.reason) == (2, "answer", "rests on passages of earlier answers")
    assert {kept, other.why.text.splitlines()[0].removeprefix("User: ")} == {*questions[1:]}
    assert other.cost.calls == calls


@pytest.mark.parametrize(
    ("name", "link", "question"),
    [
        ("factoid", "clarification-of-answer", "Blue all over?"),
        ("factoid", "clarification-of-intent", "No, I meant the pier's door."),
        ("non-question", "follow-up", "I painted the pier blue myself."),
    ],
)
def test_what_goes_back_to_the_last_turn_starts_from_no_other_passage(name: str, link: str, question: str) -> None:
    told = ("The pier opened in May, with a blue door.", "It is blue.")
    answers = [{"answer": text, "evidence": [1]} for text in told]
    model = Scripted(ask=asks("When did the pier open?", question), answer=answers)
    wanted = [target(link=None), target(name, link, alone=False)]
    draft = multi(model, Shelf([[A, B], [C], [A]]), wanted, moving=True)
    assert [turn.query for turn in draft.turns] == ["When did the pier open?", question]
    prompt = task(model.prompts("ask")[1])
    assert "touch on" not in prompt
    assert ("begins like" in prompt) == (link == "follow-up"), "“I meant …” isn't how factoids begin"


def test_a_turn_that_cannot_be_answered_is_not_begun_once_more() -> None:
    answers = [
        {"answer": "The pier opened in May.", "evidence": [1]},
        {"answer": "I don't have information on who built it. It has a blue door.", "evidence": [2]},
    ]
    model = Scripted(ask=asks("When did the pier open?", "Who built the pier?", "Who built the quay?"), answer=answers)
    multi(model, Shelf([[A, B], [A], [C], [B]]), [target(link=None), target(aim="unanswerable")], moving=True)
    assert len(model.of("ask")) == 2


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
    assert summary["dropped_pairs"]["judge"]["judged incorrect by agreement"] == refused > 0
    measured = sum(turn["answerability"] == "unanswerable" for turn in turns)
    achieved = summary["answerability"]["unanswerable"]
    assert (achieved["target"], achieved["turns"]) == (0.07, measured)
    assert summary["multi_turn_types"].keys() == {"follow-up", "clarification"}
    assert summary["question_types"]["factoid (first)"]["target"] == 0.28
