"""Question types, those that we ship and one's own, and the mixes of them."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from generator.config.conf_files import choices
from generator.config.parts import build_choice
from generator.errors import TaxonomyError
from taxonomy import Mix, Target, Taxonomy, draw_one, load, read_facets, read_types
from taxonomy.draw import BLOCK
from tests.support.taxonomy_files import refuse

ROOT = Path(__file__).parents[2]
FIRST = {"direct", "comparative", "aggregate", "unanswerable"}
LATER = {"follow-up", "clarification", "correction"}
ANY = {"comparative", "composite", "explanation", "factoid", "how-to", "keyword", "opinion", "summarization"} | {
    "troubleshooting"
}
MTRAG = ANY | {"non-question"}
UAEVAL4RAG = {"underspecified", "false-premise", "nonsensical", "modality-limited", "safety-concerned"} | {
    "out-of-knowledge-base"
}
MIXES = [name for name in choices("taxonomy") if isinstance(build_choice("taxonomy", name), Mix)]

TYPE = """\
name: way-to
stage: first
definition: A question that asks how to do something.
steps:
  - Name a task.
  - Ask how it is done.
phrasings: [How do I, What do I do to, Walk me through]
"""
LATER_TYPE = """\
name: doubt
stage: later
definition: A question that doubts the last answer.
steps: [Name a claim., Doubt it.]
phrasings: ["Really?", "Are you sure?", "Since when?"]
examples:
  - dialog: [{user: "Is it open?", agent: Yes.}]
    question: Really, on a Monday?
  - dialog: [{user: "Is it far?", agent: Ten minutes.}]
    question: Are you sure?
"""


def make(first: dict[str, float], later: dict[str, float] | None = None, path: Path | None = None) -> Taxonomy:
    return load(Mix(name="m", path=path, first=first, later=later or {"follow-up": 1}))


# --- the types and mixes that we ship


@pytest.mark.parametrize("kind", read_types().values(), ids=lambda t: t.name)
def test_a_type_is_short_and_its_user_never_speaks_of_documents(kind) -> None:
    assert len(kind.prompt()) <= (900 if kind.stage == "later" else 550)
    said = [*kind.phrasings, *(e.question for e in kind.examples)]
    assert not re.search("document|passage|text|sentence|paragraph", " ".join(said), re.IGNORECASE)


def test_a_composite_question_is_led_to_by_its_steps_and_not_by_how_its_first_part_begins() -> None:
    composite = read_types()["composite"]
    for prompt in (composite.prompt(), composite.brief()):
        assert all(step in prompt for step in composite.steps) and "begins like" not in prompt


def test_a_follow_up_begins_as_it_likes_and_what_goes_back_as_such_questions_do() -> None:
    kinds, follow_up = read_types(), read_facets("multi_turn")["follow-up"]
    assert "begins like" not in kinds["follow-up"].prompt()
    goes_back = (kinds["clarification"], kinds["correction"])
    factoid = Target(**dict(kinds["factoid"]), multi_turn=follow_up)
    assert all("begins like" in kind.prompt() for kind in (*goes_back, factoid))


def test_the_prompt_tells_everything_that_leads_the_model(tmp_path: Path) -> None:
    gap = LATER_TYPE.replace("Are you sure?", "Is it really … , or … ?", 1).replace("Since when?", "So … ?")
    (tmp_path / "doubt.yaml").write_text(gap)
    assert read_types(tmp_path)["doubt"].prompt() == (
        "doubt: A question that doubts the last answer.\n"
        "In another dialog, on another topic: User: Is it open? Agent: Yes. → Really, on a Monday?\n"
        "In another dialog, on another topic: User: Is it far? Agent: Ten minutes. → Are you sure?\n"
        "1. Name a claim.\n"
        "2. Doubt it.\n"
        "It has at most 12 words.\n"
        "It begins like one of these: “Really?”, “Is it really”"
    ), "a gap is nothing that a model could copy"


@pytest.mark.parametrize(
    ("phrasings", "shown"),
    [
        (("¿Cuándo … ?", "¿Quién … ?"), "It begins like one of these: “¿Cuándo”, “¿Quién”"),
        (("Wann … ?", "Wie viel … ?", "Wer … ?"), "It begins like one of these: “Wann”, “Wie viel”, “Wer”"),
        (("では、…はどうですか？", "もし…なら？"), "It begins like one of these: “では、”, “もし”"),
        (
            ("誰が…か？", "…はいくらですか？"),
            "It is put like one of these, with words in place of “…”: “誰が…か？”, “…はいくらですか？”",
        ),
    ],
)
def test_no_beginning_shows_a_gap(phrasings: tuple[str, ...], shown: str) -> None:
    kind = read_types()["direct"].model_copy(update={"phrasings": phrasings})
    assert kind.prompt().endswith(f"\n{shown}") and kind.brief().endswith(f"\n{shown}")


@pytest.mark.parametrize("kind", sorted(FIRST))
def test_no_first_question_begins_as_if_something_was_said_before(kind: str) -> None:
    """“Does that also go for Cotton's sisters?” opens no conversation."""
    assert not [each for each in read_types()[kind].phrasings if {"that", "this", "also"} & {*each.lower().split()}]


def test_what_the_documents_leave_out_is_asked_for_in_as_many_ways_as_what_they_tell() -> None:
    assert len(read_types()["unanswerable"].beginnings()) >= len(read_types()["direct"].beginnings())


def test_in_plain_words_a_target_tells_its_type_and_what_else_it_is() -> None:
    kinds, unanswerable = read_types(), read_facets("answerability")["unanswerable"]
    kind, keyword = kinds["factoid"], kinds["keyword"]
    plain = kind.brief()
    target = Target(**dict(kind), aim=unanswerable, multi_turn=read_facets("multi_turn")["follow-up"])
    assert kind.definition in plain and "It begins like" in plain and kind.steps[0] not in plain
    assert kind.definition in target.brief() and unanswerable.definition in target.brief()
    assert "It begins like" in target.brief()
    assert not any("It begins like" in kinds[name].brief() for name in ("follow-up", "non-question"))
    assert keyword.steps[1] in keyword.brief(), "without beginnings, its steps show what it looks like"
    assert (kind.expected, target.expected) == ("answerable", "unanswerable")


def test_nobody_is_told_to_ask_for_more_with_a_statement() -> None:
    statement, links, partial = read_types()["non-question"], read_facets("multi_turn"), read_facets("answerability")
    goes_on = Target(**dict(statement), multi_turn=links["follow-up"], aim=partial["partial"])
    meant = Target(**dict(statement), multi_turn=links["clarification-of-intent"], aim=partial["partial"])
    assert goes_on.prompt() == statement.prompt() and goes_on.brief() == statement.brief()
    assert links["clarification-of-intent"].prompt() in meant.prompt() and "one half" not in meant.prompt()


def test_who_asks_what_an_answer_means_is_told_of_nothing_else() -> None:
    kinds, links, partial = read_types(), read_facets("multi_turn"), read_facets("answerability")["partial"]
    clarifies = links["clarification-of-answer"]
    asked = Target(**dict(kinds["troubleshooting"]), multi_turn=clarifies, aim=partial)
    for told in (asked.prompt(), asked.brief()):
        assert clarifies.definition in told
        assert not any(each.definition in told for each in (kinds["troubleshooting"], partial))
        assert "begins like" not in told
    assert all(step in asked.prompt() for step in clarifies.steps)
    assert not any(step in asked.prompt() for step in kinds["troubleshooting"].steps)
    opinion = Target(**dict(kinds["opinion"]), multi_turn=clarifies)
    assert kinds["opinion"].definition in opinion.prompt(), "it is checked for a view"
    assert partial.prompt() in Target(**dict(kinds["factoid"]), multi_turn=links["follow-up"], aim=partial).prompt()


def test_who_leaves_the_topic_is_not_told_to_take_up_a_thing_of_the_dialog() -> None:
    factoid, goes_on = read_types()["factoid"], read_facets("multi_turn")["follow-up"]
    assert goes_on.definition in Target(**dict(factoid), multi_turn=goes_on).prompt()
    leaving = Target(**dict(factoid), multi_turn=goes_on, new_topic=True)
    assert goes_on.definition not in leaving.prompt() + leaving.brief()
    assert leaving.multi_turn_type == "follow-up"


@pytest.mark.parametrize("name", MIXES)
def test_our_mixes_load(name: str) -> None:
    taxonomy = load(build_choice("taxonomy", name))
    assert taxonomy.name == name
    first, later = ({share.type.name for share in shares} for shares in (taxonomy.first, taxonomy.later))
    if name in ("mtrag", "mtrag_un"):
        assert (first, later) == (ANY, MTRAG)
    elif name == "uaeval4rag":
        assert first == UAEVAL4RAG
    elif name == "mixed" or name in FIRST:
        assert (first, later) == (FIRST if name == "mixed" else {name}, LATER)
    elif name.startswith("lee2024_"):  # tests/config/test_experiments.py
        assert later == LATER


def test_later_questions_of_the_default_mix_go_on_as_often_as_people_do() -> None:
    mixed, mtrag = (load(build_choice("taxonomy", name)) for name in ("mixed", "mtrag"))
    own = {share.type.name: share.share for share in mixed.later}
    theirs = {share.type.name: share.share for share in mtrag.multi_turn}
    assert own == {
        "follow-up": theirs["follow-up"],
        "clarification": theirs["clarification-of-answer"],
        "correction": theirs["clarification-of-intent"],
    }


def test_examples_can_be_kept_from_the_model() -> None:
    mix = {"name": "m", "first": {"direct": 1.0}, "later": {"follow-up": 0.5, "correction": 0.5}}
    shown, kept = (load(Mix(**mix, examples=examples)) for examples in (True, False))
    assert all("In another dialog" in share.type.prompt() for share in shown.later)
    assert not any("In another dialog" in share.type.prompt() for share in kept.later)
    for one, other in zip((*shown.first, *shown.later), (*kept.first, *kept.later), strict=True):
        assert one.type.model_copy(update={"examples": ()}) == other.type


def test_weights_are_relative_and_types_of_weight_0_give_theirs_to_the_others() -> None:
    first, later = {"direct": 6, "comparative": 3, "unanswerable": 1, "aggregate": 0}, {"follow-up": 1, "correction": 1}

    def mix(*without: str) -> dict[str, float]:
        stages = [{name: 0 if name in without else weight for name, weight in each.items()} for each in (first, later)]
        return {s.type.name: round(s.share, 4) for s in load(Mix(name="m", first=stages[0], later=stages[1])).first}

    assert mix() == {"direct": 0.6, "comparative": 0.3, "unanswerable": 0.1}
    assert mix("unanswerable") == {"direct": 0.6667, "comparative": 0.3333}
    with pytest.raises(TaxonomyError, match=r"^taxonomy\.first: no type has a weight above 0"):
        mix("direct", "comparative", "unanswerable")
    with pytest.raises(TaxonomyError, match=r"^taxonomy\.later\.correction: "):
        mix("follow-up")


# --- types of one's own


def test_the_documented_type_and_mix_work_as_written(here: Path) -> None:
    doc = (ROOT / "docs" / "extending.md").read_text()
    blocks = dict(re.findall(r"^```yaml (\S+)\n(.*?)```", doc, re.MULTILINE | re.DOTALL))
    type_, mix = blocks["my-types/breakdown.yaml"], blocks["my-conf/taxonomy/helpdesk.yaml"]
    (here / "my-types").mkdir()
    (here / "my-types" / "type.yaml").write_text(type_)
    assert set(read_types(Path("my-types"))) - set(read_types()) == {"breakdown"}, "it replaces a type of ours"
    settings = yaml.safe_load(mix)
    assert settings.pop("_target_") == "taxonomy.Mix"
    taxonomy = load(Mix(**settings))
    kinds = Counter(draw_one(taxonomy.first, i, "0/first").name for i in range(BLOCK))
    assert kinds == {"breakdown": 16, "direct": 4}


def test_the_documented_definitions_are_those_of_the_types() -> None:
    doc = (ROOT / "docs/taxonomy.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (?:first|later|any) \| (.+) \|$", doc, re.MULTILINE)
    assert {name: f"A {rest}." for name, rest in rows} == {n: t.definition for n, t in read_types().items()}


def test_a_type_of_ones_own_is_added_and_replaces_ours_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TYPE)
    (tmp_path / "b.yml").write_text(TYPE.replace("way-to", "direct"))
    types = read_types(tmp_path)
    assert set(types) == {*read_types(), "way-to"} > FIRST | LATER | MTRAG | UAEVAL4RAG
    assert types["direct"].definition == "A question that asks how to do something."


# --- what is wrong, and where


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TYPE.replace("phrasings", "phrasing"), ":7: unknown key 'phrasing'; did you mean 'phrasings'?"),
        (TYPE + "colour: red\n", ":8: unknown key 'colour'; choose from: name, stage, definition, "),
        (TYPE.replace("definition:", "# :"), ":1: missing key 'definition'; expected one sentence: A question that …"),
        (TYPE.replace("stage: first", "stage: second"), ":2: stage: Input should be 'first', 'later' or 'any'; "),
        (TYPE.replace("  - Ask how it is done.\n", ""), ":4: steps: "),
        (TYPE.replace("- Name a task.", "- Name: a task"), ":5: steps.0: Input should be a valid string (put text"),
        (TYPE + "turns: 0\n", ":8: turns: "),
        (TYPE + LATER_TYPE[LATER_TYPE.index("examples") :], ":8: examples: "),
        (LATER_TYPE + "turns: 2\n", ":11: turns: "),
        (TYPE + "takes_up: answer\n", ":8: takes_up: a first type has no turn before it; "),
        (LATER_TYPE + "takes_up: reply\n", ":11: takes_up: Input should be 'question', 'answer' or 'neither'; "),
        (LATER_TYPE[: LATER_TYPE.index("examples")], ":1: examples: a later type has 2 or 3, not 0; "),
        (LATER_TYPE.replace('user: "Is it', 'usr: "Is it'), ":7: unknown key 'examples.0.dialog.0.usr'; did you"),
        (re.sub(r"\[\{user: .Is it far.*", "[]", LATER_TYPE), ":9: examples.1.dialog: "),
        (TYPE + "name: other\n", ":8: not valid YAML: duplicate key 'name'"),
        (TYPE + "turns: [1\n", ":9: not valid YAML: "),
        ("- direct\n", ":1: not a question type; give at least the keys"),
        (TYPE.replace("way-to", "2024-99-99"), ": not valid YAML: "),
        ("[" * 5000, ":1: not valid YAML: "),
        ("name: caf\xe9\n".encode("latin-1"), ": can't be read as UTF-8 text"),
    ],
)
def test_a_bad_type_file_is_one_line_with_the_place(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert refuse(read_types, tmp_path, text).startswith(message)


def test_a_folder_that_can_not_be_used_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TaxonomyError, match=r"taxonomy\.path=.*nowhere: does not exist \(looked in "):
        read_types(tmp_path / "nowhere")
    with pytest.raises(TaxonomyError, match=r"taxonomy\.path=.*has no question type"):
        read_types(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(TYPE)
    with pytest.raises(TaxonomyError, match=r"b\.yaml: name: "):
        read_types(tmp_path)


def test_a_type_of_ones_own_without_a_weight_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TYPE)
    weights = {"first": {"direct": 1.0}, "later": {"follow-up": 1.0}}
    with pytest.raises(TaxonomyError, match=r"^taxonomy\.path: way-to has no weight; set taxonomy\.first\.way-to=1"):
        load(Mix(name="m", path=tmp_path, **weights))
    (tmp_path / "a.yaml").write_text(LATER_TYPE)
    with pytest.raises(TaxonomyError, match=r"set taxonomy\.later\."):
        load(Mix(name="m", path=tmp_path, **weights))
    (tmp_path / "a.yaml").write_text(TYPE)
    assert load(Mix(name="m", path=tmp_path, **(weights | {"first": {"direct": 1.0, "way-to": 0.0}}))).first


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ({"comparativ": 1}, {}, "taxonomy.first.comparativ: unknown question type; did you mean 'comparative'?"),
        ({"follow-up": 1}, {}, "taxonomy.first.follow-up: is a type for later turns"),
        ({"direct": 1}, {"follow-up": 0.9, "direct": 0.1}, "taxonomy.later.direct: is a type for first turns"),
        ({"direct": 1}, {"correction": 3, "follow-up": 2}, "taxonomy.later.correction: has 0.6 of the weights"),
    ],
)
def test_bad_weights_are_one_line(first: dict[str, float], later: dict[str, float], message: str) -> None:
    with pytest.raises(TaxonomyError) as caught:
        make(first, later)
    assert str(caught.value).startswith(message)
