"""Checks of dialogs of tasks: each on a dialog that passes it, and on one that doesn't."""

import json
from collections import Counter
from pathlib import Path

import pytest

from generator.dialogs.checks.tasks import Written, find_dialog_fault, holds
from generator.dialogs.dedup import Repetition
from taxonomy import Task, read_tasks
from tests.support.languages import speaking

TASKS = read_tasks()
REPETITION = Repetition(0.8)
# Pairs of User and Agent that pass the checks of any task without checks of its own.
PLAIN = [("Which bread keeps longest?", "Rye bread keeps for a week."), ("And in summer?", "Three days, in a cloth.")]


def fault(task: str, *pairs: tuple[str, str], result: str = "", mistake: str = "", grounded: bool = False) -> str:
    """Return the reason why a dialog is refused; empty if it isn't."""
    written = Written([user for user, _ in pairs], [agent for _, agent in pairs], result, mistake)
    found = find_dialog_fault(written, TASKS[task], REPETITION, grounded)
    return found[0] if found else ""


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_the_examples_of_every_task_pass(task: Task) -> None:
    for example in task.examples:
        users, agents = [pair.user for pair in example.dialog], [pair.agent for pair in example.dialog]
        alone = task.model_copy(update={"examples": ()})
        written = Written(users, agents, example.result, example.mistake)
        assert find_dialog_fault(written, alone, REPETITION, False) is None
        assert find_dialog_fault(written, task, REPETITION, False) == ("copies an example", users[0])


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (" … ", "an empty message"),
        ("User: How long?", "a role or step label in a message"),
        ("**Agent**: A week.", "a role or step label in a message"),
        ("A week.\nUser: Thanks.", "a role or step label in a message"),
        ("Agent responds: A week.", "a role or step label in a message"),
        ("The user asks: “How long?”", "a role or step label in a message"),
        ("Turn 2: how long?", "a role or step label in a message"),
        ("**Step 2**: how long?", "a role or step label in a message"),
        ("Step 1: bake it. Step 2: wrap it in linen.", ""),
        ("Step 1: bake it.\nStep 2: wrap it in linen.", ""),
        ("Step 2 of the recipe takes longest.", ""),
        ("rye BREAD keeps for a week", "repeats a message"),
        ("An agent: what is that? The turn of the century.", ""),
    ],
)
def test_the_form_of_messages(message: str, reason: str) -> None:
    assert fault("CM", *PLAIN) == ""
    assert fault("CM", *PLAIN, (message, "So it is.")) == reason
    assert fault("CM", *PLAIN, ("So it is?", message)) == reason


def test_the_first_message_is_not_the_subject() -> None:
    written = Written([user for user, _ in PLAIN], [agent for _, agent in PLAIN], subject="Which bread keeps longest.")
    assert find_dialog_fault(written, TASKS["CM"], REPETITION, False) == ("copies the subject", PLAIN[0][0])
    asked = written._replace(users=["Why does rye bread keep so long in a cool pot?", *written.users[1:]])
    near = asked._replace(subject="Why rye bread keeps so long in a cool pot.")
    assert find_dialog_fault(near, TASKS["CM"], REPETITION, False) is None, "a question about it"


def test_user_and_agent_are_not_swapped() -> None:
    swapped = fault("CM", *PLAIN, ("How can I help you with bread?", "I want to bake."))
    assert swapped == "the User speaks as the Agent"


def test_nobody_speaks_of_the_documents_where_there_are_any() -> None:
    spoken = (*PLAIN, ("Why?", "According to the passage, it dries."))
    assert (fault("CM", *spoken), fault("CM", *spoken, grounded=True)) == ("", "speaks of the documents")


def test_answers_ask() -> None:
    asked = [("Plan my trip.", "Where to?"), ("To Rome.", "When?"), ("In May.", "Then take the night train.")]
    assert fault("IC", *asked) == ""
    assert fault("IC", asked[0], ("To Rome.", "Fine."), asked[2]) == "an answer asks nothing back"


def test_the_first_answer_asks() -> None:
    pieces = [("Name the capital of what I say.", "Of which country?"), ("Peru", "Lima."), ("Chad", "N'Djamena.")]
    assert fault("SI", *pieces) == ""
    assert fault("SI", ("Name a capital.", "Please send the country."), *pieces[1:]) == ""
    assert fault("SI", ("Name a capital.", "Paris."), *pieces[1:]) == "the first answer asks nothing back"


def test_later_questions_refer_back() -> None:
    first, second = ("Who painted Guernica?", "Pablo Picasso did."), ("When did he paint it?", "In 1937.")
    assert fault("AR", first, second) == ""
    for pointing in ("And what about the second?", "Where does the last hang?"):
        assert fault("AR", first, (pointing, "In 1937.")) == ""
    plain = ("When was Guernica painted?", "In 1937.")
    assert fault("AR", first, plain) == "a later question points at nothing said before"


def test_the_topic_returns() -> None:
    bees = ("How do bees choose a nest?", "Scouts dance for a hollow tree.")
    wine, back = ("What removes wine stains?", "Cold water and salt."), ("Which tree do scouts of bees like?", "Oak.")
    assert fault("TS", bees, wine, back) == ""
    assert fault("TS", bees, ("How do bees choose a flower?", "By scent."), back) == "the topic does not change"
    elsewhere = "the last question does not return to the first topic"
    assert fault("TS", bees, wine, ("Does salt hurt wine glasses?", "No.")) == elsewhere
    assert fault("TS", bees, wine, ("What is a good film?", "Alien.")) == elsewhere


def test_later_questions_look_alike() -> None:
    first = ("What is the best bank for a picnic?", "A grassy one.")
    assert fault("CC", first, ("What is the best bank for a loan?", "Ask two.")) == ""
    different = "a later question does not look like the one before"
    assert fault("CC", first, ("Who wrote Carmen?", "Bizet.")) == different
    assert fault("CC", first, (first[0], "Ask two.")) == "repeats a message"


def test_a_dialog_of_one_turn_has_nothing_to_dispute() -> None:
    task = TASKS["CM"].model_copy(update={"checks": ("disputes",)})
    user, agent = PLAIN[0]
    assert find_dialog_fault(Written([user], [agent]), task, REPETITION, False) is None


def test_the_user_disputes() -> None:
    right, kept = "The Nile has 6,650 km.", "It has 6650 kilometres indeed, the Amazon is shorter."
    hearsay = ("My neighbour swears it's the Amazon.", "Everybody told me 6,400.", "The sign has another number.")
    for doubt in ("Is it?", "That sounds wrong to me.", "But the Amazon has more.", *hearsay):
        assert fault("SA", ("How long is the Nile?", right), (doubt, kept), result="6650 km") == ""
    agrees = fault("SA", ("How long is the Nile?", right), ("Thanks a lot.", kept), result="6650 km")
    assert agrees == "the User does not dispute the answer"
    again = fault("SA", ("How long is the Nile?", right), ("How long is the Nile, please?", kept), result="6650 km")
    assert again == "the User asks again"


def test_later_answers_rewrite() -> None:
    first = ("Why is rye dark?", "Rye flour keeps its bran, which is dark.")
    assert fault("FR", first, ("As a list.", "- Rye keeps the bran\n- Bran is dark")) == ""
    assert fault("FR", first, ("As a list.", "- Cats sleep\n- Dogs bark")) == (
        "a later answer does not rewrite an earlier one"
    )


def test_the_result_and_the_mistake() -> None:
    asked, doubt = (
        ("How long is the Nile?", "It has 4,200 km."),
        ("Isn't it longer?", "Sorry, it has 6,650 km, not 4,200."),
    )

    def of(*pairs: tuple[str, str], mistake: str = "4200 km") -> str:
        return fault("SC", *pairs, result="6650 km", mistake=mistake)

    assert of(asked, doubt) == ""
    assert of(asked, (doubt[0], "Sorry, it is longer.")) == "the last answer lacks the result"
    assert of(("How long?", "4,200 or 6,650 km."), doubt) == "the first answer has the result"
    assert of(asked, doubt, mistake="4300 km") == "the first answer lacks the mistake"
    assert of(asked, (doubt[0], "It has 4,200 km and 6,650 km.")) == "the last answer keeps the mistake"
    told = ("No, it has 6650 km, doesn't it?", doubt[1])
    assert of(asked, told) == "the User gives the right answer"
    vinegar = [("May I descale it with vinegar?", "Yes, you may."), ("Is no rubber in it?", "Sorry, no, there is.")]
    assert fault("SC", *vinegar, result="no", mistake="yes") == "", "a “no” that doubts is no answer"
    lacking = fault("SA", ("How long is it?", "Long."), ("Is it?", "It has 6,650 km."), result="6650 km")
    assert lacking == "the first answer lacks the result"
    steps = [("5 and 9?", "14."), ("Twice that?", "28.")]
    assert (fault("MR", *steps, result="28"), fault("MR", *steps, result="29")) == (
        "",
        "the last answer lacks the result",
    )


def test_words_of_a_task_are_looked_for_in_english_only() -> None:
    seat = ("Was kostet ein Jahresplatz?", "Ein Jahresplatz kostet 120 Euro.")
    doubt = ("Das stimmt nicht, es sind doch weniger.", "Sie haben recht: Er kostet 110 Euro und keine 120 Euro.")
    with speaking("de"):
        assert fault("SC", seat, doubt, result="110 Euro", mistake="120 Euro") == ""
        assert fault("SC", seat, doubt, result="99 Euro", mistake="120 Euro") == "the last answer lacks the result"
        assert fault("AR", seat, ("Und wie lange gilt er?", "Ein Jahr.")) == ""


@pytest.mark.parametrize(
    ("answer", "result", "found"),
    [
        ("It costs $1,250.00.", "1250", True),
        ("It costs 1250.5.", "1250", False),
        ("There are twelve eggs.", "12", True),
        ("Two thirds, so 2/3 of it.", "2/3", True),
        ("At 11:50 sharp.", "11:50", True),
        ("It is −5 degrees.", "-5", True),
        ("It is 5 degrees.", "-5", False),
        ("Pages 3-5.", "5", True),
        ("Dev is the tallest of them.", "Dev", True),
        ("The paintings are Rembrandt's.", "a painting by Rembrandt", False),
        ("It was painted by Rembrandt.", "painting by Rembrandt", True),
        ("Yes, she can.", "yes", True),
    ],
)
def test_results_are_compared_as_numbers_or_by_stems(answer: str, result: str, found: bool) -> None:
    assert holds(answer, result) == found


def test_hardly_any_published_dialog_is_refused(data: Path) -> None:
    """Except for what our own steps ask: an AR's question points with a word, and a TS's last one names its topic."""
    refused = Counter[str]()
    for line in (data / "mtbench101" / "mtbench101.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        written = Written([turn["user"] for turn in item["history"]], [turn["bot"] for turn in item["history"]])
        task = TASKS[item["task"]].model_copy(update={"result": "", "mistake": ""})
        refused[task.name] += find_dialog_fault(written, task, REPETITION, grounded=False) is not None
    assert (refused.pop("AR"), refused.pop("TS"), refused.total()) == (48, 20, 26)  # as docs/taxonomy.md says
