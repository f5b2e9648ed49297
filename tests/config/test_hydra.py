"""The command line as Hydra's users know it: its options, sweeps and folders, and stored configurations."""

from pathlib import Path

import pytest
import yaml

from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site, command


@pytest.fixture
def site(here: Path) -> Site:
    return Site(here)


def contents(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("--cfg job -p lm lm=vllm lm.max_tokens=99", "# @package lm\nmax_tokens: 99\n"),
        ("--cfg hydra -p hydra.sweep hydra.sweep.dir=sweeps", "dir: sweeps\n"),
        ("--info searchpath", "| main "),
        ("--info defaults corpus=quac", "| corpus/quac "),
        ("--hydra-help", "--config-dir"),
        ("-sc install=bash", "complete "),
        ("--version", "Hydra 1."),
    ],
)
def test_options_that_ask_about_the_program_run_nothing(site: Site, arguments: str, shown: str) -> None:
    done = command(*arguments.split())
    assert (done.code, done.err) == (0, "")
    assert shown in done.out
    assert contents(site.folder) == {"documents.jsonl"}


def test_a_configuration_of_ones_own_is_found_in_its_folder(site: Site) -> None:
    folder = site.folder / "mine"
    (folder / "corpus").mkdir(parents=True)
    (folder / "quick.yaml").write_text("defaults: [config, override corpus: mine, _self_]\ndialogs: 7\n")
    (folder / "corpus" / "mine.yaml").write_text("defaults: [jsonl, _self_]\npath: documents.jsonl\n")
    done = command("-cd", "mine", "-cn", "quick", "--cfg", "job", "seed=3")
    assert done.code == 0, done.err
    composed = yaml.safe_load(done.out)
    assert (composed["dialogs"], composed["seed"], composed["corpus"]["path"]) == (7, 3, "documents.jsonl")


def test_a_sweep_names_its_folders_by_what_varies_and_continues(site: Site, openai_server: OpenAIServer) -> None:
    settings = ["-m", "dialogs=1", "run_dir=null", "algorithm=single", "hydra.sweep.dir=sweeps"]
    done = site.run(openai_server, *settings, "retriever.k=2,0,3")
    assert done.code == 2, "the failed run's"
    assert "error: retriever.k=0: " in done.err
    names = {f"jsonl-mixed-single-test-model-0-retriever.k-{k}" for k in (2, 3)}
    assert contents(Path("outputs")) == names
    assert contents(site.folder) == {"documents.jsonl", "cache", "outputs", "sweeps"}
    calls = len(openai_server.bodies)
    assert site.run(openai_server, *settings, "retriever.k=2,3").code == 0
    assert command(f"outputs/{names.pop()}/config.yaml").code == 0
    assert len(openai_server.bodies) == calls


def test_a_sweep_over_servers_of_one_model_has_a_folder_for_each(site: Site, openai_server: OpenAIServer) -> None:
    settings = ["-m", "dialogs=1", "run_dir=null", "algorithm=single", "hydra.sweep.dir=sweeps", "lm=openai,vllm"]
    assert site.run(openai_server, *settings).code == 0
    assert contents(Path("outputs")) == {f"jsonl-mixed-single-test-model-0-lm-{lm}" for lm in ("openai", "vllm")}


def test_a_sweep_says_which_of_its_runs_failed_and_how_many(site: Site, openai_server: OpenAIServer) -> None:
    settings = ["-m", "dialogs=1", "run_dir=null", "algorithm=single", "hydra.sweep.dir=sweeps"]
    done = site.run(openai_server, *settings, "retriever.k=0,2", "+taxonomy=direct,aggregate")
    errors = [line.partition(": must be")[0] for line in done.err.splitlines() if "rror" in line]
    assert errors == [f"error: retriever.k=0 taxonomy={name}: retriever.k=0" for name in ("direct", "aggregate")]
    assert done.code == 2 and done.err.endswith("2 of 4 runs failed\n")


def test_a_sweep_into_one_folder_is_refused(site: Site, openai_server: OpenAIServer) -> None:
    done = site.run(openai_server, "-m", "retriever.k=2,3")
    assert (done.code, f"run_dir={site.run_dir}" in done.error) == (2, True)
    assert not openai_server.bodies


@pytest.mark.parametrize(
    "arguments",
    [
        ["+experiment=[lee2024_quac,synthetic],[lee2024_quac,synthetic_filtered]"],
        ["corpus=quac,coqa", "taxonomy=direct", "taxonomy.first={aggregate: 1}"],
    ],
)
def test_a_sweep_over_choices_takes_settings_that_the_default_choice_lacks(arguments: list[str], site: Site) -> None:
    done = command("-m", *arguments, "corpus.path=nowhere")
    assert done.code == 2
    assert done.err.count("corpus.path=nowhere: doesn't exist") == 2
    assert "corpus.pathh: unknown setting" in command("-m", *arguments, "corpus.pathh=nowhere").err


def test_a_stored_configuration_takes_settings_and_two_other_choices(site: Site) -> None:
    stored = command("--cfg", "job", "--resolve", "corpus=quac", "retriever.k=3", "export=mtrag").out
    Path("config.yaml").write_text(stored, encoding="utf-8")
    refused = command("config.yaml", "lm=ollama")
    assert refused.code == 2 and "lm=ollama: config.yaml has made this choice" in refused.error
    assert "not several" in command("config.yaml", "config.yaml").error
    done = command("config.yaml", "dialogs=9", "executor=ray", "executor.workers=5", "export=none", "--cfg", "job")
    assert done.code == 0, done.err
    composed = yaml.safe_load(done.out)
    assert composed.pop("executor")["workers"] == 5
    assert composed.pop("export") == {}
    expected = yaml.safe_load(stored) | {"dialogs": 9}
    assert composed == {key: value for key, value in expected.items() if key not in ("executor", "export")}


@pytest.mark.parametrize(("run_dir", "code"), [("null", 0), ("outputs/named", 2)])
def test_a_stored_configuration_continues_the_run_of_its_folder_unless_settings_name_another(
    run_dir: str, code: int, site: Site, openai_server: OpenAIServer
) -> None:
    assert site.run(openai_server, "dialogs=1", "algorithm=single", f"run_dir={run_dir}").code == 0
    (made,) = Path("outputs").iterdir()
    moved, calls = made.rename("outputs/moved"), len(openai_server.bodies)
    for _ in range(2):
        assert command(f"{moved}/config.yaml", "export=mtrag").code == 0
    assert (moved / "mtrag").is_dir() and contents(Path("outputs")) == {"moved"}
    assert len(openai_server.bodies) == calls
    done = command(f"{moved}/config.yaml", "seed=5")
    assert done.code == code, "with a run_dir of its own, it is the same folder, and the run another one"
    assert len(contents(Path("outputs"))) == (1 if code else 2)
    assert command(f"{moved}/config.yaml", "run_dir=outputs/other").code == 0
    assert "other" in contents(Path("outputs"))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("hydra: {callbacks: {x: {_target_: os.system}}}", "hydra"),
        ("defaults: [config]", "defaults"),
        ("dialogs: ${oc.env:HOME}", "interpolations"),
        ("- dialogs", "config.yaml"),
    ],
)
def test_a_stored_configuration_holds_plain_settings_alone(site: Site, line: str, named: str) -> None:
    Path("config.yaml").write_text(line, encoding="utf-8")
    done = command("config.yaml")
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert named in done.error
    assert contents(site.folder) == {"documents.jsonl", "config.yaml"}
