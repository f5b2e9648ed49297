"""Users who differ: how they type, what the model is told of them, and when they leave the topic."""

import random
import re

import pytest

from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.program import Options
from generator.dialogs.single import SingleDocumentDialog
from generator.dialogs.users import Asker, localise, make_slips
from taxonomy import PLAIN, QuestionType, Target, User, read_users
from taxonomy.users import Typing
from tests.support.languages import speaking
from tests.support.scripted import KINDS, Entry, Scripted, Shelf, kinds, piece, plan, spoken, task

HARBOUR, MUSEUM = piece("harbour"), piece("museum")
USERS = read_users()
TYPES = kinds("direct", "follow-up")
QUESTION = "What does a season ticket for B12 cost before 9:30, 4.50 or 12,000 crowns?"


SEED = 2  # its first messages have slips


def asker(*typing: Typing) -> Asker:
    return Asker(User(name="u", typing=typing), seed=SEED)


def leaving(question_type: QuestionType) -> Target:
    return Target.model_construct(**dict(question_type), standalone=True, new_topic=True)


@pytest.mark.parametrize("seed", range(10))
def test_typing_never_changes_a_number(seed: int) -> None:
    typed = Asker(User(name="u", typing=("typos", "lower-case")), seed).type_out(QUESTION, 1)
    assert re.findall(r"\S*\d\S*", typed) == [word.lower() for word in re.findall(r"\S*\d\S*", QUESTION)]


def test_a_slip_is_one_edit_in_a_content_word_and_spares_its_first_letter() -> None:
    changed = set()
    for seed in range(200):
        typed = make_slips(QUESTION, random.Random(seed))
        words = [(a, b) for a, b in zip(QUESTION.split(), typed.split(), strict=True) if a != b]
        assert 1 <= len(words) <= 2
        for before, after in words:
            assert len(before) == len(after) and before[0] == after[0]
            assert sum(a != b for a, b in zip(before, after, strict=True)) <= 2
        changed |= {before for before, _ in words}
    assert {"season", "ticket"} <= changed <= {"What", "season", "ticket", "cost", "before", "crowns?"}


def test_a_short_message_has_one_slip_and_a_long_one_sometimes_two() -> None:
    def count(text: str) -> set[int]:
        slips = (make_slips(text, random.Random(seed)) for seed in range(50))
        return {sum(a != b for a, b in zip(text.split(), each.split(), strict=True)) for each in slips}

    assert count("How do I know the rye bread is done?") == {1}
    assert count("Which harbour ferries carry cars, bicycles and trailers between Lindau and Bregenz?") == {1, 2}


@pytest.mark.parametrize("text", ["Is it at 9?", "And the green one?"])
def test_a_text_with_one_content_word_at_most_has_no_slips(text: str) -> None:
    assert {make_slips(text, random.Random(seed)) for seed in range(9)} == {text}


def test_small_letters_leave_out_the_last_mark() -> None:
    assert (
        asker("lower-case").type_out("Tell me about the ferries. I am late.", 2)
        == "tell me about the ferries. i am late"
    )
    assert asker("lower-case").type_out("Is it open at 5 p.m.", 2) == "is it open at 5 p.m."
    assert asker("lower-case").type_out("Is BM25 used? Why?", 2) == "is bm25 used? why"
    assert asker("lower-case").type_out("Πόσο κοστίζει η κάρτα;", 2) == "πόσο κοστίζει η κάρτα"
    assert asker("lower-case").type_out("¿Qué es? Y el museo, ¿cuándo abre?", 2) == "qué es? y el museo, cuándo abre"
    assert asker("lower-case").type_out("İzmir'de ne var?", 2) == "izmir'de ne var", "without a dot that stands alone"
    assert asker().type_out(QUESTION, 1) == QUESTION


def test_slips_are_of_the_dialogs_seed_and_the_turn() -> None:
    typed = [asker("typos").type_out(QUESTION, turn) for turn in (1, 1, 2, 3, 4)]
    assert typed[0] == typed[1] and len(set(typed)) > 1
    assert 10 < [asker("typos").type_out(QUESTION, turn) for turn in range(40)].count(QUESTION) < 30


def test_a_first_question_is_searched_without_its_slips_where_queries_are_rewritten() -> None:
    model = Scripted(ask=[{"question": "When did the harbour open?"}], answer=[{"answer": "In 1862."}])
    shelf, who = Shelf([[HARBOUR]]), asker("typos")
    program = MultiDocumentDialog(Repetition(0.8), shelf, 3, "rewrite")
    draft = model.run(lambda: program.write(plan(HARBOUR, TYPES[:1], user=who.user, seed=who.seed), {}))
    (turn,) = draft.turns
    assert turn.query != turn.clean_query == shelf.asked[0][0] == "When did the harbour open?"


def test_retrieval_and_answer_see_what_was_typed_and_checks_what_was_meant() -> None:
    asked = ["When did the harbour open?", "When did the harbour open?", "Who built its pier?"]
    model = Scripted(ask=[{"question": text} for text in asked], answer=[{"answer": "In 1862."}, {"answer": "Ada."}])
    shelf = Shelf([[HARBOUR], [MUSEUM]])
    program = MultiDocumentDialog(Repetition(0.8), shelf, 3, "last_turn")
    who = asker("typos", "lower-case")
    draft = model.run(lambda: program.write(plan(HARBOUR, TYPES, user=who.user, seed=who.seed), {}))
    assert [turn.clean_query for turn in draft.turns] == [asked[0], asked[2]], "a repetition is found behind slips"
    typed = [turn.query for turn in draft.turns]
    assert typed[0] not in (asked[0], asked[0].lower()) and not typed[0].endswith("?")
    assert [query for query, _, _ in shelf.asked] == typed
    assert f":\n{typed[1]}\n" in task(model.prompts("answer")[1]) and f"User: {typed[0]}\n" in model.prompts("ask")[2]


def test_a_question_copied_with_its_slips_is_a_repetition() -> None:
    """The model that asks sees earlier questions as they were typed."""
    first, who = "When did the harbour open its doors?", asker("typos", "lower-case")
    copied = who.type_out(first, 1)
    model = Scripted(ask=[{"question": text} for text in (first, copied, "Who built its pier?")])
    asking = plan(HARBOUR, TYPES, user=who.user, seed=who.seed)
    draft = model.run(lambda: SingleDocumentDialog(Repetition(0.8)).write(asking, {}))
    assert copied != first.lower() and [turn.meant for turn in draft.turns] == [first, "Who built its pier?"]


def test_the_user_stands_in_the_task_of_questions_alone() -> None:
    def prompts(who: User) -> list[str]:
        model = Scripted(ask=[{"question": "When is the harbour open?"}, {"question": "Who pays?"}])
        program = SingleDocumentDialog(Repetition(0.8))
        assert len(spoken(model.run(lambda: program.write(plan(HARBOUR, TYPES, user=who), {})))) == 2
        return [call.prompt for call in model.calls]

    for plain, own in zip(prompts(PLAIN), prompts(USERS["expert"]), strict=True):
        assert own.partition("\n<task>\n")[0] == plain.partition("\n<task>\n")[0], "the cached prefix stays as it is"
        assert (USERS["expert"].who in task(own)) == ("kind of question" in task(own)) == (own != plain)


@pytest.mark.parametrize(("name", "words"), [("searcher", 5), ("talkative", 40)])
def test_a_way_of_typing_sets_the_length_and_the_beginning(name: str, words: int) -> None:
    (direct,) = kinds("direct")
    adapted = USERS[name].adapt(direct)
    assert adapted.words == words and adapted.name == "direct" and "begins like" not in adapted.prompt()
    assert USERS["hurried"].adapt(direct) is direct


@pytest.mark.parametrize("name", ["clarification", "correction", "non-question"])
def test_who_types_bare_words_is_not_told_so_where_these_say_nothing(name: str) -> None:
    searcher, (direct, later) = USERS["searcher"], kinds("direct", name)
    assert searcher.adapt(later) is later
    assert searcher.prompt(direct).startswith(told := searcher.prompt(later)) and "bare words" not in told


@pytest.mark.parametrize("name", ["non-question", "keyword"])
def test_who_asks_nothing_or_in_bare_words_is_not_told_to_ask_in_a_second_sentence(name: str) -> None:
    talkative, (follows, tells) = USERS["talkative"], kinds("follow-up", name)
    assert talkative.adapt(tells) is tells and talkative.prompt(tells) == talkative.who
    assert talkative.prompt(follows) == talkative.prompt() != talkative.who


@pytest.mark.parametrize(("code", "why"), [("de", "Warum"), ("ja", "なぜ"), ("zh", "为什么")])
def test_direct_questions_ask_for_reasons_too_as_they_do_in_english(code: str, why: str) -> None:
    with speaking(code):
        assert why in localise(KINDS["direct"]).brief() and why not in localise(KINDS["factoid"]).brief()


def test_the_beginnings_of_a_type_come_in_another_order_in_each_turn() -> None:
    (direct,) = kinds("direct")
    orders = [Asker(seed=seed).adapt(direct, place).phrasings for seed in range(3) for place in range(3)]
    assert len({order[0] for order in orders}) > 2
    assert {frozenset(order) for order in orders} == {frozenset(direct.phrasings)}
    assert Asker(seed=1).adapt(direct, 1) == Asker(seed=1).adapt(direct, 1)


@pytest.mark.parametrize("algorithm", ["single", "multi"])
def test_a_user_leaves_the_topic_at_the_planned_turn(algorithm: str) -> None:
    asked = ["When did the harbour open?", "What does the museum show?", "Since when?"]
    model = Scripted(ask=[{"question": text} for text in asked], answer=[{"answer": f"{n}."} for n in range(3)])
    program = (
        SingleDocumentDialog(Repetition(0.8), Options(switching=True))
        if algorithm == "single"
        else MultiDocumentDialog(
            Repetition(0.8), Shelf([[HARBOUR], [MUSEUM], [MUSEUM]]), 3, "rewrite", Options(switching=True)
        )
    )
    first, later = kinds("direct", "follow-up")
    types = (first, leaving(first), later)
    leaves = plan(HARBOUR, types, "Of gulls.", switch=1, new_focus="Museum: It shows ships.")
    draft = model.run(lambda: program.write(leaves, {}))
    assert [question for question, _ in spoken(draft)] == asked
    own = [task(prompt) for prompt in model.prompts("ask")]
    assert ["It shows ships." in each for each in own] == [False, True, False]
    assert ["names that matter in full" in each for each in own] == [False, True, False]
    planned = draft.turns[1].planned
    assert planned is not None and planned.new_topic and planned.standalone
    if algorithm == "multi":
        assert [call.turn for call in model.of("rewrite")] == [3], "a question that stands alone isn't rewritten"


def test_after_a_new_topic_questions_start_from_its_passages() -> None:
    asked = ["When did the harbour open?", "What does the museum show?", "Since when?"]
    told = ("The harbour opened in May.", "The museum opened in May.", "The ships opened in May.")
    cited: list[Entry] = [{"evidence": [n], "answer": text} for n, text in zip((1, 5, 7), told, strict=True)]
    model = Scripted(ask=[{"question": text} for text in asked], answer=cited)
    shelf = Shelf([[HARBOUR, piece("pier")], [MUSEUM, piece("ships")], [], [MUSEUM]])
    program = MultiDocumentDialog(Repetition(0.8), shelf, 3, "last_turn", Options(moving=True, switching=True))
    first, later = kinds("direct", "follow-up")
    leaves = plan(HARBOUR, (first, leaving(first), later), switch=1, new_focus="Museum: It shows ships.")
    model.run(lambda: program.write(leaves, {}))
    assert "The ships opened in May." in task(model.prompts("ask")[2])
    assert "The pier opened in May." not in task(model.prompts("ask")[2])
