"""A long silence is explained on a terminal, and only there."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from analyzer.cli.streams import patience


class Screen(io.StringIO):
    """Standard error on a terminal."""

    def isatty(self) -> bool:
        return True


def told(monkeypatch: pytest.MonkeyPatch, path: Path, stream: io.StringIO, *, seconds: float) -> str:
    """What is said of reading ``path`` for so long, with a patience of 0.05 s."""
    monkeypatch.setattr("sys.stderr", stream)
    with patience([str(path)], 0.05):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not stream.getvalue():
            time.sleep(0.005)
    return stream.getvalue()


def test_who_waits_for_a_pipe_learns_of_follow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = told(monkeypatch, tmp_path / "pipe", Screen(), seconds=10)
    assert said.startswith("kvautopsy: still reading after 0.05 s") and "kvautopsy follow" in said


def test_a_long_file_is_said_to_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x.log").touch()
    assert told(monkeypatch, tmp_path / "x.log", Screen(), seconds=10) == "kvautopsy: still reading after 0.05 s\n"


def test_nothing_is_said_in_time_or_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = Screen()
    assert told(monkeypatch, tmp_path, screen, seconds=0) == ""
    time.sleep(0.2)
    assert screen.getvalue() == ""
    assert told(monkeypatch, tmp_path, io.StringIO(), seconds=0.2) == ""
