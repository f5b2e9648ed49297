"""Models on the Hugging Face Hub: fetched once, continued, and what is said where there is no network."""

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from pydantic import ValidationError

from generator.errors import ModelError
from generator.models.gguf import find_model
from tests.models.test_embedded import endpoint
from tests.support.hub import use_hub

CONTENT = bytes(range(256)) * 4096
PATH = "hf://someone/small-GGUF/deep/small.Q4.gguf"


class Hub(ThreadingHTTPServer):
    """What huggingface_hub asks of the Hub for one file; the first download breaks off in its middle."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.ranges: list[str | None] = []
        self.breaks = 1


class Asked(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._head(200 if "small.Q4" in self.path else 404, len(CONTENT))

    def do_GET(self) -> None:
        if "small.Q4" not in self.path:  # such as a list that huggingface_hub fetches once a day
            self._head(404, 0)
            return
        wanted = self.headers["Range"]
        self.server.ranges.append(wanted)
        start = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted else 0
        self._head(206 if wanted else 200, len(CONTENT) - start)
        whole = CONTENT[start:]
        self.wfile.write(whole[: len(whole) // 2] if self.server.breaks else whole)
        self.server.breaks = max(0, self.server.breaks - 1)

    def _head(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("ETag", f'"{hashlib.sha256(CONTENT).hexdigest()}"')
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)
    with Hub() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        use_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()


def test_a_model_is_fetched_once_whatever_breaks(hub: Hub) -> None:
    file = find_model(PATH)
    assert file.read_bytes() == CONTENT
    ranges = [None, f"bytes={len(CONTENT) // 2}-"]
    assert hub.ranges == ranges
    assert find_model(PATH) == file
    assert hub.ranges == ranges
    assert endpoint(model=None, path=PATH).model == "small.Q4"


def test_offline_one_line_says_what_to_do(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(ModelError) as caught:
        find_model(PATH)
    assert "set lm.path to the file" in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_the_hub_does_not_have(hub: Hub) -> None:
    with pytest.raises(ModelError, match=r"^judge\.lm\.path=hf://someone/other/none\.gguf: can't be fetched"):
        find_model("hf://someone/other/none.gguf", "judge.lm.path")
    with pytest.raises(ValidationError, match="OWNER/NAME/FILE"):
        endpoint(path="hf://someone/model")
