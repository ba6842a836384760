"""follow: files that come late, rotate and shrink; pipes; findings while it runs; a quiet end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.live import tail
from analyzer.live.session import Session
from analyzer.resources import data_dir

SAMPLE = data_dir("samples") / "sglang" / "wrapper_nextn.log"


class Follower:
    """Follows a file in a thread and gathers what it reads."""

    def __init__(self, path: Path) -> None:
        self.stop = threading.Event()
        self.read = b""
        self._thread = threading.Thread(target=self._run, args=(path,), daemon=True)
        self._thread.start()

    def _run(self, path: Path) -> None:
        for chunk in tail.follow_file(path, self.stop):
            self.read += chunk

    def wait(self, size: int) -> bytes:
        end = time.monotonic() + 10
        while len(self.read) < size and time.monotonic() < end:
            time.sleep(0.01)
        return self.read

    def end(self) -> None:
        self.stop.set()
        self._thread.join(5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def follower(path: Path) -> Iterator[Follower]:
    follower = Follower(path)
    yield follower
    follower.end()


def test_a_file_that_comes_late(path: Path, follower: Follower) -> None:
    time.sleep(0.1)
    path.write_bytes(b"one\n")
    assert follower.wait(4) == b"one\n"


def test_rotation_loses_nothing(path: Path, follower: Follower) -> None:
    path.write_bytes(b"one\n")
    follower.wait(4)
    with path.open("ab") as old:
        path.rename(path.with_suffix(".1"))
        old.write(b"two\n")
    path.write_bytes(b"three\n")
    assert follower.wait(14) == b"one\ntwo\nthree\n"


def test_truncation_starts_over(path: Path, follower: Follower) -> None:
    path.write_bytes(b"a long first line\n")
    follower.wait(18)
    path.write_bytes(b"new\n")
    assert follower.wait(22) == b"a long first line\nnew\n"


def test_a_finding_is_said_when_its_line_comes() -> None:
    session = Session()
    said: dict[str, int] = {}
    slowest = 0.0
    for number, line in enumerate(SAMPLE.read_bytes().split(b"\n"), 1):  # bars hold carriage returns
        session.feed("x", line + b"\n")
        session.silent()
        session._judged = 0.0
        for notice in session.notices():
            said.setdefault(notice.rule or notice.text, number)
            slowest = max(slowest, notice.delay)
    assert said["KV002"] == 45, "the line that shows the store"
    assert said["KV010"] == 56, "the line before which free memory has risen"
    assert said["outcome: serving"] == 76
    assert slowest < 1.0


def run(*arguments: str, feed: bytes, **more: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "analyzer", "follow", *arguments],
        input=feed,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_a_pipe_without_screen_codes() -> None:
    done = run("--plain", feed=SAMPLE.read_bytes())
    assert done.returncode == 1
    assert b"KV002" in done.stdout
    assert b"WHERE 139.13 GiB WENT" in done.stdout
    assert b"\x1b" not in done.stdout


def test_events_and_findings_as_json_lines() -> None:
    rows = [json.loads(line) for line in run("--format", "jsonl", feed=SAMPLE.read_bytes()).stdout.splitlines()]
    assert sum(row.get("type") == "event" for row in rows) > 80
    assert any(row.get("rule") == "KV002" for row in rows if row.get("type") == "finding")
    assert rows[-1]["schema"] == "kvautopsy.report/1"


def test_many_lines_through_a_pipe_lose_nothing() -> None:
    line = b'[2026-11-30 03:26:01] INFO:     127.0.0.1:43646 - "POST /generate HTTP/1.1" 200 OK\n'
    done = run("--format", "jsonl", feed=SAMPLE.read_bytes() + line * 5000)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["inputs"][0]["lines"] == 104 + 5000
    assert done.stdout.count(b'"kind": "http_access"') == 5000 + 14


def test_interrupt_prints_the_report(path: Path) -> None:
    path.write_bytes(SAMPLE.read_bytes())
    process = subprocess.Popen(
        [sys.executable, "-m", "analyzer", "follow", "--plain", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    for said in process.stdout:
        if b"KV002" in said:
            break
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=20)
    assert b"WHERE 139.13 GiB WENT" in out
    assert b"Traceback" not in error
    assert process.returncode == 1


def test_a_broken_pipe_ends_quietly(path: Path) -> None:
    path.write_bytes(SAMPLE.read_bytes())
    command = f"{sys.executable} -m analyzer events {path} | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=30, env=os.environ, check=False)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""
