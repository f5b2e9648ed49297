"""The examples of `docs/extending.md`, word for word: their files are added to a copy of this project and used there."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.openai_server import OpenAIServer, openai_server

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
# The code blocks that have a file name behind their language, and the commands.
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\npython -m generator (.*)\n```$", TEXT, re.MULTILINE)
TESTS = [name for name in FILES if name.startswith("tests/")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this project with the files of all examples."""
    folder = tmp_path_factory.mktemp("checkout")
    for package in ("generator", "taxonomy", "judges", "conf"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests").mkdir()
    for name in ("openai_server.py", "scripted.py", "test_imports.py", "test_configs.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in FILES.items():
        assert not (folder / name).exists(), f"the example {name} would replace a file of ours"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def python(checkout: Path, *arguments: str) -> str:
    """What a command prints there; it must do well."""
    # In a copy, `python -m` finds the packages of the current folder before those that are installed.
    environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def made(checkout: Path, server: OpenAIServer, command: str, run: str, *more: str) -> list[dict[str, Any]]:
    """The dialogs that a command of the document makes, with the server's model."""
    endpoint = ["lm=openai", f"lm.model={server.model}", f"lm.api_base={server.url}"]
    python(checkout, "-m", "generator", *command.split(), *endpoint, "dialogs=4", "turns=2", f"run_dir={run}", *more)
    return [json.loads(line) for line in (checkout / run / "dialogs.jsonl").read_text("utf-8").splitlines()]


def question_type(dialogs: list[dict[str, Any]]) -> None:
    assert "troubleshooting" in {dialog["turns"][0]["question_type"] for dialog in dialogs}


def corpus(dialogs: list[dict[str, Any]]) -> None:
    assert {dialog["corpus"] for dialog in dialogs} == {"faq"}
    assert all(document.startswith("faq.csv:") for dialog in dialogs for document in dialog["document_ids"])


def retriever(dialogs: list[dict[str, Any]]) -> None:
    scores = [hit["score"] for dialog in dialogs for turn in dialog["turns"] for hit in turn["hits"]]
    assert scores
    assert max(scores) <= 1, "that is BM25's score"


def judge(dialogs: list[dict[str, Any]]) -> None:
    assert {v["judge"] for dialog in dialogs for turn in dialog["turns"] for v in turn["verdicts"]} == {"helpfulness"}


@pytest.mark.parametrize(("command", "check"), zip(COMMANDS, (question_type, corpus, retriever, judge), strict=True))
def test_the_command_uses_the_new_part(
    checkout: Path, openai_server: OpenAIServer, command: str, check: Callable[[list[dict[str, Any]]], None]
) -> None:
    dialogs = made(checkout, openai_server, command, f"runs/{check.__name__}")
    assert len(dialogs) == 4
    check(dialogs)


def test_yaml_of_ones_own_is_also_found_through_hydras_search_path(
    checkout: Path, openai_server: OpenAIServer
) -> None:
    command = f"hydra.searchpath=[file://{checkout}/my-conf] taxonomy=helpdesk"
    question_type(made(checkout, openai_server, command, "runs/searchpath", "dialogs=2"))


def test_the_examples_tests_pass_and_so_do_those_of_imports_and_configurations(checkout: Path) -> None:
    shared = ["tests/test_imports.py", "tests/test_configs.py"]
    printed = python(checkout, "-m", "pytest", "-v", "-p", "no:cacheprovider", *TESTS, *shared)
    for line in (
        "test_faq.py::test_a_row",
        "test_imports_go_one_way[judges.helpfulness]",
        "test_every_option_builds_its_part[retriever-ngrams]",
    ):
        assert line in printed


def test_the_examples_are_in_our_style(checkout: Path) -> None:
    code = [name for name in FILES if name.endswith(".py")]
    python(checkout, "-m", "ruff", "check", "--no-cache", *code)
    python(checkout, "-m", "ruff", "format", "--no-cache", "--check", *code)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:generator|judges|taxonomy)(?:\.\w+)+)`", TEXT))))
def test_what_the_text_names_is_there(name: str) -> None:
    module = ".".join(name.split(".")[:2])
    parts = name.split(".")[2:]
    if parts and (ROOT / module.replace(".", "/") / f"{parts[0]}.py").exists():
        module = f"{module}.{parts.pop(0)}"
    reduce(getattr, parts, import_module(module))


def test_every_kind_of_part_has_its_example() -> None:
    assert {name.split("/")[1] for name in FILES if name.startswith("conf/")} == {"corpus", "retriever", "judge"}
    assert len(COMMANDS) == 4
    assert len(TESTS) == 4
