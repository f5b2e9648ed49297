"""Items for `python -m judges.evaluate`, a model and a judge for them, and what both were sent."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from generator.schema import Dialog
from judges.evaluate import COMMAND
from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.records import (
    make_dialog,
    make_evidence_of,
    make_passage,
    make_turn,
    write_dialogs,
    write_json_lines,
)
from tests.support.runs import Ended, Site, command

PAIRS = (("How tall is the tower?", "It is 40 m tall."), ("And the gate?", "It is 9 m."), ("Both?", "49 m together."))
PASSAGE = make_passage(
    "p", "The tower is 40 m tall. It stands in a park. The gate is 9 m tall and made of iron. Both are open in May."
)
# The words of a judge's prompt that the model under test never sees.
RATES = "impartial judge"


def item(task: str, name: str, pairs: Sequence[tuple[str, str]] = PAIRS, **changes: Any) -> Dialog:
    """Return a dialog of a task with its golden answers."""
    turns = [make_turn(number, query=q, answer=a) for number, (q, a) in enumerate(pairs, start=1)]
    usual = {"id": name, "task": task, "passages": (), "document_ids": (), "algorithm": "whole"}
    return make_dialog(*turns, **usual | changes)


class Evaluating(Site):
    """Items in a file, and a folder for a model's answers and scores: a dialog each of AR, GR and SC."""

    program = COMMAND
    benchmark = "mt_bench_101"

    def __init__(self, folder: Path, items: Sequence[Dialog] = ()) -> None:
        super().__init__(folder)
        items = items or [item("AR", "a"), item("GR", "g"), item("SC", "s", PAIRS[:2])]
        self.input = write_dialogs(folder / "items.jsonl", *items)

    def arguments(self, server: OpenAIServer, *more: str) -> list[str]:
        return [
            f"+benchmark={self.benchmark}",
            f"input={self.input}",
            f"run_dir={self.run_dir}",
            *server.settings(),
            *server.settings("judge.lm"),
            *more,
        ]

    def scores(self) -> dict[str, Any]:
        """Return scores.json without what depends on time."""
        scores: dict[str, Any] = json.loads((self.run_dir / "scores.json").read_text(encoding="utf-8"))
        del scores["seconds"], scores["tokens"]["cached"]
        return scores


def judges(body: Body) -> bool:
    """Return whether a request is a judge's."""
    return RATES in prompt(body)


def reply(body: Body) -> str:
    """Answer with a line that tells the turn; rate with a score that depends on the prompt."""
    if not judges(body):
        return f"Own answer {len(body['messages']) // 2 + 1}."
    return json.dumps({"explanation": "It does.", "score": random.Random(prompt(body)).randint(2, 10)})


def said(bodies: Sequence[Body]) -> list[list[str]]:
    """Return the chats that the model under test was sent, sorted."""
    return sorted([message["content"] for message in body["messages"]] for body in bodies if not judges(body))


def judged(bodies: Sequence[Body], response: str) -> str:
    """Return the prompt in which a judge is to rate `response`."""
    (found,) = {prompt(body) for body in bodies if judges(body) and f"\n{response}\n" in prompt(body)}
    return found


def refused(site: Evaluating, *more: str) -> str:
    """Return the error of a command that reaches no server: one line, and exit code 2."""
    with OpenAIServer(reply) as server:
        done: Ended = site.run(server, *more)
        assert done.code == 2 and not server.bodies, done.err
    return done.error


def judgments(tmp_path: Path, *lines: dict[str, Any], benchmark: str = "mt_bench_101") -> Ended:
    file = write_json_lines(tmp_path / "judgments.jsonl", *lines)
    return command(f"+benchmark={benchmark}", f"judgments={file}", f"run_dir={tmp_path / 'out'}", program=COMMAND)


class Answering(Evaluating):
    """A human dialog of three turns about one document, as a file of dialogs."""

    benchmark = "quac"

    def __init__(self, folder: Path) -> None:
        turns = [
            make_turn(number, query=question, answer=answer, hits=(), evidence=(make_evidence_of(PASSAGE, found),))
            for number, ((question, answer), found) in enumerate(
                zip(PAIRS, ("40 m tall", "The gate is 9 m", "Both"), strict=True), start=1
            )
        ]
        super().__init__(folder, [make_dialog(*turns, id="d", passages=(PASSAGE,), algorithm="single")])

    def arguments(self, server: OpenAIServer, *more: str) -> list[str]:
        return [
            f"+benchmark={self.benchmark}",
            f"input={self.input}",
            f"run_dir={self.run_dir}",
            "benchmark.metrics.bert_recall=null",
            *server.settings(),
            *more,
        ]
