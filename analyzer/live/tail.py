"""Bytes of a file or pipe as they come: late creation, rotation and truncation survived, nothing lost or doubled."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from analyzer.errors import UserError
from analyzer.sources.streams import compression, is_zip

CHUNK = 1 << 18
"""Bytes of one read; so many at once are a backlog, which is then read in pieces of up to ``MOST``."""
MOST = 4 << 20
PIPES = (4 << 20, 1 << 20)
"""Bytes that a pipe is asked to hold, so that its writer goes on while what it wrote is being read; the system may
allow the smaller one only."""
REFILL = 0.005
"""Seconds that the writer of a full pipe gets to write more before what there is is taken as it is."""
POLL = 0.02
"""Seconds between two looks at a file that has nothing new: well under the 100 ms a finding may take."""


def follow_file(path: Path, stop: threading.Event, *, once: bool = False) -> Iterator[bytes]:
    """The bytes of ``path`` from its start, for ever; ``b""`` whenever there is nothing new.

    A file that does not exist yet is waited for. When another file takes its name (rotation), the old one is read to
    its end first. When it shrinks (truncation), it is read again from its start. ``once``: end at the first end.
    """
    file: BinaryIO | None = None
    size = CHUNK
    try:
        while not stop.is_set():
            if file is None:
                file = _open(path, once)
                if file is None:
                    yield b""
                    stop.wait(POLL)
                    continue
            if chunk := file.read(size):
                size = MOST if len(chunk) == size else CHUNK
                yield chunk
                continue
            if once:
                return
            file = _next(path, file)
            yield b""
            stop.wait(POLL)
    finally:
        if file is not None:
            file.close()


def _open(path: Path, must_exist: bool) -> BinaryIO | None:
    try:
        if path.is_dir():
            raise UserError(f"{path} is a folder: name the log file in it")
        file = path.open("rb", buffering=0)
        if stat.S_ISREG(path.stat().st_mode) and (kind := _packed(file)):
            file.close()
            raise UserError(f"{path} is {kind} and does not grow line by line: kvautopsy explain {path}", status=3)
        return file
    except FileNotFoundError:
        if must_exist:
            raise UserError(f"{path}: no such file", status=3) from None
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}", status=3) from None


def _packed(file: BinaryIO) -> str:
    """What a file is that holds lines only after unpacking; nothing for a log. It is read from its start after this."""
    head = file.read(8)
    file.seek(0)
    if is_zip(head):
        return "a zip archive"
    kind = compression(head)
    return f"{kind} data" if kind else ""


def _next(path: Path, file: BinaryIO) -> BinaryIO | None:
    """The file to read on from: the same one, its start after a truncation, or its successor after a rotation."""
    here = os.fstat(file.fileno())
    if here.st_size < file.tell():
        file.seek(0)
        return file
    try:
        there = path.stat()
    except OSError:
        return file  # moved away and not yet replaced: more may still be written to the old one
    if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
        return file
    if os.fstat(file.fileno()).st_size > file.tell():
        return file  # the rest of the old file comes first
    file.close()
    return None


def follow_stdin(stop: threading.Event) -> Iterator[bytes]:
    """The bytes of standard input until it ends; ``b""`` whenever there is nothing new for a while."""
    if sys.stdin is None:
        raise UserError("standard input is closed: pipe a log in, or name a file", status=3)
    descriptor = sys.stdin.buffer.fileno()
    _widen(descriptor)
    while not stop.is_set():
        ready, _, _ = select.select([descriptor], [], [], POLL)
        if not ready:
            yield b""
            continue
        chunk = _gather(descriptor)
        if not chunk:
            return
        yield chunk


def _widen(descriptor: int) -> None:
    """Lets a pipe hold more, where the system knows how; anything else stays as it is."""
    for size in PIPES:
        with contextlib.suppress(ImportError, AttributeError, OSError):
            import fcntl

            if fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) < size:
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)
            return


def _gather(descriptor: int) -> bytes:
    """What waits in a pipe, up to ``MOST`` bytes: many reads' worth if its writer is ahead; ``b""`` at its end."""
    parts: list[bytes] = []
    size = 0
    while size < MOST:
        part = os.read(descriptor, MOST - size)
        parts.append(part)
        size += len(part)
        if not part or not select.select([descriptor], [], [], REFILL if size >= CHUNK else 0)[0]:
            break
    return b"".join(parts)
