"""Ctrl-C while a pipe is read: a report of what came, whole outputs, and an end at the second one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.run_cli import CRASH, ROOT, SAMPLE

CUT = "interrupted (Ctrl-C): read as far as it had come"
HEARD_OUT = "interrupted (Ctrl-C): its writer ended as well"
KEPT = SAMPLE.read_bytes()[:9000]
LAST = b"[2026-01-01 00:00:00] Gracefully exiting... Remaining number of requests 0.\n"


def started(*args: str | Path, **more: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "analyzer", *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def waits(process: subprocess.Popen[bytes]) -> bool:
    """Whether ``process`` has taken what its pipe held and sleeps; it does so in reading only."""
    seen = 0
    for _ in range(600):
        stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        seen = seen + 1 if stat[0] == "S" and not _held(process) else 0
        if seen == 10:
            return True
        time.sleep(0.05)
    return False


def _held(process: subprocess.Popen[bytes]) -> int:
    import fcntl
    import termios

    if process.stdin is None:
        return 0
    size = fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, b"\0\0\0\0")
    return int.from_bytes(size, sys.byteorder)


def given(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Gives ``data`` to ``process``, which has read it when this returns; its pipe stays open."""
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()
    assert waits(process)


def test_what_came_is_reported_and_outputs_are_whole(tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("r.json", "r.html", "r.md")]
    process = started("explain", "-", *[f"--output={path}" for path in outputs], stdin=subprocess.PIPE)
    given(process, KEPT)
    process.send_signal(signal.SIGINT)
    said, complaint = process.stdout.read(), process.stderr.read()  # type: ignore[union-attr]  # (stdin stays open)
    assert process.wait(20) == 0
    assert complaint == b""
    assert CUT in " ".join(said.decode().split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json", "r.md"]
    report = json.loads(outputs[0].read_text())
    assert report["inputs"][0]["note"].startswith(CUT)
    assert report["inputs"][0]["bytes"] == len(KEPT)
    assert report["runs"][0]["engine"] == "sglang"


def test_the_exit_status_is_that_of_the_findings() -> None:
    process = started(stdin=subprocess.PIPE)
    given(process, CRASH.read_bytes())
    process.send_signal(signal.SIGINT)
    assert b"WHAT FAILED" in process.stdout.read()  # type: ignore[union-attr]
    assert process.wait(20) == 1


def test_nothing_came() -> None:
    process = started("explain", "-", stdin=subprocess.PIPE)
    given(process, b"")
    process.send_signal(signal.SIGINT)
    assert process.stderr.read() == b"kvautopsy: interrupted\n"  # type: ignore[union-attr]
    assert process.wait(20) == 130


def test_the_second_one_ends_at_once(tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    target.write_text("the old one")
    process = started("explain", "-", "-o", target, stdin=subprocess.PIPE)
    given(process, KEPT)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)  # it listens for half a second to a writer that ends, too
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert time.monotonic() - begun < 5
    assert process.stderr.read() == b"kvautopsy: interrupted\n"  # type: ignore[union-attr]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the old one"]


WRITER = """
import sys, time
try:
    sys.stdout.buffer.write(open(sys.argv[1], "rb").read()); sys.stdout.flush()
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.2)
    print(sys.argv[2])
"""


def test_in_a_pipeline_the_server_is_heard_out() -> None:
    """A terminal sends Ctrl-C to the whole group; what the server says as it ends belongs to its log."""
    reader = started("explain", "-", "--format", "json", stdin=subprocess.PIPE, process_group=0)
    command = [sys.executable, "-c", WRITER, str(SAMPLE), LAST.decode().strip()]
    writer = subprocess.Popen(command, stdout=reader.stdin, process_group=reader.pid)
    assert reader.stdin is not None
    reader.stdin.close()
    reader.stdin = None
    size = SAMPLE.stat().st_size
    until = time.monotonic() + 30
    while time.monotonic() < until and int(_io(reader)) < size:
        time.sleep(0.05)
    assert waits(reader)
    os.killpg(reader.pid, signal.SIGINT)
    out, error = reader.communicate(timeout=20)
    assert writer.wait(20) == 0
    assert error == b""
    report = json.loads(out)
    assert report["inputs"][0]["bytes"] == size + len(LAST)
    assert report["inputs"][0]["note"].startswith(HEARD_OUT)


def _io(process: subprocess.Popen[bytes]) -> str:
    return Path(f"/proc/{process.pid}/io").read_text().split("rchar: ")[1].split()[0]


def test_a_named_pipe_and_prove_spec(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = started("prove-spec", fifo)
    with fifo.open("wb") as log:
        log.write(SAMPLE.read_bytes())
        log.flush()
        assert waits(process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=20)
    assert b"weights exist" in said
    assert process.returncode in (0, 1)


def test_a_named_pipe_is_not_read_twice_for_a_page(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = started("explain", fifo, "-o", tmp_path / "r.html")
    with fifo.open("wb") as log:
        log.write(SAMPLE.read_bytes())
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert (tmp_path / "r.html").exists()


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A process that a shell starts in the background ignores Ctrl-C; here it must not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_file_is_no_pipe() -> None:
    """Reading a file ends at the first one, as ever."""
    from analyzer.cli.stopping import keeping_what_came
    from analyzer.sources import open_sources

    with keeping_what_came() as interrupt:
        for source in open_sources([str(SAMPLE)], interrupt=interrupt):
            next(source.chunks())
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert not interrupt.asked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
