"""A Hugging Face Hub on 127.0.0.1, as far as `huggingface_hub` asks for it when a dataset is published."""

import base64
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Hub:
    """A hub for the time of a `with` block.

    Args:
        token: the token that it requires.

    Attributes:
        datasets: for each name whether it is private, and its files.
        commits: how many each has; a new dataset's first has `.gitattributes`, and isn't counted.
        broken: paths of requests that fail, as an expression.
    """

    def __init__(self, token: str = "hf_token") -> None:
        self.token = token
        self.datasets: dict[str, dict[str, Any]] = {}
        self.commits: dict[str, int] = {}
        self.broken = ""
        self._objects: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, name: str, private: bool) -> None:
        self.datasets[name] = {"private": private, "files": {".gitattributes": b""}}

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        """Return status and JSON of the answer to a request."""
        if self.broken and re.search(self.broken, path):
            return 403, {"error": "Forbidden"}
        if path.startswith("/objects/") and method == "PUT":
            self._objects[path.rpartition("/")[2]] = body
            return 200, {}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            if name in self.datasets:
                return 409, {"error": "You already created this dataset repo"}
            self.add(name, asked.get("visibility") == "private" or asked.get("private", False))
            return 200, {"url": f"{self.url}/datasets/{name}", "name": name}
        if (found := re.match(r"/(?:api/)?datasets/([^/]+/[^/.]+)(?:\.git)?(/.*)?$", path)) is None:
            return 404, {"error": "Not Found"}
        return self._dataset(found[1], found[2] or "", body)

    def _dataset(self, name: str, what: str, body: bytes) -> tuple[int, object]:
        dataset = self.datasets[name]
        if not what:
            files = [{"rfilename": path} for path in dataset["files"]]
            return 200, {"id": name, "private": dataset["private"], "siblings": files, "sha": "0" * 40}
        if what == "/preupload/main":
            files = [
                {"path": path, "uploadMode": "lfs" if path.endswith(".parquet") else "regular", "shouldIgnore": False}
                for path in (each["path"] for each in json.loads(body)["files"])
            ]
            return 200, {"files": files}
        if what == "/info/lfs/objects/batch":
            objects = [
                {**each, "actions": {"upload": {"href": f"{self.url}/objects/{each['oid']}"}}}
                for each in json.loads(body)["objects"]
            ]
            return 200, {"transfer": "basic", "objects": objects}
        assert what == "/commit/main"
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            match line["key"]:
                case "file":
                    dataset["files"][value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    dataset["files"][value["path"]] = self._objects[value["oid"]]
                case "deletedFile":
                    del dataset["files"][value["path"]]
        self.commits[name] = self.commits.get(name, 0) + 1
        return 200, {"commitUrl": f"{self.url}/datasets/{name}/commit/1", "commitOid": "1" * 40}

    def _handler(hub) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                may = self.headers.get("Authorization") == f"Bearer {hub.token}" or path.startswith("/objects/")
                status, answer = hub.answer(self.command, path, body) if may else (401, {"error": "Invalid token"})
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST

            def log_message(self, *_: object) -> None:
                pass

        return Handler
