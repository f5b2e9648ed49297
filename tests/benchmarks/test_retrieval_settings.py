"""mtRAG's three retrieval settings, from an export."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval_settings import main
from tests.support.records import write_json_lines

ANIMALS = ("fox", "owl", "bat", "elk", "hen", "cow", "ant")
ALL = " ".join(ANIMALS)


def task(turn: int, question: str, answerability: str, *relevant: str) -> dict[str, Any]:
    return {
        "conversation_id": "c",
        "task_id": f"c<::>{turn}",
        "contexts": [{"document_id": name, "text": f"The {name} lives here."} for name in relevant],
        "input": [{"speaker": "user", "text": question}],
        "targets": [{"speaker": "agent", "text": "It does."}],
        "Answerability": [answerability],
    }


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Write an export of one collection."""
    folder = tmp_path / "zoo-run" / "mtrag"
    collection = folder / "retrieval_tasks" / "zoo"
    collection.mkdir(parents=True)
    (folder / "generation_tasks").mkdir()
    passages = [{"_id": name, "title": "", "text": f"The {name} lives here.", "url": ""} for name in ANIMALS]
    queries = [{"_id": "c<::>1", "text": f"|user|: {ALL}"}, {"_id": "c<::>2", "text": "|user|: where is the owl?"}]
    tasks = [
        task(1, "Who is it?", "ANSWERABLE", "ant", "cow"),
        task(2, "Where is it?", "PARTIAL", "fox", "owl", "bat"),
        task(3, "And the hen?", "UNANSWERABLE"),
        task(4, "Thanks!", "CONVERSATIONAL"),
    ]
    for file, rows in (
        (collection / "corpus.jsonl", passages),
        (collection / "zoo_rewrite.jsonl", queries),
        (folder / "generation_tasks" / "reference.jsonl", tasks),
    ):
        write_json_lines(file, *rows)
    return folder


def passages(export: Path, name: str) -> dict[str, list[str]]:
    """Return the passages of each task, by turn."""
    lines = (export / "generation_tasks" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["task_id"][-1]: [context["document_id"] for context in row["contexts"]] for row in rows}


def test_each_task_gets_its_passages(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["settings", str(export), "--cache", str(export.parent / "cache")])
    main()
    rag, both = passages(export, "RAG"), passages(export, "reference+RAG")
    assert rag.keys() == {"1", "2", "3"}
    assert (len(rag["1"]), rag["2"][0], rag["3"][0]) == (5, "owl", "hen")
    assert both.keys() == {"1", "3"}, "a task with more than two relevant passages is left out"
    assert both["1"][:2] == ["ant", "cow"]
    assert len(both["1"]) == len(set(both["1"])) == 5
    assert both["1"][2:] == [name for name in rag["1"] if name not in ("ant", "cow")][:3]
    assert both["3"] == rag["3"]


def test_contexts_that_are_marked_as_irrelevant_do_not_count(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `export.contexts=retrieved` writes them."""
    reference = export / "generation_tasks" / "reference.jsonl"
    tasks = [json.loads(line) for line in reference.read_text(encoding="utf-8").splitlines()]
    for number, context in enumerate(tasks[1]["contexts"]):
        context["feedback"] = {"relevant": {"someone": {"value": "no" if number else "yes"}}}
    write_json_lines(reference, *tasks)
    monkeypatch.setattr(sys, "argv", ["settings", str(export), "--cache", str(export.parent / "cache")])
    main()
    both = passages(export, "reference+RAG")
    assert both.keys() == {"1", "2", "3"}
    assert both["2"] == ["fox", "owl"], "the relevant one, then what was retrieved"
