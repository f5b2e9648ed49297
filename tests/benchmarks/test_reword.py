"""The benchmark that says the questions of a run in other words."""

import json
from pathlib import Path

import pytest

from benchmarks.reword import main
from generator.schema import Planned
from tests.support.openai_server import OpenAIServer
from tests.support.records import make_dialog, make_turn, write_dialogs
from tests.support.scripted import piece

OTHER = {
    "When did the Lindau ferry start?": "Since when is there a Lindau ferry?",
    "What does a ticket cost?": "How much is a ticket?",
    "What does a ticket of the Lindau ferry cost?": "How much is a ticket of the Lindau ferry?",
}
PRONOUN = {"What does the fare for dogs buy?": "What do you get for the fare for dogs?"}
PRONOUN["What do you get for [the fare for dogs]?"] = "What do you get for it?"


def test_questions_and_queries_change_and_answers_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, later, longer = OTHER
    replies = OTHER | PRONOUN
    turns = [
        make_turn(1, query="when did the lindau ferry start", clean_query=first, retrieval_query=first.lower()[:-1]),
        make_turn(2, query=later, retrieval_query=longer, multi_turn_type="follow-up"),
        make_turn(
            3,
            query="Do you mean a return?",
            answer="The fare for dogs is 2 euros.",
            retrieval_query="",
            multi_turn_type="clarification",
        ),
        make_turn(4, query=next(iter(PRONOUN)), planned=Planned(question_type="direct", standalone=False)),
    ]
    ferry = piece("ferry", "The Lindau ferry started in 1963. A ticket costs 9 euros.")
    run, copy = tmp_path / "run", tmp_path / "copy"
    run.mkdir()
    (run / "config.yaml").write_text("retriever: {query: rewrite}\n")
    write_dialogs(run / "dialogs.jsonl", make_dialog(*turns, passages=[ferry], user="hurried"))
    with OpenAIServer(lambda body: replies[body["messages"][-1]["content"].splitlines()[-1]]) as server:
        settings = ["lm=openai", "lm.model=test-model", f"lm.api_base={server.url}", "lm.context=8000"]
        monkeypatch.setattr("sys.argv", ["reword", str(run), str(copy), *settings])
        main()
    made = json.loads((copy / "dialogs.jsonl").read_text())["turns"]
    assert [turn["clean_query"] for turn in made[:2]] == list(OTHER.values())[:2]
    assert [turn["answer"] for turn in made] == [turn.answer for turn in turns]
    assert made[0]["query"].islower() and made[0]["retrieval_query"] == made[0]["query"], (
        "typed as a hurried user types"
    )
    assert made[1]["retrieval_query"] == OTHER[longer]
    assert made[2] == json.loads(turns[2].model_dump_json())
    assert (made[3]["clean_query"], made[3]["retrieval_query"]) == (
        "What do you get for it?",
        "What do you get for the fare for dogs?",
    )
    assert (copy / "config.yaml").read_text() == (run / "config.yaml").read_text()
