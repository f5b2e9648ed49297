"""Imports go one way (`CONTRIBUTING.md`); read from the source, so that what isn't run is held too."""

import ast
import resource
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# A module may import what stands on a line above its own, and nothing else of ours: neighbours don't know each other.
# `*` takes the modules of a package that have no line of their own, so a new corpus needs no entry here.
LAYERS = (
    "generator.common.sanitize",
    "generator.schema generator.errors generator.common.console generator.common.shingles generator.common.concurrency generator.common.backoff "
    "generator.corpora.mtrag.names generator.common.limits generator.execution generator.execution.ray.exchange",
    "generator.common.minhash generator.retrievers.elastic.answers",
    "generator.common.terminal generator.common.interruption generator.dialogs.relabel generator.common.atomic_files generator.models.process_guard generator.models.limiter "
    "generator.common.passages generator.models.http_errors "
    "generator.execution.ray.cluster generator.corpora.mtrag.forms "
    "generator.models.lm generator.dialogs.dedup generator.config.messages taxonomy.types generator.corpora.files "
    "generator.output.markdown generator.output.chat "
    "generator.retrievers.batching generator.retrievers.fusion generator.retrievers.encoder "
    "generator.retrievers.elastic.server",
    "generator.config.parts generator.config.compose generator.dialogs.prompt generator.corpora.library generator.dialogs.journal generator.execution.store "
    "generator.models.client "
    "generator.corpora.fetching generator.corpora.json_file generator.corpora.json_lines "
    "taxonomy.files generator.corpora.base generator.output.stats.statistics generator.output.stats.variety "
    "generator.output.tables "
    "generator.output.base",
    "taxonomy.mix generator.corpora.formats generator.corpora.reading generator.corpora.human generator.corpora.records "
    "generator.output.card "
    "generator.retrievers.base generator.dialogs.query generator.retrievers.elastic.index generator.models.pool",
    "generator.corpora.published",
    "generator.dialogs.adapter generator.dialogs.calls generator.dialogs.signatures generator.models.embedded generator.models.endpoints "
    "taxonomy.draw generator.corpora.* generator.retrievers.* generator.output.* judges.metrics.words",
    "judges.base",
    "judges.* judges taxonomy generator generator.corpora generator.retrievers generator.retrievers.hybrid "
    "generator.corpora.mtrag.documents "
    "generator.output",
    "generator.dialogs.checks generator.dialogs.focus generator.dialogs.first_questions generator.output.summary",
    "generator.dialogs.steps generator.dialogs.plan judges.summary judges.benchmarks.mtrag.retrieval_table",
    "generator.dialogs.single generator.dialogs.multi",
    "generator.dialogs.generate",
    "generator.execution.pipeline generator.execution.base generator.execution.ray.worker",
    "generator.execution.*",
    "generator.config.settings generator.output.progress",
    "generator.exports judges.config",
    "generator.results generator.human generator.sets generator.components",
    "generator.run judges.run",
    "generator.command",
    "generator.__main__ generator.statistics judges.command",
    "judges.__main__ judges.retrieval",
)

# What the packages beside `generator` may know of it.
MAY_IMPORT = {
    "judges": {"generator.schema", "generator.errors", "generator.dialogs.prompt", "generator.dialogs.calls"},
    "taxonomy": {"generator.schema", "generator.errors"},
}
# Commands read files and search as the generator does: the layers alone hold for them.
COMMANDS = {
    "judges.__main__",
    "judges.command",
    "judges.config",
    "judges.retrieval",
    "judges.benchmarks.mtrag.retrieval_table",
    "judges.benchmarks.mtrag.retrieval_tasks",
    "judges.run",
    "judges.summary",
}


def sources() -> dict[str, Path]:
    """The file of each of our modules."""
    files = (file for name in ("generator", "taxonomy", "judges") for file in (ROOT / name).rglob("*.py"))
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


MODULES = sources()


def imported(source: str) -> set[str]:
    """The modules of ours that a source names in an import, wherever in it that stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write imports out, so that one sees what they reach"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= inside & MODULES.keys() or {str(node.module)}
    return {name for name in names if name.partition(".")[0] in ("generator", "taxonomy", "judges")}


def layer(module: str) -> int:
    """The line that a module stands on; its own name wins over a `*`."""
    exact = [number for number, names in enumerate(LAYERS) if module in names.split()]
    starred = [number for number, names in enumerate(LAYERS) for name in names.split() if fnmatchcase(module, name)]
    assert exact or starred, f"{module} has no place in LAYERS of tests/test_imports.py: give it one"
    return (exact or starred)[0]


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    for other in imported(MODULES[module].read_text(encoding="utf-8")):
        assert layer(other) < layer(module), f"{module} imports {other}, which stands beside or above it"


def test_every_name_in_the_layers_is_a_module() -> None:
    named = {name for names in LAYERS for name in names.split() if "*" not in name}
    assert named - MODULES.keys() == set()


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_judges_and_question_types_know_little_of_the_generator(package: str) -> None:
    for module, file in MODULES.items():
        if module.partition(".")[0] == package and module not in COMMANDS:
            others = {m for m in imported(file.read_text(encoding="utf-8")) if m.partition(".")[0] != package}
            assert others <= MAY_IMPORT[package], module


def test_the_generator_never_imports_a_judge() -> None:
    knowing = {m: imported(f.read_text(encoding="utf-8")) for m, f in MODULES.items() if m.startswith("generator")}
    assert {module for module, others in knowing.items() if any(o.startswith("judges") for o in others)} == set()


@pytest.mark.parametrize(
    "source",
    [
        "import generator.execution.store",
        "from generator import store",
        "def f():\n    from generator.execution.store import Store",
    ],
)
def test_no_way_to_write_an_import_is_overlooked(source: str) -> None:
    assert imported(source) == {"generator.execution.store"}


@pytest.mark.parametrize(("program", "title"), [("generator", "corpora (+corpus=)"), ("judges", "judges (judge=)")])
def test_help_is_there_in_no_time(program: str, title: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-X", "importtime", "-m", program, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert title in done.stdout
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "re" in loaded, "no list of modules: what follows would hold of anything"
    assert loaded & {"dspy", "hydra", "omegaconf", "pydantic", "numpy", "datasets", "aiohttp"} == set()
    # Time of the processor, which a busy machine doesn't stretch.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
