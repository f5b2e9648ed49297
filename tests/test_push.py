"""A run on the Hugging Face Hub: all of it in one commit, or nothing."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import huggingface_hub.constants as hf
import pytest

from generator.push import COMMAND
from tests.support.hub import Hub
from tests.support.openai_server import OpenAIServer
from tests.support.runs import Site, command

push = partial(command, program=COMMAND)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Return a hub that `huggingface_hub` talks to, as HF_ENDPOINT and HF_HUB_DISABLE_XET at its import would say."""
    with Hub() as started:
        monkeypatch.setattr(hf, "ENDPOINT", started.url)
        monkeypatch.setattr(hf, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(hf, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setenv("HF_TOKEN", started.token)
        yield started


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = Site(tmp_path_factory.mktemp("site"))
    with OpenAIServer() as server:
        assert site.run(server, "dialogs=1", "algorithm=single").code == 0
    return site.run_dir


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """Return a run folder to change."""
    return shutil.copytree(finished, tmp_path / "run")


def test_a_run_is_published_in_one_commit_and_private(hub: Hub, run: Path) -> None:
    (run / "report.html").write_text("<!doctype html>", encoding="utf-8")
    done = push(str(run), "me/dialogs")
    assert done.code == 0, done.err
    assert f"{hub.url}/datasets/me/dialogs (private)" in done.out
    dataset = hub.datasets["me/dialogs"]
    assert dataset["private"] and hub.commits == {"me/dialogs": 1}
    local = {path.relative_to(run / "dataset").as_posix(): path for path in (run / "dataset").rglob("*.*")}
    published = {name: path.read_bytes() for name, path in local.items() if path.is_file()}
    published["report.html"] = b"<!doctype html>"
    assert dataset["files"] == {".gitattributes": b"", **published}
    assert any(name.endswith(".parquet") for name in published)


def test_a_second_push_replaces_the_first(hub: Hub, run: Path) -> None:
    assert push(str(run), "me/dialogs", "private=false").code == 0
    assert not hub.datasets["me/dialogs"]["private"]
    (file,) = (run / "dataset").rglob("*.parquet")
    file.rename(file.with_name("train-of-a-longer-run.parquet"))
    (run / "report.html").unlink()
    refused = push(str(run), "me/dialogs")
    assert refused.code == 2 and "is public" in refused.error and hub.commits["me/dialogs"] == 1
    assert push(str(run), "me/dialogs", "private=false").code == 0
    files = hub.datasets["me/dialogs"]["files"]
    assert sorted(files) == [".gitattributes", "README.md", "data/train-of-a-longer-run.parquet"]


@pytest.mark.parametrize("broken", ["^/objects/", "/commit/"])
def test_an_interrupted_push_publishes_nothing_and_the_next_one_all(broken: str, hub: Hub, run: Path) -> None:
    hub.broken = broken
    done = push(str(run), "me/dialogs")
    assert done.code == 2 and "wasn't published" in done.error
    assert list(hub.datasets["me/dialogs"]["files"]) == [".gitattributes"] and not hub.commits
    hub.broken = ""
    assert push(str(run), "me/dialogs").code == 0
    assert "README.md" in hub.datasets["me/dialogs"]["files"]


def test_a_name_that_the_hub_does_not_allow_is_to_be_changed(hub: Hub, run: Path) -> None:
    done = push(str(run), "me/bad name")
    assert done.code == 2 and "OWNER/NAME" in done.error and "again" not in done.error
    assert not hub.datasets


def test_without_a_token_or_with_a_wrong_one_nothing_is_published(
    hub: Hub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    assert push(str(run), "me/dialogs").code == 2
    monkeypatch.delenv("HF_TOKEN")
    done = push(str(run), "me/dialogs")
    assert done.code == 2 and "HF_TOKEN" in done.error and done.err.count("\n") == 1
    assert not hub.datasets


def test_what_is_no_run_with_a_dataset_is_refused(hub: Hub, tmp_path: Path) -> None:
    assert "is no folder; give the folder of a run" in push(str(tmp_path / "absent"), "me/dialogs").error
    assert "has no dataset: it isn't a run folder" in push(str(tmp_path), "me/dialogs").error
    (tmp_path / "run.db").touch()
    assert "accepted no dialog yet" in push(str(tmp_path), "me/dialogs").error
    (tmp_path / "dialogs.jsonl").touch()  # and no drops, as `python -m judges` leaves it
    assert "the run that they came from" in push(str(tmp_path), "me/dialogs").error
    (tmp_path / "drops.jsonl").touch()
    assert "accepted no dialog yet" in push(str(tmp_path), "me/dialogs").error
    for target in ([str(tmp_path)], [str(tmp_path), "dialogs"]):
        assert "OWNER/NAME" in push(*target).error
    assert push().code == 2
    assert not hub.datasets
