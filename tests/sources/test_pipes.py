"""Pipes: what there is, no waiting for more, and an end on demand."""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.sources import pipes
from analyzer.sources.pipes import Interrupt, as_it_comes


@pytest.fixture
def ends() -> Iterator[tuple[io.FileIO, io.FileIO]]:
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as r, open(writer, "wb", buffering=0) as w:  # noqa: PTH123
        yield r, w


def test_little_is_not_waited_for(ends: tuple[io.FileIO, io.FileIO]) -> None:
    reader, writer = ends
    interrupt = Interrupt()
    pipe = as_it_comes(reader, interrupt)
    assert interrupt.heard
    writer.write(b"one\n")
    assert pipe.read(1 << 20) == b"one\n"
    writer.write(b"two")
    assert pipe.read(2) == b"tw"
    writer.close()
    assert pipe.read(9) == b"o"
    assert pipe.read(9) == b""
    assert not interrupt.heard
    assert not interrupt.cut


def test_nothing_is_lost_or_added(ends: tuple[io.FileIO, io.FileIO]) -> None:
    reader, writer = ends
    data = os.urandom(5_000_000)

    def write() -> None:
        view = memoryview(data)
        while view:
            view = view[writer.write(view[:70_000]) :]
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    pipe = as_it_comes(reader, None)
    assert b"".join(iter(lambda: pipe.read(1 << 18), b"")) == data
    thread.join()


def test_what_is_there_counts_when_reading_is_to_end(
    ends: tuple[io.FileIO, io.FileIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "QUIET", 0.05)
    reader, writer = ends
    interrupt = Interrupt()
    pipe = as_it_comes(reader, interrupt)
    writer.write(b"held by the pipe")
    interrupt.asked = True
    assert pipe.read(100) == b"held by the pipe"
    assert pipe.read(100) == b""
    writer.write(b"too late")
    assert pipe.read(100) == b""
    assert interrupt.cut


def test_a_writer_that_goes_on_is_left(ends: tuple[io.FileIO, io.FileIO], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "MOST", 0.3)
    reader, writer = ends
    interrupt = Interrupt(asked=True)
    pipe = as_it_comes(reader, interrupt)
    done = threading.Event()

    def flood() -> None:
        try:
            while not done.is_set():
                writer.write(b"y\n" * 100)
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=flood)
    thread.start()
    begun = time.monotonic()
    while pipe.read(1000):
        pass
    assert 0.2 < time.monotonic() - begun < 5
    assert interrupt.cut
    done.set()
    reader.close()
    thread.join()


def test_files_stay_as_they_are(tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes(b"abc")
    interrupt = Interrupt()
    with place.open("rb", buffering=0) as file:
        assert as_it_comes(file, interrupt) is file
    held = io.BytesIO(b"abc")
    assert as_it_comes(held, interrupt) is held
    assert not interrupt.heard
