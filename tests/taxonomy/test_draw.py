"""Draw plans: types, targets of `taxonomy=mtrag`, underspecified turns."""

import hashlib
import itertools
from collections import Counter

import pytest

from generator.config.choices import compose_choice
from generator.config.parts import build, build_choice
from taxonomy import Mix, QuestionType, Target, Taxonomy, draw_one, load, read_facets, turn_types
from taxonomy.draw import BLOCK, draw_evenly
from tests.support.scripted import KINDS

SETTINGS = compose_choice("taxonomy", "mtrag")
MIXED = load(build_choice("taxonomy", "mixed"))


def mtrag(**changes: object) -> Taxonomy:
    return load(build("taxonomy", SETTINGS | changes))


def dialogs(taxonomy: Taxonomy, count: int, turns: int = 8, seed: int = 5) -> list[tuple[QuestionType, ...]]:
    return [turn_types(taxonomy, seed, i, draw_one(taxonomy.first, i, f"{seed}/first"), turns) for i in range(count)]


def plans(taxonomy: Taxonomy, count: int, turns: int = 8) -> list[list[Target]]:
    return [[kind for kind in dialog if isinstance(kind, Target)] for dialog in dialogs(taxonomy, count, turns)]


def test_a_question_of_which_a_half_is_untold_may_be_as_long_as_one_that_asks_for_two_things() -> None:
    made = plans(mtrag(answerability={"partial": 0.5, "answerable": 0.5}), 40)
    targets = [target for dialog in made for target in dialog]
    assert {t.words for t in targets if t.name == "factoid" and t.expected == "partial"} == {KINDS["composite"].words}
    assert {t.words for t in targets if t.name == "factoid" and t.expected == "answerable"} == {KINDS["factoid"].words}
    assert {t.words for t in targets if t.name == "keyword"} == {KINDS["keyword"].words}


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


def test_courtesy_is_not_clarified_and_clarifies_nothing() -> None:
    made = plans(mtrag(answerability={"answerable": 0.7, "conversational": 0.3}), 200)
    pairs = [pair for dialog in made for pair in itertools.pairwise(dialog)]
    clarified = [(before, now) for before, now in pairs if now.multi_turn_type == "clarification"]
    assert not any(target.is_conversational for pair in clarified for target in pair)
    assert len(clarified) == pytest.approx(0.15 * 200 * 7, abs=5)


@pytest.mark.parametrize("name", ["mtrag", "mtrag_un"])
def test_what_an_answer_means_is_asked_by_questions_that_ask_for_nothing_else_and_after_an_answer(name: str) -> None:
    made = plans(load(build_choice("taxonomy", name)), 300)
    clarified = [
        (place, target, dialog[place - 1].expected)
        for dialog in made
        for place, target in enumerate(dialog)
        if target.multi_turn and target.multi_turn.name == "clarification-of-answer"
    ]
    assert {before for _, _, before in clarified} == {"answerable", "partial"}
    assert not any(target.checks for _, target, _ in clarified), "such as an opinion, or a statement"
    assert len(clarified) == pytest.approx(0.09 * 300 * 7, abs=5)
    at = Counter(place for place, _, _ in clarified)
    assert len(at) == 7 and min(at.values()) > 0.5 * max(at.values()), "no place in a dialog tells what is asked there"


def test_what_is_planned_not_to_be_in_the_documents_is_what_the_prompt_asks_for() -> None:
    untold = [t for dialog in plans(mtrag(), 300) for t in dialog if t.aim and t.aim.steps]
    assert untold and all(t.aim and t.aim.definition in t.prompt() for t in untold)
    assert not any(t.may_decline for t in untold), "such as a comparison, for which they must hold both"
    assert not any(t.name == "composite" for t in untold if t.expected == "unanswerable"), "they must hold one"


def test_the_plan_has_the_shares_of_the_paper() -> None:
    aim = read_facets("answerability")["underspecified"]
    made = plans(load(build_choice("taxonomy", "mtrag_un")), 1000)
    turns, later = [t for dialog in made for t in dialog], [t for dialog in made for t in dialog[1:]]
    aims = Counter(target.aim.name for target in turns if target.aim)
    assert (aims["partial"] + aims["unanswerable"]) / len(turns) == pytest.approx(0.28, abs=0.01)
    assert aims["underspecified"] / len(turns) == pytest.approx(0.154, abs=0.01)
    for place in range(7):  # what resolves takes the place of any of them, and the last is never underspecified
        at = Counter(dialog[place].aim.name for dialog in made if dialog[place].aim)
        assert at["answerable"] / len(made) == pytest.approx(0.55, abs=0.07)
    links = Counter(target.multi_turn.name for target in later if target.multi_turn)
    unclear_answers = links["clarification-of-answer"] + links["clarification-of-intent"]
    assert unclear_answers / len(later) == pytest.approx(0.15, abs=0.01)
    assert sum(not target.standalone for target in later) / len(later) == pytest.approx(0.457, abs=0.01)
    forms = Counter(target.form.name for target in turns if target.form)
    assert sorted(forms) == sorted(form.name for form in aim.forms)
    assert min(forms.values()) > 0.8 * max(forms.values())
    assert not any(dialog[-1].form for dialog in made), "the next turn resolves it"
    for dialog in made:
        for place, target in enumerate(dialog[:-1]):
            assert (target.form is not None) == dialog[place + 1].resolves
            assert not target.form or target.aim == aim
        assert {target.aim.name for target in dialog if target.resolves and target.aim} <= {"answerable"}
        assert all(target.standalone for target in dialog[1:] if target.form)


@pytest.mark.parametrize(
    ("share", "turns", "made"), [(0.5, 8, 0.5), (0.4, 5, 0.4), (0.7, 4, 0.5), (0.5, 1, 0), (1, 4, 0.5)]
)
def test_each_underspecified_turn_is_resolved_in_any_mix(share: float, turns: int, made: float) -> None:
    planned = dialogs(mtrag(answerability={"answerable": 1 - share, "underspecified": share}), 100, turns)
    unclear = [[isinstance(kind, Target) and kind.form is not None for kind in dialog] for dialog in planned]
    assert sum(map(sum, unclear)) / (100 * turns) == pytest.approx(made, abs=0.03)
    for dialog, is_unclear in zip(planned, unclear, strict=True):
        follow = [isinstance(kind, Target) and kind.resolves for kind in (*dialog[1:], KINDS["direct"])]
        assert follow == is_unclear
        assert not any(one and other for one, other in itertools.pairwise(is_unclear))
        assert not any(kind.checks for kind, is_open in zip(dialog, is_unclear, strict=True) if is_open), "it may ask"


@pytest.mark.parametrize("shares", [{}, {"answerable": 0.5, "underspecified": 0.5}])
def test_so_is_one_that_its_type_makes_underspecified(shares: dict[str, float]) -> None:
    mix = mtrag(later={"underspecified": 0.5, "factoid": 0.5}, answerability=shares)
    for dialog in (made for turns in (2, 3, 5) for made in dialogs(mix, 60, turns)):
        assert not getattr(dialog[-1], "form", None), "no turn is left that resolves it"
        for kind, follows in itertools.pairwise(kind for kind in dialog if isinstance(kind, Target)):
            assert follows.resolves == (kind.form is not None) and not (kind.form and follows.form)


def test_requests_that_cannot_be_answered_are_planned_so() -> None:
    made = [
        target.planned() for dialog in plans(load(build_choice("taxonomy", "uaeval4rag")), 40, 2) for target in dialog
    ]
    labels = {(plan.question_type, plan.answerability) for plan in made}
    assert {label for name, label in labels if name not in ("underspecified", "non-question")} == {"unanswerable"}
    assert {("underspecified", "underspecified"), ("non-question", "answerable")} <= labels


def test_such_a_request_is_planned_so_in_any_mix() -> None:
    later = {"modality-limited": 0.5, "factoid": 0.5}
    shares = {"answerable": 0.3, "partial": 0.4, "underspecified": 0.3}
    made = [target for dialog in plans(mtrag(later=later, answerability=shares), 60, 6) for target in dialog]
    assert {target.planned().answerability for target in made if target.reply} == {"unanswerable"}
    assert not any(target.aim for target in made if target.reply)
    resolving = [target for target in made if target.resolves and target.name == "modality-limited"]
    assert resolving and all(target.expected in shares for target in resolving)


def test_shipped_mixes_give_the_plans_that_they_gave() -> None:
    def names(name: str) -> list[list[str]]:
        return [[t.name for t in each] for each in dialogs(load(build_choice("taxonomy", name)), 40, 6, seed=7)]

    digests = {name: hashlib.sha256(repr(names(name)).encode()).hexdigest()[:8] for name in ("mixed", "mtrag")}
    assert digests == {"mixed": "40dc319f", "mtrag": "37645230"}


@pytest.mark.parametrize("shares", [(0.3, 0.3, 0.3, 0.1), (0.33, 0.34, 0.21, 0.12), (0.97, 0.01, 0.01, 0.01)])
def test_first_types_meet_their_shares_in_every_block_and_every_prefix(shares: tuple[float, ...]) -> None:
    targets = dict(zip(("direct", "comparative", "aggregate", "unanswerable"), shares, strict=True))
    taxonomy = load(Mix(name="m", first=targets, later={"follow-up": 1}))
    names = [draw_one(taxonomy.first, index, "7/first").name for index in range(50 * BLOCK)]
    blocks = [Counter(names[i : i + BLOCK]) for i in range(0, len(names), BLOCK)]
    for name, share in targets.items():
        assert all(abs(block[name] - BLOCK * share) < 1 for block in blocks)
        seen = itertools.accumulate(n == name for n in names)
        # Inside a block the order is random, so a prefix may hold a block's worth too many or too few of a type.
        assert all(abs(count - i * share) < BLOCK * share + 4 for i, count in enumerate(seen, 1))
        ends = itertools.accumulate(block[name] for block in blocks)
        assert all(abs(count - i * BLOCK * share) < 4 for i, count in enumerate(ends, 1))


@pytest.mark.parametrize("turns", [(1,), (2,), (3, 4, 5), (8,)])
def test_later_types_meet_their_shares_over_dialogs_and_never_repeat_a_correction(turns: tuple[int, ...]) -> None:
    made = [[t.name for t in draw_evenly(MIXED.later, turns[i % len(turns)], i, "3/later")] for i in range(300)]
    total = sum(map(len, made))
    for s in MIXED.later:
        assert sum(d.count(s.type.name) for d in made) == pytest.approx(total * s.share, rel=0.03)
        assert all(abs(d.count(s.type.name) - len(d) * s.share) < 1 for d in made)
    assert not any(pair == ("correction", "correction") for d in made for pair in itertools.pairwise(d))
