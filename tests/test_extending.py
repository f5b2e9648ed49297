"""The examples of `docs/extending.md`, word for word: added to a copy of this project, and used there."""

import json
import os
import random
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
from hydra import compose, initialize_config_dir

from generator.__main__ import CONF
from generator.config.settings import load
from tests.support.openai_server import Body, OpenAIServer, fill, prompt

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
# The code blocks that have a file name behind their language, and the commands.
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\npython -m generator (.*)\n```$", TEXT, re.MULTILINE)
TESTS = [name for name in FILES if name.startswith("tests/")]

# The imports are most of a short run's time: all commands in one process.
ALL = """
import sys
from generator.__main__ import main
for command in COMMANDS:
    sys.argv = ["generator", *command]
    if code := main():
        sys.exit(f"{command} ended with {code}")
"""


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
    # In a copy, `python` finds the packages beside its script or in the current folder before those installed.
    environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def about_the_documents(body: Body) -> str:
    """The usual reply, with words of the documents in its questions, so that a retriever finds some."""
    usual = fill(body)
    reply, sentence = json.loads(usual), random.Random(usual)
    for key in {"question", "query"} & reply.keys():
        seen = re.findall(r"^\[\d+\] (.{20,100})", prompt(body), re.MULTILINE)
        reply[key] = f"{sentence.choice(seen)} {reply[key]}"
    return json.dumps(reply)


@pytest.fixture(scope="module")
def made(checkout: Path) -> list[list[dict[str, Any]]]:
    """The dialogs that each command of the document makes."""
    with OpenAIServer(about_the_documents) as server:
        endpoint = ["lm=openai", f"lm.model={server.model}", f"lm.api_base={server.url}", "dialogs=4", "turns=2"]
        commands = [[*command.split(), *endpoint, f"run_dir=run{n}"] for n, command in enumerate(COMMANDS)]
        (checkout / "all.py").write_text(f"COMMANDS = {commands}\n{ALL}", encoding="utf-8")
        python(checkout, "all.py")
    files = [checkout / f"run{number}" / "dialogs.jsonl" for number in range(len(COMMANDS))]
    return [[json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in files]


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


@pytest.mark.parametrize(("number", "check"), [*enumerate((question_type, corpus, retriever, judge))])
def test_the_command_uses_the_new_part(
    made: list[list[dict[str, Any]]], number: int, check: Callable[[list[dict[str, Any]]], None]
) -> None:
    assert len(made[number]) == 4
    check(made[number])


def test_the_command_writes_the_new_export(checkout: Path, made: list[list[dict[str, Any]]]) -> None:
    text = (checkout / f"run{len(COMMANDS) - 1}" / "transcript" / "transcript.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == [dialog["id"] for dialog in made[-1]]


def test_yaml_of_ones_own_is_also_found_through_hydras_search_path(checkout: Path) -> None:
    path = f"hydra.searchpath=[file://{checkout}/my-conf]"
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = load(compose("config", [path, "+corpus=sample", "+taxonomy=helpdesk"]))
    assert settings.taxonomy.name == "helpdesk"


def test_the_examples_tests_pass_and_ours_hold_for_the_examples_as_they_are(checkout: Path) -> None:
    new = "faq or ngrams or helpfulness or transcript or imports"
    printed = python(checkout, "-m", "pytest", "-vv", "-p", "no:cacheprovider", "-k", new, "tests")
    for line in (
        *TESTS,
        "test_imports_go_one_way[judges.helpfulness]",
        "test_every_option_builds_its_part[retriever-ngrams]",
        "test_every_option_builds_its_part[export-transcript]",
        "test_every_file_says_first_what_it_is[corpus/faq.yaml]",
    ):
        assert line in printed


def test_the_examples_are_in_our_style(checkout: Path) -> None:
    code = [name for name in FILES if name.endswith(".py")]
    python(checkout, "-m", "ruff", "check", "--no-cache", *code)
    python(checkout, "-m", "ruff", "format", "--no-cache", "--check", *code)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:generator|judges)(?:\.\w+)+)`", TEXT))))
def test_what_the_text_names_is_there(name: str) -> None:
    module = ".".join(name.split(".")[:2])
    parts = name.split(".")[2:]
    if parts and (ROOT / module.replace(".", "/") / f"{parts[0]}.py").exists():
        module = f"{module}.{parts.pop(0)}"
    reduce(getattr, parts, import_module(module))


def test_every_kind_of_part_has_its_example() -> None:
    groups = {name.split("/")[1] for name in FILES if name.startswith("conf/")}
    assert groups == {"corpus", "retriever", "judge", "export"}
    assert len(COMMANDS) == 5
    assert len(TESTS) == 4
