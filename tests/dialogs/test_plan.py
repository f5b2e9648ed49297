"""Plans: the same for the same seed and number, whatever came before."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest

from generator.common.passages import count_tokens
from generator.common.sentences import sentences
from generator.config.parts import build_choice
from generator.corpora.library import Library
from generator.dialogs.focus import FOCUS_CHARS
from generator.dialogs.plan import Plan, Planner
from generator.schema import Document, Passage, Turns
from taxonomy import PLAIN, Mix, ScenarioMix, TaskMix, Taxonomy, draw, load, load_users
from tests.support.languages import speaking

WORDS = ["harbour", "ferry", "crane", "pilot", "buoy", "anchor", "tide", "storm", "light", "quay", "rope", "sail"]
FIRST = {"direct": 0.5, "comparative": 0.3, "unanswerable": 0.2}
LATER = {"follow-up": 0.6, "clarification": 0.2, "correction": 0.2}


def text(chance: random.Random, count: int) -> str:
    """Return `count` different sentences."""
    return " ".join(f"Item{n} has {' '.join(chance.choices(WORDS, k=chance.randint(3, 15)))}." for n in range(count))


def library(folder: Path, count: int, length: int = 12) -> Library:
    chance = random.Random(count)
    made = [Document(id=f"d{n}", title=f"Title {n}", text=text(chance, length)) for n in range(count)]
    return Library.open("c", f"{count}x{length}".ljust(12, "0"), lambda: iter(made), folder, 512, 100)


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    made = library(tmp_path_factory.mktemp("ten"), 10)
    yield made
    made.close()


def taxonomy(focus: str = "sentences") -> Taxonomy:
    return load(Mix.model_validate({"name": "m", "first": FIRST, "later": LATER, "focus": focus}))


def planner(
    documents: Library,
    validation: float = 0.3,
    turns: str = "2-4",
    seed: int = 1,
    per_document: int = 2,
    window: int = 10_000,
    focus: str = "sentences",
) -> Planner:
    return Planner(
        library=documents,
        validation=documents.validation(validation, 1),
        taxonomy=taxonomy(focus),
        turns=Turns.parse(turns),
        seed=seed,
        per_document=per_document,
        window=window,
    )


def plans(made: Planner, count: int) -> list[Plan]:
    return [made.plan(index) for index in range(count)]


def test_a_plan_depends_on_seed_and_number_alone(ten: Library) -> None:
    in_order = plans(planner(ten), 60)
    other = planner(ten)
    shuffled = random.Random(0).sample(range(60), 60)
    assert {index: other.plan(index) for index in [*shuffled, *shuffled]} == dict(enumerate(in_order))


def test_another_seed_makes_other_plans(ten: Library) -> None:
    one, other = plans(planner(ten, seed=1), 20), plans(planner(ten, seed=2), 20)
    assert [p.source.document_id for p in one] != [p.source.document_id for p in other]
    assert [p.question_types for p in one] != [p.question_types for p in other]
    assert not {p.dialog_id for p in one} & {p.dialog_id for p in other}
    assert not {p.seed for p in one} & {p.seed for p in other}
    assert len({plan.dialog_id for plan in one}) == len({plan.seed for plan in one}) == 20


# --- documents


@pytest.mark.parametrize("per_document", [2, 3])
def test_dialogs_on_short_documents_soon_use_all_of_them(tmp_path: Path, per_document: int) -> None:
    documents = library(tmp_path, 10, length=1)
    made = plans(planner(documents, validation=0, per_document=per_document), 12)
    assert len({cast(Passage, each.source).document_id for each in made}) == 10
    documents.close()


@pytest.mark.parametrize("per_document", [1, 2, 3])
def test_dialogs_of_a_document_are_neighbours(ten: Library, per_document: int) -> None:
    made = plans(planner(ten, per_document=per_document), 60)
    slots = [made[first : first + per_document] for first in range(0, 60, per_document)]
    assert all(len({plan.source.document_id for plan in slot}) == 1 for slot in slots)
    firsts = [slot[0].source.document_id for slot in slots]
    assert all(one != other for one, other in itertools.pairwise(firsts))


@pytest.mark.parametrize("validation", [0, 0.3, 0.9])
def test_every_document_is_used_before_any_comes_again(ten: Library, validation: float) -> None:
    made = planner(ten, validation=validation, per_document=1)
    visited: dict[str, list[str]] = {"train": [], "validation": []}
    for plan in plans(made, 97):
        visited[plan.split].append(plan.source.document_id)
    for split, rows in made.rows.items():
        names = {ten.document(int(row)).id for row in rows}
        assert set(visited[split]) == names
        for first in range(0, len(visited[split]) - len(names) + 1, max(1, len(names))):
            assert set(visited[split][first : first + len(names)]) == names


@pytest.mark.parametrize(("validation", "held"), [(0, 0), (0.3, 3), (0.99, 9)])
def test_splits_share_no_document_and_dialogs_keep_their_proportion(ten: Library, validation: float, held: int) -> None:
    made = plans(planner(ten, validation=validation, per_document=1), 400)
    documents = {split: {p.source.document_id for p in made if p.split == split} for split in ("train", "validation")}
    assert not documents["train"] & documents["validation"]
    assert len(documents["validation"]) == held
    assert Counter(plan.split for plan in made)["validation"] == 40 * held
    # At even distances, so that a run that is stopped early has its share, too.
    for count in range(1, 401):
        assert abs(sum(p.split == "validation" for p in made[:count]) - count * held / 10) <= 0.5


# --- focus and window


def test_no_dialog_starts_from_a_copy(tmp_path: Path) -> None:
    made = [Document(id=f"{n}-{copy}", text=f"The quay {n} is wet.") for copy in range(3) for n in range(4)]
    documents = Library.open("c", "0" * 12, lambda: iter(made), tmp_path, 512, 100)
    for validation in (0.0, 0.5):
        used = [plan.affinity for plan in plans(planner(documents, validation), 16)]
        assert Counter(used) == dict.fromkeys(("0-0", "1-0", "2-0", "3-0"), 4)


def test_dialogs_of_a_document_start_from_other_sentences_while_there_are_any(tmp_path: Path) -> None:
    documents = library(tmp_path, 3, length=30)
    made = plans(planner(documents, validation=0, per_document=2), 120)
    for row in range(3):
        document = documents.document(row)
        focus = [plan.focus for plan in made if plan.source.document_id == document.id]
        unused = len(set(focus))
        assert unused >= 6
        assert len(set(focus[:unused])) == unused  # all before any comes again
        assert focus[unused : 2 * unused] == focus[:unused]
        texts = [document.text[slice(*span)] for span in sentences(document.text)]
        assert sorted(sentence for part in set(focus) for sentence in texts if sentence in part) == sorted(texts)


def test_a_focus_is_a_few_whole_sentences(ten: Library) -> None:
    for plan in plans(planner(ten), 40):
        assert plan.focus in plan.source.text
        assert plan.focus.startswith("Item") and plan.focus.endswith(".")
        assert len(plan.focus) <= FOCUS_CHARS


def starts(folder: Path, *texts: str) -> list[set[str]]:
    """Return what dialogs on each of some texts start from."""
    made = [Document(id=str(number), text=text) for number, text in enumerate(texts)]
    documents = Library.open("c", "0" * 12, lambda: iter(made), folder, 512, 100)
    planned = plans(planner(documents, validation=0), 40)
    return [{plan.focus for plan in planned if plan.affinity == document.id} for document in made]


def test_no_dialog_starts_from_a_list_of_headings(tmp_path: Path) -> None:
    contents = "\n\n".join(f"- Chapter {n}: the sea" for n in range(20))
    told = "The quay is wet in the winter."
    focus, other = starts(tmp_path, f"{contents}\n\n## How wet the quay is\n\n{told}", contents)
    assert all(told in text for text in focus) and other, "what has nothing else is asked about it"


def test_no_dialog_starts_from_a_notice_that_documents_share(tmp_path: Path) -> None:
    notice = "This page was made by the office of the harbour in May."
    texts = [f"{text(random.Random(n), 3)}\n\n## Notice\n\n{notice}" for n in range(4)]
    made = [Document(id=f"d{n}", text=each) for n, each in enumerate([*texts, notice])]
    documents = Library.open("c", "0" * 12, lambda: iter(made), tmp_path, 512, 100)
    for plan in plans(planner(documents, validation=0, per_document=4), 20):
        assert (notice in plan.focus) == (plan.source.document_id == "d4"), "what has nothing else is asked about it"


@pytest.mark.parametrize("opening", ["## Chapter {}", "As the poet {} said:", "詩人 {}："])
def test_no_question_is_to_touch_on_a_heading_or_colon_without_what_follows(tmp_path: Path, opening: str) -> None:
    told = [f"{opening.format(n)}\n\nThe quay {n} is wet {'in the winter ' * n}." for n in range(20)]
    focus, other = starts(tmp_path, "\n\n".join(told), f"{opening.format(1)}\n\nand cold:")
    assert any(opening[:2] in text for text in focus) and all(text.endswith(".") for text in focus) and other


def test_no_question_is_to_touch_on_what_stands_on_both_sides_of_a_heading(tmp_path: Path) -> None:
    told = [f"The quay {n} is wet in winter.\n\nIt dries in May." for n in range(20)]
    (focus,) = starts(tmp_path, "\n\n## In the year after that\n\n".join(told))
    assert all("##" not in text[1:] and text.endswith("It dries in May.") for text in focus)


def test_questions_start_from_what_is_translated(tmp_path: Path) -> None:
    left = "## Text\n\nText is added to your image in a new layer, and can be edited by you."
    with speaking("de"):
        focus, other = starts(tmp_path, f"{left}\n\n## Der Hafen\n\nDer Hafen liegt am See.\n\n{left}", left)
    assert focus == {"## Der Hafen\n\nDer Hafen liegt am See."}
    assert other == {left}, "what has nothing else is asked about it"


def test_no_question_starts_from_code(tmp_path: Path) -> None:
    code = "```sh\n" + "open the pool for all children --at 7\n" * 20 + "```"
    focus, other = starts(tmp_path, f"{code}\n\nThe pool opens at seven.\n\n{code}", code)
    assert focus == {"The pool opens at seven."} and other


def test_without_focus_the_model_chooses(ten: Library) -> None:
    one, other = planner(ten, focus="none").plan(3), planner(ten).plan(3)
    assert (one.focus, one.source, one.question_types, one.seed) == ("", other.source, other.question_types, other.seed)


@pytest.mark.parametrize("window", [60, 333])
def test_a_window_holds_the_focus_in_as_many_whole_sentences_as_fit(tmp_path: Path, window: int) -> None:
    documents = library(tmp_path, 2, length=200)
    assert count_tokens(documents.document(0).text) > 1000
    for plan in plans(planner(documents, validation=0, window=window), 60):
        shown = plan.source
        document = next(d for d in map(documents.document, range(2)) if d.id == shown.document_id)
        assert plan.focus in shown.text
        assert shown.text == document.text[shown.start : shown.end]

        def size(text: str) -> int:
            return count_tokens("".join(f"[1] {text[start:end]}" for start, end in sentences(text)))

        # A focus may be larger than a tiny window; then it is all there is.
        assert size(shown.text) <= max(window, size(plan.focus))
        spans = sentences(document.text)
        starts, ends = [start for start, _ in spans], [end for _, end in spans]
        first, last = starts.index(shown.start), ends.index(shown.end)
        around = [spans[i] for i in (first - 1, last + 1) if 0 <= i < len(spans)]
        room = window - size(shown.text)
        assert around and all(size(document.text[slice(*span)]) > room for span in around)


# --- question types and turns


def test_turns_are_drawn_from_the_whole_range(ten: Library) -> None:
    made = [plan for plan in plans(planner(ten, turns="2-4"), 300) if plan.question_types[0].turns is None]
    assert Counter(len(plan.question_types) for plan in made).keys() == {2, 3, 4}
    assert min(Counter(len(plan.question_types) for plan in made).values()) > len(made) / 5


def test_a_type_can_set_the_number_of_turns(ten: Library) -> None:
    lengths = {(p.question_types[0].name, len(p.question_types)) for p in plans(planner(ten, turns="5"), 100)}
    assert lengths == {("direct", 5), ("comparative", 5), ("unanswerable", 2)}
    lengths = {(p.question_types[0].name, len(p.question_types)) for p in plans(planner(ten, turns="1"), 20)}
    assert lengths == {("direct", 1), ("comparative", 1), ("unanswerable", 2)}


# --- users


def with_users(documents: Library, searches: bool = True, turns: str = "2-4", **shares: float) -> Planner:
    made = planner(documents, turns=turns)
    made.users, made.searches = load_users(shares, None), searches
    return made


def test_users_have_their_shares_and_change_nothing_else_of_a_plan(ten: Library) -> None:
    made = plans(with_users(ten, novice=0.5, hurried=0.3, plain=0.2), 100)
    for first in range(0, 100, 20):
        block = Counter(plan.user.name for plan in made[first : first + 20])
        assert block == {"novice": 10, "hurried": 6, "plain": 4}
    assert [replace(plan, user=PLAIN) for plan in made] == plans(planner(ten), 100)


@pytest.mark.parametrize("searches", [True, False])
def test_a_user_who_leaves_the_topic_does_so_once_for_another_document_or_place(ten: Library, searches: bool) -> None:
    made = plans(with_users(ten, searches, curious=1), 200)
    assert 0.4 < sum(plan.switch is not None for plan in made) / 200 < 0.6
    for plan, before in zip(made, plans(planner(ten), 200), strict=True):
        alone = [place for place, each in enumerate(plan.question_types) if each.stands_alone]
        assert alone == ([] if plan.switch is None else [plan.switch])
        if plan.switch is not None:
            assert plan.switch and plan.question_types[plan.switch].name == "direct"
            title, _, text = plan.new_focus.partition(": ")
            assert (title != plan.source.title) == searches and text != plan.focus
            assert searches or text in plan.source.text
        assert (plan.seed, plan.source, plan.focus, plan.turns) == (
            before.seed,
            before.source,
            before.focus,
            before.turns,
        )


def test_only_a_turn_that_goes_on_can_leave_the_topic_where_dimensions_are_planned(ten: Library) -> None:
    made = with_users(ten, turns="6", curious=1)
    made.taxonomy = load(cast(Mix, build_choice("taxonomy", "mtrag")))
    leaving = [plan.question_types[plan.switch] for plan in plans(made, 100) if plan.switch is not None]
    planned = [each.planned() for each in leaving]
    assert len(leaving) > 30
    assert {each.multi_turn_type for each in planned if each} == {"follow-up"}
    assert all(
        each and each.new_topic and each.standalone and each.answerability != "conversational" for each in planned
    )


def test_a_dialog_of_one_turn_leaves_no_topic(ten: Library) -> None:
    assert {plan.switch for plan in plans(with_users(ten, turns="1", curious=1), 20) if plan.turns == 1} == {None}


# --- tasks


def task_planner(documents: Library, topics: bool = False, validation: float = 0, **shares: float) -> Planner:
    mix = TaskMix(name="m", tasks=shares or {"CM": 0.5, "TS": 0.3, "MR": 0.2})
    return Planner(
        library=documents,
        validation=documents.validation(validation, 1),
        taxonomy=load(mix),
        turns=Turns(least=9, most=9),
        seed=1,
        per_document=2,
        window=10_000,
        topics=topics,
    )


def test_every_block_of_plans_has_the_shares_of_the_tasks(ten: Library) -> None:
    names = [plan.task.name for plan in plans(task_planner(ten), 400) if plan.task]
    for first in range(0, 400, 20):
        assert Counter(names[first : first + 20]) == {"CM": 10, "TS": 6, "MR": 4}
    uneven = Counter(plan.task.name for plan in plans(task_planner(ten, CM=0.61, TS=0.39), 100) if plan.task)
    assert uneven == {"CM": 61, "TS": 39}


def test_a_plan_of_a_task_depends_on_seed_and_number_alone(ten: Library) -> None:
    in_order = plans(task_planner(ten), 60)
    other = task_planner(ten)
    assert {index: other.plan(index) for index in random.Random(0).sample(range(60), 60)} == dict(enumerate(in_order))
    assert len({plan.dialog_id for plan in in_order}) == 60
    assert {plan.task.name: plan.turns for plan in in_order if plan.task and plan.task.name == "TS"} == {"TS": 3}
    assert {plan.turns for plan in in_order if plan.task and plan.task.name == "CM"} == {3, 4, 5}
    assert {plan.question_types for plan in in_order} == {()}


def test_an_open_ended_task_takes_the_turns_of_the_run_and_has_unanswerable_ones_at_their_share(ten: Library) -> None:
    made = task_planner(ten, QA=1, CM=1)
    made.taxonomy = load(
        TaskMix(name="m", tasks={"QA": 1, "CM": 1}, answerability={"answerable": 3, "unanswerable": 1})
    )
    aims = {"QA": [], "CM": []}
    for each in plans(made, 80):
        assert each.task and (each.turns == 9) == (each.task.name == "QA")
        aims[each.task.name] += [aim.name for aim in each.aims]
    assert (len(aims["QA"]), aims["CM"]) == (360, [])
    assert abs(aims["QA"].count("unanswerable") - 90) <= 3
    places = {place for each in plans(made, 80) for place, aim in enumerate(each.aims) if aim.name == "unanswerable"}
    assert places == set(range(9))


@pytest.mark.parametrize(("topics", "focuses"), [(True, 3), (False, 1)])
def test_a_task_takes_each_document_once_and_then_another_focus(tmp_path: Path, topics: bool, focuses: int) -> None:
    """Of a topic, a focus is a line; else it is as many sentences as `FOCUS_CHARS` holds."""
    made = [Document(id=f"d{n}", title=f"T{n}", text=f"One line. Two parts.\n\nAnd more\n{n} more") for n in range(10)]
    documents = Library.open("c", "x" * 12, lambda: iter(made), tmp_path, 512, 100)
    planned = [plan for plan in plans(task_planner(documents, topics), 100) if plan.task and plan.task.name == "CM"]
    sources = [plan.source.document_id for plan in planned if not isinstance(plan.source, str)]
    assert len(sources) == 50
    for first in range(0, 50, 10):
        assert len(set(sources[first : first + 10])) == 10
    used = [(source, plan.focus) for source, plan in zip(sources, planned, strict=True)]
    assert len(set(used[: 10 * focuses])) == 10 * focuses == len(set(used))
    assert {focus for _, focus in used} == (
        {"One line. Two parts.", "And more", *(f"{n} more" for n in range(10))}
        if topics
        else {document.text for document in made}
    )
    documents.close()


def test_an_item_of_a_scenario_chooses_freely_in_a_new_document_and_then_starts_elsewhere(ten: Library) -> None:
    items = plans(replace(task_planner(ten), taxonomy=load(ScenarioMix(name="m", scenarios={"news": 1.0}))), 20)
    assert {plan.focus for plan in items[:10]} == {""}
    for plan in items[10:]:
        assert isinstance(plan.source, Passage) and plan.focus and plan.focus in plan.source.text


def test_tasks_begin_at_different_documents(ten: Library) -> None:
    firsts = {plan.task.name: plan.source for plan in reversed(plans(task_planner(ten), 40)) if plan.task}
    assert len({source.document_id for source in firsts.values() if not isinstance(source, str)}) == 3


def test_the_split_of_a_dialog_of_a_task_is_its_documents(ten: Library) -> None:
    made = plans(task_planner(ten, validation=0.3), 100)
    splits = {(plan.source.document_id, plan.split) for plan in made if not isinstance(plan.source, str)}
    assert len(splits) == 10
    assert Counter(split for _, split in splits) == {"train": 7, "validation": 3}


def test_planning_many_tasks_takes_linear_time(ten: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Mock(wraps=draw.draw_evenly)
    monkeypatch.setattr(draw, "draw_evenly", counted)
    plans(task_planner(ten), 2000)
    assert counted.call_count <= 2 * 2000 + 100
