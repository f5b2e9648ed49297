"""The human dialogs of a data set as a dataset of their own."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from generator.schema import Dialog
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Ended, Site, command


def paragraph(name: str, text: str, *asked: tuple[str, str]) -> dict[str, Any]:
    qas = [{"question": q, "orig_answer": {"text": a, "answer_start": max(0, text.find(a))}} for q, a in asked]
    return {"title": name, "paragraphs": [{"id": name, "context": f"{text} CANNOTANSWER", "qas": qas}]}


ARTICLES = [
    paragraph(f"C_{n}_0", f"House {n} is blue. It has a garden.", ("Which colour?", "blue"), ("Why?", "CANNOTANSWER"))
    for n in range(40)
]
BROKEN = {"title": "X", "paragraphs": [{"id": "C", "context": "Text."}]}


def quac(path: Path, *articles: dict[str, Any]) -> str:
    path.write_text(json.dumps({"data": articles}))
    return str(path)


def human(folder: Path, path: str, *more: str) -> Ended:
    return command("human=true", "+corpus=quac", f"corpus.path={path}", f"run_dir={folder}", *more)


def read(folder: Path) -> list[Dialog]:
    return [Dialog.model_validate_json(line) for line in (folder / "dialogs.jsonl").read_text().splitlines()]


def test_dialogs_and_dataset_are_written_and_load(tmp_path: Path) -> None:
    folder = tmp_path / "human"
    done = human(folder, quac(tmp_path / "a.json", *ARTICLES), "corpus.no_answer=No idea.", "validation=0.25")
    assert (done.code, done.err) == (0, "")
    assert "human dialogs: 40, with 80 context-response pairs" in done.out
    assert {p.name for p in folder.iterdir()} == {"config.yaml", "dialogs.jsonl", "dataset", "summary.json"}
    assert [d.id for d in read(folder)] == [f"C_{n}_0" for n in range(40)]
    dataset = load_dataset(str(folder / "dataset"))
    assert dataset["train"].num_rows + dataset["validation"].num_rows == 80
    assert 10 <= dataset["validation"].num_rows <= 30
    documents = [{d for row in dataset[split]["document_ids"] for d in row} for split in ("train", "validation")]
    assert not documents[0] & documents[1]
    last = next(row for row in dataset["train"] if row["turn"] == 2)
    assert [m["role"] for m in last["messages"]] == ["user", "assistant"] * 2
    assert last["messages"][-1]["content"] == "No idea."
    assert (last["lm"], last["verdict"], last["answerability"]) == ("human", "none", "unanswerable")
    card = (folder / "dataset" / "README.md").read_text()
    assert "license: cc-by-sa-4.0" in card and "synthetic" not in card.lower()


def test_the_same_again_gives_the_same_bytes(tmp_path: Path) -> None:
    path = quac(tmp_path / "a.json", *ARTICLES)
    folder = tmp_path / "human"

    def written() -> dict[str, bytes]:
        assert human(folder, path).code == 0
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    assert written() == written()


def test_a_broken_dialog_is_counted_and_listed(tmp_path: Path) -> None:
    path = quac(tmp_path / "a.json", *ARTICLES, BROKEN)
    folder = tmp_path / "human"
    assert human(folder, path).code == 0
    (skipped,) = map(json.loads, (folder / "skipped.jsonl").read_text().splitlines())
    assert skipped == {"where": f"{path}: data[40].paragraphs[0]", "reason": "qas: Field required"}
    assert json.loads((folder / "summary.json").read_text()) == {"human": 40, "pairs": 80, "skipped": 1}
    assert "data[40].paragraphs[0]: qas: Field required" in human(folder, path, "corpus.strict=true").error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["human=true"], "human=true: corpus=sample has no dialogs of people; docs/corpora.md says which have"),
        (["human=true", "+corpus=quac", "corpus.path=nowhere.json"], "corpus.path=nowhere.json doesn't exist"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(*arguments)
    assert done.code == 2
    assert done.error.startswith(said)


def test_the_same_dialog_twice_is_an_error(tmp_path: Path) -> None:
    done = human(tmp_path / "human", quac(tmp_path / "a.json", ARTICLES[0], ARTICLES[0]))
    assert done.code == 2
    assert done.error == "two human dialogs have the id 'C_0_0'; give corpus.path only one file of them"


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = human(tmp_path, quac(tmp_path / "a.json", *ARTICLES))
    assert done.code == 2
    assert done.error.endswith("holds something else, or can't be written; give another run_dir=…")
    assert {p.name for p in tmp_path.iterdir()} == {"a.json", "notes.txt"}


FILES = ("config.yaml", "skipped.jsonl", "dialogs.jsonl", "dataset", "mtrag", "summary.json")


def failing(folder: Path, path: str, file: str, monkeypatch: pytest.MonkeyPatch) -> Ended:
    """The command on a disk that has no room left when `file` is to take its place."""

    def full(move: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def moved(source: Path, target: Path) -> Path:
            if Path(target) == folder / file:
                raise OSError(errno.ENOSPC, "No space left on device")
            return move(source, target)

        return moved

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full(Path.replace))
        patched.setattr(Path, "rename", full(Path.rename))
        return human(folder, path, "export=mtrag")


@pytest.mark.parametrize("file", FILES)
def test_a_disk_that_is_full_at_any_file_is_continued_by_the_same_command(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = quac(tmp_path / "a.json", *ARTICLES, BROKEN)
    assert human(tmp_path / "undisturbed" / "human", path, "export=mtrag").code == 0
    folder = tmp_path / "disturbed" / "human"
    refused = failing(folder, path, file, monkeypatch)
    assert refused.code == 2
    assert refused.error.startswith(f"{folder / file}: can't ") and "No space left on device" in refused.error
    assert human(folder, path, "export=mtrag").code == 0

    def written(site: str) -> dict[str, bytes]:
        files = [p for p in (tmp_path / site).rglob("*") if p.is_file() and p.name not in ("config.yaml", "README.md")]
        return {str(p.relative_to(tmp_path / site)): p.read_bytes() for p in files}

    assert written("disturbed") == written("undisturbed")


def test_what_a_kill_left_before_anything_was_in_its_place_is_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "human"
    folder.mkdir()
    for name in ("config.yaml", "dialogs.jsonl", "skipped.jsonl"):
        (folder / f".{name}.unfinished").write_text("half")
    assert human(folder, quac(tmp_path / "a.json", *ARTICLES)).code == 0
    assert {p.name for p in folder.iterdir()} == {"config.yaml", "dialogs.jsonl", "dataset", "summary.json"}


@pytest.mark.parametrize("file", FILES[1:])
def test_a_run_takes_over_no_half_written_folder_of_human_dialogs(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    failing(site.run_dir, quac(tmp_path / "a.json", *ARTICLES, BROKEN), file, monkeypatch)
    left = {p.name for p in site.run_dir.iterdir()}
    assert left
    with OpenAIServer() as server:
        for more in ((), ("fresh=true",)):
            done = site.run(server, "dialogs=1", *more)
            assert done.code == 2
            assert done.error == f"{site.run_dir}: is not a run folder, and holds other files; set another run_dir"
    assert {p.name for p in site.run_dir.iterdir()} == left


@pytest.mark.parametrize("left", ["run.db", "config.yaml", "all"])
def test_a_run_is_left_alone_however_much_of_it_is_there(left: str, tmp_path: Path) -> None:
    site = Site(tmp_path)
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=1").code == 0
    for entry in site.run_dir.iterdir():
        if left not in ("all", entry.name):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    before = {p.name: p.stat().st_mtime_ns for p in site.run_dir.iterdir()}
    done = human(site.run_dir, quac(tmp_path / "a.json", *ARTICLES))
    assert done.code == 2
    assert done.error.endswith("holds something else, or can't be written; give another run_dir=…")
    assert {p.name: p.stat().st_mtime_ns for p in site.run_dir.iterdir()} == before
