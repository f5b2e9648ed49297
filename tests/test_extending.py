"""The examples of `docs/extending.md`, word for word: installed as a package or added to a copy, and used there."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.openai_server import Body, OpenAIServer, prompt
from tests.support.tasks import reply as write_reply

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
# The code blocks that have a file name behind their language, and the commands.
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\npython -m generator (.*)\n```$", TEXT, re.MULTILINE)
TESTS = [name for name in FILES if "tests/" in name]
PACKAGE = "my-parts"

# The imports are most of a short run's time: all commands in one process.
ALL = """
import sys
from generator.__main__ import COMMAND
from generator.command import run_command
for command in COMMANDS:
    sys.argv = ["generator", *command]
    if code := run_command(COMMAND):
        sys.exit(f"{command} ended with {code}")
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy this project, and add the files of all examples."""
    folder = tmp_path_factory.mktemp("checkout")
    for package in ("generator", "taxonomy", "judges", "conf", "tests/support"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, text in FILES.items():
        assert not (folder / name).exists(), f"the example {name} would replace a file of ours"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    install(folder / PACKAGE, folder / "site")
    return folder


def install(package: Path, site: Path) -> None:
    """Put a package where an installer would, with what one writes beside it."""
    module = package.name.replace("-", "_")
    shutil.copytree(package / module, site / module)
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    about = site / f"{module}-{project['version']}.dist-info"
    about.mkdir()
    named = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    )
    (about / "entry_points.txt").write_text("\n".join(named), encoding="utf-8")
    about.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.name}\nVersion: 0.1\n")


def python(checkout: Path, *arguments: str) -> str:
    """Return what a command prints in the copy; it must succeed."""
    # In a copy, `python` finds the packages beside its script or in the current folder before those installed.
    environment = {**os.environ, "PYTHONPATH": str(checkout / "site"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def about_the_documents(body: Body) -> str:
    """Give the usual reply, with words of the documents in its questions, so that a retriever finds some."""
    usual = write_reply(body)
    reply, sentence = json.loads(usual), random.Random(usual)
    for key in {"question", "query"} & reply.keys():
        seen = re.findall(r"^\[\d+\] (.{20,100})", prompt(body), re.MULTILINE)
        reply[key] = f"{' '.join(sentence.choice(seen).split()[:5])} {reply[key]}"
    return json.dumps(reply)


@pytest.mark.slow
def test_the_commands_use_the_new_parts(checkout: Path) -> None:
    with OpenAIServer(about_the_documents) as server:
        endpoint = [*server.settings(), "dialogs=2", "turns=2"]
        commands = [[*command.split(), *endpoint] for command in COMMANDS]
        (checkout / "all.py").write_text(f"COMMANDS = {commands}\n{ALL}", encoding="utf-8")
        folders = [checkout / name for name in re.findall(r"run folder: (\S+)", python(checkout, "all.py"))]
    runs = (read(folder) for folder in folders)
    question_type, task, user, corpus, retriever, judge, exporter = runs
    assert "breakdown" in {dialog["turns"][0]["question_type"] for dialog in question_type}
    assert "handover" in {dialog["task"] for dialog in task}
    assert "caller" in {dialog["user"] for dialog in user}
    assert {dialog["corpus"] for dialog in corpus} == {"faq"}
    scores = [hit["score"] for dialog in retriever for turn in dialog["turns"] for hit in turn["hits"]]
    assert 0 < max(scores) <= 1, "a score above 1 is BM25's"
    assert {v["judge"] for dialog in judge for turn in dialog["turns"] for v in turn["verdicts"]} == {"helpfulness"}
    text = (folders[-1] / "transcript" / "transcript.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", text, re.MULTILINE) == [dialog["id"] for dialog in exporter]


def read(run: Path) -> list[dict[str, Any]]:
    dialogs = [json.loads(line) for line in (run / "dialogs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(dialogs) == 2
    return dialogs


def test_the_examples_tests_pass(checkout: Path) -> None:
    printed = python(checkout, "-m", "pytest", "-vv", "-o", "addopts=", "-p", "no:cacheprovider", *TESTS)
    assert len(TESTS) == printed.count(" PASSED") == 5


# Prints what can be a retriever.
NAMED = """
from generator.command import help_text
from generator.config.choices import compose_choice
from generator.config.parts import class_of
from generator.errors import ConfigError
from generator.__main__ import COMMAND
from generator.command import run_command
print(help_text(COMMAND))
for target in ("my_parts.ngrams.NgramSettings", "my_parts.ngrams.Ngrams", "my_parts.faq.FaqCorpus", "os.system"):
    try:
        print(class_of("retriever", target).__name__)
    except ConfigError as error:
        print(error)
print(compose_choice("corpus", "faq", ["language=de"])["language"])
"""


def test_only_what_an_entry_point_names_can_be_a_part(checkout: Path) -> None:
    *listed, found, other, corpus, function, language = python(checkout, "-c", NAMED).splitlines()
    assert [line.split()[:2] for line in listed if "n-grams" in line] == [["ngrams", "character"]]
    assert (found, language) == ("NgramSettings", "de")
    for refused in (other, corpus, function):
        assert re.search("must be a class of this project .* names as grounded_dialogs.retrievers$", refused)


def test_the_examples_are_in_our_style(checkout: Path) -> None:
    code = [name for name in FILES if name.endswith(".py")]
    for packaged in (True, False):
        own = [name for name in code if name.startswith(PACKAGE) == packaged]
        source = ["--config", f'src=["{PACKAGE}"]'] if packaged else []
        python(checkout, "-m", "ruff", "check", "--no-cache", *source, *own)
    python(checkout, "-m", "ruff", "format", "--no-cache", "--check", *code)
