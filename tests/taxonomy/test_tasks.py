"""The 13 tasks of MT-Bench-101: our files say what is published, and what is wrong in a user's file is one line."""

import json
import re
from pathlib import Path

import pytest

from taxonomy import Task, TaskMix, load, read_tasks
from tests.support.taxonomy_files import refuse

# Table 1 and appendix C of Bai et al. 2024: abilities by tier, tasks by ability, and tasks rated from turn 2 on.
TIERS = {
    "perceptivity": {"memory": ["CM"], "understanding": ["SI", "AR"], "interference": ["TS", "CC"]},
    "adaptability": {"rephrasing": ["CR", "FR"], "reflection": ["SC", "SA"], "reasoning": ["MR", "GR"]},
    "interactivity": {"questioning": ["IC", "PI"]},
}
PLACES = [(tier, ability, task) for tier, of in TIERS.items() for ability, tasks in of.items() for task in tasks]
FROM_TURN_2 = {"CR", "FR", "AR", "SA", "SC", "CM"}
TASKS = {name: task for name, task in read_tasks().items() if name in {name for *_, name in PLACES}}

TASK = """\
name: HI
title: greeting
tier: interactivity
ability: questioning
definition: The Agent greets back.
steps: [The User says hello., The Agent does too.]
turns: 2-3
criteria: [It greets.]
bands: [Rude., Short., Kind., Warm.]
examples:
  - dialog:
      - {user: Hello., agent: Hello to you.}
      - {user: Hi., agent: Hi there.}
"""


def test_the_tasks_are_those_of_the_paper() -> None:
    assert sorted((task.tier, task.ability, name) for name, task in TASKS.items()) == sorted(PLACES)
    assert {name for name, task in TASKS.items() if task.judged_from == 2} == FROM_TURN_2
    assert {task.judged_from for task in TASKS.values()} == {1, 2}
    assert {name for name, task in TASKS.items() if task.reference} == {"MR", "GR"}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_an_example_does_what_its_task_wants(task: Task) -> None:
    assert len(task.examples) == 3
    for example in task.examples:
        first, *_, last = (pair.agent.lower() for pair in example.dialog)
        asks = ["?" in pair.agent for pair in example.dialog]
        assert example.result.lower() in last
        assert example.mistake.lower() in first
        assert not example.mistake or example.result.lower() not in first
        assert "answers-ask" not in task.checks or asks == [True] * (len(asks) - 1) + [False]
        assert "first-answer-asks" not in task.checks or asks == [True] + [False] * (len(asks) - 1)


def test_no_example_is_of_the_published_dialogs(data: Path) -> None:
    said = (text for each in read_published(data) for pair in each["history"] for text in pair.values())
    published = {run for text in said for run in runs_of_8(text)}
    pairs = [pair for task in TASKS.values() for example in task.examples for pair in example.dialog]
    ours = {run for pair in pairs for text in (pair.user, pair.agent) for run in runs_of_8(text)}
    assert ours & published == set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TASK.replace("Rude., ", ""), ":9: bands: "),
        (TASK.replace("2-3", "3"), ":10: examples: number 1 has 2 turns; "),
        (TASK.replace("2-3", "3-2"), ":7: turns: must be at least 1, and "),
        (TASK.replace("turns: 2-3\n", ""), ":1: turns: must be a number such as 4, "),
        (TASK + "judged_from: 3\n", ":14: judged_from: is beyond the shortest dialog, of 2; "),
        (TASK + "result: a number\n", ":10: examples: each has a result "),
        (TASK.replace("- dialog", "- mistake: Oh\n    dialog"), ":10: examples: each has a mistake "),
    ],
)
def test_a_bad_task_file_is_one_line_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    assert refuse(read_tasks, tmp_path, text).startswith(message)


def read_published(data: Path) -> list[dict]:
    return [json.loads(line) for line in (data / "mtbench101/mtbench101.jsonl").read_text("utf-8").splitlines()]


def runs_of_8(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 8]) for at in range(len(words) - 7)}


def test_a_writer_can_do_without_examples() -> None:
    shown, bare = (
        load(TaskMix(name="m", tasks={"SC": 1}, examples=examples)).tasks[0].type for examples in (True, False)
    )
    assert isinstance(shown, Task) and isinstance(bare, Task)
    assert "Rembrandt" in shown.prompt(2) and "Rembrandt" not in bare.prompt(2)
