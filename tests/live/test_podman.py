"""A socket that speaks the Docker API and is no Docker engine, as Podman's is."""

from __future__ import annotations

import json
import socketserver
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from analyzer.live.container import Container

LINES = [(1, b"2026-01-01T10:00:00.000000001Z one\n"), (2, b"2026-01-01T10:00:00.000000002Z two\n")]
STATE = {
    "Id": "f00", "Name": "llm", "Image": "x", "Config": {"Tty": False},
    "State": {"Status": "exited", "Running": False, "ExitCode": 137, "OOMKilled": True},
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path.endswith("/logs"):
            wanted = 1 if "stdout=1" in query else 2
            body = b"".join(struct.pack(">BxxxI", s, len(text)) + text for s, text in LINES if s == wanted)
        elif path.endswith("/json"):
            body = json.dumps(STATE).encode()
        elif path.endswith("/version"):
            body = json.dumps({"ApiVersion": "1.41", "Components": [{"Name": "Podman Engine"}]}).encode()
        else:
            body = b"OK"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def address_string(self) -> str:
        return "socket"

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    socket = tmp_path / "podman.sock"
    with Server(str(socket), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
        yield
        server.shutdown()


@pytest.mark.usefixtures("podman")
def test_its_containers_are_read() -> None:
    followed = Container("llm")
    parts = [(stream, text) for stream, text in followed.follow(threading.Event()) if text]
    assert parts == [("stdout", b"one\n"), ("stderr", b"two\n")]
    end = followed.end()
    assert (end.exit_code, end.oom_killed, end.status) == (137, True, "exited")
