"""The human dialogs of a data set as a dataset of their own."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset
from filelock import FileLock

from generator.human import COMMAND
from tests.output.html.test_page import unpack
from tests.support.openai_server import OpenAIServer
from tests.support.records import load_dialogs
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
    arguments = ("corpus=quac", f"corpus.path={path}", f"run_dir={folder}", *more)
    return command(*arguments, program=COMMAND)


def test_dialogs_and_dataset_load_and_are_the_same_bytes_again(tmp_path: Path) -> None:
    folder, path = tmp_path / "human", quac(tmp_path / "a.json", *ARTICLES)
    changes = ("corpus.no_answer=No idea.", "validation=0.25")
    done = human(folder, path, *changes)
    assert (done.code, done.err) == (0, "")
    assert "human dialogs: 40, with 80 context-response pairs" in done.out
    assert {p.name for p in folder.iterdir()} == {
        ".lock",
        "config.yaml",
        "dialogs.jsonl",
        "drops.jsonl",
        "dataset",
        "summary.json",
        "report.html",
    }
    dialogs = load_dialogs(folder / "dialogs.jsonl")
    assert [dialog.id for dialog in dialogs] == [f"C_{n}_0" for n in range(40)]
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
    before = {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert human(folder, path, *changes).code == 0
    assert {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


def test_pairs_that_a_filter_leaves_out_are_listed_and_the_report_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "human"
    assert human(folder, quac(tmp_path / "a.json", *ARTICLES), "judge.filter=turn<2").code == 0
    drops = [json.loads(line) for line in (folder / "drops.jsonl").read_text().splitlines()]
    assert [(d["dialog_id"], d["turn"], d["stage"]) for d in drops] == [(f"C_{n}_0", 2, "filter") for n in range(40)]
    entries = unpack((folder / "report.html").read_text(encoding="utf-8"))["entries"]
    assert {(t["turn"], t["kept"]) for entry in entries for t in entry["turns"]} == {(1, True), (2, False)}


def test_a_filter_that_keeps_no_pair_leaves_no_dataset_and_the_rest_says_so(tmp_path: Path) -> None:
    folder, path = tmp_path / "human", quac(tmp_path / "a.json", *ARTICLES)
    assert human(folder, path).code == 0
    done = human(folder, path, "judge.filter=turn>2")
    assert done.code == 0 and "with 0 context-response pairs" in done.out and "judge.filter=turn>2: " in done.err
    assert not (folder / "dataset").exists()
    assert json.loads((folder / "summary.json").read_text()) == {"human": 40, "pairs": 0, "skipped": 0}
    entries = unpack((folder / "report.html").read_text(encoding="utf-8"))["entries"]
    assert not any(turn["kept"] for entry in entries for turn in entry["turns"])


def test_one_command_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    folder, path = tmp_path / "human", quac(tmp_path / "a.json", *ARTICLES)
    folder.mkdir()
    with FileLock(folder / ".lock"):
        done = human(folder, path)
        assert (done.code, [p.name for p in folder.iterdir()]) == (2, [".lock"])
        assert done.error.startswith(f"{folder}: another command is writing here; ")
    assert human(folder, path).code == 0


def test_a_broken_dialog_is_counted_and_listed(tmp_path: Path) -> None:
    path = quac(tmp_path / "a.json", *ARTICLES, BROKEN)
    folder = tmp_path / "human"
    done = human(folder, path)
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "1 of 41 records can't be read, the first: " in done.err and "qas: Field required" in done.err
    (skipped,) = map(json.loads, (folder / "skipped.jsonl").read_text().splitlines())
    assert skipped == {"where": f"{path}: data[40].paragraphs[0]", "reason": "qas: Field required"}
    assert json.loads((folder / "summary.json").read_text()) == {"human": 40, "pairs": 80, "skipped": 1}
    assert "data[40].paragraphs[0]: qas: Field required" in human(folder, path, "corpus.strict=true").error


def test_settings_that_human_dialogs_do_not_depend_on_are_named(tmp_path: Path) -> None:
    done = human(tmp_path / "human", quac(tmp_path / "a.json", *ARTICLES), "dialogs=3", "user.types={novice: 1}")
    assert done.code == 0 and "human dialogs: 40" in done.out
    assert done.err.startswith("dialogs, user: ") and done.err.count("\n") == 1


def test_a_sweep_has_a_folder_for_each(here: Path) -> None:
    path = quac(here / "a.json", *ARTICLES)
    assert command("-m", "corpus=quac", f"corpus.path={path}", "validation=0,0.5", program=COMMAND).code == 0
    sizes = {folder.name: len(list(folder.glob("dataset/data/*.parquet"))) for folder in Path("outputs").glob("[!.]*")}
    assert sizes == {"quac-human-validation-0": 1, "quac-human-validation-0.5": 2}


def test_a_corpus_without_human_dialogs_is_an_error(tmp_path: Path) -> None:
    done = command(f"run_dir={tmp_path / 'human'}", program=COMMAND)
    assert done.code == 2
    assert "corpus=sample" in done.error
    assert not list(tmp_path.iterdir())


def test_the_same_dialog_twice_is_an_error(tmp_path: Path) -> None:
    done = human(tmp_path / "human", quac(tmp_path / "a.json", ARTICLES[0], ARTICLES[0]))
    assert done.code == 2
    assert "'C_0_0'" in done.error and "corpus.path" in done.error


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = human(tmp_path, quac(tmp_path / "a.json", *ARTICLES))
    assert done.code == 2
    assert done.error.startswith("run_dir=")
    assert {p.name for p in tmp_path.iterdir()} == {"a.json", "notes.txt"}


@pytest.mark.parametrize("file", ["summary.json", "dialogs.jsonl", "dataset", "mtrag"])
def test_after_a_full_disk_the_same_command_completes_the_folder_and_no_run_takes_it(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    path = quac(tmp_path / "a.json", *ARTICLES, BROKEN)
    assert human(tmp_path / "undisturbed" / "human", path, "export=mtrag").code == 0
    folder = tmp_path / "disturbed" / "human"

    def full(move: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def moved(source: Path, target: Path) -> Path:
            if Path(target) == folder / file:
                raise OSError(errno.ENOSPC, "No space left on device")
            return move(source, target)

        return moved

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full(Path.replace))
        patched.setattr(Path, "rename", full(Path.rename))
        refused = human(folder, path, "export=mtrag")
    assert refused.code == 2
    assert str(folder / file) in refused.error and "No space left on device" in refused.error

    if left := {p.name for p in folder.iterdir()} - {".lock"}:
        run = [*openai_server.settings(), f"run_dir={folder}"]
        assert command(*run, "dialogs=1", "fresh=true").code == 2
        assert {p.name for p in folder.iterdir()} - {".lock"} == left

    assert human(folder, path, "export=mtrag").code == 0

    def written(site: str) -> dict[str, bytes]:
        files = [
            p
            for p in (tmp_path / site).rglob("*")
            if p.is_file() and p.name not in ("config.yaml", "README.md", "report.html")
        ]
        return {str(p.relative_to(tmp_path / site)): p.read_bytes() for p in files}

    assert written("disturbed") == written("undisturbed")


@pytest.mark.parametrize("left", ["run.db", "all"])
def test_a_run_folder_is_left_alone_even_if_files_are_missing(
    left: str, tmp_path: Path, site: Site, openai_server: OpenAIServer
) -> None:
    assert site.run(openai_server, "dialogs=1").code == 0
    for entry in site.run_dir.iterdir():
        if left not in ("all", entry.name):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    before = {p.name: p.stat().st_mtime_ns for p in site.run_dir.iterdir()}
    done = human(site.run_dir, quac(tmp_path / "a.json", *ARTICLES))
    assert done.code == 2
    assert done.error.startswith("run_dir=")
    assert {p.name: p.stat().st_mtime_ns for p in site.run_dir.iterdir()} == before
