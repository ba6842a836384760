"""Standard streams: what the system says against the output is a sentence, and a long silence is explained."""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from analyzer.errors import UserError

PATIENCE = 5.0
"""Seconds of silence after which a reader is told that there is work going on."""
_OF_WRITING = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EAGAIN, errno.ENXIO,
}  # fmt: skip


def forget_output() -> None:
    """Drops what could not be written, of which Python would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refused(error: OSError) -> UserError:
    """The sentence on an error of the system that no one answered: of a named file, of the output, or of neither."""
    if error.filename:
        place = f"{error.filename}"
    else:
        place = "standard output" if error.errno in _OF_WRITING else "the system refused"
    return UserError(f"{place}: {error.strerror or error}")


@contextmanager
def patience(paths: Sequence[str], after: float = PATIENCE, *, kept: bool = False) -> Iterator[None]:
    """Says on a terminal's standard error that ``paths`` are still being read, if the block takes long.

    A pipe may never end (``docker logs -f``): which command is for that is said then. ``kept``: Ctrl-C gives what
    came.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(after, _say_slow, [any(map(may_not_end, paths)), kept, after])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say_slow(endless: bool, kept: bool, seconds: float) -> None:
    text = f"kvautopsy: still reading after {seconds:g} s"
    if endless:
        text += "; for a pipe that does not end (docker logs -f) take kvautopsy follow"
        text += ", or Ctrl-C for the report on what has come" * kept
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def may_not_end(path: str) -> bool:
    """Whether ``path`` is a pipe or a terminal, which can be read once only."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if path == "-" else os.stat(path).st_mode  # noqa: PTH116
    except (OSError, ValueError, AttributeError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
