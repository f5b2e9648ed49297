"""Every choice in `conf/` can be made: it composes, its class is ours, and what is built of it is what it says."""

import copy
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from generator.__main__ import CONF, PACKAGE, help_text, normalised
from generator.config.choices import compose_choice
from generator.config.parts import PACKAGES, plain
from generator.config.settings import Settings, dotted, identity, load, model_files
from generator.corpora.base import CorpusSettings
from generator.dialogs.dedup import DedupSettings
from generator.errors import ConfigError
from generator.execution.base import ExecutorSettings
from generator.execution.ray.executor import RaySettings
from generator.models.client import Endpoint
from generator.models.embedded import EmbeddedEndpoint
from generator.models.endpoints import OpenAIEndpoint
from generator.retrievers.base import RetrieverSettings
from taxonomy import Mix
from taxonomy import load as load_taxonomy

FILES = sorted(CONF.rglob("[!_]*.yaml"))
OPTIONS = [(file.parent.name, file.stem) for file in FILES if file.parent != CONF]
PARTS = [(group, name) for group, name in OPTIONS if group not in ("experiment", "algorithm")]

# What a choice can't do without.
NEEDS = {
    ("corpus", "folder"): ["corpus.path=."],
    ("corpus", "huggingface"): ["corpus.path=rows.parquet"],
    ("corpus", "jsonl"): ["corpus.path=documents.jsonl"],
    ("lm", "openai"): ["lm.model=gpt-4o"],
}
BASES: dict[str, type] = {
    "corpus": CorpusSettings,
    "taxonomy": Mix,
    "lm": Endpoint,
    "retriever": RetrieverSettings,
    "dedup": DedupSettings,
    "executor": ExecutorSettings,
}


def composed(*arguments: str) -> DictConfig:
    """The configuration that the command line would make of `arguments`."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", normalised(list(arguments)))


def settings(*arguments: str) -> Settings:
    return load(composed(*arguments))


def named(target: str) -> Any:
    module, _, name = target.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize(("group", "name"), PARTS)
def test_every_option_builds_its_part(group: str, name: str) -> None:
    made = settings(f"{group}={name}", *NEEDS.get((group, name), []))
    target = compose_choice(group, name).get("_target_")
    if group == "judge":
        judge = made.judge.build("some-model")
        assert made.judge.name == name
        assert target == (judge and f"{type(judge).__module__}.{type(judge).__name__}")
        assert (judge.name if judge else "none") == name
        return
    part: Any = getattr(made, group)
    if group == "export":
        assert target == (part and f"{type(part).__module__}.{type(part).__name__}")
        assert (part.name if part else "none") == name
        return
    assert issubclass(type(part), BASES[group])
    assert type(part) is named(str(target))
    if group in ("corpus", "taxonomy"):  # their names stand in the run folder's name, the dialogs and the data card
        assert part.name == name
    if group == "taxonomy":
        assert sum(share.share for share in load_taxonomy(part).first) == pytest.approx(1)


def test_the_bare_command_is_what_the_readme_says() -> None:
    made = settings()
    assert (made.documents.name, made.taxonomy.name, made.algorithm.name) == ("sample", "mixed", "multi")
    assert isinstance(made.lm, EmbeddedEndpoint)
    assert made.judge.name == "correctness"
    assert made.folder == Path("outputs/sample-mixed-multi-SmolLM2-135M-Instruct-0")


def test_a_stored_configuration_may_be_made_elsewhere() -> None:
    stored = composed()
    decided = identity(plain(stored), {})
    stored.executor = "ray"
    assert isinstance(load(stored).executor, RaySettings)
    assert identity(plain(stored), {}) == decided
    stored.executor = "spark"
    with pytest.raises(ConfigError, match=r"^executor=spark: no such choice; choose from: local, ray$"):
        load(stored)


def test_a_judge_with_a_model_of_its_own() -> None:
    judge = settings("+lm@judge.lm=openai", "judge.lm.model=gpt-4o").judge
    assert isinstance(judge.lm, OpenAIEndpoint)
    assert judge.lm.model == "gpt-4o"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONF)))
def test_every_file_says_first_what_it_is(file: Path) -> None:
    text = file.read_text(encoding="utf-8").removeprefix(PACKAGE)
    assert re.match(r"# \S.{10,}\n", text), "the first line is what --help shows"


def test_help_lists_every_option() -> None:
    shown = help_text()
    for group, name in OPTIONS:
        text = (CONF / group / f"{name}.yaml").read_text(encoding="utf-8").removeprefix(PACKAGE)
        comment = text.splitlines()[0].removeprefix("# ")
        assert re.search(rf"^  {name}\s+{re.escape(comment)}$", shown, re.MULTILINE), f"{group}={name}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONF)))
def test_every_class_is_ours(file: Path) -> None:
    for target in re.findall(r"_target_:\s*(\S+)", file.read_text(encoding="utf-8")):
        assert isinstance(named(target), type)
        assert target.startswith(PACKAGES)


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "generatorx.Corpus",
        "generator.corpora.quac.QuakCorpus",
        "generator.corpora.nowhere.Corpus",
        "generator.common.atomic_files.written",  # ours, and no class
        "generator.config.settings.Path",  # a class, and not ours
        "generator.corpora.library.shutil.rmtree",
    ],
)
@pytest.mark.parametrize("group", ["corpus", "retriever", "judge"])
def test_no_other_class_is_called(group: str, target: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{group}\._target_={re.escape(target)}: .*class") as error:
        settings(f"++{group}._target_={target}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("group", ["algorithm", "corpus", "dedup", "executor", "export", "judge", "lm", "retriever"])
def test_a_stored_configuration_has_every_part(group: str) -> None:
    stored = composed()
    OmegaConf.set_struct(stored, False)
    del stored[group]
    with pytest.raises(ConfigError, match=rf"^{group}: is missing; `python -m generator --help` lists the choices of"):
        load(stored)


@pytest.mark.parametrize("group", ["corpus", "taxonomy", "lm", "retriever", "dedup", "executor"])
@pytest.mark.parametrize("target", ["null", "3", "[]", "''"])
def test_a_part_without_a_class_is_one_line(group: str, target: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{group}(: is missing|\._target_=)") as error:
        settings("+corpus=folder", f"++{group}._target_={target}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("odd", [None, -1, "", "\0", [1], {"a": 1}, float("nan")], ids=repr)
def test_whatever_a_setting_holds_it_is_loaded_or_one_line(odd: Any) -> None:
    """Any setting, and any group."""
    cfg = composed("corpus=quac", "executor=ray", "export=mtrag")
    names = {".".join(name.split(".")[:deep]) for name, _ in dotted(plain(cfg)) for deep in (1, 2, 3)}
    OmegaConf.set_struct(cfg, False)
    for name in sorted(names):
        changed = copy.deepcopy(cfg)
        OmegaConf.update(changed, name, odd, merge=False)
        try:
            load(changed)
        except ConfigError as error:
            assert "\n" not in str(error), name


def test_a_misspelt_setting_of_a_part_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^corpus\.pth"):
        settings("+corpus=folder", "+corpus.pth=here")


def test_settings_of_human_dialogs_may_change_when_a_run_is_continued() -> None:
    def decided(*arguments: str) -> dict[str, Any]:
        return identity(plain(composed("corpus=quac", *arguments)), {})

    assert decided("corpus.rewrites=canard", "corpus.no_answer=No") == decided()
    assert decided("corpus.strict=true") != decided()


def test_what_only_the_card_tells_may_change_when_a_run_is_continued() -> None:
    told = ["corpus.licence=CC0", "corpus.source=https://example.org"]
    assert identity(plain(composed(*told)), {}) == identity(plain(composed()), {})


def test_a_model_file_stands_for_itself_wherever_it_lies(tmp_path: Path) -> None:
    def decided(path: Path, *more: str) -> dict[str, Any]:
        given = [f"lm.path={path}", "+lm@judge.lm=embedded", f"judge.lm.path={path}", *more]
        made = settings(*given)
        return identity(plain(composed(*given)), model_files({"lm": made.lm, "judge.lm": made.judge.lm}))

    (file := tmp_path / "model.gguf").write_text("weights")
    there = decided(file)
    assert {name for name in there if "file" in name} == {"the file of lm.path", "the file of judge.lm.path"}
    assert there["the file of lm.path"].startswith("model ")
    (tmp_path / "other").mkdir()
    moved = file.rename(tmp_path / "other" / "model.gguf")
    assert decided(moved) == there
    renamed = moved.rename(tmp_path / "named.gguf")
    assert decided(renamed) != there, "it is the model's name in the data"
    renamed.rename(file).write_text("other weights")
    assert decided(file) != there
    with pytest.raises(ConfigError, match=rf"^lm\.path={moved}: can't be read \(No such file or directory\); give a"):
        decided(moved)
    assert model_files({"lm": settings().lm, "judge.lm": None}) == {}, "the package's own is that of its version"
