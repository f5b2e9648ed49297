"""A server for `retriever=http`: `python docs/search_server.py passages.jsonl`; put your own search into `search`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# A line each: {"id": …, "text": …}, and if you have them document_id, title and url.
PASSAGES = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]


def search(query: str, k: int, document_id: str | None) -> list[dict[str, Any]]:
    words = set(query.lower().split())
    scored = [p | {"score": len(words & set(p["text"].lower().split()))} for p in PASSAGES]
    scored = [p for p in scored if p["score"] and document_id in (None, p.get("document_id"))]
    return sorted(scored, key=lambda p: -p["score"])[:k]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = search(asked["query"], asked["k"], asked["filter"]["document_id"])
        body = json.dumps({"passages": found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8090), Handler).serve_forever()
