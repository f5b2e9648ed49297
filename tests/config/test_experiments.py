"""The experiments are what their papers say (Lee et al. 2024, Katsis et al. 2025), and combine as one types them."""

import re
from pathlib import Path

import pytest
import yaml

from generator import index
from taxonomy import load
from tests.support.runs import command
from tests.support.settings import settings

# Table 9: dialogs by the type of the first question.
TABLE_9 = {
    "coqa": {"aggregate": 9967, "comparative": 8894, "direct": 9217},
    "multidoc2dial": {"aggregate": 8572, "comparative": 8211, "direct": 9715, "unanswerable": 2500},
    "quac": {"aggregate": 9271, "comparative": 9554, "direct": 9896, "unanswerable": 3000},
    "orquac": {"aggregate": 9006, "comparative": 9993, "direct": 5000},
}


def needs(corpus: str) -> list[str]:
    return ["algorithm.first_questions=outputs/quac"] if corpus == "orquac" else []


@pytest.mark.parametrize(("corpus", "scale"), [*((corpus, 1) for corpus in TABLE_9), ("quac", 0.01)])
def test_an_experiment_has_the_papers_corpus_algorithm_types_and_sizes(corpus: str, scale: float) -> None:
    made = settings(f"+experiment=lee2024_{corpus}", f"scale={scale}", *needs(corpus))
    sizes = TABLE_9[corpus]
    assert made.corpus.name == corpus
    assert made.algorithm.name == ("multi" if corpus == "orquac" else "single")
    assert made.lm.model == "mistralai/Mixtral-8x7B-Instruct-v0.1"
    assert made.taxonomy.focus == "none"
    assert made.wanted == pytest.approx(sum(sizes.values()) * scale, abs=1)
    shares = {share.type.name: share.share for share in load(made.taxonomy).first}
    assert shares == pytest.approx({name: size / sum(sizes.values()) for name, size in sizes.items()}, abs=1e-5)


@pytest.mark.parametrize(("corpus", "row"), [(corpus, next(iter(rows))) for corpus, rows in TABLE_9.items()])
def test_a_taxonomy_of_one_type_makes_that_row_of_the_table(corpus: str, row: str) -> None:
    made = settings(f"experiment=lee2024_{corpus}", f"taxonomy={row}", *needs(corpus))
    assert made.wanted == TABLE_9[corpus][row]
    assert [share.type.name for share in load(made.taxonomy).first] == [row]


@pytest.mark.parametrize("corpus", TABLE_9)
def test_the_training_sets_differ_in_judge_and_unanswerable_questions(corpus: str) -> None:
    sizes = TABLE_9[corpus]
    answerable = sum(size for name, size in sizes.items() if name != "unanswerable")
    plain = settings(f"+experiment=[lee2024_{corpus},synthetic]", *needs(corpus))
    filtered = settings(f"+experiment=[lee2024_{corpus},synthetic_filtered]", *needs(corpus))
    assert (plain.judge.name, filtered.judge.name, filtered.judge.filter) == ("none", "correctness", "pairs")
    assert {share.type.name for share in load(plain.taxonomy).first} == set(sizes)
    assert {share.type.name for share in load(filtered.taxonomy).first} == set(sizes) - {"unanswerable"}
    assert (plain.wanted, filtered.wanted) == (sum(sizes.values()), answerable)
    assert plain.folder.name == f"{corpus}-lee2024_{corpus}-{plain.algorithm.name}-synthetic-0"
    assert plain.folder != filtered.folder


@pytest.mark.parametrize("order", ["lee2024_quac,synthetic_filtered", "synthetic_filtered,lee2024_quac"])
def test_the_filtered_set_has_the_papers_sizes_in_either_order_and_of_one_type(order: str) -> None:
    answerable = {name: size for name, size in TABLE_9["quac"].items() if name != "unanswerable"}
    whole = settings(f"+experiment=[{order}]")
    assert (whole.wanted, whole.judge.name) == (sum(answerable.values()), "correctness")
    assert {share.type.name for share in load(whole.taxonomy).first} == set(answerable)
    made = settings(f"+experiment=[{order}]", "taxonomy=direct")
    assert (made.wanted, [share.type.name for share in load(made.taxonomy).first]) == (answerable["direct"], ["direct"])


@pytest.mark.parametrize("name", ["synthetic", "synthetic_filtered"])
def test_a_training_set_without_a_papers_corpus_has_the_usual_size(name: str) -> None:
    made = settings(f"+experiment={name}", "corpus=quac", "taxonomy=lee2024_quac")
    assert made.wanted == settings("corpus=quac").wanted


def test_the_companion_set_is_of_one_domain_a_run() -> None:
    made = settings("+experiment=mtrag_s", "corpus.domain=fiqa")
    assert (made.corpus.name, made.taxonomy.name, made.algorithm.name) == ("mtrag", "mtrag", "multi")
    assert (made.turns.least, made.turns.most, made.retriever.query) == (6, 10, "rewrite")
    assert made.folder == Path("outputs/mtrag_s-fiqa-0")
    assert made.wanted == 50


def test_an_experiment_may_be_a_sweep_that_the_command_line_replaces(here: Path) -> None:
    for domain in ("clapnq", "cloud", "fiqa", "govt"):
        Path(f"{domain}.jsonl").write_text(f'{{"_id": "{domain}", "text": "A text of {domain}."}}\n')
    for given, runs in (([], 4), (["corpus.domain=clapnq,fiqa"], 2), (["corpus.domain=fiqa"], 1)):
        arguments = ["+experiment=mtrag_s", "corpus.path=.", "retriever=bm25", *given]
        done = command(*arguments, program=index.COMMAND)
        assert done.code == 0, done.err
        assert done.out.count("indexed: 1 passage of 1 document,") == runs


def test_a_setting_that_an_experiment_sweeps_over_and_another_corpus_lacks_is_said_to_be_of_the_experiment(
    here: Path,
) -> None:
    message = command("+experiment=mtrag_s", "corpus=folder").refused
    assert message.endswith("; experiment=mtrag_s sets it: leave out corpus=folder")


def test_what_an_experiment_chooses_can_be_chosen_otherwise_with_or_without_a_plus() -> None:
    for corpus, taxonomy in (("+corpus=sample", "+taxonomy=direct"), ("corpus=sample", "taxonomy=direct")):
        made = settings("+experiment=lee2024_quac", corpus, taxonomy, "lm=embedded", "dialogs=3")
        assert (made.corpus.name, made.taxonomy.name, made.wanted) == ("sample", "direct", 3)
    assert settings("experiment=synthetic", "dialogs=3").corpus.name == "sample"


def test_the_tasks_of_mt_bench_101_have_the_published_size_and_shares() -> None:
    made = settings("+experiment=mt_bench_101")
    published = {"CM": 80, "SI": 149, "AR": 153, "TS": 83, "CC": 147, "CR": 136, "FR": 74}
    published |= {"SC": 77, "SA": 73, "MR": 108, "GR": 71, "IC": 150, "PI": 87}
    shares = {share.type.name: share.share for share in load(made.taxonomy).tasks}
    assert made.wanted == sum(published.values()) == 1388
    assert shares == pytest.approx({name: count / 1388 for name, count in published.items()})
    assert (made.corpus.name, made.algorithm.name, made.validation) == ("topics", "whole", 0)
    assert (made.judge.name, made.judge.filter, made.exporter and made.exporter.name) == (
        "task",
        "verified",
        "mt_bench_101",
    )
    assert len(list(made.corpus.read())) == 30
    own = settings("+experiment=mt_bench_101", "corpus=folder", "corpus.path=documents", "scale=0.1")
    assert (own.corpus.name, own.wanted, own.exporter) == ("folder", 139, made.exporter)


def test_the_documented_experiment_works_as_written_and_other_files_are_told_what_they_lack(here: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    name, text = re.findall(r"^```yaml (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[0]
    (file := here / name).parent.mkdir(parents=True)
    given = re.findall(r"^python -m generator (--config-dir.*)$", page, re.MULTILINE)[0].split()

    file.write_text(text, encoding="utf-8")
    made = yaml.safe_load(command(*given, "--cfg", "job").out)
    assert (made["corpus"]["path"], made["taxonomy"]["name"], made["dialogs"]) == ("handbook", "comparative", 500)
    for wrong in (
        text.removeprefix("# @package _global_\n"),
        "dialogs: 500\n",
        text.replace("override /", ""),
        text.replace("override /", "override "),
    ):
        file.write_text(wrong, encoding="utf-8")
        message = command(*given).refused
        assert message.startswith("experiment")
        assert "# @package _global_" in message and "override /" in message
