"""A server for `retriever=mcp`, by the official SDK: `python docs/mcp_server.py passages.jsonl [PORT]`, over stdio
or, with a port, over HTTP; put your own search into `search`."""

import json
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

# A line each: {"id": …, "text": …}, and if you have them document_id, title and url.
PASSAGES = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
server = MCPServer("passages", log_level="WARNING")


@server.tool()
def search(query: str, k: int) -> dict[str, Any]:
    """Return the k passages that share most words with the query, best first."""
    words = set(query.lower().split())
    scored = [p | {"score": len(words & set(p["text"].lower().split()))} for p in PASSAGES]
    return {"passages": sorted((p for p in scored if p["score"]), key=lambda p: -p["score"])[:k]}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
