"""A small HTTP server that answers as an inference engine does, well or badly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, str] | Callable[[], tuple[int, str]] | str
"""Status and body, a function that gives them, or the name of a misbehaviour: ``slow``, ``endless``."""


@contextmanager
def serve(routes: dict[str, Answer]) -> Iterator[str]:
    """The address of a server with ``routes``; other paths answer as ``*`` does, or 404."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            answer = routes.get(self.path, routes.get("*", (404, "not found")))
            if callable(answer):
                answer = answer()
            if answer == "slow":
                time.sleep(5)
                return
            if answer == "endless":
                self.send_response(200)
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(b"x" * 65536)
                except OSError:
                    return
            assert not isinstance(answer, str)
            body = answer[1].encode()
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
