"""A Hugging Face Hub on 127.0.0.1, as far as `huggingface_hub` asks for it when a dataset is published or read."""

import base64
import hashlib
import json
import re
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from aiohttp import web

from tests.support.aiohttp_server import AiohttpServer

SHA = "0" * 40


def use_hub(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Set what `HF_ENDPOINT` does before huggingface_hub is imported."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)


class Hub(AiohttpServer):
    """A hub for the time of a `with` block.

    Args:
        token: the token that it requires.

    Attributes:
        datasets: for each name whether it is private, and its files.
        commits: how many each has; a new dataset's first has `.gitattributes`, and isn't counted.
        broken: paths of requests that fail, as an expression.
    """

    def __init__(self, token: str = "hf_token") -> None:
        super().__init__()
        self.token = token
        self.datasets: dict[str, dict[str, Any]] = {}
        self.commits: dict[str, int] = {}
        self.broken = ""
        self._objects: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        await self._listen(app)

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
        found = re.match(r"/(?:api/)?datasets/([^/]+/[^/.]+)(?:\.git)?(/.*)?$", path)
        if found is None or found[1] not in self.datasets:
            return 404, {"error": "Repository not found"}
        return self._dataset(found[1], found[2] or "", body)

    def _dataset(self, name: str, what: str, body: bytes) -> tuple[int, object]:
        dataset = self.datasets[name]
        if not what or what in ("/revision/main", f"/revision/{SHA}"):
            siblings = [{"rfilename": path} for path in dataset["files"]]
            return 200, {"id": name, "private": dataset["private"], "siblings": siblings, "sha": SHA}
        if found := re.match(rf"/(tree|paths-info|resolve)/(?:main|{SHA})(?:/(.*))?$", what):
            return self._read(dataset["files"], found[1], unquote(found[2] or ""), body)
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

    def _read(self, files: dict[str, bytes], how: str, path: str, body: bytes) -> tuple[int, object]:
        if how == "resolve":
            return (200, files[path]) if path in files else (404, {"error": "Entry not found"})
        entries = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in files.items()
        ]
        folders = {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)}
        entries += [{"type": "directory", "path": folder, "size": 0, "oid": SHA} for folder in sorted(folders)]
        if how == "paths-info":
            wanted = parse_qs(body.decode())["paths"]
            return 200, [entry for entry in entries if entry["path"] in wanted]
        return 200, [entry for entry in entries if not path or str(entry["path"]).startswith(f"{path}/")]

    async def _handle(self, request: web.Request) -> web.Response:
        path = request.raw_path.partition("?")[0]
        if request.headers.get("Authorization") == f"Bearer {self.token}" or path.startswith("/objects/"):
            status, answer = self.answer(request.method, path, await request.read())
        else:
            status, answer = 401, {"error": "Invalid token"}
        if not isinstance(answer, bytes):
            code = "EntryNotFound" if "/resolve/" in path else "RepoNotFound"
            return web.json_response(answer, status=status, headers={"X-Error-Code": code} if status == 404 else {})
        headers = {"ETag": f'"{hashlib.sha1(answer).hexdigest()}"', "X-Repo-Commit": SHA}
        if part := re.match(r"bytes=(\d+)-(\d*)", request.headers.get("Range", "")):
            status, answer = 206, answer[int(part[1]) : int(part[2]) + 1 if part[2] else None]
        return web.Response(status=status, body=answer, headers=headers)
