"""Later questions that say “it” for what the last turn named."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.common.scripts import words
from generator.dialogs.checks.later_turns import refers_back
from generator.dialogs.dedup import Repetition
from generator.dialogs.multi import MultiDocumentDialog
from generator.dialogs.phrases import find_named
from generator.dialogs.program import Draft, Options
from generator.dialogs.referring import Leaning, put_pronoun
from generator.schema import QueryForm
from taxonomy import Target, read_facets
from tests.support.records import make_turn
from tests.support.scripted import KINDS, Entry, Scripted, Shelf, piece, plan

A, B, C, D = (piece(name) for name in ("pier", "quay", "mole", "dock"))
LINKS = read_facets("multi_turn")
FIRST, SECOND = "When did the pier open?", "Who painted the pier?"


def target(alone: bool | None = None, link: str = "follow-up") -> Target:
    later = None if alone is None else LINKS[link]
    return Target(**dict(KINDS["factoid"]), multi_turn=later, standalone=alone)


def write(
    questions: list[str], wanted: list[Target], query: QueryForm = "rewrite", answers: Sequence[str] = ()
) -> tuple[Draft, Scripted, list[str]]:
    """Return a dialog, its model, and what was searched for; with answers, it is written in plain words."""
    replies: dict[str, list[Entry]] = {"rewrite": [{"query": "rewritten"}] * len(questions)}
    if answers:
        replies |= {"ask": [*questions], "answer": [*answers]}
    else:
        replies["ask"] = [{"question": question, "consistent": True} for question in questions]
    model = Scripted(**replies)
    shelf = Shelf([[A], [B], [C], [D]])
    options = Options(planned=True, reasoning=not answers)
    program = MultiDocumentDialog(Repetition(0.8), shelf, 2, query, options)
    draft = model.run(lambda: program.write(plan(A, wanted), {}))
    return draft, model, [searched for searched, _, _ in shelf.asked]


def test_a_question_that_was_planned_to_refers_and_is_searched_for_in_full() -> None:
    draft, model, searched = write([FIRST, SECOND], [target(), target(alone=False)])
    assert [turn.query for turn in draft.turns] == [FIRST, "Who painted it?"]
    assert searched == [FIRST, SECOND] and not model.of("rewrite")
    assert "Who painted it?" in model.prompts("answer")[1]


def test_what_one_question_cannot_a_later_one_does() -> None:
    wanted = [target(), target(alone=False), target(alone=True), target(alone=True)]
    questions = [FIRST, "Where is the quay?", "Who painted the quay?", "Who owns the mole?"]
    draft, _, _ = write(questions, wanted)
    assert [turn.query for turn in draft.turns] == [*questions[:2], "Who painted it?", questions[3]]


def test_who_resolves_leans_on_the_dialog_as_planned() -> None:
    resolution = read_facets("answerability")["underspecified"].resolution
    resolving = Target(**dict(KINDS["non-question"]), multi_turn=resolution, standalone=False)
    leaning = Leaning([target(), resolving, target(alone=True)], ahead=False)
    leaning.settle(make_turn(2, query="The pier, please.", multi_turn_type="clarification"), 1)
    assert not leaning.is_due(target(alone=True), 2)


def test_in_plain_words_an_earlier_question_may() -> None:
    questions = [FIRST, "Which door does the pier have?", "When did the quay open?"]
    answers = ["The pier opened in May.", "It has a blue door.", "The quay opened in May."]
    draft, _, _ = write(questions, [target(), target(alone=True), target(alone=False)], answers=answers)
    assert [turn.query for turn in draft.turns] == [FIRST, "Which door does it have?", questions[2]]


def test_what_leaves_the_topic_does_not_refer() -> None:
    leaving = target(alone=True).model_copy(update={"new_topic": True})
    questions = [FIRST, "Where is the quay?", "Who painted the quay?"]
    draft, _, _ = write(questions, [target(), target(alone=False), leaving])
    assert [turn.query for turn in draft.turns] == questions


@pytest.mark.parametrize(
    ("second", "query"),
    [
        (target(alone=True), "rewrite"),
        (target(alone=False, link="clarification-of-answer"), "rewrite"),
        (target(alone=False), "last_turn"),  # its full form would be lost
    ],
)
def test_no_other_question_does(second: Target, query: QueryForm) -> None:
    draft, model, _ = write([FIRST, SECOND], [target(), second], query)
    assert len(model.of("ask")) > 1 and "Who painted it?" not in [turn.query for turn in draft.turns]


def test_what_a_user_tells_keeps_its_names() -> None:
    told = "I have painted the pier."
    tells = Target(**dict(KINDS["non-question"]), multi_turn=LINKS["follow-up"], standalone=False)
    assert [turn.query for turn in write([FIRST, told], [target(), tells])[0].turns] == [FIRST, told]


@pytest.mark.parametrize(
    ("marked", "told", "said"),
    [
        ("How long is [the pier]?", "", "How long is it?"),
        ("When did [the old pier] close?", "", "When did it close?"),
        ("I want to know what [a weir] is.", "", "I want to know what it is."),
        ("How long are [piers] on average?", "", "How long are they on average?"),
        ("Who built [piers]?", "", "Who built them?"),
        ("When was it that he won [the cups]?", "", "When was it that he won them?"),
        ("What does [the fare for dogs] cover?", "", "What does it cover?"),
        ("What is the height of [the pier]?", "", "What is its height?"),
        ("What are the side effects of [these pills] in winter?", "", "What are their side effects in winter?"),
        ("How did [Norway's] economy grow?", "In Norway, it is oil.", "How did its economy grow?"),
        ("How many people live in [Norway]?", "", "How many people live there?"),
        ("Who votes in [the United States]?", "", "Who votes there?"),
        ("How is a score kept in [water polo]?", "", "How is a score kept in it?"),
        ("How many laws did [the Vikings] write?", "", "How many laws did they write?"),
        ("Where did [Clara Schumann] teach?", "Clara Schumann taught for years. She was …", "Where did she teach?"),
        ("Who met [Clara Schumann]?", "Clara Schumann gave her first concert at nine.", "Who met her?"),
        ("Who were [Benz's] parents?", "Karl Benz built it. His car …", "Who were his parents?"),
        ("When did [Napoleon] die?", "It was in 1804 that Napoleon crowned himself. Pius VII came; he …", ""),
        ("What does [the tenant] pay?", "", ""),  # nothing tells whether it is a person
        ("How old are [the keys]?", "", "How old are they?"),
        ("Do all piers have [gates]?", "", "Do all piers have them?"),
        ("What are the terms of [the permit for boats]?", "", "What are its terms?"),
        ("Who may use [Harbor Loans]?", "Harbor Loans are cheap.", "Who may use them?"),
        ("How often have [the Elm Foxes] won?", "", "How often have they won?"),
        ("When did [Ann Lee] die?", "Ann Lee found radium.", ""),
        ("Who runs [Elm Soft]?", "Elm Soft is a platform for maps.", "Who runs it?"),
        ("Where is [Elmsoft's] office?", "Jo Lee left Elmsoft in 2008. He paints.", ""),  # Jo Lee does
        ("when did [ann lee] die?", "Ann Lee was a painter. She taught.", "when did she die?"),
        ("What did [Ann Lee] have?", "Ann Lee was a Swiss painter. She taught.", "What did she have?"),
        ("Why do [antibiotics] not help?", "", "Why do they not help?"),
        ("Why doesn't [the pump] start?", "", "Why doesn't it start?"),
        ("Does the form list names of [the guests]?", "", ""),
        ("How do I set up [the pump]?", "", ""),  # “set it up”
        ("Why does the numbering stay but not [the formatting]?", "", ""),  # “but not it”
        ("What is the name of the city of [Elm]?", "Elm is a port.", ""),
        ("Which versions of [Elmsoft] are free?", "", ""),
        ("How do I open a file in [Elm Soft]?", "Elm Soft is a platform.", ""),
        ("What do guests pay in [the museum]?", "", "What do guests pay there?"),
        ("How do I get to [Elm]?", "Elm is a town.", "How do I get there?"),
        ("Is [the pier] open, or is the pier closed?", "", ""),
        ("Do you think that [50 euros] is fair?", "", ""),
        ("Do you think that [the staff] are friendly?", "", ""),
        ("Do you think that [the gates] are wide?", "", "Do you think that they are wide?"),
    ],
)
def test_a_pronoun_stands_as_what_it_replaces(marked: str, told: str, said: str) -> None:
    before, _, rest = marked.partition("[")
    named, _, after = rest.partition("]")
    question = f"{before}{named}{after}"
    assert put_pronoun(question, len(before), len(before) + len(named), told) == (said or question)


@pytest.mark.parametrize(
    ("question", "told", "named"),
    [
        (
            "What is the purpose of the Defense of Marriage Act?",
            "The Defense of Marriage Act",
            "the Defense of Marriage Act",
        ),
        ("What are the key sectors of India's economy?", "India’s economy is mixed.", "India's economy"),
        ("How do dogs travel on Swiss trains in winter?", "Swiss trains", "Swiss trains"),
        ("Where was Kermit the Frog born?", "The Frog", ""),
        ("What's the point of having such a program?", "The state has a program.", ""),
        ("Who left Dancing with the Stars?", "The Stars", ""),
        ("What made The Leno Show a risk?", "It was a risk.", ""),
        ("How long did the Elm comic series last?", "The Elm comic series last had ten issues. The Elm comic.", ""),
        ("What does hiring a bench cost at Elm?", "What does hiring a bench cost at Ash?", ""),  # the verb
        ("What is the pier?", "the pier", ""),  # nothing else is asked
        ("What does a ticket cost?", "the pier", ""),
        ("What is the purpose of the glossary?", "the purpose of the order", ""),  # of something else
        ("Is it better to own cats or dogs?", "Dogs are loyal.", ""),
        ("What was the Great Wall of China?", "China", ""),
        ("What can I use for a plan?", "You can use it.", ""),  # a verb
        ("What causes shops to fail?", "Most shops fail.", ""),
        ("What was India's growth in 2018?", "India’s economy is mixed.", "India's"),
        ("What is the subject of E. E. Cummings' work?", "E. E. Cummings was a poet.", "E. E. Cummings'"),
        ("When did the Roman Empire end?", "The Roman Empire was large.", "the Roman Empire"),
        ("Why did the cotton harvest fail?", "The cotton gin was new.", ""),  # a part of a name
        ("Does Roman law change?", "Roman emperors were many.", ""),
        ("Where do I store my seeds?", "Buy seeds.", ""),  # mine
        ("Why does the display show E3?", "What does the display show? It shows codes.", ""),  # a verb
        ("Why did the board decide to close?", "The board decided to close.", "the board"),
        ("How long does the visa application process take?", "Send the visa application.", ""),
        ("Can a living will be revoked?", "A living will tells what you want.", ""),
        ("How do I file a claim in Elm?", "You file a claim in Elm.", "a claim in Elm"),
        ("Which cups do you use?", "Many cups are used.", ""),
        ("Can I work from home?", "Some work from home.", ""),  # no thing
        ("What is the tax rate for farms?", "The tax rate is low.", ""),  # it is asked for
        ("What is the tent made of?", "The tent is light.", "the tent"),
        ("How do owls hunt at night?", "Owls eat mice.", "owls"),
        ("Is kimchi healthy?", "Kimchi is cabbage.", "kimchi"),
        ("What happens if the pump fails?", "The pump moves water.", "the pump"),
        ("How many piers are there in the world?", "It is the longest in the world.", ""),
        ("What about taxes on gifts?", "Taxes are paid.", ""),
        ("Where is the museum entrance?", "The museum is old.", ""),
        ("Where is the museum located?", "The museum is old.", "the museum"),
        ("Do the U.S. rules help?", "The U.S. has rules.", ""),
        ("Could the water that freezes leak?", "The water is cold.", ""),
    ],
)
def test_what_was_just_named_is_found(question: str, told: str, named: str) -> None:
    found = [question[start:end] for start, end in find_named(question, told)]
    assert (found or [""])[0] == named


@pytest.mark.parametrize(
    ("question", "refers"),
    [
        ("What is its height?", True),
        ("Who owns this?", True),
        ("Can one swim there?", True),
        ("How long does it take to cross the bay?", False),
        ("Is there a first step?", False),
        ("What do those who swim pay?", False),
        ("Where can I find more on other piers?", False),
        ("How many people work in IT?", False),
        ("Is the pier open this summer?", False),
        ("Did they open the pier that burnt down?", True),
        ("Who owns the pier that burnt down?", False),
        ("Does it apply to guests?", True),
        ("Is it a good idea to swim in the bay?", False),
        ("How do students get their cards?", False),
        ("How much water does Port Elm take for its pools?", False),
        ("Where does water go after it enters a drain?", False),
        ("What is a weir and how is it built?", False),
        ("Who took over after her death?", True),
        ("Is it similar to a loan?", True),
        ("Is it safe for children to swim in the bay?", False),
        ("Does it rain in Port Elm?", False),
        ("Who directed It Happened One Night?", False),
        ("Where was Zheng He born?", False),
        ("Is the pier open this Friday?", False),
        ("Who painted that?", True),
        ("Where can I find one?", True),
        ("Which one is cheaper?", True),
        ("And in winter?", True),
        ("Why?", True),
    ],
)
def test_a_question_refers_by_a_pronoun(question: str, refers: bool) -> None:
    assert refers_back(question) is refers


def test_people_rewrite_what_refers(data: Path) -> None:
    """CANARD's people put in full what refers to the dialog: their questions do, and their rewritten ones don't."""
    rows = [row for row in json.loads((data / "canard/dev.json").read_text()) if row["Question_no"] > 1]
    # “Are there any other interesting aspects about this article?” is QuAC's own.
    rows = [row for row in rows if "article" not in row["Rewrite"]]
    pronouns = {*"it its they them their theirs he him his she her hers this that these those there".split()}
    pairs = [(row["Question"], row["Rewrite"]) for row in rows]
    put_in_full = [asked for asked, full in pairs if pronouns & {*words(asked)} - {*words(full)}]
    assert sum(refers_back(full) for _, full in pairs) / len(pairs) < 0.02
    assert sum(map(refers_back, put_in_full)) / len(put_in_full) > 0.97
