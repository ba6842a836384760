"""follow: files that come late, rotate and shrink; pipes; findings while it runs; a quiet end."""

from __future__ import annotations

import gzip
import io
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

from analyzer.errors import UserError
from analyzer.live import tail
from analyzer.live.runner import JsonLines
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


def requests(first: int, last: int) -> bytes:
    """Access lines that can be told apart by their client's address."""
    line = '[2026-11-30 03:26:01] INFO:     10.{}.{}.{}:43646 - "POST /generate HTTP/1.1" 200 OK\n'
    return "".join(line.format(n >> 16, n >> 8 & 255, n & 255) for n in range(first, last)).encode()


def test_many_lines_through_a_pipe_lose_nothing() -> None:
    done = run("--format", "jsonl", feed=SAMPLE.read_bytes() + requests(0, 60_001))
    *rows, last = map(json.loads, done.stdout.splitlines())
    assert last["inputs"][0]["lines"] == 104 + 60_001
    events = [row for row in rows if row["type"] == "event" and row["line"] > 104]
    assert [row["line"] for row in events] == list(range(105, 105 + 60_001))
    clients = [row["fields"]["client"]["value"] for row in events]
    assert clients == [f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}:43646" for n in range(60_001)]


def test_a_backlog_is_counted_whole() -> None:
    done = run("--plain", feed=SAMPLE.read_bytes() + requests(0, 300_001))
    assert f"{104 + 300_001:,} lines: {97 + 300_001:,} recognised, 7 not".encode() in done.stdout
    assert sum(line.startswith(b"critical KV002 l. 45") for line in done.stdout.splitlines()) == 1


def test_the_whole_backlog_of_a_file_comes_in_order(path: Path, follower: Follower) -> None:
    data = requests(0, 100_000)
    path.write_bytes(data)
    assert follower.wait(len(data)) == data


def test_a_pipe_with_a_backlog_is_read_in_large_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    data = requests(0, 100_000)
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (os.fdopen(write, "wb").write(data), None))
    monkeypatch.setattr("sys.stdin", os.fdopen(read, "r"))
    chunks = tail.follow_stdin(threading.Event())
    first = next(chunks)
    assert first == b"", "nothing was written yet"
    writer.start()
    time.sleep(0.2)
    parts = [chunk for chunk in chunks if chunk]
    writer.join()
    assert b"".join(parts) == data
    assert max(map(len, parts)) > tail.CHUNK


def test_events_of_one_piece_are_written_at_once() -> None:
    class Out(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    out = Out()
    view = JsonLines(out)
    session = Session()
    view.feed("x", SAMPLE.read_bytes())
    view.flush()
    assert out.writes == 0
    view.tick(session)
    assert out.writes == 1
    assert len(out.getvalue().splitlines()) > 80
    view.close()
    assert out.writes == 1


def test_a_backlog_is_not_judged_at_every_piece() -> None:
    session = Session()
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    told = []
    for at in range(0, len(lines), 10):
        session.feed("x", b"".join(lines[at : at + 10]), behind=True)
        told.append(list(session.notices(behind=True)))
    assert len([notices for notices in told if notices]) <= 2
    said = {notice.rule for notices in told for notice in notices} | {notice.rule for notice in session.close()}
    assert {"KV002", "KV010", "SD001"} <= said


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


def test_what_has_to_be_unpacked_does_not_grow(path: Path) -> None:
    for content, what in ((gzip.compress(b"a line\n"), "gzip data"), (b"PK\x03\x04", "a zip archive")):
        path.write_bytes(content)
        with pytest.raises(UserError, match=f"is {what} .*kvautopsy explain"):
            next(tail.follow_file(path, threading.Event()))
    path.write_bytes(b"\x1f")  # the first byte of a log, whatever it is
    assert next(tail.follow_file(path, threading.Event())) == b"\x1f"


def test_a_broken_pipe_ends_quietly(path: Path) -> None:
    path.write_bytes(SAMPLE.read_bytes())
    command = f"{sys.executable} -m analyzer events {path} | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=30, env=os.environ, check=False)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""
