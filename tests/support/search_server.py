"""An HTTP server in the place of a user's own search."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]
# Status, body and headers.
Reply = tuple[int, object, dict[str, str]]


class SearchServer:
    """Listens on 127.0.0.1 in a thread of its own while the block lasts.

    Args:
        search: returns the passages for a request's body.

    Attributes:
        faults: replies that come first, one a request; None: the connection is closed.
        requests: the bodies in order of arrival, and `headers` theirs.
    """

    def __init__(self, search: Callable[[Json], list[Json]]) -> None:
        self.search = search
        self.faults: list[Reply | None] = []
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                outer.headers.append(dict(self.headers))
                fault = outer.faults.pop(0) if outer.faults else (200, {"passages": outer.search(body)}, {})
                if fault is None:
                    self.close_connection = True
                    return
                status, content, headers = fault
                data = (content if isinstance(content, str) else json.dumps(content)).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/search"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
