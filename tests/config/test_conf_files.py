"""Every choice in `conf/` builds its part, and the fields say what decides whether a run can be continued."""

import re
import shlex
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from generator.__main__ import COMMAND
from generator.command import CONF, help_text
from generator.config.conf_files import choices, groups
from generator.config.parts import build_choice, plain
from generator.config.run_checks import size_window
from generator.config.settings import hash_models, identity, load
from generator.errors import ModelError
from generator.execution.ray.executor import RaySettings
from generator.finetune import COMMAND as FINETUNE
from generator.models.embedded import EmbeddedEndpoint
from judges.evaluate import COMMAND as EVALUATE
from judges.students import COMMAND as STUDENTS
from taxonomy import load as load_taxonomy
from tests.support.runs import command
from tests.support.settings import composed, settings

ROOT = CONF.parent
FILES = sorted(CONF.rglob("[!_]*.yaml"))
OPTIONS = [(file.parent.name, file.stem) for file in FILES if file.parent != CONF]
OTHERS = ("experiment", "algorithm", "export", "dialog", "benchmark", "student")  # no parts, or of other commands
PARTS = {group: [name for name in choices(group) if name != "own"] for group in groups() if group not in OTHERS}

# What a choice can't do without.
NEEDS = {
    ("corpus", "folder"): ["corpus.path=."],
    ("corpus", "huggingface"): ["corpus.path=rows.parquet"],
    ("corpus", "jsonl"): ["corpus.path=documents.jsonl"],
    ("retriever", "mcp"): ["retriever.command=server"],
    **{
        option: ["lm.model=gpt-4o"] for option in OPTIONS if option[0] == "lm" and option[1] not in ("embedded", "vllm")
    },
}


@pytest.mark.parametrize("names", list(zip_longest(*PARTS.values())), ids=str)
def test_every_choice_builds_its_part(names: Sequence[str | None]) -> None:
    chosen = {group: name for group, name in zip(PARTS, names, strict=True) if name}
    needs = (need for choice in chosen.items() for need in NEEDS.get(choice, []))
    made = settings(*(f"{group}={name}" for group, name in chosen.items()), *needs)
    for group in chosen.keys() & {"corpus", "taxonomy", "judge"}:  # their names are in run folders
        assert getattr(made, group).name == chosen[group]
    taxonomy = load_taxonomy(made.taxonomy)
    assert sum(share.share for share in taxonomy.first or taxonomy.tasks) == pytest.approx(1)
    if judge := made.judge.build("some-model"):
        assert judge.name == made.judge.name
        file = OmegaConf.load(CONF / "judge" / f"{chosen['judge']}.yaml")
        assert ("filter" in file) == judge.decides, "judge.filter=prefix is a setting of the judges that decide"


@pytest.mark.parametrize(("group", "name"), [(group, name) for group, name in OPTIONS if group in OTHERS[-2:]])
def test_every_choice_of_another_command_builds_its_part(group: str, name: str) -> None:
    part = build_choice(group, name)
    assert group == "student" or part.name == name


def test_the_bare_command_is_what_the_readme_says() -> None:
    made = settings()
    assert (made.corpus.name, made.taxonomy.name, made.algorithm.name) == ("sample", "mixed", "multi")
    assert isinstance(made.lm, EmbeddedEndpoint)
    assert made.judge.name == "correctness"
    assert made.exporter is None
    assert made.folder == Path("outputs/sample-mixed-multi-SmolLM2-135M-Instruct-55")


def commands(page: str) -> list[str]:
    """Return what stands behind each `python -m generator` of a page, with a name in place of “…”."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ").replace("…", "some-name")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"python -m generator\b(?!\.)(.*)", "\n".join(blocks))
    assert lines
    return [line for line in lines if "--help" not in line]


@pytest.mark.parametrize("line", commands("README.md") + commands("docs/serving.md"))
def test_the_commands_of_the_readme_have_room_for_documents(line: str) -> None:
    arguments = shlex.split(line, comments=True)
    if sweep := "-m" in arguments:
        arguments.remove("-m")
    made = settings(*(argument.partition(",")[0] if sweep else argument for argument in arguments))
    assert size_window(made, load_taxonomy(made.taxonomy)) > 300


@pytest.mark.parametrize("arguments", [["corpus=quac"], ["lm=vllm"], ["experiment=lee2024_quac", "lm=embedded"]])
def test_only_the_bare_command_is_small(arguments: list[str]) -> None:
    small, usual = settings(), settings(*arguments)
    assert small.retriever.k < 5 and small.retriever.passage_tokens < 512 and small.turns.most < usual.turns.most
    assert (usual.retriever.k, usual.retriever.passage_tokens, usual.retriever.overlap) == (5, 512, 100)
    assert usual.lm.context >= 8192
    assert settings("retriever.k=4", "turns=3").retriever.k == 4, "the command line has the last word"


def test_help_has_a_line_for_each_choice_and_setting() -> None:
    text = f"{help_text(COMMAND)}\n{help_text(EVALUATE)}\n{help_text(FINETUNE)}"
    for group, name in OPTIONS:
        content = (CONF / group / f"{name}.yaml").read_text(encoding="utf-8").removeprefix("# @package _global_\n")
        comment = re.match(r"# (\S.{10,})\n", content)
        assert comment and re.search(rf"^  {name}\s+{re.escape(comment[1])}$", text, re.MULTILINE), (group, name)
    for name in composed().keys() - {group for group, _ in COMMAND.groups}:
        assert re.search(rf"^  {name}: \S+ +\S", text, re.MULTILINE), name
    assert ", lm.max_tokens=128] " in help_text(STUDENTS), "a default of two lines"


@pytest.mark.parametrize("spelt", ["--config-dir {}", "--config-dir={}", "-cd {}"])
def test_help_lists_the_choices_of_a_folder_of_ones_own(spelt: str, tmp_path: Path) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge" / "mine.yaml").write_text("# a judge of mine\n")
    (tmp_path / "judge" / "none.yaml").write_text("# never found, as ours comes first\n")
    shown = command(*spelt.format(tmp_path).split(), "--help").out
    assert re.search(r"^  mine +a judge of mine$", shown, re.MULTILINE) and "never found" not in shown


def decided(*arguments: str) -> dict[str, Any]:
    return identity(settings(*arguments), {})


@pytest.mark.parametrize(
    "arguments",
    [
        ["corpus.licence=CC0", "corpus.source=https://example.org", "corpus.rewrites=canard", "corpus.no_answer=No"],
        ["dialogs=7", "scale=3", "max_attempts=9", "cache_dir=elsewhere", "run_dir=here", "fresh=true"],
        ["lm.concurrency=3", "lm.timeout_s=9", "lm.retries=1", "lm.retry_wait_s=2", "lm.api_base=http://other/v1"],
        ["executor=ray", "export=mtrag", "taxonomy.path=.", "dedup.against=[test.jsonl]"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_settings_that_decide_no_data_may_change_when_a_run_is_continued(arguments: list[str]) -> None:
    assert decided("corpus=quac", "lm=vllm", *arguments) == decided("corpus=quac", "lm=vllm")


@pytest.mark.parametrize(
    "argument",
    ["corpus.strict=true", "retriever.k=6", "retriever=dense", "seed=1", "lm.greedy.temperature=1", "judge=none"],
)
def test_settings_that_decide_the_data_may_not(argument: str) -> None:
    assert decided("corpus=quac", argument) != decided("corpus=quac")


def test_where_a_class_lies_is_no_part_of_a_runs_identity() -> None:
    assert not [value for value in decided().values() if "generator." in str(value)]


def test_a_model_file_counts_by_its_content_wherever_it_lies(tmp_path: Path) -> None:
    def hashes(path: Path) -> dict[str, str]:
        made = settings(f"lm.path={path}", "judge.lm=embedded", f"judge.lm.path={path}")
        return hash_models({"lm": made.lm, "judge.lm": made.judge.lm})

    (file := tmp_path / "model.gguf").write_text("weights")
    there = hashes(file)
    assert set(there) == {"lm.path (content)", "judge.lm.path (content)"}
    (tmp_path / "other").mkdir()
    moved = file.rename(tmp_path / "other" / "model.gguf")
    assert hashes(moved) == there
    moved.write_text("other weights")
    assert hashes(moved) != there
    with pytest.raises(ModelError, match=rf"^lm\.path={file}: "):
        hashes(file)
    assert hash_models({"lm": settings().lm, "judge.lm": None}) == {}, "the bundled model has a version"


def test_a_stored_configuration_is_loaded_again() -> None:
    cfg = composed("corpus=quac", "executor=ray", "judge.lm=vllm")
    again = OmegaConf.create(OmegaConf.to_yaml(cfg, resolve=True))
    assert isinstance(again, DictConfig)
    assert load(again) == load(cfg)
    assert isinstance(load(again).executor, RaySettings)
    assert not [name for name in plain(cfg) if name.startswith("_")]


def test_a_model_of_ones_own_in_this_process_is_asked_in_plain_words(tmp_path: Path) -> None:
    own = ("lm=embedded", f"lm.path={tmp_path / 'own.gguf'}")
    chosen = ("lm=embedded",), ("lm=vllm",), own, (*own, "algorithm.reasoning=true"), ("algorithm.reasoning=false",)
    assert [settings(*each).reasoning for each in chosen] == [True, True, False, True, False]


@pytest.mark.parametrize(
    ("model", "reasoning"),
    [
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", False),
        ("qwen2.5:1.5b", False),
        ("/models/70B/SmolLM2-1700M/", False),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", True),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", True),
        ("llama3.2:3b", True),
        ("Qwen3-30B-A3B", True),
        ("gpt-5-mini", True),
    ],
)
def test_a_served_model_whose_name_says_that_it_is_small_is_asked_in_plain_words(model: str, reasoning: bool) -> None:
    cfg = composed("lm=ollama", "lm.model=some-model")
    cfg.lm.model = model
    assert load(cfg).reasoning == reasoning
    cfg.algorithm.reasoning = True
    assert load(cfg).reasoning
