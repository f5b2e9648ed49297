"""The card of a dataset."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.dialogs.filter import Filter
from generator.output.card import Origin
from generator.output.dataset import write_dataset
from generator.schema import Verdict
from tests.output.examples import INFO, data_file, dialog, made_dialogs, passage, turn


def read_card(folder: Path) -> tuple[dict[str, Any], str]:
    """Return the metadata and the text of a card."""
    _, metadata, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(metadata), text


def test_the_card_has_the_statistics(tmp_path: Path) -> None:
    dialogs = [
        dialog(turn(1, query="one two three"), turn(2, "incorrect", query="one"), passages=(passage(1, "a b c d"),)),
        dialog(turn(1, None, question_type="comparative"), passages=(passage(1, "a b"), passage(2, "c d e f"))),
    ]
    write_dataset(dialogs, tmp_path / "dataset", INFO)
    _, text = read_card(tmp_path / "dataset")
    assert "| **total** | 2 | 1.5 | 2.0 | 4.0 | 5 | 1.5 |" in text
    assert "| question type: follow\\_up | 1 | 33.3% |" in text


def test_card(tmp_path: Path) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO)
    metadata, text = read_card(tmp_path / "dataset")
    assert metadata["license"] == "cc-by-sa-4.0"
    assert metadata["size_categories"] == ["n<1K"]
    assert "synthetic" in metadata["tags"]
    files = metadata["configs"][0]["data_files"]
    assert [file["split"] for file in files] == ["train", "validation"]
    for file in files:
        assert tmp_path / "dataset" / file["path"] == data_file(tmp_path / "dataset", file["split"])
    for said in (
        "    python -m generator +corpus=sample",
        "- judge: correctness (judge-model)",
        "| direct | first turns | 50.0% | 25.0% |",
        "| dialog, dedup: first question | 3 |",
        "| validation | 2 |",
        '"pair_id": "a/1"',
        "2409.11500",
    ):
        assert said in text
    assert "Not for training" not in text
    write_dataset(made_dialogs(validation=False), tmp_path / "alone", INFO)
    assert "split by document" in text and "split by document" not in read_card(tmp_path / "alone")[1]


@pytest.mark.parametrize(
    ("judge", "said"), [("", "No person asked these questions or checked"), ("human:ada", "people judged some")]
)
def test_the_card_says_whether_people_judged_answers_and_no_share_of_verdicts_that_nobody_gave(
    judge: str, said: str, tmp_path: Path
) -> None:
    verdicts = (Verdict(judge=judge, label="correct", explanation="", model=""),) if judge else ()
    write_dataset([dialog(turn(1, verdicts=verdicts))], tmp_path / "dataset", INFO)
    _, text = read_card(tmp_path / "dataset")
    assert said in text and ("| verdict: " in text) == bool(judge)


@pytest.mark.parametrize("keep", ["pairs", "turn<9", "prefix and turn<9"])
def test_the_card_warns_of_incorrect_answers_in_the_context_where_a_filter_leaves_them(
    keep: Filter, tmp_path: Path
) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO.model_copy(update={"filter": keep}))
    _, text = read_card(tmp_path / "dataset")
    assert ("also one that was judged incorrect" in text) == (not keep.startswith("prefix"))


def test_the_card_names_the_models_and_what_binds_their_users(tmp_path: Path) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO)
    licence = (tmp_path / "dataset" / "README.md").read_text(encoding="utf-8").partition("## Licence")[2]
    assert "**llama3.1:8b** wrote the dialogs: the Llama community licence, https://www.llama.com/license." in licence
    assert "**judge-model** judged the answers. Its licence or terms aren't known here" in licence
    assert "may bind" in licence


@pytest.mark.parametrize(("corpus", "purpose"), [("quac", "train"), ("mt_bench_101", "test"), ("rad_bench", "test")])
def test_a_published_benchmark_is_not_to_train_models(corpus: str, purpose: str, tmp_path: Path) -> None:
    origin = Origin(name="n", command="c", corpus=corpus, licence="MIT", source="s", language=None)
    write_dataset(made_dialogs(), tmp_path / "dataset", origin)
    _, text = read_card(tmp_path / "dataset")
    assert [word for word in ("train", "test") if f"to {word} models" in text] == [purpose]


def test_a_dialog_with_several_first_types_is_counted_for_each(tmp_path: Path) -> None:
    types = ("comparative+direct", "direct", "aggregate+direct")
    write_dataset([dialog(turn(1, question_type=kind)) for kind in types], tmp_path / "dataset", INFO)
    table = read_card(tmp_path / "dataset")[1].partition("| First question |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    assert rows == [["aggregate", "1"], ["comparative", "1"], ["direct", "3"], ["**total**", "3"]]


def test_the_figures_of_tasks_are_by_their_last_question(tmp_path: Path) -> None:
    task = dialog(turn(1), turn(2)).model_copy(update={"ended": "task"})
    write_dataset([task], tmp_path / "dataset", INFO)
    assert "| Last question |" in read_card(tmp_path / "dataset")[1]


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("Apache 2.0", {"license": "apache-2.0"}),
        ("", {"license": "unknown"}),
        ("unknown: yours to state", {"license": "unknown"}),
        (
            "Our own terms: ask us",
            {"license": "other", "license_name": "our-own-terms-ask-us", "license_link": INFO.source},
        ),
    ],
)
def test_licence(tmp_path: Path, licence: str, expected: dict[str, str]) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO.model_copy(update={"licence": licence}))
    metadata, _ = read_card(tmp_path / "dataset")
    assert {key: value for key, value in metadata.items() if key.startswith("license")} == expected
