"""Documents from S3 and the Hugging Face Hub, with real text, from servers on 127.0.0.1."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest
from moto.server import ThreadedMotoServer

from generator.errors import ConfigError
from generator.sets import dialog_set
from tests.support.corpora import corpus, good, message, read
from tests.support.hub import Hub, use_hub
from tests.support.runs import command

# A Japanese corpus as JSON lines, and a German one as a folder of Markdown.
LANGUAGES = Path(__file__).parents[1] / "data" / "languages"
GERMAN = sorted((LANGUAGES / "de").iterdir())
JAPANESE = LANGUAGES / "ja.jsonl"


@pytest.fixture(autouse=True)
def fresh_listings() -> Iterator[None]:
    yield
    fsspec.get_filesystem_class("hf").clear_instance_cache()  # it keeps what it listed


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """Return the address of an S3 server with both corpora in the bucket `docs`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "x")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        bucket = fsspec.filesystem("s3")
        bucket.mkdir("docs")
        for file in GERMAN:
            bucket.put(str(file), f"docs/de/{file.name}")
        bucket.put(str(JAPANESE), "docs/ja.jsonl")
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Return a hub with both corpora in `me/docs`, which huggingface_hub asks."""
    with Hub() as started:
        use_hub(monkeypatch, started.url)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", started.token)
        started.add("me/docs", private=False)
        files = {f"de/{file.name}": file.read_bytes() for file in GERMAN} | {"ja.jsonl": JAPANESE.read_bytes()}
        started.datasets["me/docs"]["files"] |= files
        yield started


def texts(name: str, path: object, **settings: Any) -> dict[str, str]:
    return {document.id: document.text for document in good(read(name, path=str(path), **settings))}


HERE = partial(texts, "folder", LANGUAGES / "de"), partial(texts, "jsonl", JAPANESE)


def test_a_bucket_is_read_as_a_folder(s3: str) -> None:
    german, japanese = (read_here() for read_here in HERE)
    assert texts("folder", "s3://docs/de") == german and len(german) == 3
    assert texts("jsonl", "s3://docs/ja.jsonl") == japanese
    assert texts("huggingface", "s3://docs/ja.jsonl", id_field="id") == japanese
    same = corpus("folder", path=str(LANGUAGES / "de")), corpus("folder", path="s3://docs/de")
    assert same[0].fingerprint() == same[1].fingerprint()


def test_a_data_set_on_the_hub_is_read_as_a_folder(hub: Hub) -> None:
    german, japanese = (read_here() for read_here in HERE)
    assert texts("folder", "hf://datasets/me/docs/de") == german
    assert texts("jsonl", "hf://datasets/me/docs") == texts("jsonl", "hf://datasets/me/docs/ja.jsonl") == japanese


def test_a_folder_on_the_hub_that_holds_no_dialogs_is_one_line(hub: Hub) -> None:
    with pytest.raises(ConfigError, match=r"^hf://datasets/me/docs: not a run folder"):
        dialog_set("hf://datasets/me/docs")


def test_a_snapshot_of_the_hub_is_read_through_its_links(hub: Hub, tmp_path: Path) -> None:
    from huggingface_hub import snapshot_download

    snapshot = Path(snapshot_download("me/docs", repo_type="dataset", cache_dir=tmp_path))
    assert (snapshot / "ja.jsonl").is_symlink()
    german, japanese = (read_here() for read_here in HERE)
    assert texts("folder", snapshot / "de") == german
    assert texts("jsonl", snapshot) == texts("jsonl", snapshot / "ja.jsonl") == japanese


def test_what_is_not_there_is_one_line(s3: str, hub: Hub) -> None:
    for path in ("s3://docs/none", "s3://nowhere/docs", "hf://datasets/me/none", "hf://datasets/me/docs/none"):
        assert message(lambda path=path: read("folder", path=path)).startswith(f"corpus.path={path}: doesn't exist")


def test_a_missing_package_is_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(vars(sys.modules["fsspec.registry"])["_registry"], "s3", raising=False)  # if it was used before
    refused = command("corpus=folder", "corpus.path=s3://docs/de", f"run_dir={tmp_path / 'run'}")
    assert refused.code == 2
    assert refused.error.startswith("corpus.path=s3://docs/de: ") and "s3fs" in refused.error
    assert not os.path.lexists(tmp_path / "run")
