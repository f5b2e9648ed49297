"""Runs in other languages than English: what they are told, what they search, and what they drop."""

import json
from pathlib import Path
from typing import Any

import pytest

from generator.prompts.plain_words import PlainAnswer
from generator.prompts.signatures import GroundedAnswer, in_language
from tests.support.languages import speaking
from tests.support.openai_server import Body, OpenAIServer, fill, prompt
from tests.support.runs import command, stage

DATA = Path(__file__).parent.parent / "data/languages"
QUESTION = {
    "de": "Wohin bringen die Schiffe auf dem Rhein ihre Container?",
    "ja": "ライン川の船はコンテナをどこまで運びますか？",
}


def replying(question: str, answer: str | None = None, later: str | None = None) -> OpenAIServer:
    def responder(body: Body) -> str:
        reply = json.loads(fill(body))
        if "question" in reply:
            reply["question"] = later if later and "\nAgent: " in prompt(body) else question
        if "query" in reply:
            reply["query"] = "Where do ships bring containers on the Rhine?"
        if answer and stage(body) == "answer":
            reply["answer"] = answer
        return json.dumps(reply, ensure_ascii=False)

    return OpenAIServer(responder)


def arguments(folder: Path, server: OpenAIServer, corpus: str) -> list[str]:
    """Return the command line for the first document of a language, which the questions are about."""
    first, _, _ = (DATA / f"{corpus}.jsonl").read_text(encoding="utf-8").partition("\n")
    (folder / "first.jsonl").write_text(first, encoding="utf-8")
    return [
        *("corpus=jsonl", f"corpus.path={folder / 'first.jsonl'}", f"cache_dir={folder / 'cache'}"),
        *(f"run_dir={folder / 'run'}", *server.settings()),
        *("turns=1", "dialogs=1", "max_attempts=1", "judge=none"),
    ]


@pytest.mark.parametrize(("code", "name"), [("de", "German"), ("ja", "Japanese")])
def test_dialogs_come_in_the_documents_language_which_is_found(code: str, name: str, tmp_path: Path) -> None:
    with replying(QUESTION[code]) as server:
        ended = command(*arguments(tmp_path, server, code))
    assert ended.code == 0, ended.err
    assert ended.err.count(f"corpus.language: {name} ({code}), found in 1 of 1 documents") == 1
    asked = next(prompt(body) for body in server.bodies if stage(body) == "ask")
    assert f'Write "question" and "answer" in {name}' in asked and f"speak {name}" in asked
    card = (tmp_path / "run/dataset/README.md").read_text(encoding="utf-8")
    assert f"language:\n- {code}\n" in card
    dialog = json.loads((tmp_path / "run/dialogs.jsonl").read_text(encoding="utf-8"))
    assert dialog["turns"][0]["hits"][0]["passage_id"].startswith(f"{code}-01")


def test_a_dialog_that_slips_into_another_language_is_a_drop(tmp_path: Path) -> None:
    english = "Large ships carry their containers on the river from Rotterdam up to the city of Basel."
    with replying(QUESTION["de"], english) as server:
        ended = command(*arguments(tmp_path, server, "de"))
    assert ended.code == 1
    (drop,) = map(json.loads, (tmp_path / "run/drops.jsonl").read_text(encoding="utf-8").splitlines())
    assert (drop["scope"], drop["stage"], drop["text"]) == ("dialog", "language", english)
    assert drop["reason"] == "slips into English, in place of German"
    assert sum(stage(body) == "answer" for body in server.bodies) == 3, "it was asked again twice"


def test_a_slip_after_fewer_turns_than_min_turns_is_one_drop(tmp_path: Path) -> None:
    english = "Where do the large ships bring their containers on the river from Rotterdam up to the city of Basel?"
    with replying(QUESTION["de"], later=english) as server:
        command(*arguments(tmp_path, server, "de"), "turns=4", "min_turns=3")
    drops = map(json.loads, (tmp_path / "run/drops.jsonl").read_text(encoding="utf-8").splitlines())
    assert [(drop["stage"], drop["turn"]) for drop in drops if drop["scope"] == "dialog"] == [("language", 2)]


def test_german_questions_about_english_documents_search_in_english(tmp_path: Path) -> None:
    with replying(QUESTION["de"], "Sie bringen ihre Container von Rotterdam bis nach Basel.") as server:
        ended = command(*arguments(tmp_path, server, "en"), "dialog.language=de")
    assert ended.code == 0, ended.err
    rewrite = next(prompt(body) for body in server.bodies if stage(body) == "rewrite")
    assert 'Write "query" in English, the language of the documents.' in rewrite
    assert '" in German; the keys' in next(prompt(body) for body in server.bodies if stage(body) == "answer")


def test_a_language_of_ones_own_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/de.yaml").write_text("name: Plattdüütsch\nscripts: [Latin]\n", encoding="utf-8")
    with replying(QUESTION["de"]) as server:
        ended = command(*arguments(tmp_path, server, "de"), f"dialog.languages={tmp_path / 'own'}")
    assert ended.code == 0, ended.err
    assert any("Plattdüütsch" in prompt(body) for body in server.bodies)


@pytest.mark.parametrize("signature", [GroundedAnswer, PlainAnswer])
def test_an_answer_that_is_not_known_begins_in_the_dialogs_language(signature: Any) -> None:
    with speaking("de") as (_, german):
        told = in_language(signature).instructions
    assert f"“{german.unknown}”" in told and "I don't have" not in told
