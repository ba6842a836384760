"""A report file is whole or absent: full disk, size limit, unwritable place, kill while writing."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.whole import write_whole
from tests.security.run_cli import ROOT, SAMPLE, quiet, run

EXTENSIONS = (".html", ".json", ".md", ".sarif", ".junit.xml", ".txt")


def _small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_disk_full_leaves_the_old_report_and_no_scrap(tmp_path: Path, extension: str) -> None:
    target = tmp_path / f"report{extension}"
    target.write_text("the old one")
    done = run("explain", SAMPLE, "-o", target, before=_small_files)
    assert done.returncode not in (0, 1), done.stderr
    assert "cannot be written" in quiet(done)
    assert target.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_standard_output_full() -> None:
    for args in (["explain", str(SAMPLE)], ["explain", str(SAMPLE), "-f", "json"], ["events", str(SAMPLE)]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "analyzer", *args], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=60
            )
        assert done.returncode not in (0, 1), args
        assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr, (args, done.stderr)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for target in (tmp_path / "absent" / "x.html", tmp_path / "f.html" / "x.html"):
        (tmp_path / "f.html").touch()
        done = run("explain", SAMPLE, "-o", target)
        assert done.returncode == 2
        assert "cannot be written" in quiet(done)


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """A kill that cannot be caught leaves no target or a whole one."""
    target = tmp_path / "report.json"
    for delay in (0.15, 0.3, 0.4, 0.5, 0.6, 0.8):
        child = subprocess.Popen(
            [sys.executable, "-m", "analyzer", "explain", str(SAMPLE), "-o", str(target)],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(delay)
        child.kill()
        child.wait()
        if target.exists():
            assert json.loads(target.read_text())["schema"] == "kvautopsy.report/1"
            target.unlink()


def test_interrupt_between_write_and_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.html"
    target.write_text("the old one")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises((KeyboardInterrupt, UserError)):
        write_whole(target, b"new")
    assert target.read_text() == "the old one"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("command", "number"), [("explain", signal.SIGTERM), ("events", signal.SIGTERM), ("events", signal.SIGINT)]
)
def test_a_signal_while_reading(tmp_path: Path, command: str, number: signal.Signals) -> None:
    """A sentence and a shell's exit status; the old report stays and nothing lies beside it.

    The first SIGINT of ``explain`` gives a report: tests/cli/test_interrupted.py.
    """
    fifo, target = tmp_path / "fifo", tmp_path / "report.html"
    os.mkfifo(fifo)
    target.write_text("the old one")
    args = [command, str(fifo), *(["-o", str(target)] if command == "explain" else [])]
    child = subprocess.Popen(
        [sys.executable, "-m", "analyzer", *args], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    with fifo.open("wb") as log:  # it has opened its input, and the end of that never comes
        log.write(SAMPLE.read_bytes())
        log.flush()
        time.sleep(0.3)
        child.send_signal(number)
        _, said = child.communicate(timeout=20)
    assert child.returncode == 128 + number
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert said.decode() == f"kvautopsy: {word}\n"
    assert target.read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "report.html"]
