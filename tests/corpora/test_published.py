"""Downloads of the published data sets, each file once."""

import hashlib
import json
import socketserver
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.corpora import multidoc2dial, quac
from generator.corpora.coqa import CoqaCorpus
from tests.support.corpora import corpus, good, message, read, served

PARAGRAPH = {"id": "C_1_0", "context": "Text.", "qas": []}
LAYOUTS: dict[str, dict[str, object]] = {
    "quac": {"data": [{"title": "Pell", "paragraphs": [PARAGRAPH]}]},
    "coqa": {"data": [{"id": "C_1_0", "story": "Text."}]},
    "multidoc2dial": {"doc_data": {"dmv": {"C_1_0": {"doc_text": "Text."}}}},
}


def publish(name: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a file of the data set into the folder `site`, with its checksum known, and return it."""
    file = site / ("d/all.zip" if name == "multidoc2dial" else "d/train.json")
    file.parent.mkdir(parents=True)
    content = json.dumps(LAYOUTS[name])
    if name == "multidoc2dial":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("v1/doc.json", content)
            archive.writestr("v1/README.md", "About.")
    else:
        file.write_text(content)
    published = (f"d/{file.name}", f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}")
    monkeypatch.setattr(multidoc2dial, "PUBLISHED", {"multidoc2dial": published})
    for kind in (CoqaCorpus, quac.QuacCorpus):
        monkeypatch.setattr(kind, "published", {"train": published})
    return file


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_is_downloaded_once_and_kept(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, kept = publish(name, tmp_path / "site", monkeypatch), tmp_path / "kept"
    with served(tmp_path / "site") as address:
        where = corpus(name, cache_dir=str(kept), base_url=f"{address}/")
        for change in (lambda: None, lambda: (kept / file.name).write_bytes(b"damaged")):
            change()
            assert [document.text for document in good(list(where.read()))] == ["Text."]
    assert [document.text for document in good(list(where.read()))] == ["Text."], "the publisher is gone"
    assert [path.name for path in kept.iterdir()] == [file.name]
    assert where.fingerprint() == corpus(name, path=str(kept / file.name)).fingerprint()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:20])


@pytest.mark.parametrize(("fault", "reason"), [(cut, "does not match the known hash"), (Path.unlink, "404 Client")])
def test_a_download_that_fails_says_what_to_do_and_leaves_nothing(
    fault: Callable[[Path], None], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, kept = publish("quac", tmp_path / "site", monkeypatch), tmp_path / "kept"
    fault(file)
    with served(tmp_path / "site") as address:
        told = message(lambda: read("quac", cache_dir=str(kept), base_url=address))
    assert told.startswith(f"can't download {address}/d/train.json: ") and reason in told
    assert f"put it into {kept}" in told and "corpus.path" in told
    assert list(kept.iterdir()) == []


def test_a_publisher_or_a_cache_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as free:
        address = f"http://127.0.0.1:{free.server_address[1]}"
    assert "Connection refused" in message(lambda: read("quac", cache_dir=str(tmp_path), base_url=address))
    (tmp_path / "file").touch()
    told = message(lambda: read("quac", cache_dir=str(tmp_path / "file"), base_url=address))
    assert told.startswith(f"can't download {address}/{quac.PUBLISHED['train'][0]}")
