"""The dataset: its files, what a failure leaves, and what `datasets` makes of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from pyarrow import parquet

from generator.errors import ExportError
from generator.output import dataset as dataset_module
from generator.output.chat import rows
from generator.output.dataset import write_dataset
from generator.schema import Dialog
from tests.output.examples import INFO, data_file, dialog, made_dialogs, turn


def test_rows_by_split_come_back_as_written(tmp_path: Path) -> None:
    write_dataset(made_dialogs(), tmp_path / "dataset", INFO)
    train, validation = (parquet.read_table(data_file(tmp_path / "dataset", s)) for s in ("train", "validation"))
    assert (train.num_rows, validation.num_rows) == (3, 2)
    assert train.schema == validation.schema == dataset_module.arrow_schema()
    expected = [row.model_dump(mode="json") for made in made_dialogs()[:2] for row in rows(made, "pairs")]
    assert train.to_pylist() == expected
    assert set(validation["judge_lm"].to_pylist()) == {None}
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_same_dialogs_same_bytes_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_module, "ROWS_PER_GROUP", 2)
    for name in ("one", "two", "two"):
        write_dataset(iter(made_dialogs()), tmp_path / name, INFO)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / n).rglob("*.*")} for n in ("one", "two"))
    assert one == two
    assert len(one) == 3
    assert parquet.ParquetFile(data_file(tmp_path / "one", "train")).num_row_groups == 2


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failure_leaves_the_old_dataset(tmp_path: Path, failure: BaseException) -> None:
    def cut_off() -> Iterator[Dialog]:
        yield made_dialogs()[0]
        raise failure

    folder = tmp_path / "dataset"
    write_dataset(made_dialogs(), folder, INFO)
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    with pytest.raises(ExportError if isinstance(failure, OSError) else KeyboardInterrupt) as caught:
        write_dataset(cut_off(), folder, INFO)
    if isinstance(failure, OSError):
        assert str(folder) in str(caught.value) and "No space left" in str(caught.value)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_a_dataset_without_pairs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="drops"):
        write_dataset([dialog(turn(1, "incorrect"))], tmp_path / "dataset", INFO)
    assert list(tmp_path.iterdir()) == []


def test_datasets_loads_it_offline_and_takes_no_run_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of `datasets` identifies a folder by its last name and by its card."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)

    def load(folder: Path) -> dict[str, list[dict[str, Any]]]:
        splits = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
        return {name: rows.to_list() for name, rows in splits.items()}

    folders = [tmp_path / run / "dataset" for run in ("one", "two")]
    write_dataset(made_dialogs(), folders[0], INFO)
    write_dataset(made_dialogs(validation=False), folders[1], INFO)
    both, alone = map(load, folders)
    assert {split: len(found) for split, found in both.items()} == {"train": 3, "validation": 2}
    assert {split: len(found) for split, found in alone.items()} == {"train": 5}
    assert both["train"][0] == rows(made_dialogs()[0], "pairs")[0].model_dump(mode="json")
    write_dataset(made_dialogs()[:1], folders[0], INFO)
    assert [row["pair_id"] for row in load(folders[0])["train"]] == ["a/1", "a/3"]
